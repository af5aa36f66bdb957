#include <fmt/format.h>
#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <iterator>
#include <memory>
#include <random>
#include <thread>
#include <utility>

#include "cni/attach.hpp"
#include "cni/claim.hpp"
#include "cni/device_info.hpp"
#include "cni/error.hpp"
#include "cni/ipam.hpp"
#include "cni/misled.hpp"
#include "cni/rdma.hpp"
#include "cni/refuse.hpp"
#include "cni/release.hpp"
#include "cni/timestamp.hpp"
#include "cni/verbs.hpp"
#include "cni/vf.hpp"
#include "cni/vf_settings.hpp"
#include "netlink/error.hpp"

namespace cni {

namespace {

constexpr std::chrono::milliseconds kTidyTime{2'000};
constexpr std::chrono::milliseconds kPause{20};
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
    places_ = std::make_unique<Places>(std::move(host), std::move(pod), context_.roots);
    owner_.net_ns_cookie = places_->pod->net_ns().cookie();
  }

  std::string answer_again(Existing& existing) {
    context_.log.info("attached already", {{"device", fmt::format("{} ({})", existing.record.before.name, existing.record.device.text())}});
    auto result = parse_result(existing.record.result, Version::v1_1_0, "the recorded result");
    try {
      require_same_request(result.interfaces.at(0), existing.record);
      verify_recorded(state_in_result(result, 0), existing.record, *places_, context_);
    } catch (const Error& error) {
      throw Error(Code::invalid_environment,
                  fmt::format("container '{}' has interface '{}' already, and it is not as it was: {}", owner_.container_id,
                              owner_.interface_name, error.what()),
                  "Delete the attachment first.");
    }
    return print_with_previous(std::move(result));
  }

  /// A repeated call asks for what is there, or it is no repetition.
  void require_same_request(const ResultInterface& is, const Record& record) const {
    const auto require = [](bool holds, std::string_view key) {
      if (!holds) {
        throw Error(Code::verification_failed, fmt::format("this call asks for another '{}'", key));
      }
    };
    require(!config_.mtu || *config_.mtu == is.mtu, "mtu");
    require(!config_.mac || config_.mac->text() == is.mac, "mac");
    require(is_same_rdma(record.rdma), "rdma");
    const bool is_named = !config_.rdma_name.empty() && record.rdma.use == RdmaUse::moved;
    require(!is_named || record.rdma.devices.front().name == config_.rdma_name, "rdmaName");
    if (record.before.vf) {
      const auto asked = asked_of_pf(config_.vf, config_.mac, *record.before.vf);
      const auto differing = differing_settings(record.asked_vf, asked);
      require(differing.empty(), differing.empty() ? "" : text_of_setting(differing.front()).key);
    }
  }

  [[nodiscard]] bool is_same_rdma(const RdmaAttachment& is) const {
    switch (config_.rdma) {
      case RdmaRequest::exclusive:
        return is.use == RdmaUse::moved;
      case RdmaRequest::shared:
        return is.use == RdmaUse::shared;
      case RdmaRequest::off:
        return is.use == RdmaUse::none;
      case RdmaRequest::automatic:
        break;
    }
    return true;
  }

