#pragma once

#include <array>
#include <string>
#include <string_view>

namespace cni {

/// The versions of the specification that this plugin speaks, oldest first.
enum class Version { v0_1_0, v0_2_0, v0_3_0, v0_3_1, v0_4_0, v1_0_0, v1_1_0 };

inline constexpr std::array<std::string_view, 7> kVersions{"0.1.0", "0.2.0", "0.3.0", "0.3.1", "0.4.0", "1.0.0", "1.1.0"};

[[nodiscard]] constexpr std::string_view text(Version version) {
  return kVersions.at(static_cast<std::size_t>(version));
}

/// Throws Error: 6 when the text is not at most three numbers with dots, 1 when it is none of kVersions (the details list them).
/// Empty text is 0.1.0, as the specification's library has it.
[[nodiscard]] Version parse_version(std::string_view text);

/// `verb` needs a configuration of `minimum` or newer: throws Error 1 when `wanted` is older, 6 when it is no version at all,
/// 1 when no version that we speak is as new.
void require_version(std::string_view wanted, Version minimum, std::string_view verb);

/// The answer to CNI_COMMAND=VERSION, in the version that was asked for, or in the newest where we do not speak that one.
[[nodiscard]] std::string print_versions(std::string_view asked);

}  // namespace cni
