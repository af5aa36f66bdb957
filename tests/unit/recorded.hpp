#pragma once

#include <cstddef>
#include <filesystem>
#include <string>
#include <vector>

#include "netlink/files.hpp"
#include "support/catch.hpp"

/// A recorded answer of the kernel, from tests/data/netlink: see README.md there.
inline std::vector<std::byte> recorded(const std::string& name) {
  const auto text = netlink::read_file(std::filesystem::path{TEST_DATA_DIR} / "netlink" / (name + ".hex"));
  REQUIRE(text);
  std::vector<std::byte> bytes;
  std::string digits;
  for (const char letter : *text) {
    if (letter == '\n') {
      continue;
    }
    digits += letter;
    if (digits.size() == 2) {
      bytes.push_back(static_cast<std::byte>(std::stoul(digits, nullptr, 16)));
      digits.clear();
    }
  }
  REQUIRE(digits.empty());
  return bytes;
}
