#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "cni/state.hpp"

namespace cni {

/// Destroys what a pod has put onto the device: the kernel would let it stay connected through every move.
struct RemoveUpper {
  UpperLink upper;
};
struct RemoveAltname {
  std::string altname;
};
struct AddAltname {
  std::string altname;
};
/// One RTM_NEWLINK: namespace, name, index, and on the way out MAC and MTU. The kernel closes the device on the way.
struct Move {
  Side to = Side::pod;
  std::string name;
  std::optional<int> index;
  std::optional<netlink::HardwareAddress> mac;
  std::optional<std::uint32_t> mtu;
};
struct Rename {
  std::string name;
};
struct SetMac {
  netlink::HardwareAddress mac;
};
struct SetMtu {
  std::uint32_t mtu = 0;
};
struct SetAlias {
  std::string alias;
};
struct SetTxQueueLength {
  std::uint32_t length = 0;
};
/// IFF_UP, IFF_PROMISC, IFF_ALLMULTI, IFF_NOARP or IFF_MULTICAST.
struct SetFlag {
  std::uint32_t flag = 0;
  bool on = false;
};
struct DetachXdp {
  netlink::XdpProgram program;
};
struct WriteSysctl {
  std::string path;
  std::string value;
};
struct AddAddress {
  netlink::InterfaceAddress address;
};
struct AddRoute {
  netlink::Route route;
};

/// On the PF of a VF: `setting` has one setting alone.
struct SetVf {
  netlink::VfSettings setting;
};

/// Takes the device from its driver and gives it back. The netdev that comes then is another one, under another name, and so are its RDMA
/// devices.
struct BindAnew {
  std::string driver;
};

/// Of an RDMA device, by its index.
struct RenameRdma {
  std::uint32_t index = 0;
  std::string name;
};
/// The kernel ends what programs have of the device, and gives it new char devices.
struct MoveRdma {
  std::uint32_t index = 0;
  std::string name;
  Side to = Side::pod;
  bool makes_netdev_anew = false;  ///< InfiniBand's: there is another one in the host then
};

/// One change, one request to the kernel.
using Step = std::variant<SetVf, BindAnew, RenameRdma, MoveRdma, RemoveUpper, RemoveAltname, Move, Rename, SetMac, SetMtu, SetAlias,
                          SetTxQueueLength, SetFlag, DetachXdp, AddAltname, WriteSysctl, AddAddress, AddRoute>;

/// The steps that lead from `now` to `wanted`, only for what differs, in the one order that works both ways: what the PF sets for a VF, and
/// that only while the VF is in the host; its driver bound anew, where GUIDs are not yet in effect; names of RDMA devices, and their move
/// where it comes first (on the way home, and on InfiniBand, where the kernel makes the netdev anew with it); what a pod has put onto the
/// device, names that are in the way, the move (down, with the new name), RDMA devices behind it, MAC, MTU and the rest, sysctls,
/// addresses, up, and routes, which need the link up. A device whose name or MAC changes where it is goes down first. A plan that moves the
/// device home, binds its driver anew, or has its netdev made anew, ends there: what that takes away, and what the kernel gives it then, is
/// known behind it, to the next plan.
[[nodiscard]] std::vector<Step> plan(const State& now, const State& wanted);

/// Whether the step gives the netdev a MAC.
[[nodiscard]] bool sets_mac(const Step& step);
/// Whether the netdev is another one behind the step, and has to be looked at before it is planned for.
[[nodiscard]] bool makes_netdev_anew(const Step& step);
/// Whether the step changes an RDMA device.
[[nodiscard]] bool is_about_rdma(const Step& step);
/// Whether the step has the PF set a GUID.
[[nodiscard]] bool sets_guid(const Step& step);

/// For people: `set the MTU to 9000`, `move to the pod as 'net1'`.
[[nodiscard]] std::string describe(const Step& step);

/// The device that steps are applied to, and where it is at the moment.
struct Subject {
  netlink::DeviceId device;
  Side side = Side::host;
  int index = 0;
  std::string name;
};

/// Carries out one step, and follows the device where the step moved or renamed it. Throws netlink::Error.
void apply(const Step& step, Subject& subject, Places& places);

}  // namespace cni
