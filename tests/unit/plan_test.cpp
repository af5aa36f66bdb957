#include "cni/plan.hpp"

#include <linux/if.h>
#include <linux/if_link.h>

#include <algorithm>
#include <array>
#include <random>

#include "cni/vf_settings.hpp"
#include "support/catch.hpp"
#include "unit/mac.hpp"

using cni::describe;
using cni::plan;
using cni::Side;
using cni::State;
using cni::Step;
using netlink::HardwareAddress;
using netlink::XdpProgram;

namespace {

using Texts = std::vector<std::string>;

netlink::InterfaceAddress address(std::string_view text) {
  return {.prefix = netlink::IpPrefix::parse(text).value(), .peer = {}, .broadcast = {}, .scope = 0, .flags = 0, .label = {}, .metric = {}};
}

netlink::Route route(std::string_view destination, std::string_view gateway) {
  netlink::Route made;
  made.destination = netlink::IpPrefix::parse(destination).value();
  made.gateway = netlink::IpAddress::parse(gateway);
  return made;
}

/// A NIC in the host, with all that a State can say.
State at_home() {
  State state;
  state.side = Side::host;
  state.index = 4;
  state.name = "ens3f0";
  state.altnames = {"enp59s0f0", "net1", "rail0"};
  state.alias = "left rail";
  state.mtu = 1500;
  state.mac = mac("02:00:00:00:00:01");
  state.up = true;
  state.tx_queue_length = 1000;
  state.sysctls.others = {{"net/ipv4/conf/IFNAME/arp_ignore", "1"}, {"net/ipv6/conf/IFNAME/accept_ra", "0"}};
  state.addresses = {address("192.0.2.2/24"), address("2001:db8::2/64")};
  state.routes = {route("198.51.100.0/24", "192.0.2.1")};
  return state;
}

State in_the_pod() {
  State state = at_home();
  state.side = Side::pod;
  state.index = 77;
  state.name = "net1";
  state.altnames = {"enp59s0f0", "rail0"};
  state.mtu = 9000;
  state.mac = mac("02:00:00:00:00:02");
  state.promisc = true;
  state.allmulti = true;
  state.tx_queue_length = 500;
  state.sysctls.others = {{"net/ipv4/conf/IFNAME/rp_filter", "2"}};
  state.addresses = {address("10.0.0.5/24")};
  state.routes = {route("10.1.0.0/16", "10.0.0.1")};
  return state;
}

Texts texts(const std::vector<Step>& steps) {
  Texts out;
  std::ranges::transform(steps, std::back_inserter(out), describe);
  return out;
}

Texts plan_texts(const State& now, const State& wanted) {
  return texts(plan(now, wanted));
}

template <typename S>
std::vector<S> steps_of_kind(const std::vector<Step>& steps) {
  std::vector<S> found;
  for (const auto& step : steps) {
    if (const auto* match = std::get_if<S>(&step)) {
      found.push_back(*match);
    }
  }
  return found;
}

constexpr auto kSecret = "net/ipv6/conf/IFNAME/stable_secret";
constexpr auto kMode = "net/ipv6/conf/IFNAME/addr_gen_mode";

/// What the kernel makes of a step (kernel-facts: a move resets, a device that goes down loses its IPv6 addresses and its routes), with
/// the demands that it, or an old kernel, has. Each step has to change something.
class Model {
 public:
  /// `netdev_goes_to`: where it moves to, if it does.
  Model(State state, std::optional<Side> netdev_goes_to) : state_(std::move(state)), netdev_goes_to_(netdev_goes_to) {}
  [[nodiscard]] const State& state() const { return state_; }

