#include "cni/attach.hpp"

#include <fmt/format.h>
#include <linux/if.h>
#include <linux/if_addr.h>
#include <linux/rtnetlink.h>

#include <algorithm>
#include <charconv>
#include <string_view>
#include <thread>
#include <utility>

#include "cni/carry_out.hpp"
#include "cni/error.hpp"
#include "cni/infiniband.hpp"
#include "cni/ipam.hpp"
#include "cni/misled.hpp"
#include "cni/plan.hpp"
#include "cni/verify_rdma.hpp"
#include "cni/vf.hpp"
#include "cni/vf_settings.hpp"
#include "netlink/announce.hpp"
#include "netlink/error.hpp"

namespace cni {

namespace {

using netlink::Family;

constexpr std::chrono::milliseconds kIpamTime{60'000};
constexpr std::chrono::milliseconds kPause{10};
constexpr std::chrono::milliseconds kBindTime{10'000};
// A duplicate's owner answers the probe within milliseconds; an optimistic address can be used meanwhile (RFC 4429).
constexpr std::chrono::milliseconds kDuplicateDetection{500};
constexpr std::chrono::milliseconds kRdmaCarrierWait{15'000};
constexpr std::uint32_t kLeastIpv6Mtu = 1280;  // RFC 8200, section 5

constexpr const char* kNotKept = "The kernel accepted the setting and something changed it since, or the driver did not keep it.";

constexpr const char* kAcceptRa = "net/ipv6/conf/IFNAME/accept_ra";
constexpr const char* kAutoconf = "net/ipv6/conf/IFNAME/autoconf";
constexpr const char* kDisableIpv6 = "net/ipv6/conf/IFNAME/disable_ipv6";
constexpr const char* kOptimisticDad = "net/ipv6/conf/IFNAME/optimistic_dad";

bool has_v6(const std::vector<ResultIp>& ips) {
  return std::ranges::any_of(ips, [](const ResultIp& ip) { return ip.address.address.family() == Family::v6; });
}

void require_ipv6_mtu(std::uint32_t mtu) {
  if (mtu < kLeastIpv6Mtu) {
    throw Error(Code::verification_failed,
                fmt::format("an MTU of {} is below the {} that IPv6 needs, and the interface has an IPv6 address", mtu, kLeastIpv6Mtu),
                "Raise 'mtu', or leave out the IPv6 address.");
  }
}

void check_mtu(const netlink::Link& link, const AttachConfig& config) {
  if (!config.mtu) {
    return;
  }
  const auto limit = [&](std::string_view word, std::uint32_t value) {
    throw Error(Code::verification_failed, fmt::format("mtu {} is {} the {} that '{}' allows", *config.mtu, word, value, link.name),
                fmt::format("The driver of the device allows {} to {}.", link.min_mtu, link.max_mtu));
  };
  if (*config.mtu < link.min_mtu) {
    limit("below", link.min_mtu);
  }
  if (link.max_mtu != 0 && *config.mtu > link.max_mtu) {
    limit("above", link.max_mtu);
  }
  if (std::ranges::any_of(config.ips, [](const netlink::IpPrefix& ip) { return ip.address.family() == Family::v6; })) {
    require_ipv6_mtu(*config.mtu);
  }
}

State read_in_pod(const netlink::DeviceId& device, Places& places) {
  auto state = read(device, places);
  if (!state || state->side != Side::pod) {
    throw Error(Code::verification_failed, fmt::format("{} vanished from the pod while it was being attached", device.text()));
  }
  return std::move(*state);
}

State wait_for_netdev(const Record& record, Places& places, const Deadline& patience) {
  while (true) {
    if (auto state = read(record.device, places)) {
      return std::move(*state);
    }
    if (patience.has_passed()) {
      throw Error(Code::verification_failed,
                  fmt::format("{} lost its network interface when its PF was told what to set for it", record.device.text()),
                  "The driver may take longer to bring it back than 'wait.device' allows.");
    }
    std::this_thread::sleep_for(kPause);
  }
}

/// The VF's netdev with its new GUID: another one, found by the VF's bus address.
State bind_for_guid(const Step& step, const State& now, const Record& record, const AttachConfig& config, Context& context,
                    Places& places) {
  Subject subject{.device = record.device, .side = now.side, .index = now.index, .name = now.name};
  const auto lock = lock_rdma("ADD of " + record.owner.text(), context.deadline);
  try {
    apply(step, subject, places);
  } catch (const netlink::Error& error) {
    throw Error(Code::setting_refused, error.what(), "A GUID takes effect when its VF's driver is bound anew.");
  }
  const Deadline patience{context.deadline.at_most(std::max(config.waits.device, kBindTime))};
  const auto bound = wait_for_netdev(record, places, patience);
  wait_for_udev(bound.index, Deadline{context.deadline.at_most(kUdevTime)});
  auto named = wait_for_netdev(record, places, patience);
  while (named.rdma.size() < now.rdma.size() && !patience.has_passed()) {
    std::this_thread::sleep_for(kPause);
    named = wait_for_netdev(record, places, patience);
  }
  const auto effective = guid_of(named.mac);
  if (effective && effective != record.asked_vf.port_guid) {
    throw Error(Code::verification_failed,
                fmt::format("{} has the GUID {} with its driver bound anew, and shall have {}", record.device.text(), guid_text(*effective),
                            guid_text(record.asked_vf.port_guid.value())),
                kNotKept);
  }
  return named;
}

/// What its PF has to set for a VF, and then the VF's netdev as that has left it: a driver may take it away for a moment, or give it
/// another MAC. The PF's lock is held but for the pauses.
State administer(const State& now, const State& wanted, const Record& record, const AttachConfig& config, Context& context, Places& places,
                 std::optional<DeviceLock> pf_lock) {
  const auto target = [&](const State& present) {
    State administered = present;
    administered.vf = wanted.vf;
    return administered;
  };
  auto bound = target(now);
  bound.driver_to_bind = record.bound_driver;
  const auto steps = plan(now, bound);
  const auto binding = std::ranges::find_if(steps, [](const Step& step) { return std::holds_alternative<BindAnew>(step); });
  const bool is_set = now.vf == wanted.vf || (now.vf && wanted.vf && differing_settings(*now.vf, *wanted.vf).empty());
  if (is_set && binding == steps.end()) {
    return now;
  }
  carry_out(now, target, record, config, context, places, [&](std::chrono::milliseconds time) {
    pf_lock.reset();
    std::this_thread::sleep_for(time);
    if (const auto administration = find_administration(*record.device.parent, places)) {
      pf_lock = lock_physical_function(administration->id, "ADD of " + record.owner.text(), context.deadline);
      if (record.asked_vf.mac) {
        refuse_taken_mac(*record.asked_vf.mac, record.device, *administration, context.store, places);
      }
      if (record.asked_vf.port_guid) {
        refuse_taken_guid(*record.asked_vf.port_guid, *administration, places);
      }
    }
  });
  pf_lock.reset();
  if (!record.has_netdev()) {
    return target(now);
  }
  if (binding == steps.end()) {
    return wait_for_netdev(record, places, Deadline{context.deadline.at_most(config.waits.device)});
  }
  // Without the PF's lock: a driver may take seconds.
  return bind_for_guid(*binding, now, record, config, context, places);
}

Addressing ask_for_addresses(Context& context, const AttachConfig& config, Record& record, int lock_fd) {
  if (!record.ipam) {
    Addressing addressing{.ips = {}, .routes = {}, .dns = config.dns};
    for (const auto& prefix : config.ips) {
      addressing.ips.push_back({.interface = {}, .address = prefix, .gateway = {}});
    }
    return addressing;
  }
  const auto time_limit = context.time_for(kIpamTime);
  Ipam ipam{*record.ipam, lock_fd, context.log};
  try {
    auto result = ipam.add(context.version, time_limit);
    if (result.ips.empty()) {
      throw Error(Code::verification_failed, fmt::format("IPAM plugin '{}' gave no address", record.ipam->type),
                  "Leave 'ipam' out for an interface without addresses.");
    }
    return {.ips = std::move(result.ips), .routes = std::move(result.routes), .dns = config.dns.is_empty() ? result.dns : config.dns};
  } catch (const Error&) {
    if (ipam.gave_nothing()) {
      record.ipam.reset();
    }
    throw;
  }
}

netlink::InterfaceAddress kernel_address(const ResultIp& ip) {
  netlink::InterfaceAddress address{
      .prefix = ip.address, .peer = {}, .broadcast = {}, .scope = RT_SCOPE_UNIVERSE, .flags = 0, .label = {}, .metric = {}};
  if (ip.address.address.family() == Family::v6) {
    address.flags = IFA_F_OPTIMISTIC;
  } else if (ip.address.length < 31) {
    address.broadcast = ip.address.broadcast();
  }
  return address;
}

/// `wanted` with its addresses and routes; of sysctls only those that they need, the others are set.
State addressed_target(const State& wanted, const Addressing& addressing) {
  State addressed = wanted;
  addressed.sysctls = {};
  for (const auto& ip : addressing.ips) {
    addressed.addresses.push_back(kernel_address(ip));
  }
  addressed.routes = kernel_routes(addressing.routes);
  if (has_v6(addressing.ips)) {
    addressed.sysctls.others[kDisableIpv6] = "0";
    if (!wanted.sysctls.others.contains(kOptimisticDad)) {
      addressed.sysctls.others[kOptimisticDad] = "1";
    }
  }
  return addressed;
}

/// Waits until duplicate address detection has spoken, or long enough for a duplicate's owner to have answered.
void wait_for_duplicate_detection(const State& wanted, const netlink::DeviceId& device, Places& places, const Deadline& deadline) {
  const Deadline until{deadline.at_most(kDuplicateDetection)};
  while (const auto link = netlink::find_device(places.at(Side::pod), device, Side::pod)) {
    bool is_tentative = false;
    for (const auto& address : netlink::addresses(places.at(Side::pod), link->index)) {
      const bool is_ours =
          std::ranges::find(wanted.addresses, address.prefix, &netlink::InterfaceAddress::prefix) != wanted.addresses.end();
      if (is_ours && address.has_flag(IFA_F_DADFAILED)) {
        throw Error(Code::verification_failed,
                    fmt::format("{} is in use by another host on the link (duplicate address detection)", address.prefix.text()),
                    "Find out who has the address; IPAM must not give it out.");
      }
      is_tentative = is_tentative || (is_ours && address.has_flag(IFA_F_TENTATIVE));
    }
    if (!is_tentative || until.has_passed()) {
      return;
    }
    std::this_thread::sleep_for(kPause);
  }
}

/// Whose driver was bound anew has new RDMA devices.
void adopt(RdmaFacts& facts, Record& record, const std::vector<RdmaState>& now) {
  adopt_rdma(record.before.rdma, now);
  adopt_rdma(record.rdma.devices, now);
  for (std::size_t at = 0; at < facts.candidates.size() && at < record.rdma.devices.size(); ++at) {
    facts.candidates[at].device.index = record.rdma.devices[at].index;
  }
}

/// What auto could not move stays in the host, under its own name.
void settle_moved(const RdmaFacts& facts, Record& record, Places& places, Context& context) {
  auto is = read_rdma(*record.device.parent, places);
  find_by_index(is, record.rdma.devices, places);
  const bool is_left = std::ranges::any_of(record.rdma.devices, [&](const RdmaState& wanted) {
    const auto* const found = find_rdma(is, wanted.index);
    return found == nullptr || found->side != Side::pod;
  });
  if (!is_left) {
    // What auto could not rename has its own name.
    for (auto& device : record.rdma.devices) {
      device.name = find_rdma(is, device.index)->name;
    }
    if (const auto changed = changed_char_devices(facts, record.rdma, places)) {
      remember_misled_pod(record.device.key(), facts.pod_uid);
      if (record.rdma.is_required) {
        throw Error(*changed);
      }
      context.log.warning(changed->what(), {{"advice", changed->details()}});
    }
    return;
  }
  if (record.is_rdma_only) {
    throw Error(Code::rdma_not_met,
                fmt::format("the RDMA device of {} could not be moved, and there is nothing else", record.device.text()),
                "The log says why.");
  }
  // Those of several that did move come back too: half of a function is of no use.
  State now;
  State home;
  now.rdma = is;
  home.rdma = record.before.rdma;
  Subject subject{.device = record.device, .side = Side::pod, .index = 0, .name = record.owner.interface_name};
  const auto steps = plan(now, home);
  RdmaTurn rdma_turn{steps, "ADD of " + record.owner.text(), context.deadline};
  for (std::size_t at = 0; at < steps.size(); ++at) {
    rdma_turn.before(at);
    apply(steps[at], subject, places);
  }
  record.rdma.use = RdmaUse::left;
  record.rdma.devices = record.before.rdma;
  for (const auto& device : record.rdma.devices) {
    const auto where = find_rdma(is, device.index) == nullptr ? "is gone" : "stays in the host, and the pod cannot use it";
    context.log.warning(fmt::format("RDMA device '{}' {}", device.name, where));
  }
}

/// Everything but addresses and routes. Gives what the device shall be from then on.
State put_into_pod(Context& context, const AttachConfig& config, const PodFacts& pod, RdmaFacts rdma, const State& now, Record& record,
                   Places& places, std::optional<DeviceLock> pf_lock) {
  const int index = record.device.parent ? 0 : record.device.pod_index;
  auto wanted = pod_target(record.before, config, pod, record.owner.interface_name, index);
  if (record.rdma.use == RdmaUse::moved) {
    wanted.rdma = record.rdma.devices;
  }
  const auto administered = administer(now, wanted, record, config, context, places, std::move(pf_lock));
  if (!record.bound_driver.empty()) {
    adopt(rdma, record, administered.rdma);
    wanted.rdma = record.rdma.use == RdmaUse::moved ? record.rdma.devices : record.before.rdma;
  }
  if (!record.has_netdev()) {
    auto moved = administered;
    moved.rdma = wanted.rdma;
    wanted = std::move(moved);
  }
  carry_out(administered, wanted, record, config, context, places);
  if (record.rdma.use == RdmaUse::moved) {
    settle_moved(rdma, record, places, context);
    wanted.rdma = record.rdma.devices;
  }
  return wanted;
}

bool uses_rdma(const RdmaAttachment& rdma) {
  return rdma.use == RdmaUse::moved || rdma.use == RdmaUse::shared;
}

/// The switch inside an adapter may send a VF's multicast back to it (igb's does), and whoever hears of an address that it is still proving
/// takes it for a duplicate.
void drop_unproved(std::vector<netlink::IpAddress>& addresses, int index, Places& places) {
  for (const auto& present : netlink::addresses(places.at(Side::pod), index)) {
    if (present.has_flag(IFA_F_TENTATIVE | IFA_F_OPTIMISTIC)) {
      std::erase(addresses, present.prefix.address);
    }
  }
}

void wait_for_carrier(const netlink::DeviceId& device, Places& places, std::chrono::milliseconds limit, const Deadline& until, Log& log) {
  while (limit.count() > 0) {
    const auto link = netlink::find_device(places.at(Side::pod), device, Side::pod);
    if (!link || link->has_flag(IFF_LOWER_UP)) {
      return;
    }
    if (until.has_passed()) {
      log.warning(fmt::format("the link has no carrier after {} ms", limit.count()));
      return;
    }
    std::this_thread::sleep_for(kPause);
  }
}

/// As the kernel prints it: a tab between two numbers, and no other form of one.
std::vector<std::string> words(std::string_view value) {
  static constexpr std::string_view kSpace = " \t\n";
  std::vector<std::string> all;
  for (auto start = value.find_first_not_of(kSpace); start != std::string_view::npos; start = value.find_first_not_of(kSpace)) {
    value.remove_prefix(start);
    const auto word = value.substr(0, value.find_first_of(kSpace));
    value.remove_prefix(word.size());
    std::int64_t number = 0;
    const auto [end, error] = std::from_chars(word.data(), word.data() + word.size(), number);
    all.push_back(error == std::errc{} && end == word.data() + word.size() ? std::to_string(number) : std::string{word});
  }
  return all;
}

/// What was configured beside name, MAC, MTU and addresses. A sysctl that the kernel rounds or reads in its own way is no failure, and
/// said.
void verify_settings(const State& wanted, const AttachConfig& config, const netlink::DeviceId& device, Places& places, Log& log) {
  if (!config.promisc && !config.allmulti && !config.tx_queue_length && config.sysctls.empty()) {
    return;
  }
  auto now = read_in_pod(device, places);
  const auto require = [&](std::string_view key, const auto& asked, const auto& is) {
    if (asked && *asked != is) {
      throw Error(Code::verification_failed, fmt::format("{}: '{}' was set to {} and is {}", device.text(), key, *asked, is), kNotKept);
    }
  };
  require("promisc", config.promisc, now.promisc);
  require("allmulti", config.allmulti, now.allmulti);
  require("txQLen", config.tx_queue_length, now.tx_queue_length.value_or(0));
  netlink::read_others(wanted.sysctls, now.name, places.at(Side::pod).net_ns(), places.roots, now.sysctls);
  for (const auto& setting : config.sysctls) {
    const auto is = now.sysctls.find(setting.path);
    if (is && words(*is) != words(setting.value)) {
      log.warning(fmt::format("sysctl '{}' was set to '{}' and is '{}'", setting.key, setting.value, *is));
    }
  }
}

Result make_result(const Addressing& addressing, const netlink::Link& link, const netlink::DeviceId& device, const std::string& sandbox) {
  Result result;
  ResultInterface interface{
      .name = link.name, .mac = link.address.text(), .sandbox = sandbox, .mtu = link.mtu.value_or(0), .socket_path = {}, .pci_id = {}};
  if (device.parent && device.parent->bus == "pci") {
    interface.pci_id = device.parent->address;
  }
  result.interfaces.push_back(std::move(interface));
  result.ips = addressing.ips;
  for (auto& ip : result.ips) {
    ip.interface = 0;
  }
  result.routes = addressing.routes;
  result.dns = addressing.dns;
  return result;
}

/// Of a device without a netdev: what a program in the pod can count on.
netlink::Link stand_in(const Record& record, const AttachConfig& config, Places& places) {
  netlink::Link link;
  link.name = record.owner.interface_name;
  const auto administration = record.is_rdma_only ? std::nullopt : find_administration(*record.device.parent, places);
  if (administration) {
    link.mtu = config.mtu ? config.mtu : administration->pf.mtu;
    if (const auto settings = read_vf(*administration, places)) {
      link.address = settings->mac.value_or(netlink::HardwareAddress{});
    }
  }
  return link;
}

}  // namespace

PodFacts inspect_pod(const Claim& claim, const AttachConfig& config, const std::string& interface_name, netlink::Socket& pod,
                     const netlink::Roots& roots) {
  if (netlink::find_link(pod, interface_name)) {
    throw Error(Code::device_cannot_be_taken, fmt::format("the pod has an interface called '{}' already", interface_name),
                "The runtime chose a name (CNI_IFNAME) that is in use there.");
  }
  if (!claim.has_netdev()) {
    return {};
  }
  check_mtu(claim.link, config);
  PodFacts facts;
  for (const auto& altname : claim.before.altnames) {
    if (altname == interface_name || netlink::find_link(pod, altname)) {
      facts.clashing_altnames.push_back(altname);
    }
  }
  facts.has_default_v6 = netlink::has_default_route(pod, Family::v6);
  facts.has_ipv6 = facts.has_default_v6;
  if (config.gets_addresses) {
    facts.has_default_v4 = netlink::has_default_route(pod, Family::v4);
    facts.has_ipv6 =
        facts.has_ipv6 || netlink::read_sysctl("net/ipv6/conf/default/accept_ra", interface_name, pod.net_ns(), roots).has_value();
  }
  return facts;
}

State pod_target(const State& before, const AttachConfig& config, const PodFacts& pod, const std::string& interface_name, int pod_index) {
  State wanted = before;
  wanted.side = Side::pod;
  wanted.index = pod_index;
  wanted.name = interface_name;
  std::erase_if(wanted.altnames, [&](const std::string& altname) {
    return std::ranges::find(pod.clashing_altnames, altname) != pod.clashing_altnames.end();
  });
  wanted.mtu = config.mtu ? config.mtu : before.mtu;
  wanted.vf = before.vf ? std::optional{laid_over(*before.vf, asked_of_pf(config.vf, config.mac, *before.vf))} : std::nullopt;
  // What its PF has set for a VF is what the VF takes with its next reset.
  const auto administrative = before.vf ? before.vf->mac.value_or(netlink::HardwareAddress{}) : netlink::HardwareAddress{};
  const bool is_set = administrative.bytes().size() == before.mac.bytes().size() && !administrative.is_zero();
  wanted.mac = config.mac.value_or(is_set ? administrative : before.mac);
  if (guid_of(wanted.mac) && !config.mac) {
    wanted.mac = {};  // it changes with the GUID, and with a netdev that is made anew
  }
  wanted.promisc = config.promisc.value_or(before.promisc);
  wanted.allmulti = config.allmulti.value_or(before.allmulti);
  wanted.tx_queue_length = config.tx_queue_length ? config.tx_queue_length : before.tx_queue_length;
  wanted.up = true;
  wanted.addresses.clear();
  wanted.routes.clear();
  wanted.sysctls = {};
  // Below its least MTU an interface has no IPv6, and none of its sysctls.
  const bool has_ipv6 = pod.has_ipv6 && wanted.mtu.value_or(kLeastIpv6Mtu) >= kLeastIpv6Mtu;
  if (has_ipv6 && config.gets_addresses) {
    wanted.sysctls.others[kAutoconf] = "0";  // IPAM decides which addresses there are
  }
  if (has_ipv6 && config.default_route == DefaultRoute::drop && pod.has_default_v6) {
    wanted.sysctls.others[kAcceptRa] = "0";
  }
  for (const auto& setting : config.sysctls) {
    wanted.sysctls.others[setting.path] = setting.value;
  }
  return wanted;
}

Addressing settle_routes(Addressing addressing, DefaultRoute policy, const PodFacts& pod, std::vector<std::string>& notes) {
  const auto gateway_of = [&](Family family) -> std::optional<netlink::IpAddress> {
    const auto found =
        std::ranges::find_if(addressing.ips, [&](const ResultIp& ip) { return ip.gateway && ip.address.address.family() == family; });
    return found == addressing.ips.end() ? std::nullopt : found->gateway;
  };
  std::vector<ResultRoute> kept;
  for (auto& route : addressing.routes) {
    const auto family = route.destination.address.family();
    const bool pod_has_one = family == Family::v4 ? pod.has_default_v4 : pod.has_default_v6;
    const bool is_in_main_table = !route.table || *route.table == 0 || *route.table == RT_TABLE_MAIN;
    if (route.destination.is_default() && is_in_main_table && policy == DefaultRoute::drop && pod_has_one) {
      notes.push_back(
          fmt::format("the default route {} is dropped: the pod keeps its own ('defaultRoute': \"drop\")", route.destination.text()));
      continue;
    }
    const bool is_link_scope = route.scope && *route.scope >= RT_SCOPE_LINK;
    if (!route.gateway && !is_link_scope) {
      route.gateway = gateway_of(family);
    }
    kept.push_back(route);
  }
  addressing.routes = std::move(kept);
  return addressing;
}

std::vector<netlink::Route> kernel_routes(const std::vector<ResultRoute>& routes) {
  std::vector<netlink::Route> kernel;
  for (const auto& route : routes) {
    netlink::Route made;
    made.destination = route.destination.network();
    made.gateway = route.gateway;
    if (route.table.value_or(0) != 0) {
      made.table = *route.table;
    }
    made.priority = route.priority.value_or(0);
    const bool is_v4 = route.destination.address.family() == Family::v4;
    made.scope = route.scope.value_or(is_v4 && !route.gateway ? RT_SCOPE_LINK : RT_SCOPE_UNIVERSE);
    made.mtu = route.mtu;
    made.advmss = route.advmss;
    kernel.push_back(made);
  }
  return kernel;
}

State state_in_result(const Result& result, std::size_t interface) {
  const auto& ours = result.interfaces.at(interface);
  State state;
  state.side = Side::pod;
  state.name = ours.name;
  state.up = true;
  state.mac = netlink::HardwareAddress::parse(ours.mac).value_or(netlink::HardwareAddress{});
  if (ours.mtu != 0) {
    state.mtu = ours.mtu;
  }
  for (const auto& ip : result.ips) {
    if (ip.interface == interface) {
      state.addresses.push_back({.prefix = ip.address, .peer = {}, .broadcast = {}, .scope = 0, .flags = 0, .label = {}, .metric = {}});
    }
  }
  return state;
}

netlink::Link verify(const State& wanted, const netlink::DeviceId& device, Places& places) {
  auto& pod = places.at(Side::pod);
  // From the list: asked for one link, the kernel first finishes all that a link which comes up sets off (linkwatch), and of that nothing
  // is looked at here.
  auto link = netlink::find_device(netlink::links(pod), device, Side::pod);
  const auto require = [&](bool holds, std::string_view what, const std::string& is, const std::string& shall) {
    if (!holds) {
      throw Error(Code::verification_failed, fmt::format("{}: {} is {} and shall be {}", device.text(), what, is, shall), kNotKept);
    }
  };
  if (!link) {
    throw Error(Code::verification_failed, fmt::format("{} is not in the pod", device.text()));
  }
  require(link->name == wanted.name, "the name", link->name, wanted.name);
  require(wanted.mac.is_empty() || wanted.mac.is_zero() || link->address == wanted.mac, "the MAC", link->address.text(), wanted.mac.text());
  require(!wanted.mtu || link->mtu == wanted.mtu, "the MTU", std::to_string(link->mtu.value_or(0)), std::to_string(wanted.mtu.value_or(0)));
  require(link->has_flag(IFF_UP) == wanted.up, "the link", link->has_flag(IFF_UP) ? "up" : "down", wanted.up ? "up" : "down");
  const auto present = wanted.addresses.empty() ? std::vector<netlink::InterfaceAddress>{} : netlink::addresses(pod, link->index);
  for (const auto& address : wanted.addresses) {
    const auto found = std::ranges::find(present, address.prefix, &netlink::InterfaceAddress::prefix);
    const bool holds = found != present.end() && !found->has_flag(IFA_F_DADFAILED);
    require(holds, fmt::format("address {}", address.prefix.text()), found == present.end() ? "absent" : "a duplicate", "there");
  }
  return std::move(*link);
}

void verify_recorded(const State& wanted, const Record& record, Places& places, Context& context) {
  auto asked = record.asked_vf;
  if (record.has_netdev()) {
    (void)verify(wanted, record.device, places);
    const auto settings = asked.mac ? read_vf(*record.device.parent, places) : std::nullopt;
    if (settings && settings->mac == wanted.mac) {
      asked.mac = wanted.mac;
    }
  } else if (record.before.vf && !wanted.mac.is_empty()) {
    asked.mac = wanted.mac;
  }
  verify_vf(asked, record.device, places);
  verify_recorded_rdma(wanted, record, places, context);
}

Result attach(Context& context, const AttachConfig& config, const PodFacts& pod, RdmaFacts rdma, const State& now, Record& record,
              Places& places, int lock_fd, std::optional<DeviceLock> pf_lock) {
  // Empty until IPAM is asked: a failure before that is nothing to it.
  auto ipam = std::exchange(record.ipam, std::nullopt);
  const auto wanted = put_into_pod(context, config, pod, std::move(rdma), now, record, places, std::move(pf_lock));
  const auto carrier_wait = config.waits.carrier.value_or(uses_rdma(record.rdma) ? kRdmaCarrierWait : std::chrono::milliseconds{0});
  const Deadline carrier{context.time_for(carrier_wait)};
  if (record.has_netdev()) {
    wait_for_carrier(record.device, places, carrier_wait, carrier, context.log);
  }

  record.ipam = std::move(ipam);
  if (!record.bound_driver.empty()) {
    record.incarnation = netlink::incarnation(record.device, places.roots);
    context.store.write(record);
  }
  std::vector<std::string> notes;
  const auto addressing = settle_routes(ask_for_addresses(context, config, record, lock_fd), config.default_route, pod, notes);
  for (const auto& note : notes) {
    context.log.info(note);
  }
  if (!record.has_netdev()) {
    verify_vf(record.asked_vf, record.device, places);
    verify_rdma(record, {}, {.port = carrier, .gid = carrier}, places, context);
    return make_result(addressing, stand_in(record, config, places), record.device, context.environment.net_ns);
  }
  const bool is_v6 = has_v6(addressing.ips);
  if (is_v6) {
    require_ipv6_mtu(wanted.mtu.value_or(kLeastIpv6Mtu));
  }
  const auto addressed = addressed_target(wanted, addressing);
  if (!addressing.ips.empty() || !addressing.routes.empty()) {
    carry_out(read_in_pod(record.device, places), addressed, record, config, context, places);
  }
  if (is_v6) {
    wait_for_duplicate_detection(addressed, record.device, places, context.deadline);
  }
  const auto link = verify(addressed, record.device, places);
  verify_settings(wanted, config, record.device, places, context.log);
  verify_vf(record.asked_vf, record.device, places);
  verify_rdma(record, expectation(addressed, link, record.device, places.roots),
              {.port = carrier, .gid = Deadline{context.time_for(config.waits.gid)}}, places, context);
  return make_result(addressing, link, record.device, context.environment.net_ns);
}

void announce(const Result& result, const netlink::DeviceId& device, Places& places, Log& log) {
  std::vector<netlink::IpAddress> addresses;
  for (const auto& ip : result.ips) {
    addresses.push_back(ip.address.address);
  }
  if (addresses.empty()) {
    return;
  }
  try {
    if (const auto link = netlink::find_device(places.at(Side::pod), device, Side::pod)) {
      if (device.parent && netlink::find_vf_id(*device.parent, places.roots)) {
        drop_unproved(addresses, link->index, places);
      }
      netlink::announce(places.at(Side::pod).net_ns(), link->index, link->address, addresses);
    }
  } catch (const netlink::Error& error) {
    log.warning(error.what());
  }
}

}  // namespace cni
