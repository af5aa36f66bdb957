#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
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

/// The routes that leave by an interface.
struct InterfaceRoutes {
  std::vector<Route> routes;
  std::vector<std::string> others;  ///< destinations of those that have more to them than a Route can say: several next hops, a TOS, ...
};

/// The routes by which the interface is left, of every table, without those the kernel made by itself or learnt from router advertisements.
/// Throws Error.
[[nodiscard]] InterfaceRoutes routes(Socket& socket, int index);

/// Whether the payload of RTM_NEWROUTE is that of a route which a Route holds whole.
[[nodiscard]] bool is_plain_route(std::span<const std::byte> payload);

/// Whether a default route of any table leaves by the interface, as one next hop among several too. Throws Error.
[[nodiscard]] bool carries_default_route(Socket& socket, int index);

/// Whether the main table has a default route of the family, by any interface. Throws Error.
[[nodiscard]] bool has_default_route(Socket& socket, Family family);

/// Beside the routes that are there (NLM_F_APPEND). Throws Error; EEXIST when this very route is there.
void add_route(Socket& socket, int index, const Route& route, std::string_view attempt);

}  // namespace netlink
