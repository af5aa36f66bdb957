#pragma once

#include <optional>
#include <string>
#include <vector>

#include "cni/claim.hpp"
#include "cni/config.hpp"
#include "cni/context.hpp"
#include "cni/rdma.hpp"
#include "cni/record.hpp"
#include "cni/result.hpp"
#include "cni/state.hpp"

namespace cni {

/// What the pod has before the device comes, as far as it decides how it comes.
struct PodFacts {
  bool has_default_v4 = false;
  bool has_default_v6 = false;
  bool has_ipv6 = false;                       ///< the kernel has IPv6 at all
  std::vector<std::string> clashing_altnames;  ///< the device's altnames that are names in the pod, or its name there
};

/// Looks at the pod and refuses, while nothing is touched, what would fail later: a name that is in use there, an MTU beyond the device's
/// limits. For an interface that gets no addresses, only those facts are asked for that decide something all the same.
/// Throws Error 100 and 102, netlink::Error.
[[nodiscard]] PodFacts inspect_pod(const Claim& claim, const AttachConfig& config, const std::string& interface_name, netlink::Socket& pod,
                                   const netlink::Roots& roots);

/// What the device shall be in the pod, without its addresses and routes.
[[nodiscard]] State pod_target(const State& before, const AttachConfig& config, const PodFacts& pod, const std::string& interface_name,
                               int pod_index);

/// Addresses and routes of the interface, from IPAM or the configuration.
struct Addressing {
  std::vector<ResultIp> ips;
  std::vector<ResultRoute> routes;
  Dns dns;
};

/// Which routes the interface gets: gateways filled in from the addresses, default routes dropped where the pod has its own and the
/// configuration does not say `keep`. `notes` gets a line for each that was dropped.
[[nodiscard]] Addressing settle_routes(Addressing addressing, DefaultRoute policy, const PodFacts& pod, std::vector<std::string>& notes);

/// Has its PF set what was asked for a VF, moves the device, which is as `now` says, and its RDMA devices into the pod, sets it, asks IPAM,
/// and reads everything back. A device without a netdev stays where it is. Throws Error at the first failure and leaves the undoing to
/// `release`; `record.ipam` is empty then when IPAM was not asked, or cannot have given anything. `pf_lock`: of a VF's PF; it is given back
/// as soon as that is set.
[[nodiscard]] Result attach(Context& context, const AttachConfig& config, const PodFacts& pod, RdmaFacts rdma, const State& now,
                            Record& record, Places& places, int lock_fd, std::optional<DeviceLock> pf_lock);

/// What a result says of one of its interfaces and of that one's addresses, as a state to compare with.
[[nodiscard]] State state_in_result(const Result& result, std::size_t interface);

/// Compares the interface in the pod with what is wanted: name, MAC, MTU, up, addresses. Throws Error 102 naming the first that differs.
netlink::Link verify(const State& wanted, const netlink::DeviceId& device, Places& places);

/// The same for an attachment that came up some time ago, and what was asked of a VF's PF. Of a device without a netdev only what its PF
/// says is compared, its MAC included. The administrative MAC may be the one that the interface is to have by now: a chained plugin may
/// have given it another. RDMA devices have to be there and to work. Throws Error 102 and 103, netlink::Error.
void verify_recorded(const State& wanted, const Record& record, Places& places, Context& context);

/// Tells the neighbours of the addresses in `result`. What fails is logged: it never fails an ADD.
void announce(const Result& result, const netlink::DeviceId& device, Places& places, Log& log);

/// The routes of a result as the kernel takes them.
[[nodiscard]] std::vector<netlink::Route> kernel_routes(const std::vector<ResultRoute>& routes);

}  // namespace cni
