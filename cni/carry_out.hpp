#pragma once

#include <chrono>
#include <functional>

#include "cni/config.hpp"
#include "cni/context.hpp"
#include "cni/plan.hpp"
#include "cni/record.hpp"
#include "cni/state.hpp"

namespace cni {

/// For how long a busy driver is asked again, and how often: a VF answers again within a second or two of what its PF did to it, later on
/// a node where many pods start at once.
inline constexpr std::chrono::milliseconds kBusyTime{5'000};
inline constexpr std::chrono::milliseconds kBusyPause{50};

/// Whether a driver that gave this error may be asked again in a moment: it, or the VF that its PF has just told something, is busy.
[[nodiscard]] bool is_busy(int error_number);

/// Whether the driver of a VF means by this error that the VF may not have the MAC (igbvf, ixgbevf and iavf say so in three ways).
[[nodiscard]] bool is_mac_refusal(int error_number);

/// What a device that is as `now` says shall be.
using Target = std::function<State(const State& now)>;
using Pause = std::function<void(std::chrono::milliseconds)>;

/// For an ADD: leads the recorded device from `now` to its target, step by step. While a VF's driver is busy, or its PF silent about it,
/// the device is looked at again and the rest planned anew, for some seconds; `pause` is called in between. Throws Error 101 naming what
/// was refused, by whom, and why; 103 likewise for an RDMA device, which is only logged where RDMA is not required; 11 when the PF stays
/// silent.
void carry_out(State now, const Target& target, const Record& record, const AttachConfig& config, Context& context, Places& places,
               const Pause& pause);
/// The same for a target that does not depend on what is, with a pause that only waits.
void carry_out(State now, const State& wanted, const Record& record, const AttachConfig& config, Context& context, Places& places);

}  // namespace cni
