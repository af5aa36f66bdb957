#include "netlink/sysctl.hpp"

#include <linux/ipv6.h>

#include <algorithm>
#include <array>
#include <span>
#include <utility>

#include "netlink/error.hpp"
#include "netlink/files.hpp"
#include "netlink/neighbour.hpp"

namespace netlink {

namespace {

constexpr std::string_view kPlaceholder = "IFNAME";

/// What a number stands for in its file.
enum class Unit : std::uint8_t { same, natural, seconds };

/// A number that RTM_GETLINK carries. Without a name: no file shows it, or it cannot be written.
struct Carried {
  std::string_view name;
  Unit unit = Unit::same;

  constexpr Carried(const char* given, Unit of = Unit::same) : name(given), unit(of) {}  // NOLINT: a table of names reads best
};

// At IPV4_DEVCONF_* - 1 (linux/ip.h).
constexpr std::array<Carried, 33> kIpv4{"forwarding",
                                        "",  // mc_forwarding belongs to the multicast router
                                        "proxy_arp",
                                        "accept_redirects",
                                        "secure_redirects",
                                        "send_redirects",
                                        "shared_media",
                                        "rp_filter",
                                        "accept_source_route",
                                        "bootp_relay",
                                        "log_martians",
                                        "tag",
                                        "arp_filter",
                                        "medium_id",
                                        "disable_xfrm",
                                        "disable_policy",
                                        "force_igmp_version",
                                        "arp_announce",
                                        "arp_ignore",
                                        "promote_secondaries",
                                        "arp_accept",
                                        "arp_notify",
                                        "accept_local",
                                        "src_valid_mark",
                                        "proxy_arp_pvlan",
                                        "route_localnet",
                                        "igmpv2_unsolicited_report_interval",
                                        "igmpv3_unsolicited_report_interval",
                                        "ignore_routes_with_linkdown",
                                        "drop_unicast_in_l2_multicast",
                                        "drop_gratuitous_arp",
                                        "bc_forwarding",
                                        "arp_evict_nocarrier"};

// At DEVCONF_* (linux/ipv6.h).
constexpr std::array<Carried, 60> kIpv6{"forwarding",
                                        "hop_limit",
                                        "",  // mtu follows the link's
                                        "accept_ra",
                                        "accept_redirects",
                                        "autoconf",
                                        "dad_transmits",
                                        "router_solicitations",
                                        {"router_solicitation_interval", Unit::seconds},
                                        {"router_solicitation_delay", Unit::seconds},
                                        "use_tempaddr",
                                        "temp_valid_lft",
                                        "temp_prefered_lft",
                                        "regen_max_retry",
                                        "max_desync_factor",
                                        "max_addresses",
                                        "force_mld_version",
                                        "accept_ra_defrtr",
                                        "accept_ra_pinfo",
                                        "accept_ra_rtr_pref",
                                        {"router_probe_interval", Unit::seconds},
                                        "accept_ra_rt_info_max_plen",
                                        "proxy_ndp",
                                        "optimistic_dad",
                                        "accept_source_route",
                                        "",  // mc_forwarding
                                        "disable_ipv6",
                                        "accept_dad",
                                        "force_tllao",
                                        "ndisc_notify",
                                        "mldv1_unsolicited_report_interval",
                                        "mldv2_unsolicited_report_interval",
                                        "suppress_frag_ndisc",
                                        "accept_ra_from_local",
                                        "use_optimistic",
                                        "accept_ra_mtu",
                                        "",  // stable_secret is no integer
                                        "use_oif_addrs_only",
                                        "accept_ra_min_hop_limit",
                                        "ignore_routes_with_linkdown",
                                        "drop_unicast_in_l2_multicast",
                                        "drop_unsolicited_na",
                                        "keep_addr_on_down",
                                        {"router_solicitation_max_interval", Unit::seconds},
                                        "seg6_enabled",
                                        "seg6_require_hmac",
                                        "enhanced_dad",
                                        "addr_gen_mode",
                                        "disable_policy",
                                        "accept_ra_rt_info_min_plen",
                                        "ndisc_tclass",
                                        "rpl_seg_enabled",
                                        {"ra_defrtr_metric", Unit::natural},
                                        "ioam6_enabled",
                                        {"ioam6_id", Unit::natural},
                                        {"ioam6_id_wide", Unit::natural},
                                        "ndisc_evict_nocarrier",
                                        "accept_untracked_na",
                                        "accept_ra_min_lft",
                                        "force_forwarding"};

constexpr std::string_view kIpv4Directory = "net/ipv4/conf/IFNAME/";
constexpr std::string_view kIpv6Directory = "net/ipv6/conf/IFNAME/";

// What net/ipv6/conf has besides, up to Linux 6.18; net/ipv4/conf has nothing.
constexpr std::array<std::string_view, 4> kIpv6Files{"ra_honor_pio_life", "ra_honor_pio_pflag", "regen_min_advance", "stable_secret"};

// Read-only, following the link's, or an older spelling of a neighbour beside it in another unit.
constexpr std::array<std::string_view, 5> kLeftOut{"mc_forwarding", "mtu", "base_reachable_time", "retrans_time", "unres_qlen"};

std::string path_of(std::string_view directory, std::string_view name) {
  return std::string{directory} + std::string{name};
}

std::string real_path(std::string_view path, const std::string& interface, const Roots& roots) {
  std::string real = roots.proc + "/sys/" + std::string{path};
  if (const auto at = real.find(kPlaceholder); at != std::string::npos) {
    real.replace(at, kPlaceholder.size(), interface);
  }
  return real;
}

std::string text(std::int32_t number, Unit unit) {
  const auto natural = static_cast<std::uint32_t>(number);
  return unit == Unit::same ? std::to_string(number) : std::to_string(unit == Unit::natural ? natural : natural / 1000);
}

/// The numbers of one address family, and what they are called.
struct Numbers {
  std::string_view directory;
  std::span<const Carried> table;
  std::span<const std::int32_t> values;

