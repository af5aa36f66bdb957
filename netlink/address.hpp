#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "netlink/address_types.hpp"
#include "netlink/socket.hpp"

namespace netlink {

/// An address of an interface.
struct InterfaceAddress {
  IpPrefix prefix;
  std::optional<IpAddress> peer;  ///< of a point-to-point address
  std::optional<IpAddress> broadcast;
  std::uint8_t scope = 0;               ///< RT_SCOPE_*
  std::uint32_t flags = 0;              ///< IFA_F_*
  std::string label;                    ///< IPv4; empty = the interface's name
  std::optional<std::uint32_t> metric;  ///< of the route that comes with the address, where it is not the usual one

  [[nodiscard]] bool has_flag(std::uint32_t flag) const { return (flags & flag) != 0; }
};

/// The addresses of the interface, both families. Throws Error.
[[nodiscard]] std::vector<InterfaceAddress> addresses(Socket& socket, int index);

/// Throws Error; EEXIST when the address is there.
void add_address(Socket& socket, int index, const InterfaceAddress& address, std::string_view attempt);

}  // namespace netlink
