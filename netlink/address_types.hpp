#pragma once

#include <array>
#include <compare>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace netlink {

/// A link-layer address of any length: 6 bytes on Ethernet, 20 on InfiniBand.
class HardwareAddress {
 public:
  HardwareAddress() = default;
  explicit HardwareAddress(std::span<const std::byte> bytes) : bytes_(bytes.begin(), bytes.end()) {}

  /// Reads `02:ab:...` or `02-ab-...`, either case, 6 or 20 bytes; nothing when the text is not that.
  [[nodiscard]] static std::optional<HardwareAddress> parse(std::string_view text);

  /// One of 6 bytes that chance picks: unicast, and locally administered.
  [[nodiscard]] static HardwareAddress random();

  [[nodiscard]] std::string text() const;
  [[nodiscard]] std::span<const std::byte> bytes() const { return bytes_; }
  [[nodiscard]] bool is_empty() const { return bytes_.empty(); }
  [[nodiscard]] bool is_zero() const;
  /// The lowest bit of the first byte: a group address, which no interface may carry.
  [[nodiscard]] bool is_multicast() const;

  auto operator<=>(const HardwareAddress&) const = default;

 private:
  std::vector<std::byte> bytes_;
};

enum class Family : std::uint8_t { v4 = 2, v6 = 10 };  // AF_INET, AF_INET6

/// An IPv4 or IPv6 address.
class IpAddress {
 public:
  IpAddress() = default;
  /// `bytes` has 4 (v4) or 16 (v6) bytes.
  IpAddress(Family family, std::span<const std::byte> bytes);

  [[nodiscard]] static std::optional<IpAddress> parse(std::string_view text);

  [[nodiscard]] Family family() const { return family_; }
  [[nodiscard]] std::span<const std::byte> bytes() const;
  [[nodiscard]] std::string text() const;
  [[nodiscard]] bool is_unspecified() const;
  [[nodiscard]] bool is_link_local() const;

  auto operator<=>(const IpAddress&) const = default;

 private:
  Family family_ = Family::v4;
  std::array<std::byte, 16> bytes_{};
};

/// An address with its prefix length, `10.0.0.5/24`; host bits are kept.
struct IpPrefix {
  IpAddress address;
  std::uint8_t length = 0;

  /// Needs the `/length`; nothing when the text is not a prefix.
  [[nodiscard]] static std::optional<IpPrefix> parse(std::string_view text);

  [[nodiscard]] std::string text() const;
  /// The same prefix with its host bits cleared.
  [[nodiscard]] IpPrefix network() const;
  /// The same prefix with its host bits set: IPv4's broadcast address.
  [[nodiscard]] IpAddress broadcast() const;
  /// Any prefix of length 0: the kernel takes 2001:db8::1/0 for ::/0.
  [[nodiscard]] bool is_default() const { return length == 0; }

  auto operator<=>(const IpPrefix&) const = default;
};

}  // namespace netlink
