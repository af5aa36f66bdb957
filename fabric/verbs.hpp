#pragma once

#include <string>
#include <vector>

#include "fabric/port.hpp"

namespace fabric {

/// Asks libibverbs for the RDMA devices with these names, of the network namespace of the calling thread, in this order. For a process of
/// its own: the library opens files, keeps state and may block in the driver. Throws nothing but std::bad_alloc: what cannot be told is in
/// `problem`.
[[nodiscard]] std::vector<Device> look(const std::vector<std::string>& names);

}  // namespace fabric
