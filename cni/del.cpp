#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "cni/error.hpp"
#include "cni/ipam.hpp"
#include "cni/lock.hpp"
#include "cni/plan.hpp"
#include "cni/rdma.hpp"
#include "cni/release.hpp"
#include "cni/select.hpp"
#include "cni/undisturbed.hpp"
#include "cni/verbs.hpp"
#include "netlink/error.hpp"

namespace cni {

namespace {

constexpr std::chrono::milliseconds kIpamTime{30'000};

class Deletion {
 public:
  explicit Deletion(Context& context)
      : context_(context), owner_(owner_of(context)), places_(netlink::NetNs::current(), std::nullopt, context.roots) {}

  void run() {
    (void)block_termination();
    bool is_recorded = false;
    for (const auto& recorded : context_.store.of_attachment(owner_)) {
      const auto key = recorded.device.key();
      const auto lock = lock_or_mark(key);
      // Again, now that the lock is ours: the device may have changed hands in between.
      const auto found = context_.store.find(key);
      const auto* record = found ? std::get_if<Record>(&*found) : nullptr;
      if (record != nullptr && record->owner.is_same_attachment(owner_)) {
        is_recorded = true;
        delete_recorded(*record, lock);
      }
    }
    if (!is_recorded) {
      delete_unrecorded();
    }
    if (ipam_error_) {
      throw Error(*ipam_error_);
    }
  }

 private:
  /// An ADD of ours that holds the lock for too long finds the mark at its end, and undoes itself.
  DeviceLock lock_or_mark(const std::string& key) {
    try {
      const auto patience = context_.deadline.left() - kReleaseReserve;
      return DeviceLock::acquire(key, fmt::format("DEL of {}", owner_.text()), Deadline{patience});
    } catch (const Error&) {
      leave_mark(owner_.container_id, owner_.interface_name);
      throw;
    }
  }

  void delete_recorded(Record record, const DeviceLock& lock) {
    context_.log.set_field("device", fmt::format("{} ({})", record.before.name, record.device.text()));
    places_.pod = owner_socket(record.owner, context_.environment.net_ns, context_.roots);
    if (record.has_netdev() && !is_at_hand(record)) {
      if (auto held = find_elsewhere(record, places_)) {
        context_.log.warning(fmt::format("the interface is in another namespace, held by {}: it is taken from there", held->holder));
        places_.pod.emplace(NETLINK_ROUTE, std::move(held->net_ns));
      }
    }
    // What the runtime says now serves IPAM better than what it said on ADD; but a configuration that has lost its IPAM must not lose the
    // address.
    if (record.ipam && context_.network.ipam_type == record.ipam->type) {
      record.ipam = context_.ipam_request();
    }
    const auto released = release(std::move(record), context_, places_, lock.fd());
    if (released.ipam_error) {
      ipam_error_ = released.ipam_error;
    }
  }

  /// When the kernel cannot be asked just now, `release` asks again, and goes on past what fails.
  [[nodiscard]] bool is_at_hand(const Record& record) {
    try {
      return locate(record.device, places_).has_value();
    } catch (const netlink::Error&) {
      return true;
    }
  }

  /// Nobody knows of the attachment: deleted already, never made, or its record was lost.
  void delete_unrecorded() {
    bring_home_unrecorded();
    const auto owed = owed_request();
    if (!owed && context_.network.ipam_type.empty()) {
      return;
    }
    Ipam ipam{owed.value_or(context_.ipam_request()), std::nullopt, context_.log};
    try {
      ipam.del(context_.deadline.at_most(kIpamTime));
    } catch (const Error& error) {
      if (owed || !ipam.gave_nothing()) {
        throw;
      }
      context_.log.warning("nothing is attached, and the IPAM plugin cannot be asked", {{"error", error.what()}});
    }
    context_.store.remove_owed(owner_);
  }

  std::optional<IpamRequest> owed_request() {
    try {
      return context_.store.owed(owner_);
    } catch (const Error& error) {
      context_.log.error("an unreadable note of an owed IPAM DEL is ignored", {{"error", error.what()}});
      return std::nullopt;
    }
  }

  /// Moves the configured device home when it is what the pod has under CNI_IFNAME, and leaves its settings: nobody knows what they were.
  void bring_home_unrecorded() {
    try {
      auto pod = netlink::NetNs::open(context_.environment.net_ns);
      if (pod.is_same_as(places_.host.net_ns())) {
        return;
      }
      places_.pod.emplace(NETLINK_ROUTE, std::move(pod));
    } catch (const netlink::Error&) {
      return;  // no namespace: nothing of ours can be in it
    }
    const auto link = netlink::find_link(*places_.pod, context_.environment.interface_name);
    if (!link || !is_configured_device(*link) || is_on_record(*link)) {
      return;
    }
    auto device = netlink::identify(*link, false);
    const auto lock = lock_or_mark(device.key());
    // Again, now that the lock is ours: an ADD may just have written it down.
    if (is_on_record(*link)) {
      return;
    }
    State before = read(Location{.side = Side::pod, .link = *link}, places_);
    auto now = before;
    now.uppers = uppers_in_pod(link->index, places_);
    const auto& configured = context_.network.selectors.device;
    // An altname stays one; what the interface was called beside it is not known.
    const bool is_altname = configured && std::ranges::find(link->altnames, *configured) != link->altnames.end();
    if (configured) {
      before.name = is_altname ? fmt::format("dev{}", link->index) : *configured;
    }
    (void)reserve_home_index(device, now, places_);
    auto wanted = home_target(before, now, device, places_);
    for (auto& rdma : wanted.rdma) {
      rdma.side = Side::host;
    }
    Subject subject{.device = device, .side = Side::pod, .index = link->index, .name = link->name};
    const auto steps = plan(now, wanted);
    RdmaTurn rdma_turn{steps, "DEL of " + owner_.text(), context_.deadline};
    for (std::size_t at = 0; at < steps.size(); ++at) {
      const auto& step = steps[at];
      if (is_about_rdma(step)) {
        bring_home_rdma(rdma_turn, at, step, subject);
      } else if (std::holds_alternative<Move>(step) || std::holds_alternative<RemoveAltname>(step) ||
                 std::holds_alternative<RemoveUpper>(step)) {
        rdma_turn.before(at);
        apply(step, subject, places_);
      }
    }
    context_.log.warning("there is no record of the attachment: the interface was moved home, and its settings left as they were",
                         {{"device", device.text()}});
    if (context_.store.find(device.key())) {
      context_.log.error("an unreadable record was set aside", {{"record", context_.store.set_aside(device.key())}});
    }
  }

  /// What does not come home now does when the namespace ends.
  void bring_home_rdma(RdmaTurn& turn, std::size_t at, const Step& step, Subject& subject) {
    try {
      turn.before(at);
      apply(step, subject, places_);
    } catch (const std::exception& error) {
      context_.log.warning("an RDMA device stays in the pod", {{"error", error.what()}});
    }
  }

  /// Some attachment has it: then its own DEL brings it home, as it was.
  [[nodiscard]] bool is_on_record(const netlink::Link& link) {
    return std::ranges::any_of(context_.store.all(), [&](const RecordStore::Found& found) {
      const auto* record = std::get_if<Record>(&found);
      const auto theirs = record != nullptr ? netlink::find_device(*places_.pod, record->device, Side::pod) : std::nullopt;
      return theirs && theirs->index == link.index;
    });
  }

  /// By what the device itself says, or by an unreadable record whose name tells which device it was about.
  [[nodiscard]] bool is_configured_device(const netlink::Link& link) const {
    std::vector<std::string> notes;
    try {
      const auto selectors = effective_selectors(context_.network.selectors, context_.roots, notes);
      if (std::ranges::all_of(selectors, [&](const Selector& selector) { return selector.matches(link); })) {
        return true;
      }
    } catch (const Error&) {
      return false;  // no selector
    }
    const auto found = context_.store.find(netlink::identify(link, false).key());
    return found && std::holds_alternative<RecordStore::Unreadable>(*found);
  }

  Context& context_;
  Owner owner_;
  Places places_;
  std::optional<Error> ipam_error_;
};

}  // namespace

Outcome del(Context& context) {
  Deletion{context}.run();
  return {};
}

}  // namespace cni
