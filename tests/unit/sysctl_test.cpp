#include "netlink/sysctl.hpp"

#include <linux/ip.h>
#include <linux/ipv6.h>

#include <set>

#include "support/catch.hpp"
#include "unit/recorded.hpp"

using netlink::carried_sysctls;
using netlink::Link;
using netlink::Sysctls;

namespace {

/// The files of `nic0` when `nic0.hex` was recorded.
Sysctls recorded_files() {
  const auto text = netlink::read_file(std::string{TEST_DATA_DIR} + "/netlink/nic0.sysctls");
  REQUIRE(text);
  Sysctls files;
  for (std::size_t start = 0; start < text->size();) {
    const auto end = text->find('\n', start);
    const auto colon = text->find(':', start);
    auto path = text->substr(start, colon - start);
    path.replace(path.find("nic0"), 4, "IFNAME");
    files[path] = text->substr(colon + 1, end - colon - 1);
    start = end + 1;
  }
  return files;
}

std::set<std::string> names_below(const std::string& directory, const Sysctls& sysctls) {
  std::set<std::string> names;
  for (const auto& [path, value] : sysctls) {
    if (path.starts_with(directory)) {
      names.insert(path.substr(directory.size()));
    }
  }
  return names;
}

}  // namespace

TEST_CASE("every sysctl that an answer carries has the name and value of its file") {
  const auto files = recorded_files();
  const auto carried = carried_sysctls(netlink::parse_link(recorded("nic0")).value());
  CHECK(carried.size() > 80);
  for (const auto& [path, value] : carried) {
    CAPTURE(path);
    REQUIRE(files.contains(path));
    CHECK(value == files.at(path));
  }
}

TEST_CASE("what an answer does not carry is the little that has to be read from files") {
  const auto carried = carried_sysctls(netlink::parse_link(recorded("nic0")).value());
  auto left = recorded_files();
  std::erase_if(left, [&](const auto& file) { return carried.contains(file.first); });
  CHECK(names_below("net/ipv4/conf/IFNAME/", left) == std::set<std::string>{"mc_forwarding"});
  CHECK(names_below("net/ipv6/conf/IFNAME/", left) ==
        std::set<std::string>{"force_forwarding", "ioam6_id", "ioam6_id_wide", "mc_forwarding", "ra_honor_pio_life", "ra_honor_pio_pflag",
                              "regen_min_advance", "router_probe_interval", "router_solicitation_delay", "router_solicitation_interval",
                              "router_solicitation_max_interval"});
}

TEST_CASE("an answer of an older kernel, which has fewer values, carries fewer sysctls") {
  Link link;
  CHECK(carried_sysctls(link).empty());
  link.ipv4_conf.assign(IPV4_DEVCONF_ARP_IGNORE, 0);
  link.ipv4_conf[IPV4_DEVCONF_ARP_IGNORE - 1] = 2;
  link.ipv6_conf.assign(DEVCONF_ACCEPT_RA + 1, 0);
  link.ipv6_conf[DEVCONF_ACCEPT_RA] = -1;
  const auto carried = carried_sysctls(link);
  CHECK(carried.at("net/ipv4/conf/IFNAME/arp_ignore") == "2");
  CHECK(carried.at("net/ipv6/conf/IFNAME/accept_ra") == "-1");
  CHECK_FALSE(carried.contains("net/ipv4/conf/IFNAME/promote_secondaries"));
  CHECK_FALSE(carried.contains("net/ipv6/conf/IFNAME/accept_redirects"));
}

TEST_CASE("an answer of a newer kernel, which has more values, carries those that have a name here") {
  Link link;
  link.ipv4_conf.assign(500, 1);
  link.ipv6_conf.assign(500, 1);
  const auto recorded_ones = carried_sysctls(netlink::parse_link(recorded("nic0")).value());
  const auto carried = carried_sysctls(link);
  CHECK(carried.size() == recorded_ones.size());
}