  [[nodiscard]] std::size_t size() const { return std::min(table.size(), values.size()); }

  [[nodiscard]] std::optional<std::string> find(std::string_view path) const {
    if (!path.starts_with(directory)) {
      return std::nullopt;
    }
    const auto known = table.first(size());
    const auto found = std::ranges::find(known, path.substr(directory.size()), &Carried::name);
    return found == known.end() ? std::nullopt : std::optional{text(values[static_cast<std::size_t>(found - known.begin())], found->unit)};
  }
};

Numbers ipv4(const Sysctls& sysctls) {
  return {.directory = kIpv4Directory, .table = kIpv4, .values = sysctls.ipv4};
}

Numbers ipv6(const Sysctls& sysctls) {
  return {.directory = kIpv6Directory, .table = kIpv6, .values = sysctls.ipv6};
}

bool is_among(std::string_view directory, std::string_view name, const std::map<std::string, std::string>& others) {
  return std::ranges::any_of(others, [&](const auto& other) {
    const auto& path = other.first;
    return path.size() == directory.size() + name.size() && path.starts_with(directory) && path.ends_with(name);
  });
}

/// Adds those of the numbers in `wanted` that `now` does not have, or has otherwise.
void add_differing(const Numbers& numbers, const Numbers& numbers_now, const Sysctls& wanted, const Sysctls& now,
                   std::vector<Sysctl>& differing) {
  for (std::size_t at = 0; at < numbers.size(); ++at) {
    const auto& [name, unit] = numbers.table[at];
    const bool is_same_number = at < numbers_now.values.size() && numbers_now.values[at] == numbers.values[at];
    if (name.empty() || is_among(numbers.directory, name, wanted.others) ||
        (is_same_number && !is_among(numbers.directory, name, now.others))) {
      continue;
    }
    Sysctl sysctl{path_of(numbers.directory, name), text(numbers.values[at], unit)};
    if (now.find(sysctl.path) != sysctl.value) {
      differing.push_back(std::move(sysctl));
    }
  }
}

/// What a kernel newer than the table carries under numbers that have no name here is read under its own.
std::vector<std::string> names_to_read(const Numbers& numbers, std::span<const std::string_view> files, const std::string& interface,
                                       const Roots& roots) {
  if (numbers.values.size() <= numbers.table.size()) {
    return {files.begin(), files.end()};
  }
  auto names = directory_entries(real_path(numbers.directory, interface, roots));
  std::erase_if(names, [&](const std::string& name) {
    return std::ranges::find(kLeftOut, name) != kLeftOut.end() || numbers.find(path_of(numbers.directory, name));
  });
  return names;
}

void add_from_files(std::string_view directory, const std::vector<std::string>& names, const std::string& interface, const Roots& roots,
                    std::map<std::string, std::string>& sysctls) {
  for (auto& [name, value] : read_lines(real_path(directory, interface, roots), names)) {
    sysctls[path_of(directory, name)] = std::move(value);
  }
}

void add_neighbour_sysctls(Family family, const std::string& interface, const Roots& roots, std::map<std::string, std::string>& sysctls) {
  const std::string_view directory = family == Family::v4 ? "net/ipv4/neigh/IFNAME/" : "net/ipv6/neigh/IFNAME/";
  auto names = directory_entries(real_path(directory, interface, roots));
  std::erase_if(names, [](const std::string& name) { return std::ranges::find(kLeftOut, name) != kLeftOut.end(); });
  add_from_files(directory, names, interface, roots, sysctls);
}

}  // namespace

std::optional<std::string> Sysctls::find(const std::string& path) const {
  if (const auto other = others.find(path); other != others.end()) {
    return other->second;
  }
  auto found = netlink::ipv4(*this).find(path);
  return found ? found : netlink::ipv6(*this).find(path);
}

std::vector<Sysctl> Sysctls::differing_from(const Sysctls& now) const {
  std::vector<Sysctl> differing;
  add_differing(netlink::ipv4(*this), netlink::ipv4(now), *this, now, differing);
  add_differing(netlink::ipv6(*this), netlink::ipv6(now), *this, now, differing);
  for (const auto& [path, value] : others) {
    if (now.find(path) != value) {
      differing.push_back({path, value});
    }
  }
  return differing;
}

Sysctls carried_sysctls(const Link& link) {
  Sysctls sysctls{.ipv4 = link.ipv4_conf, .ipv6 = link.ipv6_conf, .others = {}};
  const auto has_mtu = link.ipv6_conf.size() > DEVCONF_MTU6;
  if (has_mtu && link.mtu && static_cast<std::uint32_t>(link.ipv6_conf[DEVCONF_MTU6]) != *link.mtu) {
    sysctls.others[path_of(kIpv6Directory, "mtu")] = std::to_string(link.ipv6_conf[DEVCONF_MTU6]);
  }
  return sysctls;
}

std::map<std::string, std::string> uncarried_sysctls(const Link& link, const Roots& roots) {
  const auto carried = carried_sysctls(link);
  std::map<std::string, std::string> sysctls;
  add_from_files(kIpv4Directory, names_to_read(ipv4(carried), {}, link.name, roots), link.name, roots, sysctls);
  add_from_files(kIpv6Directory, names_to_read(ipv6(carried), kIpv6Files, link.name, roots), link.name, roots, sysctls);
  return sysctls;
}

Sysctls all_sysctls(const Link& link, Socket& socket, const Roots& roots) {
  auto sysctls = carried_sysctls(link);
  const auto changed_tables = changed_neighbour_tables(socket, link.index);
  const NetNs::Visit visit{socket.net_ns()};
  sysctls.others.merge(uncarried_sysctls(link, roots));
  for (const auto family : changed_tables) {
    add_neighbour_sysctls(family, link.name, roots, sysctls.others);
  }
  return sysctls;
}

void read_others(const Sysctls& like, const std::string& interface, const NetNs& net_ns, const Roots& roots, Sysctls& into) {
  if (like.others.empty()) {
    return;
  }
  const NetNs::Visit visit{net_ns};
  for (const auto& [path, value] : like.others) {
    if (auto line = read_line(real_path(path, interface, roots))) {
      into.others[path] = std::move(*line);
    }
  }
}

std::optional<std::string> read_sysctl(const std::string& path, const std::string& interface, const NetNs& net_ns, const Roots& roots) {
  const NetNs::Visit visit{net_ns};
  return read_line(real_path(path, interface, roots));
}

void write_sysctl(const std::string& path, const std::string& interface, const std::string& value, const NetNs& net_ns,
                  const Roots& roots) {
  const NetNs::Visit visit{net_ns};
  write_existing_file(real_path(path, interface, roots), value);
}

}  // namespace netlink
