#include "cni/claim.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <thread>
#include <utility>

#include "cni/error.hpp"
#include "cni/infiniband.hpp"
#include "cni/release.hpp"
#include "netlink/error.hpp"

namespace cni {

namespace {

constexpr std::chrono::milliseconds kPause{20};
constexpr std::chrono::milliseconds kLockTime{30'000};

/// Where the device of a record is, and so whose it is.
struct Standing {
  enum class Kind { stale, owned, unreachable };
  Kind kind = Kind::stale;
  std::string holder;  ///< of the namespace it is in, where that is not the owner's
};

/// The device was made anew since, or its netdev with the driver.
bool is_another_incarnation(const Record& record, const netlink::Roots& roots) {
  const auto now = netlink::incarnation(record.device, roots);
  return now.boot_id != record.incarnation.boot_id || now.device_inode != record.incarnation.device_inode ||
         (record.has_netdev() && is_bound_by_others(record, now, roots));
}

/// Looks through the namespaces that somebody holds, the owner's path included: in the owner's it is owned, elsewhere unreachable.
Standing look_elsewhere(const Record& record, Places& places) {
  if (auto pod = owner_socket(record.owner, record.owner.net_ns_path, places.roots);
      pod && netlink::find_device(*pod, record.device, Side::pod)) {
    return {Standing::Kind::owned, {}};
  }
  if (auto held = find_elsewhere(record, places)) {
    return {Standing::Kind::unreachable, std::move(held->holder)};
  }
  // Bound to a driver and in no namespace: on its way home, or where nobody can look.
  const auto& parent = record.device.parent;
  return {parent && netlink::driver(*parent, places.roots) ? Standing::Kind::unreachable : Standing::Kind::stale, {}};
}

/// Whether the owner has the RDMA device still, though there is no netdev in the pod: the device has none, or somebody has taken it out.
bool is_rdma_in_use(const Record& record, const Places& places) {
  if (!record.completed || record.rdma.use != RdmaUse::moved || !record.device.parent) {
    return false;
  }
  auto pod = owner_socket(record.owner, record.owner.net_ns_path, places.roots);
  if (!pod) {
    return false;
  }
  Places both{netlink::NetNs::current(), std::nullopt, places.roots};
  both.pod = std::move(pod);
  auto devices = read_rdma(*record.device.parent, both);
  find_by_index(devices, record.before.rdma, both);
  return std::ranges::any_of(record.before.rdma, [&](const RdmaState& recorded) {
    const auto* const found = find_rdma(devices, recorded.index);
    return found != nullptr && found->side == Side::pod;
  });
}

/// Whoever uses a device without a netdev is not to be seen by the kernel's namespaces, and may use it still: it is free when its owner's
/// DEL says so. One whose ADD was never completed has none: the record of a running ADD is under its lock.
///
/// A bus address is one of a kind. The index of a software device in the host may be another's while it is in its owner's namespace, so
/// that is where it is looked for first.
Standing standing(const Record& record, Places& places) {
  const bool is_another = is_another_incarnation(record, places.roots);
  if (!is_another && record.is_rdma_only && record.rdma.use == RdmaUse::moved) {
    return {is_rdma_in_use(record, places) ? Standing::Kind::owned : Standing::Kind::stale, {}};
  }
  if (!is_another && !record.has_netdev()) {
    return {record.completed ? Standing::Kind::owned : Standing::Kind::stale, {}};
  }
  if (is_another) {
    return {Standing::Kind::stale, {}};
  }
  if (record.device.parent && netlink::find_device(places.host, record.device, Side::host)) {
    return {is_rdma_in_use(record, places) ? Standing::Kind::owned : Standing::Kind::stale, {}};
  }
  auto elsewhere = look_elsewhere(record, places);
  const bool is_home = elsewhere.kind == Standing::Kind::unreachable && netlink::find_device(places.host, record.device, Side::host);
  return is_home ? Standing{Standing::Kind::stale, {}} : std::move(elsewhere);
}

class Claimer {
 public:
  Claimer(Context& context, const AttachConfig& config, const std::vector<Selector>& selectors, const Owner& owner, Places& places)
      : context_(context),
        selectors_(selectors),
        owner_(owner),
        places_(places),
        device_wait_(context.deadline.at_most(config.waits.device)),
        owner_wait_(context.deadline.at_most(config.waits.owner)) {}

  std::variant<Claim, Existing> claim() {
    while (!context_.deadline.has_passed()) {
      if (auto settled = attempt()) {
        return std::move(*settled);
      }
      if (std::exchange(must_pause_, false)) {
        std::this_thread::sleep_for(kPause);
      }
    }
    throw Error(Code::try_again_later, fmt::format("{} did not become free in time", selectors_.front().text()));
  }

 private:
  using Settled = std::optional<std::variant<Claim, Existing>>;

  /// One look at the device; nothing when another is needed.
  Settled attempt() {
    // What has not come by a look that began after the wait is not coming.
    const bool is_last_look = device_wait_.has_passed();
    auto links = netlink::links(places_.host);
    auto link = select_link(selectors_, links);
    const auto netdevless = link ? std::nullopt : select_netdevless(is_last_look);
    if (netdevless) {
      link.emplace();
      link->name = netdevless->address.address;
      link->parent = netdevless->address;
    }
    const auto key = key_to_lock(link, links);
    if (!key) {
      wait_for_device(is_last_look);
      return std::nullopt;
    }
    auto lock = DeviceLock::acquire(*key, fmt::format("ADD of {}", owner_.text()), Deadline{context_.deadline.at_most(kLockTime)});
    if (auto found = inherited_key_ == *key ? std::nullopt : context_.store.find(*key)) {
      if (const auto* unreadable = std::get_if<RecordStore::Unreadable>(&*found)) {
        const auto aside = context_.store.set_aside(*key);
        context_.log.error("an unreadable record was set aside", {{"record", aside}, {"reason", unreadable->reason}});
        return std::nullopt;
      }
      return settle(std::get<Record>(*found), std::move(lock));
    }
    if (!link) {
      return std::nullopt;
    }
    const auto device = identify(*link, links);
    if (netdevless) {
      return claim_netdevless(*netdevless, std::move(*link), std::move(links), std::move(lock));
    }
    // Again, now that the lock is ours: somebody may have taken it in between.
    auto current = netlink::find_device(places_.host, device, Side::host);
    if (!current || device.key() != *key) {
      return std::nullopt;
    }
    auto now = read(Location{.side = Side::host, .link = *current}, places_);
    auto before = inherited_key_ == *key ? inherited(before_attachment(now, *current), false) : before_attachment(now, *current);
    return Claim{.lock = std::move(lock),
                 .device = device,
                 .link = std::move(*current),
                 .host_links = std::move(links),
                 .userspace_driver = {},
                 .is_rdma_only = false,
                 .now = std::move(now),
                 .has_brought_rdma_home = has_brought_rdma_home_,
                 .before = std::move(before)};
  }

  /// A function with RDMA devices alone is told from one whose netdev is yet to come by waiting for that.
  [[nodiscard]] std::optional<NetdevlessDevice> select_netdevless(bool is_last_look) const {
    auto userspace = select_userspace_device(selectors_, places_.roots);
    if (userspace || !is_last_look) {
      return userspace;
    }
    auto rdma = select_rdma_device(selectors_, places_.roots);
    const bool is_elsewhere = rdma && !find_holder(rdma->address, places_.roots).empty();
    return is_elsewhere ? std::nullopt : std::move(rdma);
  }

  Settled claim_netdevless(const NetdevlessDevice& netdevless, netlink::Link link, std::vector<netlink::Link> links, DeviceLock lock) {
    // Again, now that the lock is ours: the driver may have changed.
    if (netlink::driver(netdevless.address, places_.roots) != netdevless.driver) {
      return std::nullopt;
    }
    auto device = identify(link, links);
    State now;
    now.name = link.name;
    now.vf = read_vf(netdevless.address, places_);
    if (netdevless.is_rdma_only) {
      now.rdma = read_rdma(netdevless.address, places_);
    }
    auto before = inherited_key_ == device.key() ? inherited(now, true) : now;
    return Claim{.lock = std::move(lock),
                 .device = std::move(device),
                 .link = std::move(link),
                 .host_links = std::move(links),
                 .userspace_driver = netdevless.is_rdma_only ? "" : netdevless.driver,
                 .is_rdma_only = netdevless.is_rdma_only,
                 .now = std::move(now),
                 .has_brought_rdma_home = has_brought_rdma_home_,
                 .before = std::move(before)};
  }

  /// What is and what a move would lose without a trace.
  [[nodiscard]] State before_attachment(const State& now, const netlink::Link& link) const {
    auto before = now;
    before.sysctls = netlink::all_sysctls(link, places_.host, places_.roots);
    return before;
  }

  /// What an earlier attachment could not restore is still to be restored: of the PF's settings, and of the netdev where it is the same
  /// one.
  [[nodiscard]] State inherited(State fresh, bool is_userspace) const {
    if (!is_userspace && inherited_from_->has_netdev() && !is_another_incarnation(*inherited_from_, places_.roots)) {
      auto before = inherited_from_->before;
      before.rdma = std::move(fresh.rdma);
      for (auto& device : before.rdma) {
        const auto* const recorded = find_rdma(inherited_from_->before.rdma, device.index);
        device.name = recorded == nullptr ? device.name : recorded->name;
      }
      return before;
    }
    fresh.vf = inherited_from_->before.vf;
    // It has the VF's first GUID in it, and that of now may be its last pod's.
    if (guid_of(fresh.mac) && guid_of(inherited_from_->before.mac)) {
      fresh.mac = inherited_from_->before.mac;
    }
    return fresh;
  }

  /// A sibling may be here, or away and on record.
  [[nodiscard]] netlink::DeviceId identify(const netlink::Link& link, std::span<const netlink::Link> links) const {
    const bool has_siblings = link.parent && (std::ranges::count(links, link.parent, &netlink::Link::parent) > 1 ||
                                              context_.store.has_sibling_records(*link.parent));
    return netlink::identify(link, has_siblings);
  }

  /// The record that the selectors match comes first where it is stale: the name they look for may be that of a device which came home
  /// under another, or which the device that has it now took from the pod.
  std::optional<std::string> key_to_lock(const std::optional<netlink::Link>& link, std::span<const netlink::Link> links) {
    auto link_key = link ? std::optional{identify(*link, links).key()} : std::nullopt;
    for (const auto& found : context_.store.all(selectors_.front().record_text())) {
      const auto* record = std::get_if<Record>(&found);
      // What could not be restored whole has been tried, and is taken as it is where it is what the selectors name.
      if (record == nullptr || record->device.key() == link_key || record->device.key() == inherited_key_ ||
          !std::ranges::all_of(selectors_, [&](const Selector& selector) { return selector.matches(*record); })) {
        continue;
      }
      if (!link_key || standing(*record, places_).kind == Standing::Kind::stale) {
        return record->device.key();
      }
    }
    return link_key;
  }

  Settled settle(const Record& record, DeviceLock lock) {
    const auto stands = standing(record, places_);
    if (record.owner.is_same_attachment(owner_)) {
      if (record.completed && stands.kind == Standing::Kind::owned && record.owner.net_ns_cookie == owner_.net_ns_cookie) {
        return Existing{.lock = std::move(lock), .record = record};
      }
      release_record(record, owner_socket(record.owner, owner_.net_ns_path, places_.roots), lock);
    } else if (stands.kind == Standing::Kind::stale) {
      release_record(record, std::nullopt, lock);
    } else if (record.owner.container_id == owner_.container_id && stands.kind == Standing::Kind::owned) {
      throw Error(Code::device_cannot_be_taken,
                  fmt::format("{} is attached to the same container as '{}' already", record.device.text(), record.owner.interface_name),
                  "One device serves one attachment; request another one.");
    } else {
      wait_for_owner(record, stands);
    }
    return std::nullopt;
  }

  /// `pod`: of the owner's namespace, when it is the owner who asks. Nobody else takes a device out of a namespace.
  void release_record(const Record& record, std::optional<netlink::Socket> pod, const DeviceLock& lock) {
    context_.log.info("releasing what an earlier attachment left", {{"owner", record.owner.text()}, {"device", record.device.text()}});
    Places places{netlink::NetNs::current(), std::nullopt, places_.roots};
    places.pod = std::move(pod);
    has_brought_rdma_home_ = has_brought_rdma_home_ || record.rdma.use == RdmaUse::moved;
    if (!release(record, context_, places, lock.fd()).is_complete()) {
      give_up_on_broken(record);
      inherited_key_ = record.device.key();
      const auto left = context_.store.find(inherited_key_);
      const auto* rewritten = left ? std::get_if<Record>(&*left) : nullptr;
      inherited_from_ = rewritten != nullptr ? *rewritten : record;
    }
  }

  /// What could not be brought home at all cannot be attached; what merely lacks a setting goes on, and keeps its first `before`.
  void give_up_on_broken(const Record& record) {
    if (record.has_netdev() && !netlink::find_device(places_.host, record.device, Side::host)) {
      throw Error(Code::try_again_later, fmt::format("{} could not be brought home from {}", record.device.text(), record.owner.text()),
                  "The log says what failed.");
    }
  }

  void wait_for_device(bool is_last_look) {
    if (is_last_look) {
      throw explain_absence(selectors_, places_.roots);
    }
    must_pause_ = true;
  }

  void wait_for_owner(const Record& record, const Standing& stands) {
    if (!owner_wait_.has_passed()) {
      must_pause_ = true;
      return;
    }
    const auto where = stands.kind == Standing::Kind::owned ? std::string{}
                       : stands.holder.empty()              ? std::string{" and is in a network namespace that cannot be reached"}
                                                            : fmt::format(" and is in a network namespace held by {}", stands.holder);
    throw Error(Code::try_again_later, fmt::format("{} belongs to {}{}", record.device.text(), record.owner.text(), where),
                "It is free when that attachment has been deleted.");
  }

  Context& context_;
  const std::vector<Selector>& selectors_;
  const Owner& owner_;
  Places& places_;
  Deadline device_wait_;
  Deadline owner_wait_;
  std::optional<Record> inherited_from_;
  std::string inherited_key_;
  bool has_brought_rdma_home_ = false;
  bool must_pause_ = false;
};

}  // namespace

bool is_stale(const Record& record, Places& places) {
  return standing(record, places).kind == Standing::Kind::stale;
}

std::variant<Claim, Existing> claim(Context& context, const AttachConfig& config, const std::vector<Selector>& selectors,
                                    const Owner& owner, Places& places) {
  return Claimer{context, config, selectors, owner, places}.claim();
}

}  // namespace cni
