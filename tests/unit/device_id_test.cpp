#include "netlink/device_id.hpp"

#include "netlink/error.hpp"
#include "support/catch.hpp"
#include "unit/device_tree.hpp"

using netlink::BusAddress;
using netlink::DeviceId;
using netlink::HardwareAddress;
using netlink::identify;
using netlink::incarnation;
using netlink::Link;

namespace {

const BusAddress kNic{"pci", "0000:3b:00.0"};

Link link_of(int index, std::optional<BusAddress> parent, std::string_view address) {
  Link link;
  link.index = index;
  link.name = "ens" + std::to_string(index);
  link.parent = std::move(parent);
  link.address = HardwareAddress::parse(address).value();
  return link;
}

DeviceId device_of(BusAddress parent) {
  DeviceId device;
  device.parent = std::move(parent);
  return device;
}

}  // namespace

TEST_CASE("a device is its bus address, and its place is where to look first") {
  const auto device = identify(link_of(3, kNic, "02:00:00:00:00:01"), false);
  CHECK(device.parent == kNic);
  CHECK(device.permanent_address.is_empty());
  CHECK(device.host_index == 3);
  CHECK(device.pod_index == 3);
  CHECK(device.home_index == 0);
  CHECK(device.key() == "pci-0000:3b:00.0");
  CHECK(device.text() == "pci 0000:3b:00.0");
}

TEST_CASE("a netdev that has siblings on its function is told from them by its permanent address") {
  auto link = link_of(3, kNic, "02:00:00:00:00:01");
  link.permanent_address = HardwareAddress::parse("b8:ce:f6:00:00:01").value();
  const auto device = identify(link, true);
  CHECK(device.permanent_address.text() == "b8:ce:f6:00:00:01");
  CHECK(device.key() == "pci-0000:3b:00.0-b8:ce:f6:00:00:01");
  CHECK(device.text() == "pci 0000:3b:00.0 (b8:ce:f6:00:00:01)");
}

TEST_CASE("a netdev with siblings and without a permanent address is known by its present one") {
  CHECK(identify(link_of(4, kNic, "02:00:00:00:00:02"), true).permanent_address.text() == "02:00:00:00:00:02");
}

TEST_CASE("a software device is its index in the host and its kind") {
  auto link = link_of(7, std::nullopt, "02:00:00:00:00:01");
  link.kind = "veth";
  const auto device = identify(link, GENERATE(false, true));
  CHECK_FALSE(device.parent);
  CHECK(device.permanent_address.is_empty());
  CHECK(device.kind == "veth");
  CHECK(device.key() == "netdev-7");
  CHECK(device.text() == "the veth with index 7");
}

TEST_CASE("a software device learns each MAC once, and one with a parent none") {
  auto link = link_of(7, std::nullopt, "02:00:00:00:00:01");
  auto device = identify(link, false);
  CHECK(device.addresses == std::vector{link.address});
  CHECK_FALSE(device.learn_address(link.address));
  CHECK(device.learn_address(netlink::HardwareAddress::parse("02:00:00:00:00:02").value()));
  CHECK(device.addresses.size() == 2);
  auto nic = identify(link_of(3, kNic, "02:00:00:00:00:01"), false);
  CHECK_FALSE(nic.learn_address(link.address));
  CHECK(nic.addresses.empty());
}

TEST_CASE("among links that were listed a software device is found by index, kind and in the host by MAC") {
  auto link = link_of(7, std::nullopt, "02:00:00:00:00:01");
  link.kind = "veth";
  auto device = identify(link, false);
  device.pod_index = 9;
  const auto found = [&](const Link& other, netlink::Side side) {
    return netlink::find_device(std::vector{other}, device, side).has_value();
  };
  CHECK(found(link, netlink::Side::host));
  CHECK_FALSE(found(link, netlink::Side::pod));
  auto other = link;
  other.address = netlink::HardwareAddress::parse("02:00:00:00:00:02").value();
  CHECK_FALSE(found(other, netlink::Side::host));
  other.index = 9;
  CHECK(found(other, netlink::Side::pod));
  other.kind = "bridge";
  CHECK_FALSE(found(other, netlink::Side::pod));
}

TEST_CASE("a key is a file name, whatever the bus calls the device") {
  const auto key = device_of({"auxiliary", "../../mlx5_core.sf/4"}).key();
  CHECK(key.find('/') == std::string::npos);
  CHECK(key.starts_with("auxiliary-"));
  CHECK(device_of({"auxiliary", "mlx5_core.sf.4"}).key() == "auxiliary-mlx5_core.sf.4");
}

