#pragma once

#include <sys/types.h>

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "netlink/link.hpp"
#include "netlink/roots.hpp"
#include "netlink/socket.hpp"

namespace netlink {

/// Whether RDMA devices belong to one network namespace each, or to all (`rdma system`, ib_core's netns_mode).
enum class RdmaMode : std::uint8_t { exclusive = 0, shared = 1 };

/// An RDMA device as NETLINK_RDMA shows it. Its index is unique on the node over all namespaces and never used again before the next boot;
/// the name may change, and is unique on the node up to Linux 6.12, in its namespace later.
struct RdmaDevice {
  std::uint32_t index = 0;
  std::string name;
  std::uint32_t ports = 0;      ///< they are numbered from 1
  std::uint64_t node_guid = 0;  ///< in the byte order of the host
  std::string protocol;         ///< `roce`, `ib`, `iw`, `opa`; empty where the kernel does not say

  bool operator==(const RdmaDevice&) const = default;
};

/// A port. Its netdev is told only where that is in the namespace of the socket which asks.
struct RdmaPort {
  std::uint32_t number = 0;
  std::uint8_t state = 0;  ///< IB_PORT_DOWN 1, INIT 2, ARMED 3, ACTIVE 4
  std::optional<int> netdev_index;
  std::string netdev_name;

  bool operator==(const RdmaPort&) const = default;
};

/// The file that programs open for a device, beneath /dev/infiniband.
struct RdmaCharDevice {
  std::string name;  ///< `uverbs0`, `umad3`, `issm3`
  std::uint32_t major = 0;
  std::uint32_t minor = 0;

  bool operator==(const RdmaCharDevice&) const = default;
};

/// Parts of messages that were received. Nothing when what identifies the object is missing.
[[nodiscard]] std::optional<RdmaDevice> parse_rdma_device(std::span<const std::byte> payload);
[[nodiscard]] std::optional<RdmaPort> parse_rdma_port(std::span<const std::byte> payload);
[[nodiscard]] std::optional<RdmaCharDevice> parse_rdma_char_device(std::span<const std::byte> payload);
[[nodiscard]] std::optional<RdmaMode> parse_rdma_mode(std::span<const std::byte> payload);

/// A socket that speaks of RDMA devices in the namespace; nothing on a kernel without RDMA, or where its modules are not loaded (asking
/// would load them). Throws Error.
[[nodiscard]] std::optional<Socket> open_rdma_socket(NetNs net_ns, const Roots& roots);

/// Throws Error.
[[nodiscard]] RdmaMode rdma_mode(Socket& rdma);
/// Those that the socket's namespace sees: in shared mode all of the node. Throws Error.
[[nodiscard]] std::vector<RdmaDevice> rdma_devices(Socket& rdma);
/// By index; nothing when it is not in the socket's namespace. Throws Error.
[[nodiscard]] std::optional<RdmaDevice> find_rdma_device(Socket& rdma, std::uint32_t index);
/// Throws Error; empty when the device is not in the socket's namespace.
[[nodiscard]] std::vector<RdmaPort> rdma_ports(Socket& rdma, const RdmaDevice& device);
/// What programs open of the device, sorted by name: uverbs, and umad and issm of each port, where these modules are loaded (asking loads
/// none) and the driver has them; nothing when the device is not in the socket's namespace. Throws Error.
[[nodiscard]] std::vector<RdmaCharDevice> rdma_char_devices(Socket& rdma, const RdmaDevice& device, const Roots& roots = {});

/// The kernel takes any text, and its first 63 bytes. Throws Error: EEXIST when the name is taken (on the node up to Linux 6.12, later in
/// the namespace), EINVAL when it is empty, ENODEV when the device is not in the socket's namespace.
void rename_rdma_device(Socket& rdma, std::uint32_t index, const std::string& name, std::string_view attempt);
/// Moves the device from the socket's namespace, which the calling thread enters for it: the kernel looks for the device in the socket's
/// and checks the thread's. The kernel ends and makes anew whatever programs have of it, and gives it new char devices. Throws Error:
/// EOPNOTSUPP in shared mode or when the driver cannot, EEXIST when the name is taken there (after Linux 6.12), ENODEV when it is not in
/// the source.
void move_rdma_device(Socket& from, std::uint32_t index, const NetNs& to, std::string_view attempt);

/// The names of the RDMA devices that hang below a bus device, sorted, as the sysfs of the host shows them: in exclusive mode only those
/// that are in the host's namespace. Throws Error.
[[nodiscard]] std::vector<std::string> rdma_names_in_host(const BusAddress& function, const Roots& roots);
/// The bus device below which the char device (`uverbs0`) hangs, wherever its RDMA device is: this class is the same in every namespace. Of
/// auxiliary devices only a subfunction (`mlx5_core.sf.4`) is one; another is a part of the function above it. Nothing for a software
/// device.
[[nodiscard]] std::optional<BusAddress> function_of_uverbs(const std::string& name, const Roots& roots);
/// Names of all RDMA devices on the node that have a uverbs char device, wherever they are, sorted; two namespaces may have the same name,
/// which is then there twice. Throws Error.
[[nodiscard]] std::vector<std::string> rdma_names_on_node(const Roots& roots);
/// The RDMA devices of a bus device that are in the socket's namespace, by index. `is_host`: it is the namespace whose sysfs is at `roots`;
/// in another one a device is found by its uverbs char device only. Throws Error.
[[nodiscard]] std::vector<RdmaDevice> rdma_devices_of(Socket& rdma, const BusAddress& function, bool is_host, const Roots& roots);
/// The names of the RDMA devices that the bus device has, wherever on the node they are. Throws Error.
[[nodiscard]] std::vector<std::string> rdma_names_anywhere(const BusAddress& function, const Roots& roots);

}  // namespace netlink
