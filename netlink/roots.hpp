#pragma once

#include <string>

namespace netlink {

/// Where the kernel's file systems are mounted. Trees of files can stand in for hardware.
struct Roots {
  std::string sys = "/sys";
  std::string proc = "/proc";
};

}  // namespace netlink
