#pragma once

#include <chrono>
#include <string>
#include <vector>

#include "cni/plugin.hpp"
#include "fabric/port.hpp"
#include "netlink/net_ns.hpp"

namespace cni {

/// What this program is called with to be the other side of look_at_rdma.
inline constexpr const char* kLookArgument = "look-at-rdma";

/// What libibverbs tells of the RDMA devices with these names in the namespace, in this order. A process of its own asks: the library keeps
/// state, and a driver may not answer. What goes wrong with that is the `problem` of each.
[[nodiscard]] std::vector<fabric::Device> look_at_rdma(const netlink::NetNs& net_ns, const std::vector<std::string>& names,
                                                       std::chrono::milliseconds time_limit);

/// That process: `arguments` are the path of the namespace and the names.
[[nodiscard]] Outcome look_from_inside(const std::vector<std::string>& arguments);

}  // namespace cni
