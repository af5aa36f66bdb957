#pragma once

#include <algorithm>
#include <chrono>
#include <functional>
#include <string>

#include "cni/config.hpp"
#include "cni/deadline.hpp"
#include "cni/environment.hpp"
#include "cni/log.hpp"
#include "cni/record.hpp"
#include "cni/version.hpp"
#include "netlink/roots.hpp"

namespace cni {

/// Of the deadline of each verb, this much is kept for `release`.
inline constexpr std::chrono::milliseconds kReleaseReserve{15'000};

/// One invocation: what it was called with, and what it works with.
struct Context {
  Environment environment;
  NetworkConfig network;
  Version version = Version::v1_1_0;
  NodeConfig node;
  netlink::Roots roots;
  RecordStore store;
  Log& log;
  Deadline deadline;

  /// How long ADD may wait for something, so that `release` has its time if it does not come.
  [[nodiscard]] std::chrono::milliseconds time_for(std::chrono::milliseconds wish) const {
    return std::min(wish, deadline.left() - std::min(deadline.left(), kReleaseReserve));
  }
  /// What IPAM is asked with the stdin and variables of this very call.
  [[nodiscard]] IpamRequest ipam_request() const {
    return {.type = network.ipam_type,
            .container_id = environment.container_id,
            .interface_name = environment.interface_name,
            .net_ns_path = environment.net_ns,
            .args = environment.args,
            .path = environment.path,
            .input = network.raw};
  }
};

/// What main writes and exits with.
struct Outcome {
  std::string text;  ///< for stdout; nothing may come before or after it
  int status = 0;
  std::function<void()> undo;  ///< to be called when the text could not be written; may be empty
};

}  // namespace cni