  void operator()(const cni::SetVf& step) {
    REQUIRE(state_.side == Side::host);
    REQUIRE(cni::differing_settings(state_.vf.value(), step.setting).size() == 1);
    state_.vf = cni::laid_over(*state_.vf, step.setting);
  }
  void operator()(const cni::RenameRdma& step) {
    auto& device = rdma(step.index);
    REQUIRE(device.name != step.name);
    device.name = step.name;
  }
  void operator()(const cni::MoveRdma& step) {
    auto& device = rdma(step.index);
    REQUIRE(device.side != step.to);
    REQUIRE(device.name == step.name);
    // Ethernet's netdev is out before it, and every netdev comes home behind it.
    const bool is_with_netdev = netdev_goes_to_ == step.to && (step.to == Side::host || !device.is_infiniband);
    REQUIRE((!is_with_netdev || state_.side == Side::pod));
    device.side = step.to;
  }
  /// The plans of this file want no driver bound; infiniband_test.cpp has those that do.
  void operator()(const cni::BindAnew&) { FAIL(); }
  void operator()(const cni::RemoveUpper& step) {
    REQUIRE(state_.side == Side::pod);
    REQUIRE(std::erase_if(state_.uppers, [&](const auto& upper) { return upper.index == step.upper.index; }) == 1);
  }
  void operator()(const cni::RemoveAltname& step) { REQUIRE(std::erase(state_.altnames, step.altname) == 1); }
  void operator()(const cni::AddAltname& step) {
    require_free(step.altname);
    REQUIRE(step.altname != state_.name);
    state_.altnames.push_back(step.altname);
    std::ranges::sort(state_.altnames);
  }
  void operator()(const cni::Move& step) {
    REQUIRE(step.to != state_.side);
    require_free(step.name);
    state_.side = step.to;
    state_.name = step.name;
    state_.index = step.index.value_or(99);
    state_.sysctls = {};
    state_.addresses.clear();
    go_down();
    if (step.mac) {
      set_mac(*step.mac);
    }
    if (step.mtu) {
      (*this)(cni::SetMtu{*step.mtu});
    }
  }
  void operator()(const cni::Rename& step) {
    REQUIRE_FALSE(state_.up);
    REQUIRE(step.name != state_.name);
    require_free(step.name);
    state_.name = step.name;
  }
  void operator()(const cni::SetMac& step) { set_mac(step.mac); }
  void operator()(const cni::SetMtu& step) {
    REQUIRE(state_.mtu);
    REQUIRE(step.mtu != *state_.mtu);
    state_.mtu = step.mtu;
  }
  void operator()(const cni::SetAlias& step) {
    REQUIRE(step.alias != state_.alias);
    state_.alias = step.alias;
  }
  void operator()(const cni::SetTxQueueLength& step) {
    REQUIRE(state_.tx_queue_length);
    REQUIRE(step.length != *state_.tx_queue_length);
    state_.tx_queue_length = step.length;
  }
  void operator()(const cni::SetFlag& step) {
    if (step.flag == IFF_NOARP || step.flag == IFF_MULTICAST) {
      auto& flag = step.flag == IFF_NOARP ? state_.arp : state_.multicast;
      const bool on = step.on == (step.flag == IFF_MULTICAST);
      REQUIRE(flag.value() != on);
      flag = on;
      return;
    }
    bool& flag = step.flag == IFF_UP ? state_.up : step.flag == IFF_PROMISC ? state_.promisc : state_.allmulti;
    REQUIRE(flag != step.on);
    flag = step.on;
    if (step.flag == IFF_UP && !step.on) {
      go_down();
    }
  }
  void operator()(const cni::DetachXdp& step) { REQUIRE(std::erase(state_.xdp, step.program) == 1); }
  void operator()(const cni::WriteSysctl& step) {
    REQUIRE(state_.sysctls.find(step.path) != step.value);
    state_.sysctls.others[step.path] = step.value;
    if (step.path == kSecret) {
      state_.sysctls.others[kMode] = "2";
    }
  }
  void operator()(const cni::AddAddress& step) {
    REQUIRE(std::ranges::find(state_.addresses, step.address.prefix, &netlink::InterfaceAddress::prefix) == state_.addresses.end());
    state_.addresses.push_back(step.address);
  }
  void operator()(const cni::AddRoute& step) {
    REQUIRE(state_.up);
    REQUIRE(std::ranges::find(state_.routes, step.route) == state_.routes.end());
    state_.routes.push_back(step.route);
  }

 private:
  void require_free(const std::string& name) const { REQUIRE(std::ranges::find(state_.altnames, name) == state_.altnames.end()); }
  void set_mac(const HardwareAddress& address) {
    REQUIRE_FALSE(state_.up);
    REQUIRE_FALSE(address.is_zero());
    REQUIRE(address != state_.mac);
    state_.mac = address;
  }
  void go_down() {
    state_.up = false;
    state_.routes.clear();
    std::erase_if(state_.addresses, [](const auto& each) { return each.prefix.address.family() == netlink::Family::v6; });
  }

  cni::RdmaState& rdma(std::uint32_t index) {
    const auto found = std::ranges::find(state_.rdma, index, &cni::RdmaState::index);
    REQUIRE(found != state_.rdma.end());
    return *found;
  }

