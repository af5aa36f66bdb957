#include "cni/guid.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cstddef>
#include <limits>
#include <span>

#include "cni/config_keys.hpp"
#include "cni/error.hpp"

namespace cni {

namespace {

constexpr std::size_t kBytes = sizeof(Guid);
constexpr std::size_t kAddressLength = 20;
constexpr std::string_view kWantedGuid =
    "an InfiniBand GUID of 8 bytes such as \"02:11:22:33:44:55:66:77\", neither all zeros nor all ones,";
constexpr std::string_view kWantedPkey = "a partition key from 0x0001 to 0xffff such as \"0x8001\"";

std::optional<Value> given_in(const std::optional<Value>& object, std::string_view key) {
  return object ? given(*object, key) : std::nullopt;
}

std::optional<Guid> read_usable(const std::optional<Value>& value) {
  if (!value) {
    return std::nullopt;
  }
  const auto guid = parse_guid(value->text());
  if (!guid || !is_usable(*guid)) {
    value->refuse(kWantedGuid);
  }
  return guid;
}

std::optional<std::uint64_t> parse_number(std::string_view text) {
  const bool is_hexadecimal = text.starts_with("0x") || text.starts_with("0X");
  text.remove_prefix(is_hexadecimal ? 2 : 0);
  std::uint64_t number = 0;
  const auto* const end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, number, is_hexadecimal ? 16 : 10);
  return error == std::errc{} && stop == end ? std::optional{number} : std::nullopt;
}

}  // namespace

std::optional<Guid> parse_guid(std::string_view text) {
  constexpr std::size_t kLength = kBytes * 3 - 1;
  if (text.size() != kLength || (text[2] != ':' && text[2] != '-')) {
    return std::nullopt;
  }
  const char separator = text[2];
  Guid guid = 0;
  for (std::size_t at = 0; at < kLength; at += 3) {
    unsigned byte = 0;
    const auto* const end = text.data() + at + 2;
    const auto [stop, error] = std::from_chars(text.data() + at, end, byte, 16);
    if (error != std::errc{} || stop != end || (at + 2 < kLength && text[at + 2] != separator)) {
      return std::nullopt;
    }
    guid = guid << 8U | byte;
  }
  return guid;
}

std::string guid_text(Guid guid) {
  std::string text;
  for (std::size_t left = kBytes; left > 0; --left) {
    text += fmt::format("{}{:02x}", text.empty() ? "" : ":", (guid >> (8U * (left - 1))) & 0xffU);
  }
  return text;
}

bool is_usable(Guid guid) {
  return guid != kZeroGuid && guid != kGuidOfOnes;
}

std::optional<Guid> guid_of(const netlink::HardwareAddress& address) {
  if (address.bytes().size() != kAddressLength) {
    return std::nullopt;
  }
  Guid guid = 0;
  for (const auto byte : address.bytes().last(kBytes)) {
    guid = guid << 8U | std::to_integer<Guid>(byte);
  }
  return guid;
}

bool differ_at_most_in_guid(const netlink::HardwareAddress& one, const netlink::HardwareAddress& other) {
  constexpr std::size_t kBefore = kAddressLength - kBytes;
  return guid_of(one) && guid_of(other) && std::ranges::equal(one.bytes().first(kBefore), other.bytes().first(kBefore));
}

std::optional<Guid> read_guid(const std::optional<Value>& runtime, const std::optional<Value>& pod) {
  const auto by_runtime = read_usable(given_in(runtime, "infinibandGUID"));
  const auto by_pod = read_usable(given_in(pod, "guid"));
  if (by_runtime && by_pod && by_runtime != by_pod) {
    throw Error(Code::invalid_configuration,
                fmt::format("'runtimeConfig.infinibandGUID' is {} and 'args.cni.guid' is {}, one GUID was wanted", guid_text(*by_runtime),
                            guid_text(*by_pod)),
                "Say it once: with the capability 'infinibandGUID', or in the pod's cni-args.");
  }
  return by_runtime ? by_runtime : by_pod;
}

std::optional<std::uint16_t> read_pkey(const Value& config) {
  constexpr std::uint64_t kWithoutMembership = 0x7fff;
  const auto value = given(config, "pkey");
  if (!value) {
    return std::nullopt;
  }
  const auto number = value->json().is_string()            ? parse_number(value->text()).value_or(0)
                      : value->json().is_number_unsigned() ? value->json().get<std::uint64_t>()
                                                           : 0;  // which is no key
  if (number > std::numeric_limits<std::uint16_t>::max() || (number & kWithoutMembership) == 0) {
    value->refuse(kWantedPkey);
  }
  return static_cast<std::uint16_t>(number);
}

bool read_ib_kubernetes(const Value& config, const std::optional<Value>& pod) {
  constexpr std::string_view kMark = "mellanox.infiniband.app";
  const auto value = given(config, "ibKubernetesEnabled");
  if (!value || !value->boolean()) {
    return false;
  }
  const auto mark = given_in(pod, kMark);
  if (!mark || mark->json() != "configured") {
    throw Error(Code::try_again_later, fmt::format("'ibKubernetesEnabled' is true, and 'args.cni' has no '{}' of \"configured\"", kMark),
                "ib-kubernetes writes it into the pod's network annotation when it has given the pod a GUID: see whether it runs, or leave "
                "'ibKubernetesEnabled' out.");
  }
  return true;
}

}  // namespace cni
