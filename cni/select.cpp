#include "cni/select.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <charconv>
#include <utility>

#include "cni/error.hpp"
#include "cni/text_keys.hpp"
#include "netlink/device_id.hpp"
#include "netlink/error.hpp"
#include "netlink/files.hpp"
#include "netlink/rdma.hpp"

namespace cni {

namespace {

constexpr const char* kNoDevice =
    "The pod requests no resource that a device plugin serves, the NetworkAttachmentDefinition lacks the annotation "
    "k8s.v1.cni.cncf.io/resourceName, or "
    "Multus could not ask kubelet which device was chosen. Or set 'deviceID', 'device', 'hwaddr', 'kernelpath' or 'rdmaDevice' in the "
    "configuration.";

std::string list_names(const std::vector<const netlink::Link*>& links) {
  std::vector<std::string> names;
  for (const auto* link : links) {
    names.push_back(fmt::format("'{}' ({})", link->name, link->address.text()));
  }
  return fmt::format("{}", fmt::join(names, ", "));
}

bool name_all(const std::vector<Selector>& selectors, const netlink::BusAddress& parent) {
  return std::ranges::all_of(
      selectors, [&](const Selector& selector) { return std::ranges::find(selector.parents(), parent) != selector.parents().end(); });
}

Error explain_bus_device(const Selector& selector, const netlink::BusAddress& parent, const netlink::Roots& roots) {
  const auto driver = netlink::driver(parent, roots);
  if (!driver) {
    return {Code::device_cannot_be_taken, fmt::format("{}: no driver is bound to it", selector.text()),
            "Load or bind the driver of the NIC; until then it has no network interface."};
  }
  if (const auto holder = find_holder(parent, roots); !holder.empty()) {
    return {Code::device_cannot_be_taken,
            fmt::format("{}: it is bound to '{}' and its network interface is in another network namespace, held by {}", selector.text(),
                        *driver, holder),
            "End that process, or bring the interface back."};
  }
  return {Code::try_again_later, fmt::format("{}: it is bound to '{}' and has no network interface yet", selector.text(), *driver),
          "The driver may still be starting, or the interface is on its way home from a namespace that has just ended."};
}

}  // namespace

Selector Selector::by_device_id(std::string key, std::string value, const netlink::Roots& roots) {
  Selector selector{std::move(key), std::move(value)};
  // Which bus it is on is asked, not guessed from the look of it: auxiliary devices have names of any form.
  for (const char* bus : {"pci", "auxiliary"}) {
    const netlink::BusAddress parent{bus, selector.value_};
    if (netlink::exists(parent, roots)) {
      selector.parents_.push_back(parent);
      std::ranges::move(netlink::virtio_children(parent, roots), std::back_inserter(selector.parents_));
    }
  }
  return selector;
}

Selector Selector::by_name(std::string name) {
  Selector selector{"device", std::move(name)};
  selector.name_ = selector.value_;
  return selector;
}

Selector Selector::by_hardware_address(const netlink::HardwareAddress& address) {
  Selector selector{"hwaddr", address.text()};
  selector.hardware_address_ = address;
  return selector;
}

Selector Selector::by_kernel_path(std::string path, const netlink::Roots& roots) {
  Selector selector{"kernelpath", std::move(path)};
  auto directory = roots.sys + selector.value_.substr(std::string{"/sys"}.size());
  directory.resize(directory.find_last_not_of('/') + 1);
  if (const auto text = netlink::read_line(directory + "/ifindex")) {
    int index = 0;
    std::from_chars(text->data(), text->data() + text->size(), index);
    selector.index_ = index;
  } else if (const auto bus = netlink::link_target_name(directory + "/subsystem")) {
    const netlink::BusAddress parent{*bus, directory.substr(directory.find_last_of('/') + 1)};
    selector.parents_.push_back(parent);
    std::ranges::move(netlink::virtio_children(parent, roots), std::back_inserter(selector.parents_));
  }
  return selector;
}

Selector Selector::by_rdma_device(std::string name, const netlink::Roots& roots) {
  Selector selector{"rdmaDevice", std::move(name)};
  selector.rdma_name_ = selector.value_;
  const auto device = fmt::format("{}/class/infiniband/{}/device", roots.sys, selector.value_);
  const auto address = netlink::link_target_name(device);
  const auto bus = netlink::link_target_name(device + "/subsystem");
  if (address && bus) {
    selector.parents_.push_back({*bus, *address});
  }
  return selector;
}

const std::string& Selector::record_text() const {
  static const std::string any;
  // JSON writes these in another way.
  if (value_.find_first_of("\"\\") != std::string::npos) {
    return any;
  }
  if (name_ || hardware_address_ || rdma_name_) {
    return value_;
  }
  return parents_.size() == 1 ? parents_.front().address : any;
}

bool Selector::matches(const netlink::Link& link) const {
  if (name_) {
    return link.name == *name_ || std::ranges::find(link.altnames, *name_) != link.altnames.end();
  }
  if (hardware_address_) {
    return link.parent && (link.address == *hardware_address_ || link.permanent_address == *hardware_address_);
  }
  if (index_) {
    return link.index == *index_;
  }
  return link.parent && std::ranges::find(parents_, *link.parent) != parents_.end();
}

bool Selector::matches(const Record& record) const {
  if (name_) {
    return record.before.name == *name_ || std::ranges::find(record.before.altnames, *name_) != record.before.altnames.end();
  }
  if (hardware_address_) {
    return record.device.parent && (record.before.mac == *hardware_address_ || record.device.permanent_address == *hardware_address_);
  }
  if (rdma_name_) {
    return std::ranges::find(record.before.rdma, *rdma_name_, &RdmaState::name) != record.before.rdma.end();
  }
  return record.device.parent && std::ranges::find(parents_, *record.device.parent) != parents_.end();
}

std::vector<Selector> effective_selectors(const Selectors& selectors, const netlink::Roots& roots, std::vector<std::string>& notes) {
  std::vector<Selector> explicit_ones;
  if (selectors.device) {
    explicit_ones.push_back(Selector::by_name(*selectors.device));
  }
  if (selectors.hwaddr) {
    explicit_ones.push_back(Selector::by_hardware_address(*selectors.hwaddr));
  }
  if (selectors.kernel_path) {
    explicit_ones.push_back(Selector::by_kernel_path(*selectors.kernel_path, roots));
  }
  if (selectors.rdma_device) {
    explicit_ones.push_back(Selector::by_rdma_device(*selectors.rdma_device, roots));
  }
  std::vector<Selector> injected;
  if (selectors.device_id) {
    injected.push_back(Selector::by_device_id("deviceID", *selectors.device_id, roots));
  }
  const auto note_losers = [&](const std::vector<Selector>& losers, const std::string& winner) {
    for (const auto& loser : losers) {
      notes.push_back(fmt::format("{} is not used: {} wins", loser.text(), winner));
    }
  };
  if (selectors.runtime_device_id) {
    std::vector<Selector> runtime{Selector::by_device_id("runtimeConfig.deviceID", *selectors.runtime_device_id, roots)};
    note_losers(explicit_ones, runtime.front().text());
    if (selectors.device_id != selectors.runtime_device_id) {
      note_losers(injected, runtime.front().text());
    }
    return runtime;
  }
  if (!explicit_ones.empty()) {
    note_losers(injected, explicit_ones.front().text());
    return explicit_ones;
  }
  if (injected.empty()) {
    throw Error(Code::invalid_configuration,
                "the configuration names no device: none of 'deviceID', 'device', 'hwaddr', 'kernelpath' and 'rdmaDevice' is set",
                kNoDevice);
  }
  return injected;
}

std::optional<netlink::Link> select_link(const std::vector<Selector>& selectors, std::span<const netlink::Link> links) {
  const netlink::Link* selected = nullptr;
  const Selector* selected_by = nullptr;
  for (const auto& selector : selectors) {
    std::vector<const netlink::Link*> matching;
    for (const auto& link : links) {
      if (selector.matches(link)) {
        matching.push_back(&link);
      }
    }
    if (matching.size() > 1) {
      throw Error(Code::device_cannot_be_taken, fmt::format("{} means several interfaces: {}", selector.text(), list_names(matching)),
                  "Name one of them with 'device'.");
    }
    const auto* match = matching.empty() ? nullptr : matching.front();
    if (selected_by != nullptr && match != selected) {
      const auto says = [](const netlink::Link* link) {
        return link == nullptr ? std::string{"no interface"} : fmt::format("'{}'", link->name);
      };
      throw Error(Code::invalid_configuration,
                  fmt::format("{} means {}, and {} means {}", selected_by->text(), says(selected), selector.text(), says(match)),
                  "Set one of them alone, or make them agree.");
    }
    selected = match;
    selected_by = &selector;
  }
  return selected == nullptr ? std::nullopt : std::optional{*selected};
}

std::optional<NetdevlessDevice> select_userspace_device(const std::vector<Selector>& selectors, const netlink::Roots& roots) {
  for (const auto& parent : selectors.front().parents()) {
    const auto driver = netlink::driver(parent, roots);
    if (driver && netlink::is_userspace_driver(*driver) && name_all(selectors, parent)) {
      if (!netlink::is_network_controller(parent, roots)) {
        throw Error(Code::device_cannot_be_taken,
                    fmt::format("{}: it is bound to '{}', and no network device", selectors.front().text(), *driver), "Name a NIC.");
      }
      return NetdevlessDevice{.address = parent, .driver = *driver, .is_rdma_only = false};
    }
  }
  return std::nullopt;
}

std::optional<NetdevlessDevice> select_rdma_device(const std::vector<Selector>& selectors, const netlink::Roots& roots) {
  for (const auto& parent : selectors.front().parents()) {
    const auto driver = netlink::driver(parent, roots);
    if (driver && !netlink::is_userspace_driver(*driver) && name_all(selectors, parent) &&
        !netlink::rdma_names_in_host(parent, roots).empty()) {
      return NetdevlessDevice{.address = parent, .driver = *driver, .is_rdma_only = true};
    }
  }
  return std::nullopt;
}

std::string find_holder(const netlink::BusAddress& device, const netlink::Roots& roots) {
  for (auto& held : netlink::held_net_namespaces(roots.proc)) {
    try {
      netlink::Socket socket{NETLINK_ROUTE, std::move(held.net_ns)};
      const auto links = netlink::links(socket);
      if (std::ranges::find(links, device, &netlink::Link::parent) != links.end()) {
        return held.holder;
      }
    } catch (const netlink::Error&) {
      continue;  // it went away while we looked
    }
  }
  return {};
}

Error explain_absence(const std::vector<Selector>& selectors, const netlink::Roots& roots) {
  const auto& selector = selectors.front();
  for (const auto& parent : selector.parents()) {
    if (netlink::exists(parent, roots)) {
      return explain_bus_device(selector, selector.parents().back(), roots);
    }
  }
  const auto rdma_names = netlink::rdma_names_on_node(roots);
  if (selector.key() == kRdmaDevice.name && std::ranges::find(rdma_names, selector.value()) != rdma_names.end()) {
    return {Code::try_again_later, fmt::format("{}: it is in another network namespace", selector.text()),
            "It is free when that attachment has been deleted, or what holds the namespace has ended."};
  }
  return {Code::try_again_later, fmt::format("{}: there is no such device in the host", selector.text()),
          "The driver or the device plugin may still be starting; otherwise the device is gone, or the configuration names the wrong one."};
}

}  // namespace cni