  State state_;
  std::optional<Side> netdev_goes_to_;
};

State after(const State& now, const std::vector<Step>& steps) {
  std::optional<Side> netdev_goes_to;
  for (const auto& step : steps) {
    if (const auto* move = std::get_if<cni::Move>(&step)) {
      netdev_goes_to = move->to;
    }
  }
  Model model{now, netdev_goes_to};
  for (const auto& step : steps) {
    INFO(describe(step));
    std::visit(model, step);
  }
  return model.state();
}

/// What the plans make of it: behind the move home, and where a netdev is made anew, there is another.
State settled(const State& now, const State& wanted) {
  auto state = now;
  for (int plans = 0; plans < 3; ++plans) {
    state = after(state, plan(state, wanted));
  }
  return state;
}

/// Every difference that a plan can make up for is made up for.
void check_reached(const State& state, const State& before, const State& wanted) {
  CHECK(state.side == wanted.side);
  CHECK(state.name == wanted.name);
  CHECK(state.altnames == wanted.altnames);
  CHECK(state.alias == wanted.alias);
  CHECK(state.mtu == (wanted.mtu && before.mtu ? wanted.mtu : before.mtu));
  CHECK(state.mac == (wanted.mac.is_zero() ? before.mac : wanted.mac));
  CHECK(state.up == wanted.up);
  CHECK(state.promisc == wanted.promisc);
  CHECK(state.allmulti == wanted.allmulti);
  CHECK(state.arp == (wanted.arp && before.arp ? wanted.arp : before.arp));
  CHECK(state.multicast == (wanted.multicast && before.multicast ? wanted.multicast : before.multicast));
  CHECK(state.tx_queue_length == (wanted.tx_queue_length && before.tx_queue_length ? wanted.tx_queue_length : before.tx_queue_length));
  CHECK(wanted.sysctls.differing_from(state.sysctls).empty());
  CHECK(std::ranges::all_of(state.xdp, [&](const auto& each) { return std::ranges::find(wanted.xdp, each) != wanted.xdp.end(); }));
  CHECK(std::ranges::all_of(wanted.addresses, [&](const auto& each) {
    return std::ranges::find(state.addresses, each.prefix, &netlink::InterfaceAddress::prefix) != state.addresses.end();
  }));
  CHECK((!wanted.up || std::ranges::all_of(wanted.routes,
                                           [&](const auto& each) { return std::ranges::find(state.routes, each) != state.routes.end(); })));
}

/// What is there of the RDMA devices that are wanted is as it is wanted; no other is touched.
void check_rdma_reached(const State& state, const State& before, const State& wanted) {
  for (const auto& device : state.rdma) {
    const auto* const is_wanted = cni::find_rdma(wanted.rdma, device.index);
    const auto* const was = cni::find_rdma(before.rdma, device.index);
    REQUIRE(was != nullptr);
    CHECK(device.name == (is_wanted != nullptr ? is_wanted : was)->name);
    CHECK(device.side == (is_wanted != nullptr ? is_wanted : was)->side);
  }
}

/// What one plan, from a device in a pod two, can make of the PF's settings: what the driver reports.
void check_vf_reached(const State& state, const State& before, const State& wanted) {
  const bool stays_in_pod = before.side == Side::pod && wanted.side == Side::pod;
  if (!before.vf || !wanted.vf || stays_in_pod) {
    CHECK(state.vf == before.vf);
  } else {
    CHECK(cni::differing_settings(*state.vf, *wanted.vf).empty());
  }
}

/// The index of the RDMA device that is InfiniBand's.
constexpr std::uint32_t kInfiniband = 4;

/// Where a step belongs in a plan, in the order of Step's alternatives.
int rank(const Step& step) {
  constexpr std::array<int, std::variant_size_v<Step>> kRanks{-1, -1, -1, -1, -1, 0, 2, 2, 4, 5, 6, 6, 6, 3, 7, 9, 10, 12};
  if (const auto* flag = std::get_if<cni::SetFlag>(&step); flag != nullptr && flag->flag == IFF_UP) {
    return flag->on ? 11 : 1;
  }
  if (const auto* rdma = std::get_if<cni::MoveRdma>(&step); rdma != nullptr && rdma->to == Side::pod && rdma->index != kInfiniband) {
    return 2;
  }
  if (const auto* sysctl = std::get_if<cni::WriteSysctl>(&step); sysctl != nullptr && sysctl->path == kSecret) {
    return 8;
  }
  return kRanks.at(step.index());
}

void check_order(const std::vector<Step>& steps) {
  std::vector<int> ranks;
  std::ranges::transform(steps, std::back_inserter(ranks), rank);
  CHECK(std::ranges::is_sorted(ranks));
}

/// States from small ranges, so that two of them are often alike in something.
class Random {
 public:
  explicit Random(unsigned seed) : engine_(seed) {}

