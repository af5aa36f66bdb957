#pragma once

#include <map>
#include <optional>
#include <string>

#include "netlink/link.hpp"
#include "netlink/net_ns.hpp"
#include "netlink/roots.hpp"

namespace netlink {

/// Values by path below /proc/sys, in which `IFNAME` stands for the interface: `net/ipv4/conf/IFNAME/arp_ignore`.
using Sysctls = std::map<std::string, std::string>;

/// The per-interface sysctls under net/ipv4/conf and net/ipv6/conf that RTM_GETLINK itself carries: nearly all, at no cost. The names are
/// those of Linux 6.12. Left out: what cannot be written, and what follows the MTU.
[[nodiscard]] Sysctls carried_sysctls(const Link& link);

/// Those and the rest of conf, and net/*/neigh, from procfs: all that a move resets to the target's defaults.
[[nodiscard]] Sysctls interface_sysctls(const Link& link, const NetNs& net_ns, const Roots& roots);

/// One value in a namespace; nothing when there is no such file or it cannot be read.
[[nodiscard]] std::optional<std::string> read_sysctl(const std::string& path, const std::string& interface, const NetNs& net_ns,
                                                     const Roots& roots);

/// Throws Error.
void write_sysctl(const std::string& path, const std::string& interface, const std::string& value, const NetNs& net_ns, const Roots& roots);

}  // namespace netlink
