#pragma once

#include <chrono>
#include <optional>
#include <string>

#include "cni/config.hpp"
#include "cni/deadline.hpp"
#include "cni/guid.hpp"
#include "cni/record.hpp"
#include "cni/state.hpp"
#include "netlink/device_id.hpp"

namespace cni {

/// What decides whether a device can have what a configuration says of InfiniBand.
struct InfinibandFacts {
  std::string name;  ///< of the device, for messages
  bool is_infiniband = false;
  bool is_vf = false;             ///< whose PF is in the host
  std::optional<Guid> effective;  ///< of its netdev, if it has one
};

/// Refuses, while nothing is touched, InfiniBand's keys for a device of another kind, a MAC for an InfiniBand VF, and a VF that would come
/// to the pod without a GUID that counts. Throws Error 7 and 100.
void refuse_for_infiniband(const AttachConfig& config, const InfinibandFacts& facts);

/// What a VF's PF is to have as its GUID again. Where it had none set for it, and has one `now`, it takes no zero back: the GUID that the
/// VF's netdev had by itself, or all ones, as other plugins do.
[[nodiscard]] Guid guid_to_restore(Guid before, const netlink::HardwareAddress& address_before, Guid now);

/// `wanted` at home, which is as the record says the device was, with what an InfiniBand device that is as `now` says can have of that.
/// `may_bind`: its netdev is that of the record, and may be made anew for the GUID's sake.
[[nodiscard]] State infiniband_home(State wanted, const State& now, const Record& record, bool may_bind);

/// Whether the device's driver was bound since by others than its attachment, which may do so for a GUID, and may have been interrupted
/// half-way.
[[nodiscard]] bool is_bound_by_others(const Record& record, const netlink::Incarnation& now, const netlink::Roots& roots);

inline constexpr std::chrono::milliseconds kUdevTime{1'000};
inline constexpr const char* kUdevDirectory = "/run/udev";

/// Waits until udev has given a new netdev its names, where udev runs, or until the deadline. Without that it could rename what is already
/// being set.
void wait_for_udev(int index, const Deadline& deadline, const std::string& directory = kUdevDirectory);

}  // namespace cni
