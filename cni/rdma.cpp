#include "cni/rdma.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <unistd.h>

#include <algorithm>
#include <utility>

#include "cni/error.hpp"

namespace cni {

namespace {

constexpr const char* kLockKey = "rdma";
constexpr std::chrono::milliseconds kLockTime{20'000};

constexpr const char* kHowToBeExclusive =
    "The mode belongs to the node and can be set only while there is no network namespace but the host's, so at boot: "
    "'options ib_core netns_mode=0' in /etc/modprobe.d/ (ib_core.netns_mode=0 on the kernel's command line), and a reboot. Or set 'rdma' "
    "to "
    "\"shared\" or \"auto\".";
constexpr const char* kHowToBeShared =
    "The mode belongs to the node and can be set only while there is no network namespace but the host's, so at boot: leave out "
    "ib_core's option netns_mode=0, and reboot. Or set 'rdma' to \"exclusive\" or \"auto\".";
constexpr const char* kHowToHaveADevice =
    "Load the RDMA driver of the NIC (mlx5_ib, irdma, bnxt_re, ...), and see 'rdma dev'. The device may also be that of a bond that the "
    "NIC "
    "belongs to.";

[[noreturn]] void refuse(const std::string& message, const std::string& advice) {
  throw Error(Code::rdma_not_met, message, advice);
}

std::string names(const std::vector<RdmaCandidate>& candidates) {
  std::vector<std::string> all;
  for (const auto& candidate : candidates) {
    all.push_back(fmt::format("'{}'", candidate.device.name));
  }
  return fmt::format("{}", fmt::join(all, ", "));
}

std::string text(const std::vector<netlink::RdmaCharDevice>& devices) {
  std::vector<std::string> all;
  for (const auto& device : devices) {
    all.push_back(fmt::format("{} ({}:{})", device.name, device.major, device.minor));
  }
  return all.empty() ? "none" : fmt::format("{}", fmt::join(all, ", "));
}

/// The deciding of one attachment.
class Decision {
 public:
  Decision(const RdmaFacts& facts, const AttachConfig& config, const netlink::DeviceId& device, std::vector<std::string>& notes)
      : facts_(facts), config_(config), device_(device), notes_(notes) {}

  RdmaAttachment decide() {
    if (config_.rdma == RdmaRequest::off) {
      return {};
    }
    require_mode();
    if (facts_.candidates.empty()) {
      return without_device();
    }
    require_char_devices();
    return facts_.mode == netlink::RdmaMode::exclusive ? to_be_moved() : attachment(RdmaUse::shared);
  }

 private:
  [[nodiscard]] bool is_automatic() const { return config_.rdma == RdmaRequest::automatic; }

  void require_mode() const {
    if (config_.rdma == RdmaRequest::exclusive && facts_.mode == netlink::RdmaMode::shared) {
      refuse("'rdma' is \"exclusive\" and this node's RDMA devices are shared by all network namespaces", kHowToBeExclusive);
    }
    if (config_.rdma == RdmaRequest::shared && facts_.mode == netlink::RdmaMode::exclusive) {
      refuse("'rdma' is \"shared\" and each of this node's RDMA devices belongs to one network namespace", kHowToBeShared);
    }
  }

  /// Without uverbs no program can use the device. Of the others umad and issm are there where the driver has them.
  void require_char_devices() {
    for (const auto& candidate : facts_.candidates) {
      if (std::ranges::any_of(candidate.char_devices, [](const auto& device) { return device.name.starts_with("uverbs"); })) {
        continue;
      }
      const auto why = fmt::format("RDMA device '{}' of {} has no uverbs char device, without which no program can use it",
                                   candidate.device.name, device_.text());
      if (!is_automatic()) {
        refuse(why, "Load the module ib_uverbs.");
      }
      notes_.push_back(why + ": load the module ib_uverbs");
    }
    if (!facts_.has_connection_manager) {
      notes_.emplace_back("/dev/infiniband/rdma_cm is not there: programs that use the connection manager need the module rdma_ucm");
    }
  }

  [[nodiscard]] RdmaAttachment without_device() {
    const auto why = !facts_.mode                ? std::string{"this node's kernel has no RDMA devices"}
                     : !facts_.elsewhere.empty() ? fmt::format("its RDMA device '{}' ({}) is in another network namespace",
                                                               fmt::join(facts_.elsewhere, "', '"), device_.text())
                                                 : fmt::format("{} has no RDMA device", device_.text());
    if (!is_automatic()) {
      refuse(fmt::format("'rdma' is \"{}\" and {}", config_.rdma == RdmaRequest::exclusive ? "exclusive" : "shared", why),
             !facts_.elsewhere.empty() ? "End what holds that namespace: the device comes back then." : kHowToHaveADevice);
    }
    if (!facts_.elsewhere.empty() || !config_.rdma_name.empty()) {
      notes_.push_back(why + ": the attachment has none");
    }
    return {};
  }

  [[nodiscard]] RdmaAttachment to_be_moved() {
    for (const auto& candidate : facts_.candidates) {
      if (!candidate.foreign_netdevs.empty()) {
        return leave(fmt::format("RDMA device '{}' of {} has ports that belong to other network interfaces too: {}", candidate.device.name,
                                 device_.text(), fmt::join(candidate.foreign_netdevs, ", ")),
                     "It would leave the host with all of its ports. Set 'rdma' to \"off\", or use the shared mode.");
      }
    }
    auto moved = attachment(RdmaUse::moved);
    if (!config_.rdma_name.empty() && moved.devices.size() > 1) {
      return leave(fmt::format("'rdmaName' is \"{}\", and {} has several RDMA devices: {}", config_.rdma_name, device_.text(),
                               names(facts_.candidates)),
                   "Leave 'rdmaName' out.");
    }
    for (auto& device : moved.devices) {
      device.side = Side::pod;
      device.name = config_.rdma_name.empty() ? device.name : config_.rdma_name;
    }
    return moved;
  }

  [[nodiscard]] RdmaAttachment leave(const std::string& why, const char* advice) {
    if (!is_automatic()) {
      refuse(why, advice);
    }
    notes_.push_back(why + ": it stays in the host, and the pod cannot use it");
    return attachment(RdmaUse::left);
  }

  [[nodiscard]] RdmaAttachment attachment(RdmaUse use) {
    RdmaAttachment made{
        .use = use, .is_required = !is_automatic(), .is_mtu_required = !is_automatic() || config_.mtu.has_value(), .devices = {}};
    for (const auto& candidate : facts_.candidates) {
      made.devices.push_back(candidate.device);
    }
    if (use == RdmaUse::shared && !config_.rdma_name.empty()) {
      const auto why =
          fmt::format("'rdmaName' is \"{}\", and in the shared mode of this node an RDMA device has one name for all", config_.rdma_name);
      if (!is_automatic()) {
        refuse(why, "Leave 'rdmaName' out, or use the exclusive mode.");
      }
      notes_.push_back(why + ": it keeps its name");
    }
    return made;
  }

  const RdmaFacts& facts_;
  const AttachConfig& config_;
  const netlink::DeviceId& device_;
  std::vector<std::string>& notes_;
};

/// In shared mode netdevs in other namespaces are not told, and nothing moves.
std::vector<std::string> foreign_netdevs(const std::vector<netlink::RdmaPort>& ports, const netlink::Link& link,
                                         const std::vector<netlink::Link>& host_links) {
  std::vector<std::string> foreign;
  for (const auto& port : ports) {
    if (!port.netdev_index || *port.netdev_index == link.index) {
      continue;
    }
    const auto other = std::ranges::find(host_links, *port.netdev_index, &netlink::Link::index);
    const auto kind = other == host_links.end() || other->kind.empty() ? "" : fmt::format(" ({})", other->kind);
    foreign.push_back(fmt::format("'{}'{}", port.netdev_name, kind));
  }
  return foreign;
}

}  // namespace

RdmaFacts inspect_rdma(const netlink::DeviceId& device, const std::vector<RdmaState>& devices, const netlink::Link& link,
                       const std::vector<netlink::Link>& host_links, Places& places) {
  RdmaFacts facts{.mode = places.rdma_mode(),
                  .candidates = {},
                  .has_connection_manager = ::access("/dev/infiniband/rdma_cm", F_OK) == 0,
                  .pod_uid = {},
                  .elsewhere = {}};
  auto* const socket = facts.mode ? places.rdma(Side::host) : nullptr;
  if (socket == nullptr || !device.parent) {
    return facts;
  }
  for (const auto& state : devices) {
    const auto found = state.side == Side::host ? netlink::find_rdma_device(*socket, state.index) : std::nullopt;
    if (found) {
      facts.candidates.push_back({.device = state,
                                  .foreign_netdevs = foreign_netdevs(netlink::rdma_ports(*socket, *found), link, host_links),
                                  .char_devices = netlink::rdma_char_devices(*socket, *found)});
    }
  }
  if (facts.candidates.empty()) {
    facts.elsewhere = netlink::rdma_names_anywhere(*device.parent, places.roots);
  }
  return facts;
}

RdmaAttachment decide_rdma(const RdmaFacts& facts, const AttachConfig& config, const netlink::DeviceId& device,
                           std::vector<std::string>& notes) {
  return Decision{facts, config, device, notes}.decide();
}

void adopt_rdma(std::vector<RdmaState>& recorded, const std::vector<RdmaState>& now) {
  const bool is_there = std::ranges::any_of(recorded, [&](const RdmaState& device) { return find_rdma(now, device.index) != nullptr; });
  if (is_there || recorded.size() != now.size()) {
    return;
  }
  for (std::size_t at = 0; at < recorded.size(); ++at) {
    recorded[at].index = now[at].index;
  }
}

std::optional<Error> changed_char_devices(const RdmaFacts& facts, const RdmaAttachment& attachment, Places& places) {
  auto* const pod = attachment.use == RdmaUse::moved ? places.rdma(Side::pod) : nullptr;
  if (pod == nullptr) {
    return std::nullopt;
  }
  for (const auto& candidate : facts.candidates) {
    const auto moved = netlink::find_rdma_device(*pod, candidate.device.index);
    const auto now = moved ? netlink::rdma_char_devices(*pod, *moved) : std::vector<netlink::RdmaCharDevice>{};
    if (now != candidate.char_devices) {
      return Error{
          Code::rdma_not_met,
          fmt::format("the char devices of RDMA device '{}' were {} and are {} since it was moved into the pod", candidate.device.name,
                      text(candidate.char_devices), text(now)),
          "A device plugin has given the pod the old ones, which may be another device's now. Delete the pod: a new one gets those "
          "that the device has then."};
    }
  }
  return std::nullopt;
}

DeviceLock lock_rdma(const std::string& purpose, const Deadline& deadline) {
  return DeviceLock::acquire(kLockKey, purpose, Deadline{deadline.at_most(kLockTime)});
}

RdmaTurn::RdmaTurn(const std::vector<Step>& steps, std::string purpose, const Deadline& deadline)
    : first_(static_cast<std::size_t>(std::ranges::find_if(steps, is_about_rdma) - steps.begin())),
      last_(first_),
      purpose_(std::move(purpose)),
      deadline_(deadline) {
  for (auto at = first_; at < steps.size(); ++at) {
    last_ = is_about_rdma(steps[at]) ? at : last_;
  }
}

void RdmaTurn::before(std::size_t step) {
  if (step == first_) {
    lock_ = lock_rdma(purpose_, deadline_);
  } else if (step > last_) {
    lock_.reset();
  }
}

}  // namespace cni