  State state() {
    State state;
    state.side = chance(2) ? Side::pod : Side::host;
    state.index = chance(4) ? 0 : static_cast<int>(1 + engine_() % 3);
    state.name = pick(std::array{"net1", "ens3f0", "rail0"});
    for (const auto* const altname : {"enp59s0f0", "ens3f0", "net1", "rail0"}) {
      if (chance(2) && altname != state.name) {
        state.altnames.emplace_back(altname);
      }
    }
    state.alias = pick(std::array{"", "left", "right"});
    state.mtu = maybe(pick(std::array{1500U, 9000U}));
    state.mac = pick(std::array{HardwareAddress{}, mac("00:00:00:00:00:00"), mac("02:00:00:00:00:01"), mac("02:00:00:00:00:02")});
    state.up = chance(2);
    state.promisc = chance(2);
    state.allmulti = chance(2);
    state.arp = maybe(chance(2));
    state.multicast = maybe(chance(2));
    state.tx_queue_length = maybe(pick(std::array{500U, 1000U}));
    state.vf = maybe(vf());
    for (const std::uint32_t index : {3U, kInfiniband}) {
      if (chance(2)) {
        state.rdma.push_back({.index = index,
                              .name = pick(std::array{"mlx5_0", "rail0"}),
                              .side = chance(2) ? Side::pod : Side::host,
                              .is_infiniband = index == kInfiniband});
      }
    }
    add_lists(state);
    return state;
  }

 private:
  [[nodiscard]] bool chance(unsigned in) { return engine_() % in == 0; }
  template <typename T, std::size_t kSize>
  T pick(const std::array<T, kSize>& values) {
    return values.at(engine_() % kSize);
  }
  template <typename T>
  std::optional<T> maybe(T value) {
    return chance(3) ? std::nullopt : std::optional{value};
  }

  netlink::VfSettings vf() {
    return {.mac = maybe(pick(std::array{mac("00:00:00:00:00:00"), mac("02:00:00:00:00:01")})),
            .vlan = maybe(pick(std::array{netlink::VfVlan{}, netlink::VfVlan{.id = 7, .qos = 1}})),
            .rates = maybe(pick(std::array{netlink::VfRates{}, netlink::VfRates{.minimum = 1, .maximum = 2}})),
            .spoof_check = maybe(chance(2)),
            .trust = maybe(chance(2)),
            .link_state = maybe(pick(std::array{netlink::VfLinkState::automatic, netlink::VfLinkState::enable})),
            .node_guid = maybe(pick(std::array<std::uint64_t, 2>{0, 7})),
            .port_guid = maybe(pick(std::array<std::uint64_t, 2>{0, 8}))};
  }

  void add_lists(State& state) {
    for (const auto* const path : {"net/ipv4/conf/IFNAME/arp_ignore", "net/ipv6/conf/IFNAME/accept_ra", kMode}) {
      if (chance(2)) {
        state.sysctls.others[path] = pick(std::array{"0", "1"});
      }
    }
    if (chance(3)) {
      state.sysctls.others[kSecret] = pick(std::array{"2001:db8::1", "2001:db8::2"});
    }
    for (auto* const numbers : {&state.sysctls.ipv4, &state.sysctls.ipv6}) {
      while (!chance(8)) {
        numbers->push_back(pick(std::array{-1, 0, 1}));
      }
    }
    for (const auto program : {XdpProgram{XDP_ATTACHED_DRV, 11}, XdpProgram{XDP_ATTACHED_SKB, 12}}) {
      if (chance(3)) {
        state.xdp.push_back(program);
      }
    }
    for (const auto* const text : {"192.0.2.2/24", "192.0.2.3/32", "2001:db8::2/64"}) {
      if (chance(2)) {
        state.addresses.push_back(address(text));
      }
    }
    for (const auto& each : {route("198.51.100.0/24", "192.0.2.1"), route("2001:db8:1::/48", "2001:db8::1")}) {
      if (state.up && chance(2)) {
        state.routes.push_back(each);
      }
    }
  }

  std::mt19937 engine_;
};

}  // namespace

TEST_CASE(
    "into the pod: the name in the way goes first, one move carries name, index, MAC and MTU, up comes after the sysctls, routes last") {
  CHECK(plan_texts(at_home(), in_the_pod()) == Texts{
                                                   "remove altname 'net1'",
                                                   "move to the pod as 'net1' with MAC 02:00:00:00:00:02 with MTU 9000",
                                                   "set the transmit queue length to 500",
                                                   "set promisc on",
                                                   "set allmulti on",
                                                   "set sysctl net/ipv4/conf/IFNAME/rp_filter to '2'",
                                                   "add address 10.0.0.5/24",
                                                   "set up on",
                                                   "add route to 10.1.0.0/16 via 10.0.0.1",
                                               });
  const auto moves = steps_of_kind<cni::Move>(plan(at_home(), in_the_pod()));
  REQUIRE(moves.size() == 1);
  CHECK(moves[0].index == 77);
}

