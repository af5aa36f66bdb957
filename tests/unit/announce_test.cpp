#include "netlink/announce.hpp"

#include <random>

#include "support/catch.hpp"

using netlink::Family;
using netlink::gratuitous_arp;
using netlink::HardwareAddress;
using netlink::IpAddress;
using netlink::unsolicited_advertisement;

namespace {

std::vector<int> numbers(const std::vector<std::byte>& bytes) {
  std::vector<int> out;
  for (const auto byte : bytes) {
    out.push_back(std::to_integer<int>(byte));
  }
  return out;
}

/// A receiver's check, computed byte by byte with the carry put back at once (RFC 1071): over addresses, length, protocol and the whole
/// message it has to be 0xffff.
int checksum_seen_by_receiver(const std::vector<int>& packet) {
  constexpr std::size_t kHeader = 40;
  constexpr std::size_t kSource = 8;
  int sum = 0;
  const auto add = [&](int high, int low) {
    sum += high * 256 + low;
    sum = sum >= 0x10000 ? sum - 0x10000 + 1 : sum;
  };
  for (std::size_t at = kSource; at < packet.size(); at += 2) {
    add(packet[at], packet[at + 1]);
  }
  add(0, static_cast<int>(packet.size() - kHeader));
  add(0, 58);
  return sum;
}

}  // namespace

TEST_CASE("a gratuitous ARP request names the address as sender and as target") {
  const auto packet = gratuitous_arp(HardwareAddress::parse("02:ab:cd:ef:00:01").value(), IpAddress::parse("10.0.200.5").value());
  // clang-format off
  CHECK(numbers(packet) == std::vector{
      0, 1,  8, 0,  6, 4,  0, 1,
      0x02, 0xab, 0xcd, 0xef, 0x00, 0x01,  10, 0, 200, 5,
      0, 0, 0, 0, 0, 0,  10, 0, 200, 5});
  // clang-format on
}

TEST_CASE("an unsolicited advertisement goes from the address to all nodes, with the override flag and the new link-layer address") {
  const auto packet = unsolicited_advertisement(HardwareAddress::parse("02:ab:cd:ef:00:01").value(), IpAddress::parse("fd00::5").value());
  // clang-format off
  CHECK(numbers(packet) == std::vector{
      0x60, 0, 0, 0,  0, 32,  58, 255,
      0xfd, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 5,
      0xff, 2, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1,
      136, 0,  0x8b, 0xf8,  0x20, 0, 0, 0,
      0xfd, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 5,
      2, 1,  0x02, 0xab, 0xcd, 0xef, 0x00, 0x01});
  // clang-format on
}

TEST_CASE("a receiver finds the checksum of an unsolicited advertisement right, whatever the addresses") {
  std::mt19937 random{3};
  for (int round = 0; round < 500; ++round) {
    std::vector<std::byte> address(16);
    std::vector<std::byte> hardware(6);
    for (auto* bytes : {&address, &hardware}) {
      for (auto& byte : *bytes) {
        byte = static_cast<std::byte>(round % 10 == 0 ? 0xff : random());  // all ones: as many carries as there can be
      }
    }
    CAPTURE(round);
    CHECK(checksum_seen_by_receiver(numbers(unsolicited_advertisement(HardwareAddress{hardware}, IpAddress{Family::v6, address}))) ==
          0xffff);
  }
}
