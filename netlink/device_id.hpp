#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "netlink/link.hpp"
#include "netlink/roots.hpp"
#include "netlink/socket.hpp"

namespace netlink {

/// What a device is, whatever its name and wherever it is. With a parent: its bus address, and the permanent MAC where one function has
/// several netdevs. Without (veth, macvlan, tap): the index it has in the host, the one it was given in the pod, the kind, and in the host,
/// where an index can come to others, the MACs that it had or was given.
struct DeviceId {
  std::optional<BusAddress> parent;
  HardwareAddress permanent_address;  ///< empty where the parent has one netdev alone
  int host_index = 0;                 ///< without a parent: its identity in the host; with one: where to look first
  int pod_index = 0;                  ///< likewise in the pod
  int home_index = 0;                 ///< its identity in the host from its return on, where host_index was taken meanwhile; 0 = host_index
  std::string kind;
  std::vector<HardwareAddress> addresses;  ///< without a parent; empty = any

  /// Of a bus device that has one netdev, or none.
  [[nodiscard]] static DeviceId on_bus(const BusAddress& address);
  /// Adds one to `addresses`. True when it was not there.
  bool learn_address(const HardwareAddress& address);
  /// `pci-0000:3b:00.2`, `netdev-7`: names the record and the lock. Contains no '/'.
  [[nodiscard]] std::string key() const;
  /// For people: `pci 0000:3b:00.2`, `the veth with index 7`.
  [[nodiscard]] std::string text() const;
  bool operator==(const DeviceId&) const = default;
};

/// The identity of `link`. `has_siblings`: its parent has other netdevs, here or elsewhere.
[[nodiscard]] DeviceId identify(const Link& link, bool has_siblings);

enum class Side { host, pod };

/// The device's netdev in the socket's namespace; nothing when it is not there. Throws Error.
[[nodiscard]] std::optional<Link> find_device(Socket& socket, const DeviceId& device, Side side);
/// The same among links that were listed.
[[nodiscard]] std::optional<Link> find_device(std::vector<Link> links, const DeviceId& device, Side side);

/// An index that no interface has on either side, and that neither kernel will hand out by itself soon. Throws Error.
[[nodiscard]] int choose_free_index(Socket& host, Socket& pod);

/// Tells one life of a device from the next: after a reboot, or when VFs were made anew, the same address is another device.
struct Incarnation {
  std::string boot_id;
  std::uint64_t device_inode = 0;  ///< of the bus device's sysfs directory; 0 without a parent
  std::uint64_t driver_inode = 0;  ///< of its `driver` link: changes when the driver is bound anew

  bool operator==(const Incarnation&) const = default;
};

[[nodiscard]] std::string boot_id(const Roots& roots);
[[nodiscard]] Incarnation incarnation(const DeviceId& device, const Roots& roots);

/// The sysfs directory of a bus device: `/sys/bus/pci/devices/0000:3b:00.2`.
[[nodiscard]] std::string bus_directory(const BusAddress& device, const Roots& roots);
[[nodiscard]] bool exists(const BusAddress& device, const Roots& roots);
/// The name of the driver bound to it; nothing when none is.
[[nodiscard]] std::optional<std::string> driver(const BusAddress& device, const Roots& roots);
/// Whether the driver hands the device to a program (vfio-pci and its like): it then has no netdev.
[[nodiscard]] bool is_userspace_driver(const std::string& driver);
/// Whether a PCI function says that it is one (class 02, PCI Code and ID Assignment Specification), whatever drives it.
[[nodiscard]] bool is_network_controller(const BusAddress& device, const Roots& roots);
/// The VFs of a PF, in order; empty for anything else.
[[nodiscard]] std::vector<BusAddress> virtual_functions(const BusAddress& device, const Roots& roots);
/// The PCI function that the device is, or on which it sits (an auxiliary or virtio device); nothing when there is none.
[[nodiscard]] std::optional<BusAddress> pci_function(const BusAddress& device, const Roots& roots);
/// The virtio devices under a PCI function, which carry the netdev of a virtio NIC.
[[nodiscard]] std::vector<BusAddress> virtio_children(const BusAddress& device, const Roots& roots);

}  // namespace netlink
