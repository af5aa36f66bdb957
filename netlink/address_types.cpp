#include "netlink/address_types.hpp"

#include <arpa/inet.h>

#include <algorithm>
#include <charconv>
#include <random>

namespace netlink {

namespace {

constexpr std::size_t kEthernetLength = 6;
constexpr std::size_t kInfinibandLength = 20;

std::size_t byte_count(Family family) {
  return family == Family::v4 ? 4 : 16;
}

}  // namespace

std::optional<HardwareAddress> HardwareAddress::parse(std::string_view text) {
  std::vector<std::byte> bytes;
  if (text.size() < 3) {
    return std::nullopt;
  }
  const char separator = text[2];
  if (separator != ':' && separator != '-') {
    return std::nullopt;
  }
  for (std::size_t at = 0; at < text.size(); at += 3) {
    if (at + 2 > text.size() || (at + 2 < text.size() && text[at + 2] != separator)) {
      return std::nullopt;
    }
    std::uint8_t value = 0;
    const auto* end = text.data() + at + 2;
    if (auto [stop, error] = std::from_chars(text.data() + at, end, value, 16); stop != end || error != std::errc{}) {
      return std::nullopt;
    }
    bytes.push_back(std::byte{value});
  }
  if (text.back() == separator || (bytes.size() != kEthernetLength && bytes.size() != kInfinibandLength)) {
    return std::nullopt;
  }
  return HardwareAddress{bytes};
}

HardwareAddress HardwareAddress::random() {
  std::random_device random;
  std::uniform_int_distribution<unsigned> any_byte{0, 0xff};
  std::array<std::byte, kEthernetLength> bytes{};
  std::ranges::generate(bytes, [&] { return std::byte{static_cast<unsigned char>(any_byte(random))}; });
  bytes.front() = (bytes.front() & std::byte{0xfc}) | std::byte{0x02};
  return HardwareAddress{bytes};
}

std::string HardwareAddress::text() const {
  static constexpr std::string_view kDigits = "0123456789abcdef";
  std::string out;
  for (const auto byte : bytes_) {
    if (!out.empty()) {
      out += ':';
    }
    const auto value = std::to_integer<unsigned>(byte);
    out += kDigits[value >> 4U];
    out += kDigits[value & 0xfU];
  }
  return out;
}

bool HardwareAddress::is_zero() const {
  return std::ranges::all_of(bytes_, [](std::byte byte) { return byte == std::byte{0}; });
}

bool HardwareAddress::is_multicast() const {
  return !bytes_.empty() && (bytes_.front() & std::byte{1}) != std::byte{0};
}

IpAddress::IpAddress(Family family, std::span<const std::byte> bytes) : family_(family) {
  std::ranges::copy(bytes.first(std::min(bytes.size(), byte_count(family))), bytes_.begin());
}

std::optional<IpAddress> IpAddress::parse(std::string_view text) {
  if (text.contains('\0')) {  // inet_pton would look no further
    return std::nullopt;
  }
  const std::string terminated{text};
  IpAddress address;
  if (::inet_pton(AF_INET, terminated.c_str(), address.bytes_.data()) == 1) {
    address.family_ = Family::v4;
    return address;
  }
  if (::inet_pton(AF_INET6, terminated.c_str(), address.bytes_.data()) == 1) {
    address.family_ = Family::v6;
    return address;
  }
  return std::nullopt;
}

std::span<const std::byte> IpAddress::bytes() const {
  return std::span{bytes_}.first(byte_count(family_));
}

std::string IpAddress::text() const {
  std::array<char, INET6_ADDRSTRLEN> buffer{};
  ::inet_ntop(static_cast<int>(family_), bytes_.data(), buffer.data(), buffer.size());
  return buffer.data();
}

bool IpAddress::is_unspecified() const {
  return std::ranges::all_of(bytes(), [](std::byte byte) { return byte == std::byte{0}; });
}

bool IpAddress::is_link_local() const {
  if (family_ == Family::v4) {
    return bytes_[0] == std::byte{169} && bytes_[1] == std::byte{254};
  }
  return bytes_[0] == std::byte{0xfe} && (bytes_[1] & std::byte{0xc0}) == std::byte{0x80};
}

std::optional<IpPrefix> IpPrefix::parse(std::string_view text) {
  const auto slash = text.find('/');
  if (slash == std::string_view::npos) {
    return std::nullopt;
  }
  const auto address = IpAddress::parse(text.substr(0, slash));
  const auto digits = text.substr(slash + 1);
  std::uint8_t length = 0;
  const auto* end = digits.data() + digits.size();
  const auto [stop, error] = std::from_chars(digits.data(), end, length);
  if (!address || digits.empty() || stop != end || error != std::errc{} || length > byte_count(address->family()) * 8) {
    return std::nullopt;
  }
  return IpPrefix{*address, length};
}

std::string IpPrefix::text() const {
  return address.text() + '/' + std::to_string(length);
}

IpAddress IpPrefix::broadcast() const {
  const auto masked = network().address;
  std::array<std::byte, 16> bytes{};
  const auto whole = masked.bytes();
  for (std::size_t at = 0; at < whole.size(); ++at) {
    const auto bits = std::clamp(static_cast<int>(length) - static_cast<int>(at * 8), 0, 8);
    bytes.at(at) = whole[at] | std::byte(0xffU >> static_cast<unsigned>(bits));
  }
  return IpAddress{address.family(), std::span{bytes}.first(whole.size())};
}

IpPrefix IpPrefix::network() const {
  std::array<std::byte, 16> bytes{};
  const auto whole = address.bytes();
  for (std::size_t at = 0; at < whole.size(); ++at) {
    const auto bits = std::clamp(static_cast<int>(length) - static_cast<int>(at * 8), 0, 8);
    bytes.at(at) = whole[at] & std::byte(0xff00U >> static_cast<unsigned>(bits));
  }
  return IpPrefix{IpAddress{address.family(), std::span{bytes}.first(whole.size())}, length};
}

}  // namespace netlink
