#include "netlink/driver.hpp"

#include <chrono>
#include <thread>

#include "netlink/device_id.hpp"
#include "netlink/error.hpp"
#include "netlink/files.hpp"

namespace netlink {

namespace {

constexpr std::chrono::milliseconds kPause{100};

}  // namespace

void unbind_driver(const BusAddress& device, const Roots& roots) {
  if (driver(device, roots)) {
    write_existing_file(bus_directory(device, roots) + "/driver/unbind", device.address);
  }
}

void bind_driver(const BusAddress& device, const std::string& driver, const Roots& roots) {
  const auto file = roots.sys + "/bus/" + device.bus + "/drivers/" + driver + "/bind";
  for (bool is_last : {false, true}) {
    // Whoever loads a driver's module, or asks for a probe, binds too.
    if (netlink::driver(device, roots) == driver) {
      return;
    }
    try {
      write_existing_file(file, device.address);
      return;
    } catch (const Error& error) {
      if (is_last && netlink::driver(device, roots) != driver) {
        throw Error("bind " + device.text() + " to its driver '" + driver + "' again", error.error_number(),
                    "by hand: echo " + device.address + " > " + file);
      }
    }
    if (!is_last) {
      std::this_thread::sleep_for(kPause);
    }
  }
}

}  // namespace netlink
