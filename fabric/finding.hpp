#pragma once

#include <string>

namespace fabric {

enum class Verdict {
  holds,
  fails,
  unknown,  ///< cannot be told here: the advice says why
};

/// What was found of one fact.
struct Finding {
  std::string id;  ///< `port_active`, `active_mtu`, `gid`
  Verdict verdict = Verdict::unknown;
  std::string seen;    ///< for `... is SEEN`
  std::string wanted;  ///< for `... and shall be WANTED`
  std::string advice;  ///< what to do, one sentence

  bool operator==(const Finding&) const = default;
};

}  // namespace fabric
