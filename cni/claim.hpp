#pragma once

#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "cni/config.hpp"
#include "cni/context.hpp"
#include "cni/lock.hpp"
#include "cni/record.hpp"
#include "cni/select.hpp"
#include "cni/state.hpp"

namespace cni {

/// A device that nobody has, under its lock.
struct Claim {
  DeviceLock lock;
  netlink::DeviceId device;
  netlink::Link link;  ///< without a netdev: the bus device under its address as a name
  std::vector<netlink::Link> host_links;
  std::string userspace_driver;  ///< that has the device, which then has no netdev; empty otherwise
  bool is_rdma_only = false;     ///< it has no netdev, and RDMA devices
  State now;
  bool has_brought_rdma_home = false;  ///< this call has released an attachment that had its RDMA devices
  State before;                        ///< what it is to come home to: `now`, unless an earlier attachment left something undone

  [[nodiscard]] bool has_netdev() const { return userspace_driver.empty() && !is_rdma_only; }
};

/// The attachment that ADD was asked for exists already, whole.
struct Existing {
  DeviceLock lock;
  Record record;
};

/// Whether nobody has the device of the record any more: it is in the host, gone, or another one since.
[[nodiscard]] bool is_stale(const Record& record, Places& places);

/// Resolves the selectors, locks the device, and settles the record that somebody may have left on it: a stale one and an unfinished one of
/// our own are released, another owner is waited for. Sleeps without holding a lock. Throws Error: 7 and 100 as the selectors, 11 when the
/// device or its owner's DEL does not come in time, 100 when the same container has it under another name.
[[nodiscard]] std::variant<Claim, Existing> claim(Context& context, const AttachConfig& config, const std::vector<Selector>& selectors,
                                                  const Owner& owner, Places& places);

}  // namespace cni
