#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "netlink/address_types.hpp"
#include "netlink/net_ns.hpp"

namespace netlink {

/// A gratuitous ARP request as it follows the Ethernet header: sender and target are `address` (RFC 5227, section 3).
[[nodiscard]] std::vector<std::byte> gratuitous_arp(const HardwareAddress& hardware, const IpAddress& address);

/// An unsolicited neighbour advertisement to all nodes with the override flag (RFC 4861, section 7.2.6), IPv6 header included.
[[nodiscard]] std::vector<std::byte> unsolicited_advertisement(const HardwareAddress& hardware, const IpAddress& address);

/// Tells the neighbours on the interface where the addresses are now, so that none of them goes on sending to their former owner.
/// For 6-byte link-layer addresses; others are left alone. Throws Error at the first that cannot be sent.
void announce(const NetNs& net_ns, int index, const HardwareAddress& hardware, std::span<const IpAddress> addresses);

}  // namespace netlink
