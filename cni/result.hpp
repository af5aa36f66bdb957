#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "cni/version.hpp"
#include "netlink/address_types.hpp"

namespace cni {

struct ResultInterface {
  std::string name;
  std::string mac;
  std::string sandbox;
  std::uint32_t mtu = 0;  ///< 0 = not said
  std::string socket_path;
  std::string pci_id;

  bool operator==(const ResultInterface&) const = default;
};

struct ResultIp {
  std::optional<std::size_t> interface;  ///< index into Result::interfaces
  netlink::IpPrefix address;
  std::optional<netlink::IpAddress> gateway;

  bool operator==(const ResultIp&) const = default;
};

struct ResultRoute {
  netlink::IpPrefix destination;
  std::optional<netlink::IpAddress> gateway;
  std::optional<std::uint32_t> mtu;
  std::optional<std::uint32_t> advmss;
  std::optional<std::uint32_t> priority;
  std::optional<std::uint32_t> table;
  std::optional<std::uint8_t> scope;

  bool operator==(const ResultRoute&) const = default;
};

struct Dns {
  std::vector<std::string> nameservers;
  std::string domain;
  std::vector<std::string> search;
  std::vector<std::string> options;

  [[nodiscard]] bool is_empty() const { return nameservers.empty() && domain.empty() && search.empty() && options.empty(); }
  bool operator==(const Dns&) const = default;
};

class Value;

/// Reads a `dns` object, of a result or a configuration. Throws Error 7.
[[nodiscard]] Dns read_dns(const Value& dns);

/// A CNI result, in the terms of the newest version.
struct Result {
  std::vector<ResultInterface> interfaces;
  std::vector<ResultIp> ips;
  std::vector<ResultRoute> routes;
  Dns dns;

  bool operator==(const Result&) const = default;
};

/// Reads a result (a prevResult or what an IPAM plugin printed) in its own cniVersion, or in `fallback` where it carries none.
/// `source` names it in errors (`prevResult`, `the result of IPAM plugin 'host-local'`). Throws Error: 6 when it is not JSON, 1 for a
/// version we do not speak, 7 when a value is missing, of the wrong type, or an `interface` index leads nowhere; the message names the key.
[[nodiscard]] Result parse_result(std::string_view text, Version fallback, std::string_view source);

/// The result in `version`, with four spaces of indentation and a newline at its end; whatever the version does not have is dropped, except
/// that `mtu` stays in 1.0.0, where Multus reads it. Throws Error 1 for 0.1.0 and 0.2.0 without an address: they cannot say it.
[[nodiscard]] std::string print_result(const Result& result, Version version);

}  // namespace cni