  std::string attach_claimed(Claim& claimed) {
    auto& pod = *places_->pod;
    if (claimed.has_netdev()) {
      refuse_entangled(claimed.link, claimed.host_links);
      refuse_in_use(claimed.link, claimed.before, config_.allow_in_use, places_->host);
    }
    refuse_busy_physical_function(claimed.link, claimed.host_links, config_.allow_in_use, context_.store, context_.roots);
    const auto facts = inspect_pod(claimed, config_, owner_.interface_name, pod, context_.roots);
    if (!claimed.device.parent && netlink::find_link(pod, claimed.device.host_index)) {
      claimed.device.pod_index = netlink::choose_free_index(places_->host, pod);
    }
    if (config_.mac) {
      claimed.device.learn_address(*config_.mac);
    }
    auto pf_lock = prepare_vf(claimed);
    const auto rdma = prepare_rdma(claimed);
    make_record(claimed);
    context_.log.set_field("device", fmt::format("{} ({})", claimed.before.name, claimed.device.text()));
    context_.store.write(*record_);
    lock_ = std::move(claimed.lock);
    try {
      auto result = attach(context_, config_, facts, rdma, claimed.now, *record_, *places_, lock_->fd(), std::move(pf_lock));
      require_caller();
      publish_device_info();
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

  [[nodiscard]] std::string pod_uid() const {
    const auto args = parse_cni_args(context_.environment.args);
    const auto found = args.find("K8S_POD_UID");
    return found == args.end() ? std::string{} : found->second;
  }

  /// What is to become of the device's RDMA devices, and what is refused of that.
  RdmaFacts prepare_rdma(const Claim& claimed) {
    if (!claimed.userspace_driver.empty()) {
      if (config_.rdma == RdmaRequest::exclusive || config_.rdma == RdmaRequest::shared) {
        throw Error(Code::rdma_not_met,
                    fmt::format("'rdma' is asked for, and {} is bound to the userspace driver '{}' and has no RDMA device",
                                claimed.device.text(), claimed.userspace_driver),
                    "Leave 'rdma' out, or bind the device to its network driver.");
      }
      return {};
    }
    auto facts = inspect_rdma(claimed.device, claimed.now.rdma, claimed.link, claimed.host_links, *places_);
    std::vector<std::string> notes;
    rdma_ = decide_rdma(facts, config_, claimed.device, notes);
    facts.pod_uid = pod_uid();
    if (rdma_.use == RdmaUse::moved && is_misled(claimed.device.key(), facts.pod_uid)) {
      constexpr auto kMisled = "this pod was given char devices that are another RDMA device's since an earlier attempt";
      if (rdma_.is_required) {
        throw Error(Code::rdma_not_met, fmt::format("{}: {}", claimed.device.text(), kMisled),
                    "Delete the pod: a new one gets the right ones.");
      }
      notes.emplace_back(kMisled);
    }
    if (claimed.has_brought_rdma_home && rdma_.use == RdmaUse::moved) {
      notes.emplace_back(
          "the RDMA device was brought home by this very call: a device plugin that gave the pod its char devices before may have found "
          "none, or "
          "those of another device; if programs find no RDMA device, delete the pod");
    }
    for (const auto& note : notes) {
      context_.log.warning(note);
    }
    return facts;
  }

  /// What is refused of a VF and its PF, and the lock under which that holds until it is written down; none where there is no PF.
  std::optional<DeviceLock> prepare_vf(Claim& claimed) {
    std::optional<DeviceLock> pf_lock;
    if (const auto administration = claimed.device.parent ? find_administration(*claimed.device.parent, *places_) : std::nullopt) {
      wait_for_pf(claimed, *administration);
      if (config_.mac || config_.vf.guid) {
        wait_for_address(claimed, *administration);
      }
      pf_lock = lock_physical_function(administration->id, fmt::format("ADD of {}", owner_.text()), context_.deadline);
    }
    inspect_vf(claimed, config_, context_.store, *places_);
    return pf_lock;
  }

  /// A PF is silent about a VF that it is resetting, as after the DEL of the one before.
  void wait_for_pf(Claim& claimed, const Administration& administration) {
    if (config_.vf.is_empty() && !config_.mac && !claimed.before.vf) {
      return;
    }
    const Deadline patience{context_.deadline.at_most(config_.waits.device)};
    while (!is_answer_whole(administration, config_.mac || config_.vf.guid, *places_) && !patience.has_passed()) {
      std::this_thread::sleep_for(kPause);
    }
    claimed.now.vf = read_vf(administration, *places_);
    claimed.before.vf = claimed.before.vf ? claimed.before.vf : claimed.now.vf;
  }

  [[nodiscard]] std::vector<MacHolder> holders_of_address(const Claim& claimed, const Administration& administration) {
    return config_.mac ? holders_of_mac(*config_.mac, claimed.device, administration, context_.store, *places_)
                       : holders_of_guid(*config_.vf.guid, administration, *places_);
  }

  /// For the DEL of the attachment that has the MAC or the GUID, as that of a pod which comes again with another VF. What a dead one left
  /// is released.
  void wait_for_address(const Claim& claimed, const Administration& administration) {
    const Deadline patience{context_.deadline.at_most(config_.waits.owner)};
    while (true) {
      bool may_change = false;
      for (const auto& holder : holders_of_address(claimed, administration)) {
        may_change = may_change || context_.store.find(holder.key);
        try {
          release_if_stale(holder.key, context_);
        } catch (const Error& error) {
          context_.log.debug("the address is about to be given back", {{"holder", holder.text}, {"reason", error.what()}});
        }
      }
      if (!may_change || patience.has_passed()) {
        return;
      }
      std::this_thread::sleep_for(kPause);
    }
  }

  /// Written down before it is done, as everything that has to be undone.
  void publish_device_info() {
    if (config_.device_info_file.empty()) {
      return;
    }
    const auto info = device_info_of(*record_, context_.roots);
    if (!info) {
      return;
    }
    refuse_foreign_device_info();
    record_->device_info_file = config_.device_info_file;
    context_.store.write(*record_);
    bool is_written = false;
    try {
      is_written = write_device_info(config_.device_info_file, *info);
    } catch (const netlink::Error&) {
      record_->device_info_file.clear();  // what is there is not ours
      throw;
    }
    if (!is_written) {
      context_.log.warning("the device-info file is about another type of device and stays as it is", {{"file", config_.device_info_file}});
      record_->device_info_file.clear();
    }
  }

  /// A file is told by its name alone, and the name comes from a configuration.
  void refuse_foreign_device_info() const {
    for (const auto& found : context_.store.all(config_.device_info_file)) {
      const auto* other = std::get_if<Record>(&found);
      if (other != nullptr && other->device_info_file == config_.device_info_file && !other->owner.is_same_attachment(owner_)) {
        throw Error(
            Code::invalid_configuration,
            fmt::format("'runtimeConfig.CNIDeviceInfoFile' is \"{}\", the file of {}", config_.device_info_file, other->owner.text()),
            "Each attachment has a file of its own.");
      }
    }
  }

  void make_record(const Claim& claimed) {
    record_ = Record{.owner = owner_,
                     .home_cookie = places_->host.net_ns().cookie(),
                     .device = claimed.device,
                     .incarnation = netlink::incarnation(claimed.device, context_.roots),
                     .before = claimed.before,
                     .asked_vf = claimed.before.vf ? asked_of_pf(config_.vf, config_.mac, *claimed.before.vf) : netlink::VfSettings{},
                     .rdma = rdma_,
                     .userspace_driver = claimed.userspace_driver,
                     .is_rdma_only = claimed.is_rdma_only,
                     .bound_driver = {},
                     .ipam = std::nullopt,
                     .device_info_file = {},
                     .completed = false,
                     .result = {}};
    if (record_->has_netdev() && record_->asked_vf.port_guid) {
      record_->bound_driver = netlink::driver(*record_->device.parent, context_.roots).value_or("");
      record_->incarnation.driver_inode = 0;
    }
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
    release_if_stale(keys.at(std::uniform_int_distribution<std::size_t>{0, keys.size() - 1}(random)), brief);
  }

  /// Whom nobody has any more. Throws Error 11 when somebody is at it just now.
  void release_if_stale(const std::string& key, Context& context) {
    Places places{netlink::NetNs::current(), std::nullopt, context_.roots};
    const auto stale_record = [&]() -> std::optional<Record> {
      const auto found = context_.store.find(key);
      const auto* record = found ? std::get_if<Record>(&*found) : nullptr;
      return record != nullptr && is_stale(*record, places) ? std::optional{*record} : std::nullopt;
    };
    if (const auto record = stale_record(); !record || is_on_our_device(*record)) {
      return;
    }
    const auto lock = DeviceLock::acquire(key, "tidying up", Deadline{std::chrono::milliseconds{0}});
    // Again, now that the lock is ours: its owner may just have come for it.
    if (auto record = stale_record()) {
      context_.log.info("releasing what another attachment left", {{"owner", record->owner.text()}});
      (void)release(std::move(*record), context, places, lock.fd());
    }
  }

  /// A VF of the PF that this attachment has taken, and whose lock is ours already.
  [[nodiscard]] bool is_on_our_device(const Record& record) const {
    const auto id = record_ && record.device.parent ? netlink::find_vf_id(*record.device.parent, context_.roots) : std::nullopt;
    return id && record_->device.parent == id->physical_function;
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
  RdmaAttachment rdma_;
  std::optional<Record> record_;
  std::optional<DeviceLock> lock_;
};

}  // namespace

Outcome add(Context& context) {
  const auto addition = std::make_shared<Addition>(context);
  return {.text = addition->run(), .status = 0, .undo = [addition] { addition->undo(); }};
}

}  // namespace cni
