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

/// One change, one request to the kernel.
using Step = std::variant<SetVf, RemoveUpper, RemoveAltname, Move, Rename, SetMac, SetMtu, SetAlias, SetTxQueueLength, SetFlag, DetachXdp,
                          AddAltname, WriteSysctl, AddAddress, AddRoute>;

/// The steps that lead from `now` to `wanted`, only for what differs, in the one order that works both ways: what the PF sets for a VF, and
/// that only while the VF is in the host; what a pod has put onto the device, names that are in the way, the move (down, with the new
/// name), MAC, MTU and the rest, sysctls, addresses, up, and routes, which need the link up. A device whose name or MAC changes where it is
/// goes down first. A plan that moves the device home ends there: what the move takes away, and what the kernel gives it at home, is known
/// behind it, to the next plan.
[[nodiscard]] std::vector<Step> plan(const State& now, const State& wanted);

/// Whether the step gives the netdev a MAC.
[[nodiscard]] bool sets_mac(const Step& step);

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
