#pragma once

#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "netlink/address_types.hpp"
#include "netlink/socket.hpp"

namespace netlink {

/// A unicast route with one next hop.
struct Route {
  IpPrefix destination;
  std::optional<IpAddress> gateway;
  std::optional<IpAddress> source;  ///< the preferred source address
  std::uint32_t table = 254;        ///< RT_TABLE_MAIN
  std::uint32_t priority = 0;       ///< the metric; the kernel makes 0 a 1024 in IPv6
  std::uint8_t scope = 0;           ///< RT_SCOPE_*; IPv6 has none
  std::uint8_t protocol = 4;        ///< RTPROT_STATIC
  bool on_link = false;             ///< RTNH_F_ONLINK: the gateway is taken to be reachable
  std::optional<std::uint32_t> mtu;
  std::optional<std::uint32_t> advmss;

  bool operator==(const Route&) const = default;
};

/// The routes whose only next hop leaves by the interface, of every table, without those the kernel made by itself or learnt from router
/// advertisements. Throws Error.
[[nodiscard]] std::vector<Route> routes(Socket& socket, int index);

/// Whether a default route of any table leaves by the interface, as one next hop among several too. Throws Error.
[[nodiscard]] bool carries_default_route(Socket& socket, int index);

/// Whether the main table has a default route of the family, by any interface. Throws Error.
[[nodiscard]] bool has_default_route(Socket& socket, Family family);

/// Beside the routes that are there (NLM_F_APPEND). Throws Error; EEXIST when this very route is there.
void add_route(Socket& socket, int index, const Route& route, std::string_view attempt);

}  // namespace netlink
