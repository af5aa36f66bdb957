#include "cni/release.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <set>
#include <thread>
#include <utility>

#include "cni/carry_out.hpp"
#include "cni/device_info.hpp"
#include "cni/infiniband.hpp"
#include "cni/ipam.hpp"
#include "cni/rdma.hpp"
#include "cni/undisturbed.hpp"
#include "cni/vf.hpp"
#include "netlink/driver.hpp"
#include "netlink/error.hpp"

namespace cni {

namespace {

constexpr int kPasses = 4;
constexpr std::chrono::milliseconds kHomecomingWait{5'000};
constexpr std::chrono::milliseconds kHomecomingPause{10};
constexpr std::chrono::milliseconds kIpamTime{30'000};
constexpr std::chrono::milliseconds kLeastIpamTime{1'000};

/// Whether the netdev, which is on neither side, may yet appear in the host: the kernel brings hardware home some time after its namespace
/// has ended, and destroys software devices with it.
bool may_come_home(const netlink::DeviceId& device, const netlink::Roots& roots) {
  if (!device.parent) {
    return device.kind.empty();
  }
  const auto driver = netlink::driver(*device.parent, roots);
  return driver && !netlink::is_userspace_driver(*driver);
}

std::optional<State> wait_for_device(const netlink::DeviceId& device, Places& places, const Deadline& homecoming) {
  while (true) {
    auto state = read(device, places);
    if (state || homecoming.has_passed() || !may_come_home(device, places.roots)) {
      return state;
    }
    std::this_thread::sleep_for(kHomecomingPause);
  }
}

/// The restoring of one device: what was done, and what could not be.
class Restorer {
 public:
  Restorer(Record& record, Context& context, Places& places)
      : record_(record), context_(context), places_(places), homecoming_(context.deadline.at_most(kHomecomingWait)) {}

  std::vector<std::string> restore() {
    if (!device_part_is_valid()) {
      return {};
    }
    // Behind a move there is a new plan; another pass repeats what a race or a lost answer made fail. A busy driver costs time, not passes.
    const Deadline patience{context_.deadline.at_most(kBusyTime)};
    int passes = 0;
    while (passes < kPasses || (is_busy_ && !patience.has_passed())) {
      if (is_busy_) {
        std::this_thread::sleep_for(kBusyPause);
      }
      try {
        if (has_netdev_ ? restore_once() : restore_netdevless()) {
          return {};
        }
      } catch (const netlink::Error& error) {
        failures_.clear();
        is_busy_ = false;
        fail(error);
      }
      passes += is_busy_ && !patience.has_passed() ? 0 : 1;
    }
    if (failures_.empty()) {
      failures_ = {fmt::format("{} is not yet as it was", record_.device.text())};
    }
    return failures_;
  }

 private:
  [[nodiscard]] bool device_part_is_valid() {
    const auto now = netlink::incarnation(record_.device, places_.roots);
    if (now.boot_id != record_.incarnation.boot_id || now.device_inode != record_.incarnation.device_inode) {
      context_.log.info("the device is another one since: it is left as it is", {{"device", record_.device.text()}});
      return false;
    }
    if (has_netdev_ && is_bound_by_others(record_, now, places_.roots)) {
      context_.log.info("the driver was bound anew since: the new interface is left as it is", {{"device", record_.device.text()}});
      has_netdev_ = false;
    }
    return true;
  }

  /// True when nothing is left to be done.
  bool restore_once() {
    bind_if_unbound();
    auto now = wait_for_all();
    if (!now) {
      failures_ = {fmt::format("{} is in no namespace that can be reached", record_.device.text())};
      return is_gone();
    }
    const bool is_known_anew = now->side == Side::pod && record_.device.learn_address(now->mac);
    if (reserve_home_index(record_.device, *now, places_) || is_known_anew) {
      context_.store.write(record_);
    }
    now->is_mac_refused = is_mac_refused_;
    now->is_bound_anew = is_bound_anew_;
    if (now->side == Side::pod) {
      now->uppers = uppers_in_pod(now->index, places_);
      for (const auto& upper : now->uppers) {
        context_.log.warning(fmt::format("'{}' is removed: the pod has put it onto the interface that leaves it", upper.name));
      }
    }
    if (now->side == Side::host) {
      netlink::read_others(record_.before.sysctls, now->name, places_.host.net_ns(), places_.roots, now->sysctls);
    }
    // Where the PF cannot set the GUID back now, the rest is done on the netdev that is there.
    const bool may_bind = guid_refusal_.empty() && !is_pf_locked_out_;
    auto wanted = infiniband_home(home_target(record_.before, *now, record_.device, places_), *now, record_, may_bind);
    wanted.rdma = home_rdma(*now);
    note_lost_names(wanted);
    give_up_refused_guid(wanted);
    if (lets_mac_follow(*now)) {
      wanted.vf->mac.reset();
    }
    const auto steps = plan(*now, wanted);
    start_pass(*now);
    apply_all(steps, *now);
    return failures_.empty() && std::ranges::none_of(steps, [&](const Step& step) { return needs_another_look(step); });
  }

  /// The device, with the RDMA devices that it had: the kernel brings these home by themselves when their namespace has ended.
  std::optional<State> wait_for_all() {
    auto now = wait_for_device(record_.device, places_, homecoming_);
    while (now && !is_rdma_complete(*now)) {
      now = wait_for_device(record_.device, places_, homecoming_);
    }
    return now;
  }

  /// Whether no RDMA device is missing, or there is no time left to wait for it; otherwise a while later.
  bool is_rdma_complete(State& now) {
    if (!record_.bound_driver.empty()) {
      adopt_rdma(record_.before.rdma, now.rdma);
    }
    find_by_index(now.rdma, recorded_rdma(), places_);
    // While the kernel has a device between two namespaces, it is in neither, and nothing tells of it.
    if (!is_rdma_missing(now) || homecoming_.has_passed() || !netlink::driver(*record_.device.parent, places_.roots)) {
      return true;
    }
    if (!places_.pod) {
      places_.pod = owner_socket(record_.owner, record_.owner.net_ns_path, places_.roots);
    }
    std::this_thread::sleep_for(kHomecomingPause);
    return false;
  }

  /// Those that are to be brought home: what was not moved is not the attachment's to set right.
  [[nodiscard]] std::vector<RdmaState> recorded_rdma() const {
    const bool is_ours = record_.rdma.use == RdmaUse::moved || !record_.bound_driver.empty();
    return is_ours ? record_.before.rdma : std::vector<RdmaState>{};
  }

  /// One that it had is in neither namespace, and no other has come in its place.
  [[nodiscard]] bool is_rdma_missing(const State& now) const {
    const auto recorded = recorded_rdma();
    return now.rdma.size() < recorded.size() &&
           std::ranges::any_of(recorded, [&](const RdmaState& device) { return find_rdma(now.rdma, device.index) == nullptr; });
  }

  /// The same, and it is not gone.
  [[nodiscard]] bool lacks_rdma(const State& now) const {
    return is_rdma_missing(now) &&
           (is_bound_anew_ || now.rdma.size() < netlink::rdma_names_anywhere(*record_.device.parent, places_.roots).size());
  }

  /// Where the RDMA devices belong, and what they are called there: under their own names, but for those that others have meanwhile.
  std::vector<RdmaState> home_rdma(const State& now) {
    std::vector<RdmaState> wanted;
    for (const auto& recorded : recorded_rdma()) {
      const auto* const found = find_rdma(now.rdma, recorded.index);
      if (found == nullptr) {
        continue;
      }
      auto home = recorded;
      home.side = Side::host;
      // Never a name that the pod has chosen: the next who names an RDMA device would mean another one.
      if (is_rdma_name_taken(*found, recorded.name)) {
        home.name = fmt::format("ibdev{}", recorded.index);
        note_lost_rdma_name(recorded.name, home.name);
      }
      wanted.push_back(std::move(home));
    }
    return wanted;
  }

  /// By another device of the host, or up to Linux 6.12 by one anywhere: that is known when the kernel says so.
  [[nodiscard]] bool is_rdma_name_taken(const RdmaState& device, const std::string& name) {
    if (device.side == Side::host && device.name == name) {
      return false;
    }
    auto* const host = places_.rdma(Side::host);
    const auto devices = host == nullptr ? std::vector<netlink::RdmaDevice>{} : netlink::rdma_devices(*host);
    const auto& refused = device.side == Side::pod ? refused_rdma_moves_ : refused_rdma_names_;
    return refused.contains(device.index) || std::ranges::any_of(devices, [&](const netlink::RdmaDevice& other) {
             return other.name == name && other.index != device.index;
           });
  }

  void note_lost_rdma_name(const std::string& name, const std::string& instead) {
    if (!std::exchange(is_lost_rdma_name_noted_, true)) {
      context_.log.warning(fmt::format("the name '{}' is taken: the RDMA device comes home as '{}'", name, instead));
    }
  }

  /// Behind a move there is more to do, and on a netdev that was made anew; and a VF that is given a MAC may tell its PF.
  [[nodiscard]] bool needs_another_look(const Step& step) const {
    return std::holds_alternative<Move>(step) || std::holds_alternative<BindAnew>(step) || is_about_rdma(step) ||
           (record_.before.vf && std::holds_alternative<SetMac>(step));
  }

  /// Of a device that has no netdev, or another one since: its RDMA devices, and what its PF has set for it.
  bool restore_netdevless() {
    auto now = wait_for_rdma();
    auto wanted = now;
    wanted.vf = record_.before.vf;
    wanted.rdma = home_rdma(now);
    if (record_.has_netdev() && wanted.vf && !record_.asked_vf.mac) {
      wanted.vf->mac.reset();  // what its new netdev has told the PF is none of ours
    }
    wanted = infiniband_home(std::move(wanted), now, record_, false);
    give_up_refused_guid(wanted);
    const auto steps = plan(now, wanted);
    start_pass(now);
    apply_all(steps, now);
    return failures_.empty() && std::ranges::none_of(steps, is_about_rdma);
  }

  /// The same as wait_for_all.
  State wait_for_rdma() {
    State now;
    now.name = record_.before.name;
    now.vf = record_.before.vf ? read_vf(*record_.device.parent, places_) : std::nullopt;
    while (!recorded_rdma().empty()) {
      now.rdma = read_rdma(*record_.device.parent, places_);
      if (is_rdma_complete(now)) {
        break;
      }
    }
    return now;
  }

  /// Most often the PF only says what MAC the VF has given itself. That follows when the VF's own MAC is set back; to write it would bind
  /// the VF to it. Where that did not help, it is written after all.
  [[nodiscard]] bool lets_mac_follow(const State& now) {
    const bool can_follow = now.side == Side::host && now.vf && record_.before.vf && !record_.asked_vf.mac && now.vf->mac == now.mac &&
                            now.mac != record_.before.mac && record_.before.vf->mac == record_.before.mac;
    return can_follow && !std::exchange(has_let_mac_follow_, true);
  }

  /// Whoever was killed between the two halves of binding the driver anew has left the device without one.
  void bind_if_unbound() {
    if (record_.bound_driver.empty() || netlink::driver(*record_.device.parent, places_.roots)) {
      return;
    }
    context_.log.warning(fmt::format("the driver '{}' is bound again: the device was left without it", record_.bound_driver));
    netlink::bind_driver(*record_.device.parent, record_.bound_driver, places_.roots);
    homecoming_ = Deadline{context_.deadline.at_most(kHomecomingWait)};
  }

  /// The netdev is made anew for the GUID that its PF has set back. Nobody knows its driver's inode until that is done.
  void bind_anew(const Step& step, Subject& subject) {
    record_.incarnation.driver_inode = 0;
    context_.store.write(record_);
    const auto lock = lock_rdma("release of " + record_.owner.text(), context_.deadline);
    apply(step, subject, places_);
    is_bound_anew_ = true;
    record_.incarnation = netlink::incarnation(record_.device, places_.roots);
    homecoming_ = Deadline{context_.deadline.at_most(kHomecomingWait)};
    if (const auto bound = wait_for_device(record_.device, places_, homecoming_)) {
      wait_for_udev(bound->index, Deadline{context_.deadline.at_most(kUdevTime)});
    }
  }

  /// What is refused for good stays a failure, and keeps nothing else from being done.
  void give_up_refused_guid(State& wanted) const {
    if (!guid_refusal_.empty() && wanted.vf) {
      wanted.vf->node_guid.reset();
      wanted.vf->port_guid.reset();
    }
  }

  void start_pass(const State& now) {
    failures_.clear();
    if (!guid_refusal_.empty()) {
      failures_.push_back(guid_refusal_);
    }
    is_busy_ = false;
    is_guid_open_ = false;
    if (record_.before.vf && !now.vf) {
      failures_.push_back(
          fmt::format("the PF of {} does not say what is set for it, or has no network interface in the host", record_.device.text()));
      is_busy_ = true;
    }
    if (lacks_rdma(now)) {
      failures_.push_back(fmt::format("an RDMA device of {} is in no namespace that can be reached", record_.device.text()));
    }
  }

  void fail(const netlink::Error& error) {
    failures_.emplace_back(error.what());
    is_busy_ = is_busy_ || (record_.before.vf && is_busy(error.error_number()));
  }

  [[nodiscard]] bool is_gone() {
    const bool gone = !may_come_home(record_.device, places_.roots);
    if (gone) {
      context_.log.info("the device is gone");
    }
    return gone;
  }

  void apply_all(const std::vector<Step>& steps, const State& now) {
    Subject subject{.device = record_.device, .side = now.side, .index = now.index, .name = now.name};
    std::optional<DeviceLock> pf_lock;
    RdmaTurn rdma_turn{steps, "release of " + record_.owner.text(), context_.deadline};
    for (std::size_t at = 0; at < steps.size(); ++at) {
      const auto& step = steps[at];
      // Before the wait for another lock.
      if (!std::holds_alternative<SetVf>(step)) {
        pf_lock.reset();
      }
      if (!may_go_on(rdma_turn, at, step)) {
        continue;
      }
      if (std::holds_alternative<SetVf>(step) && !pf_lock && !lock_pf(pf_lock)) {
        is_guid_open_ = is_guid_open_ || sets_guid(step);
        continue;
      }
      try {
        if (!std::holds_alternative<BindAnew>(step)) {
          apply(step, subject, places_);
        } else if (!is_guid_open_) {
          bind_anew(step, subject);
        }
        context_.log.debug("restored", {{"step", describe(step)}});
        note_guid_of_ones(step);
      } catch (const netlink::Error& error) {
        fail(error);
        note_rdma_refusal(step, error.error_number(), subject.side);
        note_guid_refusal(step, error);
        is_mac_refused_ = is_mac_refused_ || (record_.before.vf && sets_mac(step) && is_mac_refusal(error.error_number()));
        const bool is_for_good = !std::holds_alternative<SetMac>(step) || now.is_mac_refused;
        if (auto instead = is_for_good ? instead_of_refused(step, error.error_number(), record_.before, netlink::HardwareAddress::random())
                                       : std::nullopt) {
          context_.log.warning(fmt::format("the driver refused to {}: the VF gets another MAC instead", describe(step)),
                               {{"error", error.what()}});
          record_.before = std::move(*instead);
          context_.store.write(record_);
        }
      }
    }
    record_.device = subject.device;
  }

  /// False, and a failure, when the RDMA lock does not come.
  bool may_go_on(RdmaTurn& turn, std::size_t at, const Step& step) {
    if (is_about_rdma(step) && is_rdma_locked_out_) {
      return false;
    }
    try {
      turn.before(at);
      return true;
    } catch (const Error& error) {
      is_rdma_locked_out_ = true;
      failures_.emplace_back(error.what());
      return false;
    }
  }

  void note_rdma_refusal(const Step& step, int error_number, Side side) {
    if (error_number != EEXIST) {
      return;
    }
    if (const auto* move = std::get_if<MoveRdma>(&step)) {
      refused_rdma_moves_.insert(move->index);
    }
    if (const auto* rename = std::get_if<RenameRdma>(&step); rename != nullptr && side == Side::host) {
      refused_rdma_names_.insert(rename->index);
    }
  }

  void note_guid_of_ones(const Step& step) {
    const auto* set_vf = std::get_if<SetVf>(&step);
    if (set_vf != nullptr && set_vf->setting.port_guid == kGuidOfOnes && record_.before.vf->port_guid != kGuidOfOnes) {
      context_.log.warning("the VF had no GUID before, and a PF takes no zero back: it has all ones now");
    }
  }

  void note_guid_refusal(const Step& step, const netlink::Error& error) {
    if (sets_guid(step)) {
      is_guid_open_ = true;
      guid_refusal_ = is_busy(error.error_number()) ? "" : error.what();
    }
  }

  /// False, and a failure, when the PF's lock does not come. That has taken its time, which is not spent again.
  bool lock_pf(std::optional<DeviceLock>& lock) {
    const auto administration = find_administration(*record_.device.parent, places_);
    if (!administration) {
      return true;  // the request says what is wrong
    }
    try {
      const Deadline patience{is_pf_locked_out_ ? std::chrono::milliseconds{0} : context_.deadline.left()};
      lock = lock_physical_function(administration->id, "release of " + record_.owner.text(), patience);
      return true;
    } catch (const Error& error) {
      is_pf_locked_out_ = true;
      failures_.emplace_back(error.what());
      return false;
    }
  }

  /// Names are said once, by the pass that finds them taken first.
  void note_lost_names(const State& wanted) {
    if (std::exchange(names_noted_, true)) {
      return;
    }
    if (wanted.name != record_.before.name) {
      context_.log.warning(fmt::format("the host name '{}' is taken: the interface comes home as '{}'", record_.before.name, wanted.name));
    }
    for (const auto& altname : record_.before.altnames) {
      if (std::ranges::find(wanted.altnames, altname) == wanted.altnames.end()) {
        context_.log.warning(fmt::format("the altname '{}' is taken in the host: the interface comes home without it", altname));
      }
    }
  }

  Record& record_;
  Context& context_;
  Places& places_;
  Deadline homecoming_;
  std::vector<std::string> failures_;
  bool is_busy_ = false;  ///< the last pass met a VF that its PF has just told something, and that will answer otherwise in a moment
  bool is_mac_refused_ = false;
  bool is_bound_anew_ = false;  ///< once a release: what a GUID does not change then, it does not the next time
  bool is_guid_open_ = false;   ///< one is not yet set back, in this pass
  std::string guid_refusal_;    ///< the PF refused to set it back, for good
  bool is_pf_locked_out_ = false;
  bool is_rdma_locked_out_ = false;
  std::set<std::uint32_t> refused_rdma_names_;  ///< by index: in the host, another device has the name
  std::set<std::uint32_t> refused_rdma_moves_;  ///< by index: to the host, with the name that it has in the pod
  bool is_lost_rdma_name_noted_ = false;
  bool has_netdev_ = record_.has_netdev();
  bool has_let_mac_follow_ = false;
  bool names_noted_ = false;
};

void remove_owed(const Owner& owner, Context& context) {
  try {
    context.store.remove_owed(owner);
  } catch (const netlink::Error& error) {
    context.log.error("a paid debt stays in the books", {{"error", error.what()}});
  }
}

/// Asks for the DEL; what fails becomes a debt that a repeated DEL pays.
std::optional<Error> settle_ipam(const Record& record, Context& context, int lock_fd) {
  try {
    Ipam{*record.ipam, lock_fd, context.log}.del(std::max(kLeastIpamTime, context.deadline.at_most(kIpamTime)));
    remove_owed(record.owner, context);
    return std::nullopt;
  } catch (const Error& error) {
    context.log.error("the IPAM DEL failed and is owed from now on", {{"error", error.what()}});
    try {
      context.store.write_owed(record.owner, *record.ipam);
    } catch (const netlink::Error& owing) {
      context.log.error("what is owed could not be written down", {{"error", owing.what()}});
    }
    return error;
  }
}

void remove_written_device_info(const Record& record, Context& context) {
  if (record.device_info_file.empty()) {
    return;
  }
  try {
    remove_device_info(record.device_info_file);
  } catch (const netlink::Error& error) {
    context.log.warning("the device-info file stays", {{"error", error.what()}});
  }
}

void require_home(const Record& record, const Places& places) {
  const bool same_boot = record.incarnation.boot_id == netlink::boot_id(places.roots);
  if (same_boot && record.home_cookie != places.host.net_ns().cookie()) {
    throw Error(Code::device_cannot_be_taken,
                fmt::format("{} was taken in another network namespace than the one this plugin runs in", record.device.text()),
                "Run the plugin in the network namespace of the host, as the container runtime does.");
  }
}

/// Nobody in the host has the name, but for the device itself.
bool is_free(const std::string& name, const State& now, Places& places) {
  const auto other = netlink::find_link(places.host, name);
  return !other || (now.side == Side::host && other->index == now.index);
}

}  // namespace

std::optional<State> instead_of_refused(const Step& refused, int error_number, const State& before, const netlink::HardwareAddress& fresh) {
  const auto* set_vf = std::get_if<SetVf>(&refused);
  const auto* set_mac = std::get_if<SetMac>(&refused);
  if (is_busy(error_number) || !before.vf || !before.vf->mac) {
    return std::nullopt;
  }
  State instead = before;
  if (set_vf != nullptr && set_vf->setting.mac && set_vf->setting.mac->is_zero()) {
    instead.vf->mac = fresh;
    return instead;
  }
  if (set_mac != nullptr && !before.vf->mac->is_zero() && before.vf->mac != before.mac) {
    instead.mac = *before.vf->mac;
    return instead;
  }
  return std::nullopt;
}

State home_target(const State& before, const State& now, const netlink::DeviceId& device, Places& places) {
  State wanted = before;
  wanted.side = Side::host;
  if (!is_free(wanted.name, now, places)) {
    wanted.name = fmt::format("dev{}", before.index);
    if (!is_free(wanted.name, now, places)) {
      wanted.name = now.side == Side::host ? now.name : "dev%d";  // the kernel fills in the first free number
    }
  }
  std::erase_if(wanted.altnames, [&](const std::string& altname) { return altname == wanted.name || !is_free(altname, now, places); });
  if (!device.parent && device.home_index != 0) {
    wanted.index = device.home_index;
  } else if (now.side == Side::pod && netlink::find_link(places.host, wanted.index)) {
    wanted.index = 0;  // whichever the kernel gives it
  }
  return wanted;
}

bool reserve_home_index(netlink::DeviceId& device, const State& now, Places& places) {
  const int wanted = device.home_index != 0 ? device.home_index : device.host_index;
  if (device.parent || now.side == Side::host || !netlink::find_link(places.host, wanted)) {
    return false;
  }
  device.home_index = netlink::choose_free_index(places.host, *places.pod);
  return true;
}

std::optional<netlink::Socket> owner_socket(const Owner& owner, const std::string& given_path, const netlink::Roots& roots) {
  for (const auto& path : {given_path, owner.net_ns_path}) {
    if (path.empty()) {
      continue;
    }
    try {
      if (netlink::Socket socket{NETLINK_ROUTE, netlink::NetNs::open(path)}; socket.net_ns().cookie() == owner.net_ns_cookie) {
        return socket;
      }
    } catch (const netlink::Error&) {
      continue;  // gone, or no namespace any more
    }
  }
  for (auto& held : netlink::held_net_namespaces(roots.proc)) {
    if (held.net_ns.cookie() == owner.net_ns_cookie) {
      return netlink::Socket{NETLINK_ROUTE, std::move(held.net_ns)};
    }
  }
  return std::nullopt;
}

std::optional<netlink::HeldNetNs> find_elsewhere(const Record& record, Places& places) {
  for (auto& held : netlink::held_net_namespaces(places.roots.proc)) {
    if (held.net_ns.cookie() == places.host.net_ns().cookie()) {
      continue;
    }
    netlink::Socket socket{NETLINK_ROUTE, netlink::NetNs::open(fmt::format("/proc/self/fd/{}", held.net_ns.fd()))};
    const auto link = netlink::find_device(socket, record.device, Side::pod);
    const auto mac = link ? link->address : netlink::HardwareAddress{};
    // Every pod may have a veth with that index, but not with that MAC.
    if (link && (record.device.parent || mac == record.before.mac || record.result.find(mac.text()) != std::string::npos)) {
      return std::move(held);
    }
  }
  return std::nullopt;
}

Released release(Record record, Context& context, Places& places, int lock_fd) {
  const Undisturbed undisturbed;
  require_home(record, places);
  Released released;
  // The dhcp daemon gives a lease back over the interface itself, in the pod.
  const bool ipam_first = record.ipam && record.ipam->type == "dhcp";
  if (ipam_first) {
    released.ipam_error = settle_ipam(record, context, lock_fd);
  }
  try {
    released.left = Restorer{record, context, places}.restore();
  } catch (const netlink::Error& error) {
    released.left.emplace_back(error.what());
  }
  if (record.ipam && !ipam_first) {
    released.ipam_error = settle_ipam(record, context, lock_fd);
  }
  remove_written_device_info(record, context);
  if (released.is_complete()) {
    context.store.remove(record.device);
    return released;
  }
  context.log.error("the device could not be restored: its record stays for the next attempt",
                    {{"left", fmt::format("{}", fmt::join(released.left, "; "))}});
  record.ipam.reset();
  record.device_info_file.clear();
  record.completed = false;
  context.store.write(record);
  return released;
}

}  // namespace cni
