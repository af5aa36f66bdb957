#pragma once

#include <optional>
#include <string>
#include <vector>

#include "cni/context.hpp"
#include "cni/error.hpp"
#include "cni/plan.hpp"
#include "cni/record.hpp"
#include "cni/state.hpp"

namespace cni {

/// How a release ended.
struct Released {
  std::vector<std::string> left;    ///< what could not be done on the device; its record stays then
  std::optional<Error> ipam_error;  ///< the IPAM DEL that failed; it is owed from now on

  [[nodiscard]] bool is_complete() const { return left.empty(); }
};

/// Undoes an attachment: brings the device home as the record says it was, tells IPAM, and deletes the record. Every way out of an
/// attachment goes through here: a failed ADD, DEL, a repeated ADD, a stale record. It can be run any number of times, from any half-way
/// state, and goes on past what fails. `places.pod` is the owner's namespace where it can still be reached. The caller holds the device's
/// lock; `lock_fd` is it, for IPAM. Throws Error 100 when this process is not in the network namespace that the record calls home.
[[nodiscard]] Released release(Record record, Context& context, Places& places, int lock_fd);

/// What the device, which is as `now` says, shall be at home: what it was, but for the names and the index that others have meanwhile.
[[nodiscard]] State home_target(const State& before, const State& now, const netlink::DeviceId& device, Places& places);

/// What the device shall be at home instead, where its driver refused a step of the way there for good; nothing when there is no instead. A
/// VF whose driver takes no MAC of zeros back gets `fresh` as its administrative one, never keeps its last pod's; and one that may have no
/// MAC but its administrative one gets that.
[[nodiscard]] std::optional<State> instead_of_refused(const Step& refused, int error_number, const State& before,
                                                      const netlink::HardwareAddress& fresh);

/// Gives a software device, which is known by its index, another one to come home under when its own has been taken. True when it did:
/// whoever keeps the identity has to write it down before the move.
[[nodiscard]] bool reserve_home_index(netlink::DeviceId& device, const State& now, Places& places);

/// A socket in the owner's namespace: by the given path or the recorded one where it still leads to the recorded namespace, else by whoever
/// holds that namespace.
[[nodiscard]] std::optional<netlink::Socket> owner_socket(const Owner& owner, const std::string& given_path, const netlink::Roots& roots);

/// The namespace somebody holds in which the device is, though it is neither in the host nor in its owner's: a pod may move its interface
/// on. A software device is known there by index, kind and MAC. Nothing when it is in none that can be reached.
[[nodiscard]] std::optional<netlink::HeldNetNs> find_elsewhere(const Record& record, Places& places);

}  // namespace cni
