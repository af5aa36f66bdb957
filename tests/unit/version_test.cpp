#include "cni/version.hpp"

#include "cni/error.hpp"
#include "support/catch.hpp"

namespace {

using cni::Version;

int code_of(auto&& action) {
  try {
    action();
  } catch (const cni::Error& error) {
    return error.code();
  }
  return 0;
}

}  // namespace

TEST_CASE("every version of the specification up to 1.1.0 is spoken") {
  CHECK(cni::parse_version("0.1.0") == Version::v0_1_0);
  CHECK(cni::parse_version("0.2.0") == Version::v0_2_0);
  CHECK(cni::parse_version("0.3.0") == Version::v0_3_0);
  CHECK(cni::parse_version("0.3.1") == Version::v0_3_1);
  CHECK(cni::parse_version("0.4.0") == Version::v0_4_0);
  CHECK(cni::parse_version("1.0.0") == Version::v1_0_0);
  CHECK(cni::parse_version("1.1.0") == Version::v1_1_0);
  for (const auto text : cni::kVersions) {
    CHECK(cni::text(cni::parse_version(text)) == text);
  }
}

TEST_CASE("a configuration without a version is 0.1.0") {
  CHECK(cni::parse_version("") == Version::v0_1_0);
}

TEST_CASE("a version that is well formed and unknown is code 1 and the details list ours") {
  const auto* const text = GENERATE("9.9.9", "1.2.0", "1.1", "1", "0.3", "01.1.0", "0.0.0", "0.3.2");
  INFO(text);
  try {
    static_cast<void>(cni::parse_version(text));
    FAIL("accepted");
  } catch (const cni::Error& error) {
    CHECK(error.code() == 1);
    CHECK(error.what() == "incompatible CNI versions: 'cniVersion' is '" + std::string{text} + "'");
    CHECK(error.details() == "this plugin speaks 0.1.0, 0.2.0, 0.3.0, 0.3.1, 0.4.0, 1.0.0, 1.1.0");
  }
}

TEST_CASE("what is not at most three numbers with dots is code 6") {
  const auto* const text = GENERATE("x", "1.1.0.0", "1.1.", ".1", "1..0", "v1.1.0", "1.1.0 ", " 1.1.0", "-1.0.0", "+1.0.0", "1.1.0-rc1",
                                    "99999999999999999999.0.0", ".", "1.1.x");
  INFO(text);
  CHECK(code_of([&] { static_cast<void>(cni::parse_version(text)); }) == 6);
  CHECK(code_of([&] { cni::require_version(text, Version::v0_4_0, "CHECK"); }) == 6);
}

TEST_CASE("a version of a megabyte is not quoted in full") {
  try {
    static_cast<void>(cni::parse_version(std::string(1U << 20U, '1')));
    FAIL("accepted");
  } catch (const cni::Error& error) {
    CHECK(std::string{error.what()}.size() < 200);
  }
}

TEST_CASE("CHECK needs 0.4.0, GC and STATUS need 1.1.0") {
  const auto check = [](std::string_view wanted) { return code_of([&] { cni::require_version(wanted, Version::v0_4_0, "CHECK"); }); };
  const auto gc = [](std::string_view wanted) { return code_of([&] { cni::require_version(wanted, Version::v1_1_0, "GC"); }); };
  CHECK(check("") == 1);
  CHECK(check("0.3.1") == 1);
  CHECK(check("0.4.0") == 0);
  CHECK(check("1.1.0") == 0);
  CHECK(gc("1.0.0") == 1);
  CHECK(gc("1.1.0") == 0);
}

TEST_CASE("a version too old or too new for a verb says so in the words of the specification's library") {
  using Catch::Matchers::StartsWith;
  CHECK_THROWS_WITH(cni::require_version("0.3.1", Version::v0_4_0, "CHECK"), StartsWith("config version does not allow CHECK"));
  CHECK_THROWS_WITH(cni::require_version("1.2.0", Version::v1_1_0, "STATUS"), StartsWith("plugin version does not allow STATUS"));
  CHECK(code_of([] { cni::require_version("1.2.0", Version::v1_1_0, "STATUS"); }) == 1);
}

TEST_CASE("versions are compared as numbers, not as text") {
  CHECK(code_of([] { cni::require_version("0.10.0", Version::v0_4_0, "CHECK"); }) == 0);
}

TEST_CASE("VERSION answers in the version it was asked in and lists all") {
  CHECK(cni::print_versions("0.4.0") == R"({
    "cniVersion": "0.4.0",
    "supportedVersions": [
        "0.1.0",
        "0.2.0",
        "0.3.0",
        "0.3.1",
        "0.4.0",
        "1.0.0",
        "1.1.0"
    ]
}
)");
}

TEST_CASE("VERSION answers in the newest version when it is asked in none that we speak") {
  const auto newest = cni::print_versions("1.1.0");
  CHECK(newest != cni::print_versions("1.0.0"));
  for (const auto* const asked : {"", "9.9.9", "1.1", "nonsense", "\xff"}) {
    CHECK(cni::print_versions(asked) == newest);
  }
}
