#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "netlink/address.hpp"
#include "netlink/device_id.hpp"
#include "netlink/link.hpp"
#include "netlink/net_ns.hpp"
#include "netlink/rdma.hpp"
#include "netlink/roots.hpp"
#include "netlink/route.hpp"
#include "netlink/socket.hpp"
#include "netlink/sysctl.hpp"
#include "netlink/vf.hpp"

namespace cni {

using netlink::Side;

/// Where a VF is administered: the PF that has it, whose netdev is in the host.
struct Administration {
  netlink::VfId id;
  netlink::Link pf;
};

/// The two namespaces of an attachment, each with its socket. The pod's is absent when nobody can reach it any more.
struct Places {
  netlink::Socket host;
  std::optional<netlink::Socket> pod;
  netlink::Roots roots;

  Places(netlink::NetNs home, std::optional<netlink::NetNs> away, netlink::Roots where);

  /// Of the VF that was asked about last: where to look for its PF first.
  struct KnownVf {
    netlink::BusAddress device;
    netlink::VfId id;
    int pf_index = 0;
  };
  std::optional<KnownVf> known_vf;

  /// The socket of the side; the pod's must be there.
  [[nodiscard]] netlink::Socket& at(Side side) { return side == Side::host ? host : pod.value(); }
  /// The socket of the side that speaks of RDMA devices, opened when it is asked for first; null where there are none, or no pod. Throws
  /// netlink::Error.
  [[nodiscard]] netlink::Socket* rdma(Side side);
  /// Nothing where the kernel has no RDMA. Throws netlink::Error.
  [[nodiscard]] std::optional<netlink::RdmaMode> rdma_mode();

 private:
  std::optional<netlink::Socket> rdma_host_;
  std::optional<netlink::Socket> rdma_pod_;
  std::optional<netlink::RdmaMode> rdma_mode_;
  bool has_no_rdma_ = false;
};

/// An RDMA device of a function, and where it is. In shared mode it is everybody's, and counts as the host's.
struct RdmaState {
  std::uint32_t index = 0;  ///< its identity until the driver makes another one
  std::string name;
  Side side = Side::host;
  bool is_infiniband = false;

  bool operator==(const RdmaState&) const = default;
};

/// A VLAN, macvlan or the like on a device.
struct UpperLink {
  int index = 0;
  std::string name;
};

/// What a device is set to, as the kernel says or as somebody wants it. An absent optional is an attribute that the driver does not report,
/// or that nobody wants changed: it never leads to a step.
struct State {
  Side side = Side::host;
  int index = 0;
  std::string name;
  std::vector<std::string> altnames;  ///< sorted
  std::string alias;
  std::optional<std::uint32_t> mtu;
  netlink::HardwareAddress mac;  ///< empty or all zeros: not to be set
  bool up = false;
  bool promisc = false;
  bool allmulti = false;
  std::optional<bool> arp;        ///< not IFF_NOARP
  std::optional<bool> multicast;  ///< IFF_MULTICAST
  std::optional<std::uint32_t> tx_queue_length;
  netlink::Sysctls sysctls;  ///< read: those that the kernel's answer carries
  std::vector<netlink::XdpProgram> xdp;
  std::vector<netlink::InterfaceAddress> addresses;
  std::vector<netlink::Route> routes;
  std::vector<std::string> other_routes;  ///< read: destinations of those that could not be given back
  /// Read when it leaves a pod: what the pod has put onto it, and what would stay connected to it in its next one.
  std::vector<UpperLink> uppers;
  /// The driver refused to give the device another MAC (EADDRNOTAVAIL).
  bool is_mac_refused = false;
  /// What the PF has set for a VF; nothing for a device that is no VF, and for one of which its PF says nothing.
  std::optional<netlink::VfSettings> vf;
  std::vector<RdmaState> rdma;  ///< by index
  /// Wanted: the driver that may be bound to a VF anew, which is when its GUIDs take effect; empty: none may be.
  std::string driver_to_bind;
  /// It has been, since somebody wanted that.
  bool is_bound_anew = false;
};

/// The RDMA devices of a bus device, in the host and in the pod. Throws netlink::Error.
[[nodiscard]] std::vector<RdmaState> read_rdma(const netlink::BusAddress& device, Places& places);
/// Adds those of the recorded that are there and not found: in a pod, an RDMA device tells its function only while the module ib_uverbs is
/// loaded. Throws netlink::Error.
void find_by_index(std::vector<RdmaState>& found, const std::vector<RdmaState>& recorded, Places& places);
/// The one with this index; null when it is not among them.
[[nodiscard]] const RdmaState* find_rdma(const std::vector<RdmaState>& devices, std::uint32_t index);

/// Where a device is at the moment.
struct Location {
  Side side = Side::host;
  netlink::Link link;
};

/// Looks in the pod first, then in the host; nothing when it is on neither side. Throws netlink::Error.
[[nodiscard]] std::optional<Location> locate(const netlink::DeviceId& device, Places& places);

/// What the kernel says of a device that was just found. Throws netlink::Error.
[[nodiscard]] State read(const Location& location, Places& places);
/// The same, wherever the device is; nothing when it is on neither side.
[[nodiscard]] std::optional<State> read(const netlink::DeviceId& device, Places& places);

/// Where the device is administered, if it is a VF; nothing also when the netdev of its PF is not in the host. Throws netlink::Error.
[[nodiscard]] std::optional<Administration> find_administration(const netlink::BusAddress& device, Places& places);

/// What the PF says of the VF. Throws netlink::Error.
[[nodiscard]] std::optional<netlink::VfSettings> read_vf(const Administration& administration, Places& places);
/// The same for a device that may be a VF, wherever its netdev is, and whether it has one. Throws netlink::Error.
[[nodiscard]] std::optional<netlink::VfSettings> read_vf(const netlink::BusAddress& device, Places& places);

/// What the pod has put onto its interface with this index. Throws netlink::Error.
[[nodiscard]] std::vector<UpperLink> uppers_in_pod(int index, Places& places);

/// The address belongs to the host's configuration and comes home with the device: permanent, and not one that IPv6 makes by itself.
[[nodiscard]] bool is_permanent(const netlink::InterfaceAddress& address);
/// The host is reached by it: permanent, and known beyond the link.
[[nodiscard]] bool is_permanent_global(const netlink::InterfaceAddress& address);

}  // namespace cni
