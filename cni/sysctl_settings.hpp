#pragma once

#include <vector>

#include "cni/config.hpp"
#include "cni/json.hpp"

namespace cni {

/// Reads the object `sysctl` of a configuration. Throws Error 7 for a key that leads out of net/, two keys for one sysctl, or a value that
/// is neither a text nor a whole number.
[[nodiscard]] std::vector<SysctlSetting> read_sysctls(const Value& object);

/// `stronger` replaces what `settings` has for the same sysctl, and adds the rest.
void merge_sysctls(std::vector<SysctlSetting>& settings, std::vector<SysctlSetting> stronger);

}  // namespace cni
