#include "cni/version.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <charconv>

#include "cni/error.hpp"
#include "cni/json.hpp"

namespace cni {

namespace {

using Numbers = std::array<unsigned, 3>;

Numbers parse_numbers(std::string_view version) {
  Numbers numbers{};
  const char* at = version.data();
  const char* const end = at + version.size();
  for (auto& number : numbers) {
    const auto [stop, error] = std::from_chars(at, end, number);
    if (error != std::errc{}) {
      break;
    }
    if (stop == end) {
      return numbers;
    }
    if (*stop != '.') {
      break;
    }
    at = stop + 1;
  }
  throw Error(Code::decode_failure,
              fmt::format("'cniVersion' is '{:.40}', numbers with dots such as '{}' were wanted", version, kVersions.back()));
}

std::string spoken_versions() {
  return fmt::format("this plugin speaks {}", fmt::join(kVersions, ", "));
}

}  // namespace

Version parse_version(std::string_view text) {
  if (text.empty()) {
    return Version::v0_1_0;
  }
  static_cast<void>(parse_numbers(text));
  const auto* const found = std::ranges::find(kVersions, text);
  if (found == kVersions.end()) {
    throw Error(Code::incompatible_version, fmt::format("incompatible CNI versions: 'cniVersion' is '{:.40}'", text), spoken_versions());
  }
  return static_cast<Version>(found - kVersions.begin());
}

void require_version(std::string_view wanted, Version minimum, std::string_view verb) {
  const auto numbers = parse_numbers(wanted.empty() ? text(Version::v0_1_0) : wanted);
  if (numbers < parse_numbers(text(minimum))) {
    throw Error(
        Code::incompatible_version,
        fmt::format("config version does not allow {}: 'cniVersion' is '{:.40}', '{}' or newer was wanted", verb, wanted, text(minimum)));
  }
  if (numbers > parse_numbers(kVersions.back())) {
    throw Error(Code::incompatible_version, fmt::format("plugin version does not allow {}: 'cniVersion' is '{:.40}'", verb, wanted),
                spoken_versions());
  }
}

std::string print_versions(std::string_view asked) {
  OrderedJson answer;
  answer["cniVersion"] = std::ranges::find(kVersions, asked) == kVersions.end() ? kVersions.back() : asked;
  answer["supportedVersions"] = kVersions;
  return print_json(answer);
}

}  // namespace cni
