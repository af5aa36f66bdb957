#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace cni {

enum class Verb { add, del, check, gc, status, version };

/// The CNI_* variables of one call, checked.
struct Environment {
  std::string command;       ///< CNI_COMMAND as given
  std::optional<Verb> verb;  ///< nothing for a command that we do not know: stdin is looked at before it is refused
  std::string container_id;
  std::string net_ns;          ///< path; may be empty on DEL
  std::string interface_name;  ///< CNI_IFNAME, 1-15 bytes
  std::string args;            ///< CNI_ARGS as given, for IPAM
  std::string path;            ///< CNI_PATH
};

/// Checks in the order of the specification's library: malformed CONTAINERID and IFNAME first (code 4), then all that are missing, together
/// (code 4, `required env variables [CNI_NETNS,CNI_IFNAME] missing`). Throws Error.
[[nodiscard]] Environment read_environment(const std::map<std::string, std::string>& variables);

/// The network name and container id rule of the specification: a letter or digit, then letters, digits, `_`, `.`, `-`.
[[nodiscard]] bool is_identifier(std::string_view text);

/// The interface name rule: 1-15 bytes, not `.` or `..`, no `/`, `:` or white space; no `%` either, which the kernel takes for a template.
[[nodiscard]] bool is_interface_name(std::string_view text);

/// `K=V;K=V`: the last of repeated keys counts (Multus thin repeats them), empty text is no arguments.
/// Throws Error 4 when a part has no `=`. Unknown keys are nobody's business here: the runtime always sends some.
[[nodiscard]] std::map<std::string, std::string> parse_cni_args(std::string_view text);

}  // namespace cni
