#pragma once

#include <chrono>
#include <initializer_list>
#include <map>
#include <optional>
#include <source_location>
#include <string>
#include <string_view>
#include <vector>

#include "support/network.hpp"
#include "support/process.hpp"

namespace support {

/// The plugin under test: the environment variable FABRIC_NIC, else the one that was built with the tests.
[[nodiscard]] std::string plugin_binary();

/// What a call of the plugin gave: `json` is its stdout, null when it printed nothing and discarded when it printed something else.
struct Answer : Ending {
  Json json;
};

/// The values of one call, as a runtime passes them.
struct Call {
  std::string command;
  std::map<std::string, std::string> variables;  ///< CNI_*; a variable that is not here is not set
  std::string input;
  std::vector<std::string> wrapper;      ///< words in front of the plugin's path: strace and its options
  std::string binary = plugin_binary();  ///< another plugin, for chains
};

[[nodiscard]] Program program(const Call& call);
[[nodiscard]] Answer answer(Ending ending);
[[nodiscard]] inline Answer call(const Call& call) {
  return answer(run(program(call)));
}

/// A configuration at 1.0.0 that takes `nic0`, with `keys` added or replaced; null removes one.
[[nodiscard]] Json config(const Json& keys = Json::object());

/// One attachment: what stays the same from its ADD to its DEL.
struct Attachment {
  Json network = config();
  std::string container = "c1";
  std::string net_ns = "/run/netns/pod";
  std::string interface = "net1";
  std::string args = {};
  std::string path = "/run/plugins:/usr/lib/cni";
  std::vector<std::string> wrapper = {};
  std::string binary = plugin_binary();

  [[nodiscard]] Call to_call(const std::string& command) const;
  [[nodiscard]] Answer add() const { return call(to_call("ADD")); }
  [[nodiscard]] Answer del() const { return call(to_call("DEL")); }
  /// CHECK of what ADD answered, which is its prevResult.
  [[nodiscard]] Answer check(const Json& result) const;
  /// The same attachment with other words in front of the plugin's path.
  [[nodiscard]] Attachment under(std::vector<std::string> words) const;
};

/// Fails the test unless the call succeeded; returns what it printed.
Json expect_success(const Answer& answer, std::source_location where = std::source_location::current());

/// Checks that the call failed with a CNI error of this code (any code where none is given) whose message and details mention every word.
/// Returns both texts.
std::string expect_error(const Answer& answer, std::optional<int> code, std::initializer_list<std::string_view> words,
                         std::source_location where = std::source_location::current());

/// The words that the text does not mention; empty when it mentions them all.
[[nodiscard]] std::string missing_words(std::string_view text, std::initializer_list<std::string_view> words);

/// Writes an executable shell script /run/plugins/NAME, which CNI_PATH finds before Debian's plugins.
void write_plugin(const std::string& name, const std::string& script);

inline const std::string kDataDirectory = "/var/lib/cni/fabric-nic";

/// The records of devices that are away.
[[nodiscard]] std::vector<std::string> record_files();
/// Checks that nothing of an attachment is left in the data directory: no record, nothing owed.
void expect_no_traces(std::source_location where = std::source_location::current());

/// Checks that nic0 is in the host as it was in `before`, and that no trace of an attachment is left.
void expect_home(const Snapshot& before, std::source_location where = std::source_location::current());

/// strace, writing to /run/trace. LeakSanitizer cannot run under it and is switched off.
[[nodiscard]] std::vector<std::string> strace(const std::vector<std::string>& options);
/// What the last strace wrote, one call a line; with `word`, the lines that have it.
[[nodiscard]] std::vector<std::string> trace(const std::string& word = {});
/// Whether the line is a request that moves a link to another namespace, or sets something of it (`IFLA_MTU`). strace decodes what goes
/// over sockets of its own namespace and shows the bytes of what goes over the pod's.
[[nodiscard]] bool is_move(const std::string& line);
[[nodiscard]] bool sets_attribute(const std::string& line, const std::string& attribute);
/// The requests in the last trace that move a link.
[[nodiscard]] std::vector<std::string> traced_moves();
/// strace that does something to the `number`th of these calls: `injection` is what its inject= takes, `error=ENOBUFS`.
[[nodiscard]] std::vector<std::string> inject(const std::string& calls, const std::string& injection, int number);
/// Whether the last strace came to the call that it was to do something to.
[[nodiscard]] bool was_injected();

/// How a program talks with the kernel over netlink.
inline const std::string kSends = "sendto,sendmsg";
inline const std::string kReceives = "recvfrom,recvmsg";
/// How it leaves files behind. The question marks let strace pass over what an architecture does not have.
inline const std::string kRenames = "?rename,?renameat,?renameat2";
inline const std::string kUnlinks = "?unlink,?unlinkat,?rmdir";

}  // namespace support
