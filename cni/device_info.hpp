#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "cni/log.hpp"
#include "cni/record.hpp"
#include "netlink/device_id.hpp"
#include "netlink/roots.hpp"

namespace cni {

/// The only place where device-info files are written: Multus keeps those that it reads there. It says /var/run, which is the same.
inline constexpr std::string_view kDeviceInfoDirectory = "/run/k8s.cni.cncf.io/devinfo/";

/// A file in that directory or in its `cni/`, also by the way of /var/run, that is not hidden.
[[nodiscard]] bool is_device_info_path(std::string_view path);

/// The path by the way of /run: what is compared, recorded and handed to the functions below.
[[nodiscard]] std::string canonical_device_info_path(std::string_view path);

/// What device-info-spec 1.1.0 has to say of a device of type `pci`.
struct DeviceInfo {
  std::string pci_address;
  std::string pf_pci_address;  ///< empty for a device that is no VF
  std::string rdma_device;     ///< names in the pod with commas between them; empty where the pod has none
};

/// Of the PCI function that the attachment's device is, or is part of; nothing for a device on no PCI bus.
[[nodiscard]] std::optional<DeviceInfo> device_info_of(const Record& record, const netlink::Roots& roots);

/// `existing`, which a device plugin wrote (or the empty text), with what `info` says put in; nothing when it is about a device of another
/// type than `pci`. What is no device-info is replaced.
[[nodiscard]] std::optional<std::string> merge_device_info(std::string_view existing, const DeviceInfo& info);

/// Puts what `info` says into the file, in one step for its readers; missing directories are made. False when there is a file that is about
/// another type of device: it stays as it is. Throws netlink::Error, also for a symbolic link anywhere beneath /run on the way.
[[nodiscard]] bool write_device_info(const std::string& path, const DeviceInfo& info);

/// Removes the file, if it is there. Throws netlink::Error.
void remove_device_info(const std::string& path);

}  // namespace cni
