#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "netlink/link.hpp"
#include "netlink/net_ns.hpp"
#include "netlink/roots.hpp"
#include "netlink/socket.hpp"

namespace netlink {

/// One value by its path below /proc/sys, in which `IFNAME` stands for the interface: `net/ipv4/conf/IFNAME/arp_ignore`.
struct Sysctl {
  std::string path;
  std::string value;
};

/// Sysctls of one interface. Those that RTM_GETLINK carries stay the numbers that they come as: a hundred texts, made, written and read
/// again, would cost more than the rest of an ADD.
struct Sysctls {
  std::vector<std::int32_t> ipv4;             ///< net/ipv4/conf/IFNAME, at IPV4_DEVCONF_* - 1
  std::vector<std::int32_t> ipv6;             ///< net/ipv6/conf/IFNAME, at DEVCONF_*
  std::map<std::string, std::string> others;  ///< by path; they go before the numbers

  [[nodiscard]] std::optional<std::string> find(const std::string& path) const;
  /// Those of these that `now` does not have, or has otherwise.
  [[nodiscard]] std::vector<Sysctl> differing_from(const Sysctls& now) const;
  bool operator==(const Sysctls&) const = default;
};

/// The sysctls that RTM_GETLINK itself carries: nearly all of net/ipv4/conf and net/ipv6/conf, at no cost. The names are those of Linux
/// 6.18. Left out: what cannot be written, and what follows the MTU.
[[nodiscard]] Sysctls carried_sysctls(const Link& link);

/// The rest of conf, read in the namespace that the thread is in; of a kernel newer than the names, whatever it carries without one here.
/// Throws Error.
[[nodiscard]] std::map<std::string, std::string> uncarried_sysctls(const Link& link, const Roots& roots);

/// The carried ones, the rest of conf, and net/*/neigh where it is not the default: all that a move takes away. Throws Error.
[[nodiscard]] Sysctls all_sysctls(const Link& link, Socket& socket, const Roots& roots);

/// Reads those `others` that `like` has, as far as they are there.
void read_others(const Sysctls& like, const std::string& interface, const NetNs& net_ns, const Roots& roots, Sysctls& into);

/// One value in a namespace; nothing when there is no such file or it cannot be read.
[[nodiscard]] std::optional<std::string> read_sysctl(const std::string& path, const std::string& interface, const NetNs& net_ns,
                                                     const Roots& roots);

/// Throws Error.
void write_sysctl(const std::string& path, const std::string& interface, const std::string& value, const NetNs& net_ns, const Roots& roots);

}  // namespace netlink
