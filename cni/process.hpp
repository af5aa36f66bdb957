#pragma once

#include <chrono>
#include <cstddef>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace cni {

/// A program to be run to its end.
struct Command {
  std::filesystem::path program;
  std::vector<std::string> arguments;
  std::vector<std::string> environment;  ///< `NAME=value`, all that the child gets
  std::string_view input;                ///< its stdin
  std::chrono::milliseconds time_limit{};
  std::size_t output_limit = std::size_t{4} << 20U;  ///< bytes of stdout that are accepted
  std::optional<int> inherited_fd;                   ///< one more descriptor than stdin, stdout and stderr
};

/// How it ended.
struct Ending {
  enum class Kind {
    exited,           ///< `status` is the exit status
    killed,           ///< by somebody else: `status` is the signal
    timed_out,        ///< by us, with its process group, when time_limit had passed
    printed_too_much  ///< by us, with its process group, at output_limit
  };
  Kind kind = Kind::exited;
  int status = 0;
  std::string output;  ///< stdout
  std::string errors;  ///< the first 32 KiB of stderr; the rest is read and dropped
};

/// Runs the command in a process group of its own. Returns when the child has ended, also while a grandchild keeps its output open.
/// Throws netlink::Error when it cannot be started or waited for (SIGCHLD must not be ignored).
[[nodiscard]] Ending run(const Command& command);

}  // namespace cni
