#include <fmt/format.h>
#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <iterator>
#include <memory>
#include <random>
#include <utility>

#include "cni/attach.hpp"
#include "cni/claim.hpp"
#include "cni/error.hpp"
#include "cni/ipam.hpp"
#include "cni/refuse.hpp"
#include "cni/release.hpp"
#include "cni/timestamp.hpp"
#include "cni/verbs.hpp"
#include "netlink/error.hpp"

namespace cni {

namespace {

constexpr std::chrono::milliseconds kTidyTime{2'000};
constexpr std::size_t kLongestIdentifier = 200;
constexpr const char* kTuningAllowlist = "/etc/cni/tuning/allowlist.conf";

/// An ADD in progress: everything it works with, kept together because its end may come after the verb has returned.
class Addition {
 public:
  explicit Addition(Context& context)
      : context_(context), config_(read_attach_config(context.network, context.environment.args)), owner_(owner_of(context)) {
    owner_.since = timestamp();
  }

  std::string run() {
    check_configuration();
    open_places();
    const auto selectors = effective_selectors(config_.selectors, context_.roots, config_.notes);
    for (const auto& note : config_.notes) {
      context_.log.info(note);
    }
    (void)take_mark(owner_.container_id, owner_.interface_name);
    auto settled = claim(context_, config_, selectors, owner_, *places_);
    if (auto* existing = std::get_if<Existing>(&settled)) {
      return answer_again(*existing);
    }
    auto& claimed = std::get<Claim>(settled);
    refuse_by_node(context_.node, selectors, claimed.link, config_.allow_in_use);
    return attach_claimed(claimed);
  }

  /// For an answer that nobody could read.
  void undo() {
    if (lock_) {
      context_.log.error("the result could not be written: the attachment is undone");
      (void)release(*record_, context_, *places_, lock_->fd());
      lock_.reset();
    }
  }

 private:
  /// What can be refused without looking at anything but the call itself.
  void check_configuration() {
    check_length("CNI_CONTAINERID", owner_.container_id, Code::invalid_environment);
    check_length("'name'", owner_.network, Code::invalid_configuration);
    check_sysctl_allowlist(config_.sysctls, kTuningAllowlist);
    if (!context_.network.ipam_type.empty()) {
      Ipam{context_.ipam_request(), std::nullopt, context_.log}.require_ready();
    }
    if (context_.network.prev_result) {
      previous_ = parse_result(*context_.network.prev_result, context_.version, "prevResult");
    }
    if (context_.version <= Version::v0_2_0 && !config_.gets_addresses && previous_.ips.empty()) {
      throw Error(Code::incompatible_version,
                  fmt::format("cniVersion {} cannot express a result without addresses, and there is neither 'ipam' nor 'ips'",
                              text(context_.version)),
                  "Set 'cniVersion' to 0.3.0 or newer.");
    }
  }

  /// They become names of files.
  static void check_length(std::string_view what, const std::string& identifier, Code code) {
    if (identifier.size() > kLongestIdentifier) {
      throw Error(code, fmt::format("{} has {} bytes, at most {} were wanted", what, identifier.size(), kLongestIdentifier));
    }
  }

  void open_places() {
    auto host = netlink::NetNs::current();
    auto pod = open_pod_net_ns(context_, host);
    places_ = std::make_unique<Places>(Places{.host = netlink::Socket{NETLINK_ROUTE, std::move(host)},
                                              .pod = netlink::Socket{NETLINK_ROUTE, std::move(pod)},
                                              .roots = context_.roots});
    owner_.net_ns_cookie = places_->pod->net_ns().cookie();
  }

  std::string answer_again(Existing& existing) {
    context_.log.info("attached already", {{"device", fmt::format("{} ({})", existing.record.before.name, existing.record.device.text())}});
    auto result = parse_result(existing.record.result, Version::v1_1_0, "the recorded result");
    try {
      (void)verify(state_in_result(result, 0), existing.record.device, *places_);
    } catch (const Error& error) {
      throw Error(Code::invalid_environment,
                  fmt::format("container '{}' has interface '{}' already, and it is not as it was: {}", owner_.container_id,
                              owner_.interface_name, error.what()),
                  "Delete the attachment first.");
    }
    return print_with_previous(std::move(result));
  }

  std::string attach_claimed(Claim& claimed) {
    auto& pod = *places_->pod;
    refuse_entangled(claimed.link, claimed.host_links);
    refuse_in_use(claimed.link, claimed.before, config_.allow_in_use, places_->host);
    refuse_busy_physical_function(claimed.link, claimed.host_links, config_.allow_in_use, context_.store, context_.roots);
    const auto facts = inspect_pod(claimed, config_, owner_.interface_name, pod, context_.roots);
    if (!claimed.device.parent && netlink::find_link(pod, claimed.device.host_index)) {
      claimed.device.pod_index = netlink::choose_free_index(places_->host, pod);
    }
    if (config_.mac) {
      claimed.device.learn_address(*config_.mac);
    }
    make_record(claimed);
    context_.log.set_field("device", fmt::format("{} ({})", claimed.before.name, claimed.device.text()));
    context_.store.write(*record_);
    lock_ = std::move(claimed.lock);
    try {
      auto result = attach(context_, config_, facts, claimed.now, *record_, *places_, lock_->fd());
      require_caller();
      record_->completed = true;
      record_->result = print_result(result, Version::v1_1_0);
      context_.store.write(*record_);
      announce(result, record_->device, *places_, context_.log);
      tidy_up();
      return print_with_previous(std::move(result));
    } catch (...) {
      release_after_failure();
      throw;
    }
  }

  void make_record(const Claim& claimed) {
    record_ = Record{.owner = owner_,
                     .home_cookie = places_->host.net_ns().cookie(),
                     .device = claimed.device,
                     .incarnation = netlink::incarnation(claimed.device, context_.roots),
                     .before = claimed.before,
                     .ipam = std::nullopt,
                     .completed = false,
                     .result = {}};
    if (!context_.network.ipam_type.empty()) {
      record_->ipam = context_.ipam_request();
    }
  }

  void release_after_failure() {
    try {
      (void)release(*record_, context_, *places_, lock_->fd());
    } catch (const std::exception& error) {
      context_.log.error("the failed attachment could not be undone", {{"error", error.what()}});
    }
    lock_.reset();
  }

  /// The runtime may have given up on us: then nobody would ever delete what we attached.
  void require_caller() {
    const auto gone = [](const std::string& why) {
      throw Error(Code::try_again_later, "the caller is gone: " + why, "The attachment was undone.");
    };
    try {
      if (!places_->pod->net_ns().is_at(context_.environment.net_ns)) {
        gone(fmt::format("CNI_NETNS '{}' leads to another namespace now", context_.environment.net_ns));
      }
    } catch (const netlink::Error& error) {
      gone(error.what());
    }
    if (take_mark(owner_.container_id, owner_.interface_name)) {
      gone("a DEL came while ADD was running");
    }
    pollfd output{.fd = STDOUT_FILENO, .events = 0, .revents = 0};
    if (::poll(&output, 1, 0) > 0 && (output.revents & (POLLERR | POLLNVAL)) != 0) {
      gone("nobody reads the result");
    }
  }

  /// What others left, a little of it with each ADD: within a budget, and never at the cost of this one.
  void tidy_up() {
    Context brief = context_;
    brief.deadline = Deadline{context_.deadline.at_most(kTidyTime)};
    try {
      release_one_stale(brief);
      pay_oldest_debt(brief);
    } catch (const std::exception& error) {
      context_.log.warning("what an earlier attachment left could not be tidied up", {{"error", error.what()}});
    }
  }

  /// Looks at one other record, whichever chance picks, so that the cost does not grow with the number of devices.
  void release_one_stale(Context& brief) {
    auto keys = context_.store.keys();
    std::erase(keys, record_->device.key());
    if (keys.empty()) {
      return;
    }
    std::random_device random;
    const auto& key = keys.at(std::uniform_int_distribution<std::size_t>{0, keys.size() - 1}(random));
    Places places{.host = netlink::Socket{NETLINK_ROUTE, netlink::NetNs::current()}, .pod = std::nullopt, .roots = context_.roots};
    const auto stale_record = [&]() -> std::optional<Record> {
      const auto found = context_.store.find(key);
      const auto* record = found ? std::get_if<Record>(&*found) : nullptr;
      return record != nullptr && is_stale(*record, places) ? std::optional{*record} : std::nullopt;
    };
    if (!stale_record()) {
      return;
    }
    const auto lock = DeviceLock::acquire(key, "tidying up", Deadline{std::chrono::milliseconds{0}});
    // Again, now that the lock is ours: its owner may just have come for it.
    if (auto record = stale_record()) {
      context_.log.info("releasing what another attachment left", {{"owner", record->owner.text()}});
      (void)release(std::move(*record), brief, places, lock.fd());
    }
  }

  void pay_oldest_debt(Context& brief) {
    if (!brief.store.oldest_debt()) {
      return;
    }
    // This attachment owes nothing any more: its own DEL gives back what an earlier one could not.
    brief.store.remove_owed(owner_);
    const auto debt = brief.store.oldest_debt();
    if (!debt) {
      return;
    }
    const auto request = brief.store.take_up(*debt);
    // What is attached anew has asked IPAM again: a DEL now would take away what it got.
    const bool is_attached = std::ranges::any_of(brief.store.all(request.container_id), [&](const RecordStore::Found& found) {
      const auto* record = std::get_if<Record>(&found);
      return record != nullptr && record->owner.container_id == request.container_id &&
             record->owner.interface_name == request.interface_name;
    });
    if (!is_attached) {
      Ipam{request, std::nullopt, brief.log}.del(brief.deadline.left());
      brief.store.cancel(*debt);
    }
  }

  std::string print_with_previous(Result ours) {
    Result whole = previous_;
    const auto offset = whole.interfaces.size();
    for (auto& ip : ours.ips) {
      ip.interface = ip.interface.value_or(0) + offset;
      whole.ips.push_back(ip);
    }
    std::ranges::move(ours.interfaces, std::back_inserter(whole.interfaces));
    std::ranges::move(ours.routes, std::back_inserter(whole.routes));
    if (!ours.dns.is_empty()) {
      whole.dns = ours.dns;
    }
    return print_result(whole, context_.version);
  }

  Context& context_;
  AttachConfig config_;
  Owner owner_;
  Result previous_;
  std::unique_ptr<Places> places_;
  std::optional<Record> record_;
  std::optional<DeviceLock> lock_;
};

}  // namespace

Outcome add(Context& context) {
  const auto addition = std::make_shared<Addition>(context);
  return {.text = addition->run(), .status = 0, .undo = [addition] { addition->undo(); }};
}

}  // namespace cni