TEST_CASE("home: MAC and MTU have requests of their own, so that a driver that refuses one does not keep the device away") {
  auto now = in_the_pod();
  now.alias = "changed by the pod";
  now.xdp = {{XDP_ATTACHED_DRV, 11}};
  now.altnames.emplace_back("zzz");
  CHECK(plan_texts(now, at_home()) == Texts{
                                          "remove altname 'zzz'",
                                          "move to the host as 'ens3f0'",
                                      });
  const auto home = after(now, plan(now, at_home()));
  CHECK(plan_texts(home, at_home()) == Texts{
                                           "detach XDP program 11",
                                           "set the MAC to 02:00:00:00:00:01",
                                           "set the MTU to 1500",
                                           "set the alias to 'left rail'",
                                           "set the transmit queue length to 1000",
                                           "set promisc off",
                                           "set allmulti off",
                                           "add altname 'net1'",
                                           "set sysctl net/ipv4/conf/IFNAME/arp_ignore to '1'",
                                           "set sysctl net/ipv6/conf/IFNAME/accept_ra to '0'",
                                           "add address 192.0.2.2/24",
                                           "add address 2001:db8::2/64",
                                           "set up on",
                                           "add route to 198.51.100.0/24 via 192.0.2.1",
                                       });
}

TEST_CASE("a device that came home by itself under the pod's name goes down, is renamed and set where it is") {
  auto now = in_the_pod();
  now.side = Side::host;
  now.addresses.clear();
  now.routes.clear();
  CHECK(plan_texts(now, at_home()) == Texts{
                                          "set up off",
                                          "rename to 'ens3f0'",
                                          "set the MAC to 02:00:00:00:00:01",
                                          "set the MTU to 1500",
                                          "set the transmit queue length to 1000",
                                          "set promisc off",
                                          "set allmulti off",
                                          "add altname 'net1'",
                                          "set sysctl net/ipv4/conf/IFNAME/arp_ignore to '1'",
                                          "set sysctl net/ipv6/conf/IFNAME/accept_ra to '0'",
                                          "add address 192.0.2.2/24",
                                          "add address 2001:db8::2/64",
                                          "set up on",
                                          "add route to 198.51.100.0/24 via 192.0.2.1",
                                      });
}

TEST_CASE("nothing that is as wanted leads to a step") {
  CHECK(plan_texts(at_home(), at_home()).empty());
  CHECK(plan_texts(in_the_pod(), in_the_pod()).empty());
}

TEST_CASE("one thing that differs is one step, and down costs the IPv6 addresses a second one") {
  const auto one = [](void (*change)(State&)) {
    auto wanted = at_home();
    change(wanted);
    return plan_texts(at_home(), wanted);
  };
  CHECK(one([](State& state) { state.alias = "right rail"; }) == Texts{"set the alias to 'right rail'"});
  CHECK(one([](State& state) { state.alias.clear(); }) == Texts{"remove the alias"});
  CHECK(one([](State& state) { state.mtu = 9000; }) == Texts{"set the MTU to 9000"});
  CHECK(one([](State& state) { state.up = false; }) == Texts{"set up off", "add address 2001:db8::2/64"});
  CHECK(one([](State& state) { state.promisc = true; }) == Texts{"set promisc on"});
  CHECK(one([](State& state) { state.allmulti = true; }) == Texts{"set allmulti on"});
  CHECK(one([](State& state) { state.tx_queue_length = 1; }) == Texts{"set the transmit queue length to 1"});
  CHECK(one([](State& state) { state.altnames.pop_back(); }) == Texts{"remove altname 'rail0'"});
  CHECK(one([](State& state) { state.altnames.emplace_back("zzz"); }) == Texts{"add altname 'zzz'"});
  CHECK(one([](State& state) { state.sysctls.others["net/ipv6/conf/IFNAME/accept_ra"] = "1"; }) ==
        Texts{"set sysctl net/ipv6/conf/IFNAME/accept_ra to '1'"});
  CHECK(one([](State& state) { state.sysctls.others["net/ipv6/conf/IFNAME/autoconf"] = "0"; }) ==
        Texts{"set sysctl net/ipv6/conf/IFNAME/autoconf to '0'"});
  CHECK(one([](State& state) { state.addresses.push_back(address("192.0.2.9/24")); }) == Texts{"add address 192.0.2.9/24"});
  CHECK(one([](State& state) { state.routes.push_back(route("203.0.113.0/24", "")); }) == Texts{"add route to 203.0.113.0/24"});
}

