#pragma once

#include <functional>
#include <map>
#include <string>

#include "cni/context.hpp"

namespace cni {

/// What an invocation gets from the outside.
struct Invocation {
  std::map<std::string, std::string> variables;  ///< the whole environment
  std::function<std::string()> read_input;       ///< stdin, at most kMaximumInput + 1 bytes; throws netlink::Error
};

/// One call of the plugin, from its variables to its answer: the checks in the order of the specification's library, the verb, and every
/// error as JSON. Throws nothing that is an std::exception.
[[nodiscard]] Outcome run(const Invocation& invocation, Log& log);

/// What is said on stderr when the plugin is run by hand, without CNI_COMMAND.
[[nodiscard]] std::string about();

}  // namespace cni
