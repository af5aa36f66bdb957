#include "netlink/sysctl.hpp"

#include <array>
#include <span>
#include <string_view>
#include <utility>

#include "netlink/error.hpp"
#include "netlink/files.hpp"

namespace netlink {

namespace {

constexpr std::string_view kPlaceholder = "IFNAME";

// At IPV4_DEVCONF_* - 1 (linux/ip.h). An empty name is a value that no file shows, or that cannot be written.
constexpr std::array<std::string_view, 33> kIpv4Names{"forwarding",
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

// At DEVCONF_* (linux/ipv6.h). Empty as above, and for intervals: netlink has milliseconds where the file has seconds.
constexpr std::array<std::string_view, 59> kIpv6Names{"forwarding",
                                                      "hop_limit",
                                                      "mtu",
                                                      "accept_ra",
                                                      "accept_redirects",
                                                      "autoconf",
                                                      "dad_transmits",
                                                      "router_solicitations",
                                                      "",
                                                      "",
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
                                                      "",
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
                                                      "",
                                                      "seg6_enabled",
                                                      "seg6_require_hmac",
                                                      "enhanced_dad",
                                                      "addr_gen_mode",
                                                      "disable_policy",
                                                      "accept_ra_rt_info_min_plen",
                                                      "ndisc_tclass",
                                                      "rpl_seg_enabled",
                                                      "ra_defrtr_metric",
                                                      "ioam6_enabled",
                                                      "",
                                                      "",
                                                      "ndisc_evict_nocarrier",
                                                      "accept_untracked_na",
                                                      "accept_ra_min_lft"};

// Read-only, or an older spelling of a neighbour beside it in another unit.
bool is_left_out(std::string_view name) {
  return name == "mc_forwarding" || name == "base_reachable_time" || name == "retrans_time" || name == "unres_qlen";
}

std::string real_path(std::string_view path, const std::string& interface, const Roots& roots) {
  std::string real = roots.proc + "/sys/" + std::string{path};
  if (const auto at = real.find(kPlaceholder); at != std::string::npos) {
    real.replace(at, kPlaceholder.size(), interface);
  }
  return real;
}

constexpr const char* kIpv4Directory = "net/ipv4/conf/IFNAME";
constexpr const char* kIpv6Directory = "net/ipv6/conf/IFNAME";

void add_carried(const std::string& directory, std::span<const std::string_view> names, std::span<const std::int32_t> values,
                 Sysctls& sysctls) {
  for (std::size_t at = 0; at < std::min(names.size(), values.size()); ++at) {
    if (!names[at].empty()) {
      sysctls[directory + '/' + std::string{names[at]}] = std::to_string(values[at]);
    }
  }
}

/// A hundred files read one by one cost more than the rest of an ADD, so only those that netlink did not carry are read.
void add_from_files(const std::string& directory, const std::string& interface, const Roots& roots, Sysctls& sysctls) {
  const auto is_wanted = [&](const std::string& name) { return !sysctls.contains(directory + '/' + name) && !is_left_out(name); };
  for (auto& [name, value] : read_lines(real_path(directory, interface, roots), is_wanted)) {
    sysctls[directory + '/' + name] = std::move(value);
  }
}

}  // namespace

Sysctls carried_sysctls(const Link& link) {
  Sysctls sysctls;
  add_carried(kIpv4Directory, kIpv4Names, link.ipv4_conf, sysctls);
  add_carried(kIpv6Directory, kIpv6Names, link.ipv6_conf, sysctls);
  return sysctls;
}

Sysctls interface_sysctls(const Link& link, const NetNs& net_ns, const Roots& roots) {
  auto sysctls = carried_sysctls(link);
  const NetNs::Visit visit{net_ns};
  for (const auto* directory : {kIpv4Directory, kIpv6Directory, "net/ipv4/neigh/IFNAME", "net/ipv6/neigh/IFNAME"}) {
    add_from_files(directory, link.name, roots, sysctls);
  }
  if (const auto mtu = sysctls.find("net/ipv6/conf/IFNAME/mtu");
      mtu != sysctls.end() && link.mtu && mtu->second == std::to_string(*link.mtu)) {
    sysctls.erase(mtu);
  }
  return sysctls;
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
