#include "netlink/device_id.hpp"

#include <sys/stat.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <random>
#include <string_view>
#include <system_error>

#include "netlink/error.hpp"
#include "netlink/files.hpp"

namespace netlink {

namespace {

bool is_device(const Link& link, const DeviceId& device, Side side) {
  if (!device.parent) {
    // A pod may change the MAC, and the index is its own.
    const bool has_address =
        side == Side::pod || device.addresses.empty() || std::ranges::find(device.addresses, link.address) != device.addresses.end();
    return !link.parent && link.kind == device.kind && has_address;
  }
  return link.parent == device.parent && (device.permanent_address.is_empty() || link.permanent_address == device.permanent_address);
}

int index_on(Side side, const DeviceId& device) {
  return side == Side::pod ? device.pod_index : device.home_index != 0 ? device.home_index : device.host_index;
}

}  // namespace

DeviceId DeviceId::on_bus(const BusAddress& address) {
  DeviceId device;
  device.parent = address;
  return device;
}

std::string DeviceId::key() const {
  if (!parent) {
    return "netdev-" + std::to_string(host_index);
  }
  auto key = parent->bus + '-' + parent->address;
  if (!permanent_address.is_empty()) {
    key += '-' + permanent_address.text();
  }
  std::ranges::replace(key, '/', '_');
  return key;
}

std::string DeviceId::text() const {
  if (!parent) {
    return "the " + kind + " with index " + std::to_string(host_index);
  }
  return permanent_address.is_empty() ? parent->text() : parent->text() + " (" + permanent_address.text() + ')';
}

bool DeviceId::learn_address(const HardwareAddress& address) {
  if (parent || std::ranges::find(addresses, address) != addresses.end()) {
    return false;
  }
  addresses.push_back(address);
  return true;
}

DeviceId identify(const Link& link, bool has_siblings) {
  DeviceId device;
  device.host_index = link.index;
  device.pod_index = link.index;
  device.kind = link.kind;
  device.parent = link.parent;
  device.learn_address(link.address);
  // Only where it is needed: some drivers change the permanent address of a VF when the PF sets one.
  if (link.parent && has_siblings) {
    device.permanent_address = link.permanent_address.is_empty() ? link.address : link.permanent_address;
  }
  return device;
}

std::optional<Link> find_device(Socket& socket, const DeviceId& device, Side side) {
  if (auto link = find_link(socket, index_on(side, device)); link && is_device(*link, device, side)) {
    return link;
  }
  return device.parent ? find_device(links(socket), device, side) : std::nullopt;
}

std::optional<Link> find_device(std::vector<Link> links, const DeviceId& device, Side side) {
  const auto found = std::ranges::find_if(
      links, [&](const Link& link) { return is_device(link, device, side) && (device.parent || link.index == index_on(side, device)); });
  return found == links.end() ? std::nullopt : std::optional{std::move(*found)};
}

int choose_free_index(Socket& host, Socket& pod) {
  // Kernels count up from 1, so a number far above what they have reached stays free.
  static constexpr int kFirst = 1 << 24;
  static constexpr int kLast = 1 << 30;
  std::random_device random;
  std::uniform_int_distribution<int> numbers{kFirst, kLast};
  while (true) {
    const int index = numbers(random);
    if (!find_link(host, index) && !find_link(pod, index)) {
      return index;
    }
  }
}

std::string boot_id(const Roots& roots) {
  auto id = read_line(roots.proc + "/sys/kernel/random/boot_id");
  if (!id) {
    throw_errno("read the boot id");
  }
  return *id;
}

Incarnation incarnation(const DeviceId& device, const Roots& roots) {
  Incarnation result{.boot_id = boot_id(roots), .device_inode = 0, .driver_inode = 0};
  if (device.parent) {
    const auto directory = bus_directory(*device.parent, roots);
    result.device_inode = inode(directory).value_or(0);
    struct stat status{};
    if (::lstat((directory + "/driver").c_str(), &status) == 0) {
      result.driver_inode = status.st_ino;
    }
  }
  return result;
}

std::string bus_directory(const BusAddress& device, const Roots& roots) {
  return roots.sys + "/bus/" + device.bus + "/devices/" + device.address;
}

bool exists(const BusAddress& device, const Roots& roots) {
  return inode(bus_directory(device, roots)).has_value();
}

std::optional<std::string> driver(const BusAddress& device, const Roots& roots) {
  return link_target_name(bus_directory(device, roots) + "/driver");
}

bool is_userspace_driver(const std::string& driver) {
  static constexpr std::array<std::string_view, 3> kUserspace{"vfio-pci", "uio_pci_generic", "igb_uio"};
  // Vendors' variants (mlx5_vfio_pci, nvgrace_gpu_vfio_pci) say so in their names.
  return std::ranges::find(kUserspace, driver) != kUserspace.end() || driver.ends_with("_vfio_pci") || driver.ends_with("-vfio-pci");
}

bool is_network_controller(const BusAddress& device, const Roots& roots) {
  return read_line(bus_directory(device, roots) + "/class").value_or("").starts_with("0x02");
}

std::vector<BusAddress> virtual_functions(const BusAddress& device, const Roots& roots) {
  std::vector<BusAddress> functions;
  const auto directory = bus_directory(device, roots);
  for (int number = 0;; ++number) {
    const auto target = link_target_name(directory + "/virtfn" + std::to_string(number));
    if (!target) {
      return functions;
    }
    functions.push_back({device.bus, *target});
  }
}

std::optional<BusAddress> pci_function(const BusAddress& device, const Roots& roots) {
  std::error_code error;
  auto place = std::filesystem::canonical(bus_directory(device, roots), error);
  for (; !error && place.has_relative_path(); place = place.parent_path()) {
    BusAddress function{"pci", place.filename()};
    if (link_target_name(place / "subsystem") == function.bus) {
      return function;
    }
  }
  return std::nullopt;
}

std::vector<BusAddress> virtio_children(const BusAddress& device, const Roots& roots) {
  std::vector<BusAddress> children;
  for (const auto& entry : directory_entries(bus_directory(device, roots))) {
    if (entry.starts_with("virtio")) {
      children.push_back({"virtio", entry});
    }
  }
  return children;
}

}  // namespace netlink