TEST_CASE("what is there and not wanted stays, but for altnames, XDP programs and the alias") {
  auto wanted = at_home();
  wanted.sysctls = {};
  wanted.addresses.clear();
  wanted.routes.clear();
  CHECK(plan_texts(at_home(), wanted).empty());
}

TEST_CASE("an attribute that the driver does not report, or that nobody wants, leads to no step") {
  const auto [now_side, wanted_side] =
      GENERATE(table<Side, Side>({{Side::host, Side::pod}, {Side::pod, Side::host}, {Side::host, Side::host}}));
  auto now = at_home();
  auto wanted = in_the_pod();
  now.side = now_side;
  wanted.side = wanted_side;
  const bool is_reported = GENERATE(true, false);
  auto& without = is_reported ? wanted : now;
  without.mtu.reset();
  without.tx_queue_length.reset();
  const auto steps = plan(now, wanted);
  CHECK(steps_of_kind<cni::SetMtu>(steps).empty());
  CHECK(steps_of_kind<cni::SetTxQueueLength>(steps).empty());
  for (const auto& move : steps_of_kind<cni::Move>(steps)) {
    CHECK_FALSE(move.mtu);
  }
}

TEST_CASE("a MAC of zeros, which a driver would refuse, and an absent one are never set") {
  auto wanted = in_the_pod();
  wanted.mac = GENERATE(HardwareAddress{}, mac("00:00:00:00:00:00"), HardwareAddress{std::vector<std::byte>(20)});
  wanted.side = GENERATE(Side::pod, Side::host);
  wanted.name = at_home().name;
  wanted.altnames = at_home().altnames;
  const auto steps = plan(at_home(), wanted);
  CHECK(steps_of_kind<cni::SetMac>(steps).empty());
  for (const auto& move : steps_of_kind<cni::Move>(steps)) {
    CHECK_FALSE(move.mac);
  }
  // Nor does the device go down for it.
  for (const auto& flag : steps_of_kind<cni::SetFlag>(steps)) {
    CHECK((flag.flag != IFF_UP || flag.on));
  }
}

TEST_CASE("a move asks for no index when none is wanted, and for no MAC and MTU when they are as wanted") {
  auto wanted = at_home();
  wanted.side = Side::pod;
  wanted.index = 0;
  const auto moves = steps_of_kind<cni::Move>(plan(at_home(), wanted));
  REQUIRE(moves.size() == 1);
  CHECK_FALSE(moves[0].index);
  CHECK_FALSE(moves[0].mac);
  CHECK_FALSE(moves[0].mtu);
}

TEST_CASE("an index that differs where the device is leads to nothing: the kernel changes it in a move alone") {
  auto wanted = at_home();
  wanted.index = 5;
  CHECK(plan_texts(at_home(), wanted).empty());
}

TEST_CASE("a move resets sysctls and takes addresses and routes away, so that all that are wanted are set behind it") {
  auto now = at_home();
  now.side = Side::pod;
  CHECK(plan_texts(now, at_home()) == Texts{"move to the host as 'ens3f0'"});
  const auto home = after(now, plan(now, at_home()));
  CHECK(plan_texts(home, at_home()) == Texts{
                                           "set sysctl net/ipv4/conf/IFNAME/arp_ignore to '1'",
                                           "set sysctl net/ipv6/conf/IFNAME/accept_ra to '0'",
                                           "add address 192.0.2.2/24",
                                           "add address 2001:db8::2/64",
                                           "set up on",
                                           "add route to 198.51.100.0/24 via 192.0.2.1",
                                       });
}

TEST_CASE("a device that goes down for its name or MAC gets back what going down takes: routes, IPv6 addresses, and up") {
  auto now = at_home();
  now.mac = mac("02:00:00:00:00:09");
  CHECK(plan_texts(now, at_home()) == Texts{
                                          "set up off",
                                          "set the MAC to 02:00:00:00:00:01",
                                          "add address 2001:db8::2/64",
                                          "set up on",
                                          "add route to 198.51.100.0/24 via 192.0.2.1",
                                      });
}

TEST_CASE("a device that is down is renamed and stays down, without routes") {
  auto now = at_home();
  now.up = false;
  now.routes.clear();
  now.name = "net9";
  auto wanted = at_home();
  wanted.up = false;
  CHECK(plan_texts(now, wanted) == Texts{"rename to 'ens3f0'"});
}

