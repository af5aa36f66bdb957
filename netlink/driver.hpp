#pragma once

#include <string>

#include "netlink/link.hpp"
#include "netlink/roots.hpp"

namespace netlink {

/// Takes a bus device from its driver; nothing happens where it has none. Throws Error.
void unbind_driver(const BusAddress& device, const Roots& roots);

/// Gives a bus device to the driver of that name, and returns when that has taken it; nothing happens where it has taken it already. A
/// driver that fails is asked once more. Throws Error, which says how to do it by hand.
void bind_driver(const BusAddress& device, const std::string& driver, const Roots& roots);

}  // namespace netlink
