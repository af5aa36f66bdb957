#pragma once

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

/// Of the deadline of each verb, this much is kept for `release`.
inline constexpr std::chrono::milliseconds kReleaseReserve{15'000};

}  // namespace cni