TEST_CASE("a name and an altname change places") {
  auto now = at_home();
  now.name = "net1";
  now.altnames = {"enp59s0f0", "ens3f0", "rail0"};
  const auto steps = plan_texts(now, at_home());
  CHECK(std::vector(steps.begin(), steps.begin() + 4) ==
        Texts{"remove altname 'ens3f0'", "set up off", "rename to 'ens3f0'", "add altname 'net1'"});
}

TEST_CASE("an XDP program that is not wanted is detached by its mode, and one that is wanted stays") {
  auto now = at_home();
  now.xdp = {{XDP_ATTACHED_DRV, 11}, {XDP_ATTACHED_SKB, 12}, {XDP_ATTACHED_HW, 13}};
  auto wanted = at_home();
  wanted.xdp = {{XDP_ATTACHED_SKB, 12}, {XDP_ATTACHED_HW, 14}};
  const auto steps = plan(now, wanted);
  CHECK(texts(steps) == Texts{"detach XDP program 11", "detach XDP program 13"});
  CHECK(steps_of_kind<cni::DetachXdp>(steps).at(1).program == XdpProgram{XDP_ATTACHED_HW, 13});
}

TEST_CASE("the stable secret is written before the address mode, which needs it and is changed by it") {
  auto wanted = at_home();
  wanted.sysctls.others = {{kMode, "3"}, {kSecret, "2001:db8::1"}, {"net/ipv4/conf/IFNAME/tag", "1"}};
  CHECK(plan_texts(at_home(), wanted) == Texts{
                                             "set sysctl net/ipv6/conf/IFNAME/stable_secret to '2001:db8::1'",
                                             "set sysctl net/ipv4/conf/IFNAME/tag to '1'",
                                             "set sysctl net/ipv6/conf/IFNAME/addr_gen_mode to '3'",
                                         });
  auto now = at_home();
  now.sysctls.others[kMode] = "3";
  CHECK(plan_texts(now, wanted).back() == "set sysctl net/ipv6/conf/IFNAME/addr_gen_mode to '3'");
}

TEST_CASE("plans carried out lead to what is wanted, in the one order, and leave nothing to be planned") {
  Random random{4};
  for (int round = 0; round < 5000; ++round) {
    CAPTURE(round);
    const auto now = random.state();
    const auto wanted = random.state();
    const auto steps = plan(now, wanted);
    check_order(steps);
    check_order(plan(after(now, steps), wanted));
    const auto reached = settled(now, wanted);
    check_reached(reached, now, wanted);
    check_vf_reached(reached, now, wanted);
    check_rdma_reached(reached, now, wanted);
    CHECK(plan_texts(reached, wanted).empty());
  }
}

TEST_CASE("a plan that broke off at any step is taken up by the next one") {
  Random random{5};
  for (int round = 0; round < 300; ++round) {
    const auto now = random.state();
    const auto wanted = random.state();
    const auto steps = plan(now, wanted);
    for (std::size_t done = 0; done < steps.size(); ++done) {
      CAPTURE(round, done);
      const auto halfway = after(now, {steps.begin(), steps.begin() + static_cast<std::ptrdiff_t>(done)});
      const auto reached = settled(halfway, wanted);
      check_reached(reached, now, wanted);
      check_vf_reached(reached, now, wanted);
      check_rdma_reached(reached, now, wanted);
    }
  }
}

TEST_CASE("what a PF sets for a VF comes first on the way out, and behind the move on the way home") {
  auto home = at_home();
  home.vf = netlink::VfSettings{.mac = mac("00:00:00:00:00:00"),
                                .vlan = netlink::VfVlan{},
                                .rates = netlink::VfRates{},
                                .spoof_check = true,
                                .trust = {},
                                .link_state = netlink::VfLinkState::automatic,
                                .node_guid = {},
                                .port_guid = {}};
  auto pod = in_the_pod();
  pod.vf = home.vf;
  pod.vf->vlan = netlink::VfVlan{.id = 100, .qos = 3, .protocol = netlink::kProtocol8021ad};
  pod.vf->mac = pod.mac;
  pod.vf->trust = true;
  auto steps = plan_texts(home, pod);
  CHECK(std::vector(steps.begin(), steps.begin() + 4) == Texts{"set the VF's vlan to 100 (qos 3, 802.1ad)",
                                                               "set the VF's mac to 02:00:00:00:00:02", "remove altname 'net1'",
                                                               "move to the pod as 'net1' with MAC 02:00:00:00:00:02 with MTU 9000"});
  CHECK(steps_of_kind<cni::SetVf>(plan(pod, home)).empty());
  auto back = pod;
  back.side = Side::host;
  back.up = false;
  steps = plan_texts(back, home);
  CHECK(std::vector(steps.begin(), steps.begin() + 2) == Texts{"set the VF's vlan to 0", "set the VF's mac to 00:00:00:00:00:00"});
  // A driver that now reports what it did not before gets nothing back that is not known.
  CHECK(std::ranges::none_of(steps, [](const std::string& step) { return step.contains("trust"); }));
}

