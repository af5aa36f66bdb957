#pragma once

#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "fabric/finding.hpp"
#include "fabric/port.hpp"
#include "netlink/address_types.hpp"

namespace fabric {

/// The active_mtu in bytes that a port has over a netdev with this MTU: the largest of 256, 512, 1024, 2048, 4096 that fits, beside 96
/// bytes of headers, but for the drivers that do not subtract these (irdma's, erdma, mana, efa, and those for iWARP: cxgb4, siw). Where
/// nothing fits it is 256, too: that is the least there is. `driver` is that of the bus device (`mlx5_core`, `ice`); of one that is not
/// known the lower is expected. Source: the drivers of Linux 6.12.
[[nodiscard]] std::uint32_t expected_active_mtu(std::uint32_t netdev_mtu, std::string_view driver);

/// Whether the port is ACTIVE.
[[nodiscard]] Finding port_active(const Port& port);
/// Whether active_mtu is at least as large as the netdev's MTU and the port's max_mtu allow; unknown where the driver does not tell it.
/// InfiniBand's follows the subnet manager and not the netdev: there it holds when it is the port's max_mtu, and is unknown otherwise.
[[nodiscard]] Finding active_mtu(const Port& port, std::uint32_t netdev_mtu, std::string_view driver);
/// Whether each address has a RoCE v2 GID on the netdev. Holds on InfiniBand and iWARP, which have no such, and without addresses (said in
/// `seen`).
[[nodiscard]] Finding gid(const Port& port, const std::vector<netlink::IpAddress>& addresses, int netdev_index);
/// The index of an address' RoCE v2 GID on the netdev.
[[nodiscard]] std::optional<std::uint32_t> gid_index(const Port& port, const netlink::IpAddress& address, int netdev_index);

}  // namespace fabric
