#include "cni/infiniband.hpp"

#include <fmt/format.h>

#include <chrono>
#include <string_view>
#include <thread>

#include "cni/error.hpp"
#include "netlink/files.hpp"

namespace cni {

namespace {

constexpr std::chrono::milliseconds kUdevPause{10};
constexpr const char* kHowToGiveAGuid =
    "Give it one: runtimeConfig.infinibandGUID with the capability 'infinibandGUID', or args.cni.guid; or on the host, ip link set PF vf N "
    "node_guid and port_guid, and bind the VF's driver anew.";

void refuse_elsewhere(const AttachConfig& config, const InfinibandFacts& facts) {
  const std::string_view key = config.vf.guid                 ? "infinibandGUID"
                               : config.pkey                  ? "pkey"
                               : config.ib_kubernetes_enabled ? "ibKubernetesEnabled"
                                                              : "";
  if (!key.empty()) {
    throw Error(Code::device_cannot_be_taken, fmt::format("'{}' cannot be set: '{}' is no InfiniBand device", key, facts.name),
                fmt::format("Leave '{}' out, or name an InfiniBand VF.", key));
  }
}

std::optional<Guid> restored(const std::optional<Guid>& before, const netlink::HardwareAddress& address_before,
                             const std::optional<Guid>& now) {
  return before && now ? std::optional{guid_to_restore(*before, address_before, *now)} : before;
}

}  // namespace

void refuse_for_infiniband(const AttachConfig& config, const InfinibandFacts& facts) {
  if (!facts.is_infiniband) {
    refuse_elsewhere(config, facts);
    return;
  }
  if (!facts.is_vf) {
    return;
  }
  if (config.mac) {
    throw Error(Code::device_cannot_be_taken,
                fmt::format("'mac' cannot be set: '{}' is an InfiniBand VF, whose address comes from its GUID", facts.name),
                "Leave 'mac' out, and give the VF a GUID: runtimeConfig.infinibandGUID, or args.cni.guid.");
  }
  if (config.vf.guid) {
    return;
  }
  if (config.ib_kubernetes_enabled) {
    throw Error(Code::invalid_configuration, fmt::format("'ibKubernetesEnabled' is true, and '{}' is to get no GUID", facts.name),
                "ib-kubernetes gives it as runtimeConfig.infinibandGUID or args.cni.guid.");
  }
  if (facts.effective && !is_usable(*facts.effective)) {
    throw Error(Code::device_cannot_be_taken,
                fmt::format("the VF '{}' has no valid GUID, and none is configured: it has {}", facts.name, guid_text(*facts.effective)),
                kHowToGiveAGuid);
  }
}

Guid guid_to_restore(Guid before, const netlink::HardwareAddress& address_before, Guid now) {
  if (before != kZeroGuid || now == before) {
    return before;
  }
  const auto own = guid_of(address_before).value_or(kZeroGuid);
  return is_usable(own) ? own : kGuidOfOnes;
}

State infiniband_home(State wanted, const State& now, const Record& record, bool may_bind) {
  const auto& before = record.before;
  const auto guid = guid_of(wanted.mac);
  const bool may_be_set = record.bound_driver.empty() && differ_at_most_in_guid(wanted.mac, now.mac) && is_usable(guid.value_or(kZeroGuid));
  if (guid && !may_be_set) {
    wanted.mac = {};
  }
  if (wanted.vf && now.vf) {
    wanted.vf->node_guid = restored(wanted.vf->node_guid, before.mac, now.vf->node_guid);
    wanted.vf->port_guid = restored(wanted.vf->port_guid, before.mac, now.vf->port_guid);
  }
  if (may_bind) {
    wanted.driver_to_bind = record.bound_driver;
  }
  return wanted;
}

bool is_bound_by_others(const Record& record, const netlink::Incarnation& now, const netlink::Roots& roots) {
  if (record.bound_driver.empty() || record.incarnation.driver_inode != 0) {
    return now.driver_inode != record.incarnation.driver_inode;
  }
  const auto driver = netlink::driver(*record.device.parent, roots);
  return driver && *driver != record.bound_driver;
}

void wait_for_udev(int index, const Deadline& deadline, const std::string& directory) {
  const auto is_there = [&](const std::string& name) { return netlink::inode(directory + name).has_value(); };
  while (is_there("/control") && !is_there(fmt::format("/data/n{}", index)) && !deadline.has_passed()) {
    std::this_thread::sleep_for(kUdevPause);
  }
}

}  // namespace cni