TEST_CASE("a VF that was refused its MAC is reset before it is given it again") {
  auto now = at_home();
  now.mac = mac("02:00:00:00:00:02");
  now.is_mac_refused = true;
  now.up = false;
  auto steps = plan_texts(now, at_home());
  CHECK(std::vector(steps.begin(), steps.begin() + 3) == Texts{"set up on", "set up off", "set the MAC to 02:00:00:00:00:01"});
  now.up = true;
  steps = plan_texts(now, at_home());
  CHECK(std::vector(steps.begin(), steps.begin() + 2) == Texts{"set up off", "set the MAC to 02:00:00:00:00:01"});
  now.mac = at_home().mac;
  CHECK(plan_texts(now, at_home()).empty());
}

TEST_CASE("what a pod has put onto a device goes before the device does, and stays while the device stays") {
  auto now = in_the_pod();
  now.uppers = {{.index = 5, .name = "mv"}, {.index = 6, .name = "v5"}};
  const auto steps = plan_texts(now, at_home());
  CHECK(std::vector(steps.begin(), steps.begin() + 3) ==
        Texts{"remove 'mv', which the pod has put onto it", "remove 'v5', which the pod has put onto it", "move to the host as 'ens3f0'"});
  CHECK(plan_texts(now, in_the_pod()).empty());
}

TEST_CASE("ARP and multicast are set back, where it is known what they were") {
  auto now = at_home();
  now.arp = false;
  now.multicast = false;
  auto wanted = at_home();
  wanted.arp = true;
  wanted.multicast = true;
  CHECK(plan_texts(now, wanted) == Texts{"set noarp off", "set multicast on"});
  CHECK(plan_texts(wanted, now) == Texts{"set noarp on", "set multicast off"});
  CHECK(plan_texts(now, at_home()).empty());
}

TEST_CASE("an RDMA device goes out behind its netdev under its new name, and comes home before it under its own") {
  auto home = at_home();
  home.rdma = {{.index = 3, .name = "mlx5_0", .side = Side::host, .is_infiniband = false}};
  auto pod = in_the_pod();
  pod.rdma = {{.index = 3, .name = "rail0", .side = Side::pod, .is_infiniband = false}};
  auto steps = plan_texts(home, pod);
  CHECK(std::vector(steps.begin(), steps.begin() + 4) == Texts{"rename its RDMA device to 'rail0'", "remove altname 'net1'",
                                                               "move to the pod as 'net1' with MAC 02:00:00:00:00:02 with MTU 9000",
                                                               "move its RDMA device 'rail0' to the pod"});
  steps = plan_texts(pod, home);
  CHECK(steps == Texts{"rename its RDMA device to 'mlx5_0'", "move its RDMA device 'mlx5_0' to the host", "move to the host as 'ens3f0'"});
}

TEST_CASE("InfiniBand's RDMA device goes out first: the kernel makes the netdev anew with it") {
  auto home = at_home();
  home.altnames.clear();
  home.rdma = {{.index = 3, .name = "mlx5_0", .side = Side::host, .is_infiniband = true}};
  auto pod = in_the_pod();
  pod.altnames.clear();
  pod.rdma = {{.index = 3, .name = "mlx5_0", .side = Side::pod, .is_infiniband = true}};
  CHECK(plan_texts(home, pod) == Texts{"move its RDMA device 'mlx5_0' to the pod"});
  CHECK(cni::makes_netdev_anew(plan(home, pod).back()));
  home.rdma[0].side = Side::pod;
  CHECK(plan_texts(home, pod).front() == "move to the pod as 'net1' with MAC 02:00:00:00:00:02 with MTU 9000");
  home.rdma[0].side = Side::host;
  pod.uppers = {{.index = 5, .name = "net1.8001"}};
  CHECK(plan_texts(pod, home) == Texts{"remove 'net1.8001', which the pod has put onto it", "move its RDMA device 'mlx5_0' to the host"});
}

TEST_CASE("an RDMA device that is not there any more, or that nobody speaks of, leads to no step") {
  auto now = at_home();
  auto wanted = at_home();
  wanted.rdma = {{.index = 3, .name = "mlx5_0", .side = Side::pod, .is_infiniband = false}};
  CHECK(plan_texts(now, wanted).empty());
  CHECK(plan_texts(wanted, now).empty());
}
