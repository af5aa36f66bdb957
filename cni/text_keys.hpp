#pragma once

#include <optional>
#include <string_view>

#include "cni/device_info.hpp"
#include "netlink/address_types.hpp"

namespace cni {

/// A key whose value is a text of a certain form.
struct TextKey {
  std::string_view name;
  bool (*accepts)(std::string_view);
  std::string_view wanted;  ///< for Value::refuse
};

/// An address that an interface may carry: 6 or 20 bytes, neither zero nor a group's.
[[nodiscard]] std::optional<netlink::HardwareAddress> parse_unicast(std::string_view text);

[[nodiscard]] bool is_device_id(std::string_view text);
[[nodiscard]] bool is_device_name(std::string_view text);
[[nodiscard]] bool is_kernel_path(std::string_view text);
[[nodiscard]] bool is_unicast(std::string_view text);
/// What the kernel takes as the name of an RDMA device: at most 63 bytes, no `/`, no `%` (which asks it for a number), no blanks.
[[nodiscard]] bool is_rdma_name(std::string_view text);
/// One component of a path, without blanks and control characters.
[[nodiscard]] bool is_file_name(std::string_view text);
/// An absolute path without `..` and control characters that is not the root.
[[nodiscard]] bool is_absolute_path(std::string_view text);

inline constexpr std::string_view kWantedAddress = "a unicast hardware address of 6 or 20 bytes such as \"02:00:00:00:00:01\"";
inline constexpr std::string_view kWantedDeviceId = "a PCI address or an auxiliary device such as \"0000:3b:00.2\"";

inline constexpr TextKey kDeviceId{"deviceID", is_device_id, kWantedDeviceId};
inline constexpr TextKey kPciBusId{"pciBusID", is_device_id, kWantedDeviceId};
inline constexpr TextKey kDevice{"device", is_device_name, "the name of an interface, at most 127 bytes,"};
inline constexpr TextKey kHwaddr{"hwaddr", is_unicast, kWantedAddress};
inline constexpr TextKey kKernelPath{"kernelpath", is_kernel_path, "a path beneath /sys/devices/ without '..'"};
inline constexpr TextKey kRdmaDevice{"rdmaDevice", is_rdma_name, "the name of an RDMA device such as \"mlx5_3\", at most 63 bytes,"};
inline constexpr TextKey kRdmaName{"rdmaName", is_rdma_name,
                                   "a name for an RDMA device such as \"rail0\", at most 63 bytes, without '/' and '%',"};
inline constexpr TextKey kDeviceInfoFile{"CNIDeviceInfoFile", is_device_info_path, "a file in /run/k8s.cni.cncf.io/devinfo/ or its cni/"};
inline constexpr TextKey kIpamType{"type", is_file_name, "the name of an IPAM plugin, not a path,"};

}  // namespace cni
