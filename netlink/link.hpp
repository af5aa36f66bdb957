#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "netlink/address_types.hpp"
#include "netlink/socket.hpp"

namespace netlink {

/// The device behind a netdev as its bus knows it: `pci 0000:3b:00.2`, `auxiliary mlx5_core.sf.4`, `virtio virtio3`.
struct BusAddress {
  std::string bus;
  std::string address;

  [[nodiscard]] std::string text() const { return bus + ' ' + address; }
  auto operator<=>(const BusAddress&) const = default;
};

/// An attached XDP program.
struct XdpProgram {
  std::uint8_t mode = 0;  ///< XDP_ATTACHED_DRV, _SKB or _HW
  std::uint32_t id = 0;

  auto operator<=>(const XdpProgram&) const = default;
};

/// What RTM_GETLINK says of one netdev.
struct Link {
  int index = 0;
  std::string name;
  std::vector<std::string> altnames;
  std::string alias;
  std::uint32_t flags = 0;          ///< IFF_*; of PROMISC and ALLMULTI what a user asked for, without what sniffers hold
  std::uint16_t hardware_type = 0;  ///< ARPHRD_*
  std::optional<std::uint32_t> mtu;
  std::uint32_t min_mtu = 0;  ///< 0 = no limit known
  std::uint32_t max_mtu = 0;
  HardwareAddress address;
  HardwareAddress permanent_address;  ///< empty where the device has none
  std::optional<std::uint32_t> tx_queue_length;
  std::optional<int> master;
  std::optional<int> lower;          ///< IFLA_LINK: what a macvlan or VLAN sits on, and a veth's peer
  bool lower_is_elsewhere = false;   ///< that index is one of another namespace
  std::string kind;                  ///< of a software device: `veth`, `bridge`; empty for hardware
  std::optional<BusAddress> parent;  ///< nothing for software devices; Linux 5.14 and newer
  std::string physical_port_name;
  bool has_switch_id = false;
  std::vector<XdpProgram> xdp;
  std::vector<std::int32_t> ipv4_conf;  ///< net.ipv4.conf.NAME, at IPV4_DEVCONF_* - 1
  std::vector<std::int32_t> ipv6_conf;  ///< net.ipv6.conf.NAME, at DEVCONF_*

  [[nodiscard]] bool has_flag(std::uint32_t flag) const { return (flags & flag) != 0; }
  /// Whether it is the port by which a switchdev driver stands for a function that is elsewhere: `pf0`, `pf0vf3`, `c1pf0sf7`, where an
  /// uplink is `p0`.
  [[nodiscard]] bool is_representor() const;
  /// Whether it is a VLAN, macvlan or the like on the interface with this index of its own namespace; a veth's peer is none.
  [[nodiscard]] bool sits_on(int other) const;
};

/// Reads the payload of RTM_NEWLINK; nothing when it is too short to be one. A truncated attribute ends the reading.
[[nodiscard]] std::optional<Link> parse_link(std::span<const std::byte> payload);

/// By name or altname, of any length; nothing when there is none. Throws Error.
[[nodiscard]] std::optional<Link> find_link(Socket& socket, const std::string& name);
[[nodiscard]] std::optional<Link> find_link(Socket& socket, int index);
/// Every link of the socket's namespace. Throws Error.
[[nodiscard]] std::vector<Link> links(Socket& socket);

/// What one RTM_NEWLINK changes. The kernel works through it in this order and does not undo what it did before a failure:
/// namespace (with index and name, when it is moved), address, MTU, name, alias, flags, queue length.
struct LinkChange {
  const NetNs* target = nullptr;  ///< the namespace to move to
  std::optional<int> index;       ///< the index asked for in the target
  std::optional<std::string> name;
  std::optional<HardwareAddress> address;
  std::optional<std::uint32_t> mtu;
  std::optional<std::string> alias;  ///< empty text removes it
  std::uint32_t flags = 0;
  std::uint32_t flag_mask = 0;  ///< the flags that change
  std::optional<std::uint32_t> tx_queue_length;
};

/// Throws Error.
void change_link(Socket& socket, int index, const LinkChange& change, std::string_view attempt);
/// Destroys a software device. Throws Error.
void delete_link(Socket& socket, int index, std::string_view attempt);
void add_altname(Socket& socket, int index, const std::string& altname, std::string_view attempt);
void remove_altname(Socket& socket, int index, const std::string& altname, std::string_view attempt);
/// Detaches the program in this mode. One that a bpf_link holds cannot be detached this way: EBUSY.
void detach_xdp(Socket& socket, int index, std::uint8_t mode, std::string_view attempt);

}  // namespace netlink
