#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "cni/context.hpp"
#include "cni/deadline.hpp"
#include "cni/record.hpp"
#include "cni/state.hpp"
#include "fabric/finding.hpp"
#include "fabric/port.hpp"
#include "netlink/address_types.hpp"

namespace cni {

/// What an attachment's RDMA devices have to be like.
struct RdmaExpectation {
  std::vector<netlink::IpAddress> addresses;  ///< each with a RoCE v2 GID
  int netdev_index = 0;                       ///< in the pod
  std::optional<std::uint32_t> netdev_mtu;
  std::string driver;  ///< of the bus device
};

/// Of the interface, which is as `link` says and shall have the addresses of `wanted`.
[[nodiscard]] RdmaExpectation expectation(const State& wanted, const netlink::Link& link, const netlink::DeviceId& device,
                                          const netlink::Roots& roots);

/// How long what comes late is waited for.
struct RdmaPatience {
  Deadline port;  ///< for ACTIVE
  Deadline gid;
};

/// What was found of one port.
struct PortFindings {
  std::string port;  ///< `RDMA device 'mlx5_0', port 1`
  std::vector<fabric::Finding> findings;
};
/// Holds what libibverbs says against what is expected. A device that cannot be asked has findings that are unknown.
[[nodiscard]] std::vector<PortFindings> judge(const std::vector<fabric::Device>& devices, const RdmaExpectation& expectation);

/// Proves that the attachment's RDMA devices are where they belong and work: in the pod under their names (in shared mode: in the host),
/// each port ACTIVE, active_mtu as large as the netdev's MTU allows, a RoCE v2 GID for each address. What does not hold is waited for, and
/// then Error 103 naming what is and what shall be; where RDMA is not required, a warning in the log. Throws netlink::Error.
void verify_rdma(const Record& record, const RdmaExpectation& expectation, const RdmaPatience& patience, Places& places, Context& context);

/// The same for an attachment that is there already, without waiting.
void verify_recorded_rdma(const State& wanted, const Record& record, Places& places, Context& context);

}  // namespace cni
