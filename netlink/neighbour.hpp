#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <vector>

#include "netlink/address_types.hpp"
#include "netlink/socket.hpp"

namespace netlink {

/// The settings of a neighbour table (ARP, or IPv6 neighbour discovery): for one interface, or those that a new interface gets. The kernel
/// has one set of the latter for all network namespaces.
struct NeighbourSettings {
  Family family = Family::v4;
  std::optional<int> index;       ///< nothing: of a new interface
  std::vector<std::byte> values;  ///< NDTPA_* and value one behind the other, without what the kernel chooses itself
};

/// Reads the payload of RTM_NEWNEIGHTBL; nothing when it has no settings of a table that is known here.
[[nodiscard]] std::optional<NeighbourSettings> parse_neighbour_settings(std::span<const std::byte> payload);

/// The tables in which the interface has other settings than a new one. Throws Error.
[[nodiscard]] std::vector<Family> changed_neighbour_tables(Socket& socket, int index);

}  // namespace netlink
