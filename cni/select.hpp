#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "cni/config.hpp"
#include "cni/error.hpp"
#include "cni/record.hpp"
#include "netlink/link.hpp"
#include "netlink/roots.hpp"

namespace cni {

/// One way in which a configuration names its device, ready to be held against links and records.
class Selector {
 public:
  [[nodiscard]] static Selector by_device_id(std::string key, std::string value, const netlink::Roots& roots);
  [[nodiscard]] static Selector by_name(std::string name);
  [[nodiscard]] static Selector by_hardware_address(const netlink::HardwareAddress& address);
  /// The bus device below which the RDMA device hangs that is called so in the host.
  [[nodiscard]] static Selector by_rdma_device(std::string name, const netlink::Roots& roots);
  /// A path under /sys/devices/: of a bus device, or of a software netdev.
  [[nodiscard]] static Selector by_kernel_path(std::string path, const netlink::Roots& roots);

  [[nodiscard]] const std::string& key() const { return key_; }
  [[nodiscard]] const std::string& value() const { return value_; }
  /// For messages: `device 'ens3f0'`.
  [[nodiscard]] std::string text() const { return key_ + " '" + value_ + "'"; }
  /// The bus devices that sysfs says the value means: a PCI function and its virtio devices, an auxiliary device.
  [[nodiscard]] const std::vector<netlink::BusAddress>& parents() const { return parents_; }

  /// What every record that matches has somewhere in its text; may be empty.
  [[nodiscard]] const std::string& record_text() const;

  [[nodiscard]] bool matches(const netlink::Link& link) const;
  /// The device that the record speaks of, as it was before it was taken.
  [[nodiscard]] bool matches(const Record& record) const;

 private:
  Selector(std::string key, std::string value) : key_(std::move(key)), value_(std::move(value)) {}

  std::string key_;
  std::string value_;
  std::vector<netlink::BusAddress> parents_;
  std::optional<int> index_;
  std::optional<netlink::HardwareAddress> hardware_address_;
  std::optional<std::string> name_;
  std::optional<std::string> rdma_name_;
};

/// The selectors that count, in the order of the configuration reference: runtimeConfig.deviceID alone where it is set; otherwise device,
/// hwaddr, kernelpath and rdmaDevice; an injected deviceID only where none of those is. `notes` gets a line for each that lost. Throws
/// Error 7 when there is none.
[[nodiscard]] std::vector<Selector> effective_selectors(const Selectors& selectors, const netlink::Roots& roots,
                                                        std::vector<std::string>& notes);

/// The one link that all selectors name; nothing when none names any. Throws Error 7 when two name different ones, 100 when one names
/// several.
[[nodiscard]] std::optional<netlink::Link> select_link(const std::vector<Selector>& selectors, std::span<const netlink::Link> links);

/// A device that has no netdev: because a program drives it by itself, or because its network driver makes only RDMA devices of it.
struct NetdevlessDevice {
  netlink::BusAddress address;
  std::string driver;
  bool is_rdma_only = false;
};

/// The one that all selectors name; nothing when what they name is bound to no userspace driver. Throws Error 100 for one that is no
/// network device.
[[nodiscard]] std::optional<NetdevlessDevice> select_userspace_device(const std::vector<Selector>& selectors, const netlink::Roots& roots);

/// The one that all selectors name and that has RDMA devices in the host; whether a netdev is yet to come is for the caller to know.
[[nodiscard]] std::optional<NetdevlessDevice> select_rdma_device(const std::vector<Selector>& selectors, const netlink::Roots& roots);

/// Who holds the namespace in which the netdev of the device is; empty when no namespace that can be reached has it.
[[nodiscard]] std::string find_holder(const netlink::BusAddress& device, const netlink::Roots& roots);

/// Why the selected device is not there: says what sysfs and the other namespaces know of it (no such device, no driver, away in another
/// namespace and whose). For the end of a wait.
[[nodiscard]] Error explain_absence(const std::vector<Selector>& selectors, const netlink::Roots& roots);

}  // namespace cni
