#include "cni/refuse.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <fnmatch.h>
#include <linux/if.h>

#include <algorithm>
#include <array>
#include <iterator>
#include <string_view>

#include "cni/error.hpp"

namespace cni {

namespace {

[[noreturn]] void refuse(const netlink::Link& link, const std::string& why, const std::string& what_to_do) {
  throw Error(Code::device_cannot_be_taken, fmt::format("'{}' cannot be taken: {}", link.name, why), what_to_do);
}

bool is_immovable(const netlink::Link& link) {
  static constexpr std::array<std::string_view, 3> kKinds{"bridge", "bond", "team"};
  return link.has_flag(IFF_LOOPBACK) || std::ranges::find(kKinds, link.kind) != kKinds.end();
}

}  // namespace

void refuse_entangled(const netlink::Link& link, std::span<const netlink::Link> all) {
  if (is_immovable(link)) {
    refuse(
        link,
        link.kind.empty() ? "it is the loopback interface" : fmt::format("it is a {}, which cannot leave its network namespace", link.kind),
        "Name a NIC.");
  }
  if (link.master) {
    const auto master = std::ranges::find(all, *link.master, &netlink::Link::index);
    const auto name = master == all.end() ? fmt::format("the interface with index {}", *link.master)
                                          : fmt::format("the {} '{}'", master->kind, master->name);
    refuse(link, fmt::format("it is a port of {}", name), "Take it out of there first, or name another device.");
  }
  std::vector<std::string> uppers;
  for (const auto& other : all) {
    if (other.sits_on(link.index)) {
      uppers.push_back(fmt::format("the {} '{}'", other.kind, other.name));
    }
  }
  if (!uppers.empty()) {
    refuse(link, fmt::format("{} sits on it", fmt::join(uppers, ", ")), "Remove what sits on it first, or name another device.");
  }
  if (link.is_representor()) {
    refuse(link, fmt::format("it is the switchdev representor '{}', not a NIC", link.physical_port_name),
           "Name the function that it represents.");
  }
}

void refuse_in_use(const netlink::Link& link, const State& state, bool allow_in_use, netlink::Socket& host) {
  if (netlink::carries_default_route(host, link.index)) {
    refuse(link, "the node's default route leaves by it", "Without it the node cannot be reached; this cannot be forced.");
  }
  if (!state.other_routes.empty()) {
    refuse(
        link, fmt::format("the host has a route over it that could not be given back as it is: {}", fmt::join(state.other_routes, ", ")),
        "What has several next hops, a TOS, a source or settings other than mtu and advmss cannot be; remove it, or name another device.");
  }
  std::vector<std::string> addresses;
  for (const auto& address : state.addresses) {
    if (is_permanent_global(address)) {
      addresses.push_back(address.prefix.text());
    }
  }
  if (allow_in_use || addresses.empty()) {
    return;
  }
  refuse(link, fmt::format("the host uses it with the address {}", fmt::join(addresses, ", ")),
         "Set 'allowInUse' to take it all the same; the addresses and routes come back with it.");
}

void refuse_busy_physical_function(const netlink::Link& link, std::span<const netlink::Link> all, bool allow_in_use,
                                   const RecordStore& store, const netlink::Roots& roots) {
  if (!link.parent) {
    return;
  }
  const auto functions = netlink::virtual_functions(*link.parent, roots);
  for (const auto& function : functions) {
    const auto driver = netlink::driver(function, roots);
    const auto because = [&](std::string_view why) {
      refuse(link, fmt::format("its VF {} {}", function.address, why),
             "Free the VF first: moving the PF would leave it without an administrator.");
    };
    if (store.find(netlink::DeviceId::on_bus(function).key())) {
      because("is attached to a pod");
    }
    if (driver && netlink::is_userspace_driver(*driver)) {
      because(fmt::format("is bound to the userspace driver '{}'", *driver));
    }
    if (driver && std::ranges::find(all, function, &netlink::Link::parent) == all.end()) {
      because("is in another network namespace");
    }
  }
  if (!functions.empty() && !allow_in_use) {
    refuse(link, fmt::format("it has {} VFs", functions.size()),
           "Set 'allowInUse' to take it with its idle VFs, or remove them (sriov_numvfs).");
  }
}

void refuse_by_node(const NodeConfig& node, const std::vector<Selector>& selectors, const netlink::Link& link, bool allow_in_use) {
  static constexpr const char* kWhatToDo = "The administrator of the node decides this in /etc/cni/fabric-nic.json.";
  for (const auto& selector : selectors) {
    const auto kind = selector.key().ends_with("deviceID") ? std::string{"deviceID"} : selector.key();
    if (node.allowed_selectors && std::ranges::find(*node.allowed_selectors, kind) == node.allowed_selectors->end()) {
      throw Error(Code::device_cannot_be_taken, fmt::format("this node does not allow devices to be chosen by '{}'", kind), kWhatToDo);
    }
  }
  if (allow_in_use && !node.allow_in_use) {
    throw Error(Code::device_cannot_be_taken, "this node does not allow 'allowInUse'", kWhatToDo);
  }
  auto names = link.altnames;
  names.push_back(link.name);
  if (link.parent) {
    names.push_back(link.parent->address);
  }
  for (const auto& selector : selectors) {
    // A virtio NIC's parent is the virtio device, and people know the PCI function above it.
    std::ranges::transform(selector.parents(), std::back_inserter(names), &netlink::BusAddress::address);
  }
  const auto is_allowed = [&](const std::string& pattern) {
    return std::ranges::any_of(names, [&](const std::string& name) { return ::fnmatch(pattern.c_str(), name.c_str(), 0) == 0; });
  };
  if (node.allowed_devices && std::ranges::none_of(*node.allowed_devices, is_allowed)) {
    throw Error(Code::device_cannot_be_taken,
                fmt::format("this node does not allow '{}'{} to be taken", link.name, link.parent ? " (" + link.parent->address + ")" : ""),
                kWhatToDo);
  }
}

}  // namespace cni
