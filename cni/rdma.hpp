#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "cni/config.hpp"
#include "cni/deadline.hpp"
#include "cni/error.hpp"
#include "cni/lock.hpp"
#include "cni/plan.hpp"
#include "cni/record.hpp"
#include "cni/state.hpp"
#include "netlink/rdma.hpp"

namespace cni {

/// An RDMA device of the function that an attachment takes, as it is in the host.
struct RdmaCandidate {
  RdmaState device;
  /// `'ens3f1' (bond)`: netdevs other than the attachment's that its ports belong to.
  std::vector<std::string> foreign_netdevs;
  std::vector<netlink::RdmaCharDevice> char_devices;
};

/// What decides what becomes of a function's RDMA devices.
struct RdmaFacts {
  std::optional<netlink::RdmaMode> mode;  ///< nothing: the kernel has no RDMA
  std::vector<RdmaCandidate> candidates;
  bool has_connection_manager = true;  ///< /dev/infiniband/rdma_cm is there
  std::string pod_uid;                 ///< of the attachment's pod; empty where the runtime does not say
  std::vector<std::string> elsewhere;  ///< where there is no candidate: the function's RDMA devices, in other namespaces
};

/// Looks at the RDMA devices of the device, whose netdev is `link`. Throws netlink::Error.
[[nodiscard]] RdmaFacts inspect_rdma(const netlink::DeviceId& device, const std::vector<RdmaState>& devices, const netlink::Link& link,
                                     const std::vector<netlink::Link>& host_links, Places& places);

/// What is to become of them. `notes` gets a line for what `auto` cannot do. Throws Error 103 that says what the configuration needs and
/// what is there.
[[nodiscard]] RdmaAttachment decide_rdma(const RdmaFacts& facts, const AttachConfig& config, const netlink::DeviceId& device,
                                         std::vector<std::string>& notes);

/// Where a driver was bound anew, it has made other devices in the place of the recorded ones: these get the indices of those, in their
/// order. Nothing happens while one of the recorded is there, or where there are more or fewer.
void adopt_rdma(std::vector<RdmaState>& recorded, const std::vector<RdmaState>& now);

/// What is wrong when char devices have got other numbers by the move: a device plugin has given the pod the old ones, which are another
/// device's by now, or nobody's. Nothing when they are the same. Throws netlink::Error.
[[nodiscard]] std::optional<Error> changed_char_devices(const RdmaFacts& facts, const RdmaAttachment& attachment, Places& places);

/// The node-wide lock on whatever gives RDMA devices other char devices. Throws Error 11 when it does not come in time.
[[nodiscard]] DeviceLock lock_rdma(const std::string& purpose, const Deadline& deadline);

/// That lock, held from a plan's first step about one to its last: the kernel gives a device that
/// moves the lowest free numbers, so that two that move at once could swap theirs.
class RdmaTurn {
 public:
  RdmaTurn(const std::vector<Step>& steps, std::string purpose, const Deadline& deadline);
  /// To be called before the step with this number is applied. Throws Error 11 when the lock does not come in time.
  void before(std::size_t step);

 private:
  std::size_t first_;
  std::size_t last_;
  std::string purpose_;
  Deadline deadline_;
  std::optional<DeviceLock> lock_;
};

}  // namespace cni
