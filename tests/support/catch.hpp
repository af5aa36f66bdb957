#pragma once

#include <string>

// Catch2 3 has one header for everything, Debian 12's Catch2 2 another, and they call a matcher differently.
#if __has_include(<catch2/catch_all.hpp>)
#include <catch2/catch_all.hpp>
inline auto containing(const std::string& text) {
  return Catch::Matchers::ContainsSubstring(text);
}
#else
#include <catch2/catch.hpp>
inline auto containing(const std::string& text) {
  return Catch::Matchers::Contains(text);
}
#endif
