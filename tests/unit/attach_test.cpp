#include "cni/attach.hpp"

#include <linux/rtnetlink.h>

#include "support/catch.hpp"
#include "unit/mac.hpp"

using cni::Addressing;
using cni::AttachConfig;
using cni::DefaultRoute;
using cni::kernel_routes;
using cni::pod_target;
using cni::PodFacts;
using cni::ResultIp;
using cni::ResultRoute;
using cni::settle_routes;
using cni::Side;
using cni::State;
using cni::state_in_result;
using netlink::HardwareAddress;
using netlink::IpAddress;
using netlink::IpPrefix;

namespace {

using Values = std::map<std::string, std::string>;

constexpr auto kAutoconf = "net/ipv6/conf/IFNAME/autoconf";
constexpr auto kAcceptRa = "net/ipv6/conf/IFNAME/accept_ra";

const PodFacts kPlainPod{.has_default_v4 = false, .has_default_v6 = false, .has_ipv6 = true, .clashing_altnames = {}};
const PodFacts kPodWithDefaults{.has_default_v4 = true, .has_default_v6 = true, .has_ipv6 = true, .clashing_altnames = {}};
const PodFacts kPodWithDefaultV4{.has_default_v4 = true, .has_default_v6 = false, .has_ipv6 = true, .clashing_altnames = {}};
const PodFacts kPodWithoutIpv6{.has_default_v4 = true, .has_default_v6 = false, .has_ipv6 = false, .clashing_altnames = {}};

State at_home() {
  State state;
  state.index = 4;
  state.name = "ens3f0";
  state.altnames = {"enp59s0f0", "net1", "rail0"};
  state.alias = "left rail";
  state.mtu = 1500;
  state.mac = mac("02:00:00:00:00:01");
  state.promisc = true;
  state.tx_queue_length = 1000;
  state.sysctls.others = {{"net/ipv4/conf/IFNAME/arp_ignore", "1"}};
  state.xdp = {{1, 11}};
  state.addresses = {
      {.prefix = IpPrefix::parse("192.0.2.2/24").value(), .peer = {}, .broadcast = {}, .scope = 0, .flags = 0, .label = {}, .metric = {}}};
  state.routes = {netlink::Route{}};
  return state;
}

State target(const AttachConfig& config, const PodFacts& pod = kPlainPod) {
  return pod_target(at_home(), config, pod, "net1", 77);
}

ResultIp ip(std::string_view address, std::string_view gateway) {
  return {.interface = {}, .address = IpPrefix::parse(address).value(), .gateway = IpAddress::parse(gateway)};
}

ResultRoute route(std::string_view destination, std::string_view gateway = "") {
  return {.destination = IpPrefix::parse(destination).value(),
          .gateway = IpAddress::parse(gateway),
          .mtu = {},
          .advmss = {},
          .priority = {},
          .table = {},
          .scope = {}};
}

ResultRoute default_in_table(std::optional<std::uint32_t> table) {
  auto made = route("0.0.0.0/0", "10.0.0.1");
  made.table = table;
  return made;
}

/// `destination via gateway` of what is left of the routes.
std::vector<std::string> settled(std::vector<ResultIp> ips, std::vector<ResultRoute> routes, const PodFacts& pod = kPlainPod,
                                 DefaultRoute policy = DefaultRoute::drop) {
  std::vector<std::string> notes;
  const auto addressing = settle_routes({.ips = std::move(ips), .routes = std::move(routes), .dns = {}}, policy, pod, notes);
  std::vector<std::string> out;
  for (const auto& each : addressing.routes) {
    out.push_back(each.destination.text() + (each.gateway ? " via " + each.gateway->text() : ""));
  }
  out.insert(out.end(), notes.begin(), notes.end());
  return out;
}

using Texts = std::vector<std::string>;

netlink::Route only_kernel_route(const ResultRoute& made) {
  const auto routes = kernel_routes({made});
  REQUIRE(routes.size() == 1);
  return routes[0];
}

}  // namespace

TEST_CASE("with nothing configured the device comes as it is, up, under the pod's name and without what the host set on it") {
  const auto wanted = target({});
  CHECK(wanted.side == Side::pod);
  CHECK(wanted.index == 77);
  CHECK(wanted.name == "net1");
  CHECK(wanted.up);
  CHECK(wanted.altnames == at_home().altnames);
  CHECK(wanted.alias == "left rail");
  CHECK(wanted.mtu == 1500);
  CHECK(wanted.mac == mac("02:00:00:00:00:01"));
  CHECK(wanted.promisc);
  CHECK_FALSE(wanted.allmulti);
  CHECK(wanted.tx_queue_length == 1000);
  CHECK(wanted.xdp == at_home().xdp);
  CHECK(wanted.sysctls.others.empty());
  CHECK(wanted.addresses.empty());
  CHECK(wanted.routes.empty());
}