TEST_CASE("an incarnation stays while nothing changes, and without a parent it is the boot") {
  const DeviceTree tree;
  tree.add(kNic, "pci0000:3a");
  tree.bind(kNic, "mlx5_core");
  const auto first = incarnation(device_of(kNic), tree.roots());
  CHECK(first.boot_id == "11111111-2222-3333-4444-555555555555");
  CHECK(first.device_inode != 0);
  CHECK(first.driver_inode != 0);
  CHECK(incarnation(device_of(kNic), tree.roots()) == first);

  const auto software = incarnation(DeviceId{}, tree.roots());
  CHECK(software.boot_id == first.boot_id);
  CHECK(software.device_inode == 0);
  CHECK(software.driver_inode == 0);
}

TEST_CASE("an incarnation ends with a reboot") {
  const DeviceTree tree;
  tree.add(kNic, "pci0000:3a");
  const auto first = incarnation(device_of(kNic), tree.roots());
  tree.boot("99999999-2222-3333-4444-555555555555");
  const auto second = incarnation(device_of(kNic), tree.roots());
  CHECK(second.boot_id == "99999999-2222-3333-4444-555555555555");
  CHECK(second.device_inode == first.device_inode);
}

TEST_CASE("binding the driver anew changes the driver's part of an incarnation alone, even when it is the same driver") {
  const DeviceTree tree;
  tree.add(kNic, "pci0000:3a");
  tree.bind(kNic, "mlx5_core");
  const auto first = incarnation(device_of(kNic), tree.roots());
  tree.unbind(kNic);
  CHECK(incarnation(device_of(kNic), tree.roots()).driver_inode == 0);
  tree.bind(kNic, "mlx5_core");
  const auto second = incarnation(device_of(kNic), tree.roots());
  CHECK(second.driver_inode != first.driver_inode);
  CHECK(second.device_inode == first.device_inode);
}

TEST_CASE("a device that is gone has no inodes") {
  const DeviceTree tree;
  tree.add(kNic, "pci0000:3a");
  tree.bind(kNic, "mlx5_core");
  tree.remove(kNic);
  const auto gone = incarnation(device_of(kNic), tree.roots());
  CHECK(gone.device_inode == 0);
  CHECK(gone.driver_inode == 0);
  CHECK_FALSE(netlink::exists(kNic, tree.roots()));
}

TEST_CASE("without a boot id there is no incarnation") {
  const DeviceTree tree;
  netlink::Roots roots = tree.roots();
  roots.proc += "/absent";
  CHECK_THROWS_AS(incarnation(DeviceId{}, roots), netlink::Error);
}

TEST_CASE("the driver of a device is read from sysfs, and is none where none is bound") {
  const DeviceTree tree;
  tree.add(kNic, "pci0000:3a");
  CHECK(netlink::exists(kNic, tree.roots()));
  CHECK_FALSE(netlink::exists({"auxiliary", kNic.address}, tree.roots()));
  CHECK_FALSE(netlink::driver(kNic, tree.roots()));
  tree.bind(kNic, "mlx5_core");
  CHECK(netlink::driver(kNic, tree.roots()) == "mlx5_core");
}

TEST_CASE("drivers that hand a device to a program are known, vendors' variants too") {
  for (const auto* const driver :
       {"vfio-pci", "uio_pci_generic", "igb_uio", "mlx5_vfio_pci", "hisi_acc_vfio_pci", "nvgrace-gpu-vfio-pci"}) {
    CAPTURE(driver);
    CHECK(netlink::is_userspace_driver(driver));
  }
  for (const auto* const driver : {"mlx5_core", "igb", "igbvf", "virtio_net", "vfio", ""}) {
    CAPTURE(driver);
    CHECK_FALSE(netlink::is_userspace_driver(driver));
  }
}

TEST_CASE("the VFs of a PF come in the order of their numbers, also beyond nine") {
  const DeviceTree tree;
  tree.add(kNic, "pci0000:3a");
  CHECK(netlink::virtual_functions(kNic, tree.roots()).empty());
  std::vector<BusAddress> functions;
  for (int number = 0; number < 12; ++number) {
    functions.push_back({"pci", "0000:3b:0" + std::to_string(9 - number / 8) + '.' + std::to_string(number % 8)});
    tree.add_virtual_function(kNic, number, functions.back());
  }
  CHECK(netlink::virtual_functions(kNic, tree.roots()) == functions);
  CHECK(netlink::virtual_functions(functions[0], tree.roots()).empty());
}

TEST_CASE("the virtio devices of a PCI function are found, and nothing else beneath it") {
  const DeviceTree tree;
  const auto place = tree.add(kNic, "pci0000:3a");
  CHECK(netlink::virtio_children(kNic, tree.roots()).empty());
  tree.add({"virtio", "virtio2"}, place);
  tree.add({"usb", "usb1"}, place);
  tree.bind(kNic, "virtio-pci");
  CHECK(netlink::virtio_children(kNic, tree.roots()) == std::vector<BusAddress>{{"virtio", "virtio2"}});
}
