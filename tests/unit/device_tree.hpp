#pragma once

#include <filesystem>
#include <string>

#include "netlink/link.hpp"
#include "netlink/roots.hpp"
#include "support/temp_dir.hpp"

/// A tree of files that stands in for hardware: what sysfs says of bus devices, and an empty /proc with a boot id.
class DeviceTree {
 public:
  DeviceTree() { boot("11111111-2222-3333-4444-555555555555"); }

  [[nodiscard]] netlink::Roots roots() const { return {.sys = root_.path() / "sys", .proc = root_.path() / "proc"}; }

  void boot(const std::string& id) const {
    const auto directory = root_.path() / "proc/sys/kernel/random";
    std::filesystem::create_directories(directory);
    const auto file = root_.write("proc/sys/kernel/random/boot_id", id + '\n');
  }

  /// `parent`: below /sys/devices, `pci0000:3a`. Gives the device's own place there.
  std::string add(const netlink::BusAddress& device, const std::string& parent) const {
    const auto place = parent + '/' + device.address;
    const auto directory = root_.path() / "sys/devices" / place;
    const auto bus = root_.path() / "sys/bus" / device.bus;
    std::filesystem::create_directories(directory);
    std::filesystem::create_directories(bus / "devices");
    std::filesystem::create_directory_symlink(directory, bus / "devices" / device.address);
    std::filesystem::create_directory_symlink(bus, directory / "subsystem");
    return place;
  }

  void remove(const netlink::BusAddress& device) const {
    std::filesystem::remove_all(std::filesystem::canonical(bus_link(device)));
    std::filesystem::remove(bus_link(device));
  }

  void bind(const netlink::BusAddress& device, const std::string& driver) const {
    const auto directory = root_.path() / "sys/bus" / device.bus / "drivers" / driver;
    std::filesystem::create_directories(directory);
    std::filesystem::create_directory_symlink(directory, bus_link(device) / "driver");
  }

  /// `0x020000` is a NIC.
  void set_class(const netlink::BusAddress& device, const std::string& number) const {
    const auto place = std::filesystem::relative(std::filesystem::canonical(bus_link(device)), root_.path());
    const auto file = root_.write((place / "class").string(), number + '\n');
  }

  /// The old link is renamed, not removed, because its inode would be used again at once.
  void unbind(const netlink::BusAddress& device) const {
    std::filesystem::rename(bus_link(device) / "driver", root_.path() / "an-old-driver-link");
  }

  void add_virtual_function(const netlink::BusAddress& physical, int number, const netlink::BusAddress& function) const {
    add(function, "pci0000:3a");
    std::filesystem::create_directory_symlink("../" + function.address, bus_link(physical) / ("virtfn" + std::to_string(number)));
    std::filesystem::create_directory_symlink("../" + physical.address, bus_link(function) / "physfn");
  }

  /// A device of a class (`net`, `infiniband`) at a place below /sys/devices. Gives its own place there.
  std::string add_class_device(const std::string& place, const std::string& kind, const std::string& name) const {
    const auto parent = root_.path() / "sys/devices" / place;
    const auto directory = parent / kind / name;
    const auto all = root_.path() / "sys/class" / kind;
    std::filesystem::create_directories(directory);
    std::filesystem::create_directories(all);
    std::filesystem::create_directory_symlink(directory, all / name);
    std::filesystem::create_directory_symlink(all, directory / "subsystem");
    if (place != "virtual") {
      std::filesystem::create_directory_symlink(parent, directory / "device");
    }
    return place + '/' + kind + '/' + name;
  }

  /// An RDMA device at a place below /sys/devices, as the host's sysfs shows it. A place `virtual` is that of a software device, which
  /// hangs below nothing.
  void add_rdma(const std::string& place, const std::string& name) const { add_class_device(place, "infiniband", name); }

  /// Its char device (`uverbs0`), which every sysfs shows, wherever the RDMA device is.
  void add_uverbs(const std::string& place, const std::string& name, const std::string& rdma_name) const {
    add_class_device(place, "infiniband_verbs", name);
    root_.write("sys/devices/" + place + "/infiniband_verbs/" + name + "/ibdev", rdma_name + '\n');
  }

  /// A software netdev, which has an ifindex and no bus.
  void add_software_netdev(const std::string& name, int index) const {
    const auto directory = "sys/devices/virtual/net/" + name;
    std::filesystem::create_directories(root_.path() / directory);
    root_.write(directory + "/ifindex", std::to_string(index) + '\n');
  }

 private:
  [[nodiscard]] std::filesystem::path bus_link(const netlink::BusAddress& device) const {
    return root_.path() / "sys/bus" / device.bus / "devices" / device.address;
  }

  support::TempDir root_;
};