TEST_CASE("what is configured is wanted, false and zero too") {
  AttachConfig config;
  config.mtu = 9000;
  config.mac = mac("02:00:00:00:00:02");
  config.promisc = false;
  config.allmulti = true;
  config.tx_queue_length = 0;
  config.sysctls = {{.key = "net.ipv4.conf.IFNAME.rp_filter", .path = "net/ipv4/conf/IFNAME/rp_filter", .value = "2"}};
  const auto wanted = target(config);
  CHECK(wanted.mtu == 9000);
  CHECK(wanted.mac == mac("02:00:00:00:00:02"));
  CHECK_FALSE(wanted.promisc);
  CHECK(wanted.allmulti);
  CHECK(wanted.tx_queue_length == 0);
  CHECK(wanted.sysctls.others == Values{{"net/ipv4/conf/IFNAME/rp_filter", "2"}});
}

TEST_CASE("altnames that clash in the pod stay behind") {
  CHECK(target({}, {.has_default_v4 = false, .has_default_v6 = false, .has_ipv6 = true, .clashing_altnames = {"net1", "rail0"}}).altnames ==
        std::vector<std::string>{"enp59s0f0"});
}

TEST_CASE("with addresses from IPAM or the configuration the device makes up none by itself") {
  CHECK(target({}).sysctls.others.empty());
  AttachConfig config;
  config.gets_addresses = true;
  CHECK(target(config).sysctls.others == Values{{kAutoconf, "0"}});
}

TEST_CASE("router advertisements are not taken where they would rival the pod's default route, unless it may be rivalled") {
  CHECK(target({}, kPodWithDefaults).sysctls.others == Values{{kAcceptRa, "0"}});
  CHECK(target({}, kPodWithDefaultV4).sysctls.others.empty());
  AttachConfig config;
  config.default_route = DefaultRoute::keep;
  CHECK(target(config, kPodWithDefaults).sysctls.others.empty());
}

TEST_CASE("an interface without IPv6, because the pod has none or the MTU is below its least, is asked for no sysctl of it") {
  AttachConfig config;
  config.gets_addresses = true;
  CHECK(target(config, kPodWithoutIpv6).sysctls.others.empty());
  config.mtu = 1279;
  CHECK(target(config, kPodWithDefaults).sysctls.others.empty());
  config.mtu = 1280;
  CHECK(target(config, kPodWithDefaults).sysctls.others == Values{{kAutoconf, "0"}, {kAcceptRa, "0"}});
  config.mtu.reset();
  auto before = at_home();
  before.mtu = 1279;
  CHECK(pod_target(before, config, kPodWithDefaults, "net1", 77).sysctls.others.empty());
}

TEST_CASE("a configured sysctl wins over what the plugin would set") {
  AttachConfig config;
  config.gets_addresses = true;
  config.sysctls = {{.key = "k", .path = kAutoconf, .value = "1"}, {.key = "k", .path = kAcceptRa, .value = "2"}};
  CHECK(target(config, kPodWithDefaults).sysctls.others == Values{{kAutoconf, "1"}, {kAcceptRa, "2"}});
}

TEST_CASE("a route without a gateway gets that of the first address of its family that has one") {
  CHECK(settled({ip("10.0.0.5/24", ""), ip("10.0.1.5/24", "10.0.1.1"), ip("10.0.2.5/24", "10.0.2.1"), ip("fd00::5/64", "fd00::1")},
                {route("10.1.0.0/16"), route("10.2.0.0/16", "10.0.2.9"), route("fd01::/48")}) ==
        Texts{"10.1.0.0/16 via 10.0.1.1", "10.2.0.0/16 via 10.0.2.9", "fd01::/48 via fd00::1"});
  CHECK(settled({ip("fd00::5/64", "fd00::1")}, {route("10.1.0.0/16")}) == Texts{"10.1.0.0/16"});
  CHECK(settled({}, {route("10.1.0.0/16")}) == Texts{"10.1.0.0/16"});
}

TEST_CASE("a route of link or host scope has no gateway and gets none, one of a wider scope does") {
  const auto with_scope = [](int scope) {
    auto made = route("10.1.0.0/16");
    made.scope = static_cast<std::uint8_t>(scope);
    return settled({ip("10.0.0.5/24", "10.0.0.1")}, {made});
  };
  CHECK(with_scope(RT_SCOPE_LINK) == Texts{"10.1.0.0/16"});
  CHECK(with_scope(RT_SCOPE_HOST) == Texts{"10.1.0.0/16"});
  CHECK(with_scope(RT_SCOPE_SITE) == Texts{"10.1.0.0/16 via 10.0.0.1"});
  CHECK(with_scope(RT_SCOPE_UNIVERSE) == Texts{"10.1.0.0/16 via 10.0.0.1"});
}

