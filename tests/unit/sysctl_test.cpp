#include "netlink/sysctl.hpp"

#include <linux/ip.h>
#include <linux/ipv6.h>

#include <set>

#include "support/catch.hpp"
#include "support/temp_dir.hpp"
#include "unit/recorded.hpp"

using netlink::carried_sysctls;
using netlink::Link;
using netlink::Sysctls;

namespace {

using Texts = std::map<std::string, std::string>;

/// Every sysctl by its path.
Texts texts(const Sysctls& sysctls) {
  Texts all;
  for (const auto& [path, value] : sysctls.differing_from({})) {
    CHECK(sysctls.find(path) == value);
    CHECK(all.emplace(path, value).second);
  }
  return all;
}

Texts carried_texts(const Link& link) {
  return texts(carried_sysctls(link));
}

/// The files of `nic0` when `nic0.hex` was recorded.
Texts recorded_files() {
  const auto text = netlink::read_file(std::string{TEST_DATA_DIR} + "/netlink/nic0.sysctls");
  REQUIRE(text);
  Texts files;
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

std::set<std::string> names_below(const std::string& directory, const Texts& sysctls) {
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
  const auto carried = carried_texts(netlink::parse_link(recorded("nic0")).value());
  CHECK(carried.size() > 80);
  for (const auto& [path, value] : carried) {
    CAPTURE(path);
    REQUIRE(files.contains(path));
    CHECK(value == files.at(path));
  }
}

TEST_CASE("what an answer does not carry is the little that has to be read from files") {
  const auto carried = carried_texts(netlink::parse_link(recorded("nic0")).value());
  auto left = recorded_files();
  std::erase_if(left, [&](const auto& file) { return carried.contains(file.first); });
  CHECK(names_below("net/ipv4/conf/IFNAME/", left) == std::set<std::string>{"mc_forwarding"});
  CHECK(names_below("net/ipv6/conf/IFNAME/", left) ==
        std::set<std::string>{"mc_forwarding", "mtu", "ra_honor_pio_life", "ra_honor_pio_pflag", "regen_min_advance"});
}

TEST_CASE("an answer of an older kernel, which has fewer values, carries fewer sysctls") {
  Link link;
  CHECK(carried_texts(link).empty());
  link.ipv4_conf.assign(IPV4_DEVCONF_ARP_IGNORE, 0);
  link.ipv4_conf[IPV4_DEVCONF_ARP_IGNORE - 1] = 2;
  link.ipv6_conf.assign(DEVCONF_ACCEPT_RA + 1, 0);
  link.ipv6_conf[DEVCONF_ACCEPT_RA] = -1;
  const auto carried = carried_texts(link);
  CHECK(carried.at("net/ipv4/conf/IFNAME/arp_ignore") == "2");
  CHECK(carried.at("net/ipv6/conf/IFNAME/accept_ra") == "-1");
  CHECK_FALSE(carried.contains("net/ipv4/conf/IFNAME/promote_secondaries"));
  CHECK_FALSE(carried.contains("net/ipv6/conf/IFNAME/accept_redirects"));
}

TEST_CASE("an answer of a newer kernel, which has more values, carries those that have a name here") {
  Link link;
  link.ipv4_conf.assign(500, 1);
  link.ipv6_conf.assign(500, 1);
  const auto recorded_ones = carried_texts(netlink::parse_link(recorded("nic0")).value());
  const auto carried = carried_texts(link);
  CHECK(carried.size() == recorded_ones.size());
}

TEST_CASE("an IPv6 MTU is a sysctl of its own where it is not the link's") {
  Link link;
  link.mtu = 9000;
  link.ipv6_conf.assign(DEVCONF_MTU6 + 1, 0);
  link.ipv6_conf[DEVCONF_MTU6] = 9000;
  CHECK_FALSE(carried_texts(link).contains("net/ipv6/conf/IFNAME/mtu"));
  link.ipv6_conf[DEVCONF_MTU6] = 1500;
  CHECK(carried_texts(link).at("net/ipv6/conf/IFNAME/mtu") == "1500");
}

TEST_CASE("what differs is what is set here and missing or otherwise there; what only the other has does not count") {
  Link link;
  link.ipv4_conf.assign(IPV4_DEVCONF_ARP_IGNORE, 1);
  auto wanted = carried_sysctls(link);
  auto now = wanted;
  CHECK(wanted.differing_from(now).empty());
  now.ipv4.push_back(1);
  now.others["net/ipv4/neigh/IFNAME/locktime"] = "5";
  CHECK(wanted.differing_from(now).empty());
  now.ipv4[IPV4_DEVCONF_ARP_IGNORE - 1] = 2;
  auto differing = wanted.differing_from(now);
  REQUIRE(differing.size() == 1);
  CHECK(differing[0].path == "net/ipv4/conf/IFNAME/arp_ignore");
  CHECK(differing[0].value == "1");
  now.ipv4.resize(2);
  CHECK(wanted.differing_from(now).size() == carried_texts(link).size() - 1);
}

TEST_CASE("a text goes before the number of the same sysctl") {
  Link link;
  link.ipv4_conf.assign(IPV4_DEVCONF_ARP_IGNORE, 1);
  const auto now = carried_sysctls(link);
  Sysctls wanted;
  wanted.others["net/ipv4/conf/IFNAME/arp_ignore"] = "1";
  CHECK(wanted.differing_from(now).empty());
  wanted.ipv4 = now.ipv4;
  wanted.others["net/ipv4/conf/IFNAME/arp_ignore"] = "2";
  CHECK(wanted.find("net/ipv4/conf/IFNAME/arp_ignore") == "2");
  const auto differing = wanted.differing_from(now);
  REQUIRE(differing.size() == 1);
  CHECK(differing[0].value == "2");
  CHECK(now.differing_from(wanted).size() == 1);
  CHECK(now.differing_from(wanted).at(0).value == "1");
  CHECK_FALSE(wanted.find("net/ipv4/conf/IFNAME/no_such_thing"));
  CHECK_FALSE(wanted.find("net/core/somaxconn"));
}

TEST_CASE("what is not carried is read from its file, and of a newer kernel whatever has no number with a name here") {
  const support::TempDir directory;
  const std::string conf = "sys/net/ipv6/conf/nic0/";
  std::filesystem::create_directories(directory.path() / conf);
  for (const auto* const name : {"accept_ra", "mtu", "mc_forwarding", "regen_min_advance", "stable_secret", "of_tomorrow"}) {
    directory.write(conf + name, std::string{name} + "\n");
  }
  std::filesystem::create_directories(directory.path() / "sys/net/ipv4/conf/nic0");
  Link link;
  link.name = "nic0";
  link.ipv6_conf.assign(60, 0);
  const netlink::Roots roots{.sys = "/nowhere", .proc = directory.path()};
  Texts expected{{"net/ipv6/conf/IFNAME/regen_min_advance", "regen_min_advance"}, {"net/ipv6/conf/IFNAME/stable_secret", "stable_secret"}};
  CHECK(netlink::uncarried_sysctls(link, roots) == expected);
  link.ipv6_conf.push_back(0);
  expected["net/ipv6/conf/IFNAME/of_tomorrow"] = "of_tomorrow";
  CHECK(netlink::uncarried_sysctls(link, roots) == expected);
  link.name = "absent";
  CHECK(netlink::uncarried_sysctls(link, roots).empty());
}
