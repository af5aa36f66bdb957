#pragma once

#include <string>

namespace cni {

/// Now, as RFC 3339 has it: UTC, to the millisecond.
[[nodiscard]] std::string timestamp();

}  // namespace cni