TEST_CASE("a default route is dropped where the pod has one of the family, and noted") {
  CHECK(settled({}, {route("0.0.0.0/0", "10.0.0.1"), route("::/0", "fd00::1"), route("10.1.0.0/16", "10.0.0.1")}, kPodWithDefaultV4) ==
        Texts{"::/0 via fd00::1", "10.1.0.0/16 via 10.0.0.1",
              "the default route 0.0.0.0/0 is dropped: the pod keeps its own ('defaultRoute': \"drop\")"});
  CHECK(settled({}, {route("2001:db8::1/0", "fd00::1")}, kPodWithDefaults) ==
        Texts{"the default route 2001:db8::1/0 is dropped: the pod keeps its own ('defaultRoute': \"drop\")"});
}

TEST_CASE("halves of the address space are no default route") {
  CHECK(settled({}, {route("0.0.0.0/1", "10.0.0.1"), route("128.0.0.0/1", "10.0.0.1")}, kPodWithDefaults).size() == 2);
}

TEST_CASE("a default route is kept where the pod has none, where the configuration says so, and in a table of its own") {
  CHECK(settled({}, {default_in_table({})}) == Texts{"0.0.0.0/0 via 10.0.0.1"});
  CHECK(settled({}, {default_in_table({})}, kPodWithDefaults, DefaultRoute::keep) == Texts{"0.0.0.0/0 via 10.0.0.1"});
  CHECK(settled({}, {default_in_table(1000)}, kPodWithDefaults) == Texts{"0.0.0.0/0 via 10.0.0.1"});
  // Table 0 is what "not said" looks like to the kernel: it takes the main one.
  CHECK(settled({}, {default_in_table(RT_TABLE_MAIN), default_in_table(0)}, kPodWithDefaults).front().starts_with("the default route"));
}

TEST_CASE("settling routes leaves addresses and dns as they are") {
  std::vector<std::string> notes;
  const Addressing addressing{.ips = {ip("10.0.0.5/24", "10.0.0.1")},
                              .routes = {},
                              .dns = {.nameservers = {"10.0.0.53"}, .domain = {}, .search = {}, .options = {}}};
  const auto settled_ones = settle_routes(addressing, DefaultRoute::drop, kPodWithDefaults, notes);
  CHECK(settled_ones.ips == addressing.ips);
  CHECK(settled_ones.dns == addressing.dns);
}

TEST_CASE("a route of a result becomes one of the kernel, with all that it says") {
  auto full = route("10.1.2.3/16", "10.0.0.1");
  full.mtu = 8900;
  full.advmss = 8860;
  full.priority = 50;
  full.table = 1000;
  full.scope = RT_SCOPE_SITE;
  const auto made = only_kernel_route(full);
  CHECK(made.destination == IpPrefix::parse("10.1.0.0/16"));  // the kernel refuses host bits
  CHECK(made.gateway == IpAddress::parse("10.0.0.1"));
  CHECK(made.mtu == 8900);
  CHECK(made.advmss == 8860);
  CHECK(made.priority == 50);
  CHECK(made.table == 1000);
  CHECK(made.scope == RT_SCOPE_SITE);
  CHECK(made.protocol == RTPROT_STATIC);
  CHECK_FALSE(made.source);
  CHECK_FALSE(made.on_link);
}

TEST_CASE("what a route of a result does not say is what ip route would take") {
  const auto plain = only_kernel_route(route("10.1.0.0/16", "10.0.0.1"));
  CHECK(plain.table == RT_TABLE_MAIN);
  CHECK(plain.priority == 0);
  CHECK(plain.scope == RT_SCOPE_UNIVERSE);
  CHECK_FALSE(plain.mtu);
  CHECK_FALSE(plain.advmss);
  CHECK(only_kernel_route(default_in_table(0)).table == RT_TABLE_MAIN);
}

TEST_CASE("an IPv4 route without a gateway is of link scope unless it says another, and IPv6 has no scopes") {
  auto made = route("10.1.0.0/16");
  CHECK(only_kernel_route(made).scope == RT_SCOPE_LINK);
  made.scope = RT_SCOPE_HOST;
  CHECK(only_kernel_route(made).scope == RT_SCOPE_HOST);
  CHECK(only_kernel_route(route("fd01::/48")).scope == RT_SCOPE_UNIVERSE);
}

