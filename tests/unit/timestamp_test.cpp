#include "cni/timestamp.hpp"

#include <array>
#include <ctime>
#include <regex>

#include "support/catch.hpp"

namespace {

/// The C library's idea of the time, to the second.
std::string seconds_from_now(int seconds) {
  const auto now = std::time(nullptr) + seconds;
  std::tm fields{};
  std::array<char, 32> text{};
  std::strftime(text.data(), text.size(), "%FT%T", ::gmtime_r(&now, &fields));
  return text.data();
}

}  // namespace

TEST_CASE("a timestamp is now, in UTC, to the millisecond") {
  const auto before = seconds_from_now(0);
  const auto stamp = cni::timestamp();
  const auto after = seconds_from_now(1);  // time() lags behind by a tick
  CHECK(std::regex_match(stamp, std::regex{R"(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z)"}));
  CHECK(stamp.substr(0, before.size()) >= before);
  CHECK(stamp.substr(0, after.size()) <= after);
}