TEST_CASE("no route is none, and several keep their order") {
  CHECK(kernel_routes({}).empty());
  const auto made = kernel_routes({route("10.2.0.0/16"), route("10.1.0.0/16")});
  REQUIRE(made.size() == 2);
  CHECK(made[0].destination.text() == "10.2.0.0/16");
}

TEST_CASE("a result says of an interface what it is called, its MAC, MTU and addresses") {
  cni::Result result;
  result.interfaces = {
      {.name = "host1", .mac = "02:00:00:00:00:01", .sandbox = {}, .mtu = 1500, .socket_path = {}, .pci_id = {}},
      {.name = "net1", .mac = "02:00:00:00:00:05", .sandbox = "/run/netns/pod", .mtu = 9000, .socket_path = {}, .pci_id = {}}};
  result.ips = {ip("10.0.0.4/24", ""), ip("10.0.0.5/24", ""), ip("10.0.0.6/24", ""), ip("fd00::5/64", "")};
  result.ips[0].interface = 0;
  result.ips[1].interface = 1;
  result.ips[3].interface = 1;
  result.routes = {route("10.1.0.0/16")};
  const auto state = state_in_result(result, 1);
  CHECK(state.side == Side::pod);
  CHECK(state.name == "net1");
  CHECK(state.mac == mac("02:00:00:00:00:05"));
  CHECK(state.mtu == 9000);
  CHECK(state.up);
  REQUIRE(state.addresses.size() == 2);
  CHECK(state.addresses[0].prefix.text() == "10.0.0.5/24");
  CHECK(state.addresses[1].prefix.text() == "fd00::5/64");
  CHECK(state.routes.empty());  // a later plugin may have moved them
}

TEST_CASE("what a result does not say of an interface, or says wrongly, is not compared") {
  cni::Result result;
  result.interfaces = {{.name = "net1", .mac = GENERATE("", "none"), .sandbox = {}, .mtu = 0, .socket_path = {}, .pci_id = {}}};
  const auto state = state_in_result(result, 0);
  CHECK(state.mac.is_empty());
  CHECK_FALSE(state.mtu);
  CHECK(state.addresses.empty());
}

namespace {

State vf_at_home(std::string_view administrative) {
  auto state = at_home();
  state.vf = netlink::VfSettings{.mac = mac(administrative),
                                 .vlan = netlink::VfVlan{.id = 7},
                                 .rates = netlink::VfRates{.minimum = 5, .maximum = 50},
                                 .spoof_check = true,
                                 .trust = {},
                                 .link_state = netlink::VfLinkState::automatic,
                                 .node_guid = {},
                                 .port_guid = {}};
  return state;
}

}  // namespace

TEST_CASE("a VF keeps what its PF has set for it, but for what was configured") {
  const auto before = vf_at_home("00:00:00:00:00:00");
  CHECK(pod_target(before, {}, kPlainPod, "net1", 0).vf == before.vf);
  AttachConfig config;
  config.vf.vlan = netlink::VfVlan{.id = 100};
  config.vf.max_tx_rate = 0;
  config.mac = mac("02:00:00:00:00:09");
  const auto wanted = pod_target(before, config, kPlainPod, "net1", 0);
  auto expected = before.vf;
  expected->vlan = netlink::VfVlan{.id = 100};
  expected->rates->maximum = 0;
  expected->mac = config.mac;
  CHECK(wanted.vf == expected);
  CHECK(wanted.mac == config.mac);
  CHECK_FALSE(pod_target(at_home(), config, kPlainPod, "net1", 0).vf);
}

TEST_CASE("a VF takes the MAC that its PF has set for it, unless there is none or another one was configured") {
  const auto mac_of = [](const State& before, const AttachConfig& config = {}) {
    return pod_target(before, config, kPlainPod, "net1", 0).mac;
  };
  CHECK(mac_of(vf_at_home("02:00:00:00:00:0a")) == mac("02:00:00:00:00:0a"));
  CHECK(mac_of(vf_at_home("00:00:00:00:00:00")) == at_home().mac);
  AttachConfig config;
  config.mac = mac("02:00:00:00:00:09");
  CHECK(mac_of(vf_at_home("02:00:00:00:00:0a"), config) == *config.mac);
  auto infiniband = vf_at_home("02:00:00:00:00:0a");
  infiniband.mac = mac("80:00:02:08:fe:80:00:00:00:00:00:00:00:02:c9:03:00:11:22:33");
  CHECK(mac_of(infiniband).is_empty());  // its netdev may be made anew, with another one
  config.mac = mac("80:00:02:08:fe:80:00:00:00:00:00:00:00:02:c9:03:00:11:22:34");
  CHECK(mac_of(infiniband, config) == *config.mac);
}
