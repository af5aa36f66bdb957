#include "cni/select.hpp"

#include <filesystem>

#include "support/catch.hpp"
#include "unit/device_tree.hpp"
#include "unit/mac.hpp"
#include "unit/thrown.hpp"

using cni::effective_selectors;
using cni::explain_absence;
using cni::Record;
using cni::select_link;
using cni::Selector;
using cni::Selectors;
using netlink::BusAddress;
using netlink::HardwareAddress;
using netlink::Link;

namespace {

using Texts = std::vector<std::string>;

const BusAddress kNic{"pci", "0000:3b:00.0"};
const BusAddress kSubfunction{"auxiliary", "mlx5_core.sf.4"};
const BusAddress kVirtioFunction{"pci", "0000:00:03.0"};
const BusAddress kVirtio{"virtio", "virtio2"};
constexpr auto kKernelPath = "/sys/devices/pci0000:3a/0000:3b:00.0";

Link link_of(int index, const std::string& name, std::optional<BusAddress> parent, std::string_view address) {
  Link link;
  link.index = index;
  link.name = name;
  link.parent = std::move(parent);
  link.address = mac(address);
  return link;
}

/// A node with a NIC, a subfunction of it, a virtio NIC and a veth end, in sysfs and as links.
struct Node {
  DeviceTree tree;
  std::vector<Link> links{link_of(2, "ens3f0", kNic, "02:00:00:00:00:01"), link_of(3, "ens3f0s4", kSubfunction, "02:00:00:00:00:02"),
                          link_of(4, "eth0", kVirtio, "02:00:00:00:00:03"), link_of(5, "veth0", std::nullopt, "02:00:00:00:00:04")};

  Node() {
    const auto place = tree.add(kNic, "pci0000:3a");
    tree.bind(kNic, "mlx5_core");
    tree.add(kSubfunction, place);
    tree.bind(kSubfunction, "mlx5_core.sf");
    tree.add(kVirtio, tree.add(kVirtioFunction, "pci0000:00"));
    tree.bind(kVirtioFunction, "virtio-pci");
    tree.bind(kVirtio, "virtio_net");
    tree.add_software_netdev("veth0", 5);
    links[0].altnames = {"enp59s0f0np0", "rail0"};
    links[0].permanent_address = mac("b8:ce:f6:00:00:01");
  }

  [[nodiscard]] Selector device_id(const std::string& value) const { return Selector::by_device_id("deviceID", value, tree.roots()); }
  [[nodiscard]] Selector kernel_path(const std::string& value) const { return Selector::by_kernel_path(value, tree.roots()); }
  /// The name of the link that all of the selectors mean; empty when there is none.
  [[nodiscard]] std::string selected(const std::vector<Selector>& selectors) const {
    const auto link = select_link(selectors, links);
    return link ? link->name : "";
  }
  [[nodiscard]] std::vector<Selector> effective(const Selectors& selectors) {
    notes.clear();
    return effective_selectors(selectors, tree.roots(), notes);
  }

  Texts notes;
};

Texts texts(const std::vector<Selector>& selectors) {
  Texts out;
  for (const auto& selector : selectors) {
    out.push_back(selector.text());
  }
  return out;
}

/// Of the device that was taken as ens3f0.
Record record_of(std::optional<BusAddress> parent) {
  Record record;
  record.device.parent = std::move(parent);
  record.before.name = "ens3f0";
  record.before.altnames = {"enp59s0f0np0", "rail0"};
  record.before.mac = mac("02:00:00:00:00:01");
  record.device.permanent_address = mac("b8:ce:f6:00:00:01");
  return record;
}

}  // namespace

TEST_CASE_METHOD(Node, "a device id means the netdev of a PCI function, of an auxiliary device, or of the virtio device under a function") {
  CHECK(selected({device_id("0000:3b:00.0")}) == "ens3f0");
  CHECK(selected({device_id("mlx5_core.sf.4")}) == "ens3f0s4");
  CHECK(selected({device_id("0000:00:03.0")}) == "eth0");
  CHECK(device_id("0000:00:03.0").parents() == std::vector{kVirtioFunction, kVirtio});
}

TEST_CASE_METHOD(Node, "a device id that sysfs does not know means nothing, whatever else is called so") {
  links[3].name = "0000:3b:00.7";
  CHECK(selected({device_id("0000:3b:00.7")}).empty());
  CHECK(device_id("0000:3b:00.7").parents().empty());
  CHECK(selected({device_id("virtio2")}).empty());
}

TEST_CASE_METHOD(Node, "a name means the interface that has it as a name or an altname") {
  CHECK(selected({Selector::by_name("ens3f0")}) == "ens3f0");
  CHECK(selected({Selector::by_name("enp59s0f0np0")}) == "ens3f0");
  CHECK(selected({Selector::by_name("rail0")}) == "ens3f0");
  CHECK(selected({Selector::by_name("veth0")}) == "veth0");
  CHECK(selected({Selector::by_name("rail")}).empty());
}

TEST_CASE_METHOD(Node, "a hardware address means the present or the permanent one") {
  CHECK(selected({Selector::by_hardware_address(mac("02:00:00:00:00:01"))}) == "ens3f0");
  CHECK(selected({Selector::by_hardware_address(mac("B8-CE-F6-00-00-01"))}) == "ens3f0");
  CHECK(selected({Selector::by_hardware_address(mac("02:00:00:00:00:09"))}).empty());
}

TEST_CASE_METHOD(Node, "a hardware address means no software device, which may have copied it") {
  CHECK(selected({Selector::by_hardware_address(mac("02:00:00:00:00:04"))}).empty());
  links[3].address = links[0].address;
  CHECK(selected({Selector::by_hardware_address(mac("02:00:00:00:00:01"))}) == "ens3f0");
}

TEST_CASE_METHOD(Node, "a hardware address that two NICs have is error 100 that lists them") {
  links[1].address = links[0].address;
  const auto error = thrown([&] { static_cast<void>(selected({Selector::by_hardware_address(links[0].address)})); });
  CHECK(error.code() == 100);
  CHECK(std::string{error.what()} ==
        "hwaddr '02:00:00:00:00:01' means several interfaces: 'ens3f0' (02:00:00:00:00:01), 'ens3f0s4' (02:00:00:00:00:01)");
}

TEST_CASE_METHOD(Node, "a function with several netdevs is error 100 that lists them, and a second selector settles it") {
  links.push_back(link_of(6, "ens3f0d1", kNic, "02:00:00:00:00:06"));
  const auto error = thrown([&] { static_cast<void>(selected({device_id("0000:3b:00.0")})); });
  CHECK(error.code() == 100);
  CHECK(std::string{error.what()} ==
        "deviceID '0000:3b:00.0' means several interfaces: 'ens3f0' (02:00:00:00:00:01), 'ens3f0d1' (02:00:00:00:00:06)");
  CHECK(selected({Selector::by_name("ens3f0d1")}) == "ens3f0d1");
}

TEST_CASE_METHOD(
    Node, "a kernel path means the netdev of the bus device there, with or without a slash at its end, or the software netdev there") {
  CHECK(selected({kernel_path(kKernelPath)}) == "ens3f0");
  CHECK(selected({kernel_path(std::string{kKernelPath} + "/")}) == "ens3f0");
  CHECK(selected({kernel_path(std::string{kKernelPath} + "/mlx5_core.sf.4")}) == "ens3f0s4");
  CHECK(selected({kernel_path("/sys/devices/pci0000:00/0000:00:03.0")}) == "eth0");
  CHECK(selected({kernel_path("/sys/devices/pci0000:00/0000:00:03.0/virtio2")}) == "eth0");
  CHECK(selected({kernel_path("/sys/devices/virtual/net/veth0")}) == "veth0");
}

TEST_CASE_METHOD(Node, "a kernel path that leads nowhere, or to what is no device, means nothing") {
  CHECK(selected({kernel_path("/sys/devices/pci0000:3a/0000:3b:00.7")}).empty());
  CHECK(selected({kernel_path("/sys/devices/pci0000:3a")}).empty());
  CHECK(selected({kernel_path("/sys/devices/virtual/net/veth9")}).empty());
}

TEST_CASE_METHOD(Node, "selectors that agree mean their device, and two that disagree are error 7 that names both") {
  const auto by_mac = Selector::by_hardware_address(mac("02:00:00:00:00:01"));
  CHECK(selected({Selector::by_name("rail0"), by_mac, kernel_path(kKernelPath)}) == "ens3f0");

  const auto error = thrown([&] { static_cast<void>(selected({Selector::by_name("eth0"), by_mac})); });
  CHECK(error.code() == 7);
  CHECK(std::string{error.what()} == "device 'eth0' means 'eth0', and hwaddr '02:00:00:00:00:01' means 'ens3f0'");
}

TEST_CASE_METHOD(Node, "a selector that means a device and one that means none disagree, in either order") {
  const auto absent = Selector::by_name("absent");
  const auto present = Selector::by_name("eth0");
  CHECK(std::string{thrown([&] { static_cast<void>(selected({absent, present})); }).what()} ==
        "device 'absent' means no interface, and device 'eth0' means 'eth0'");
  CHECK(std::string{thrown([&] { static_cast<void>(selected({present, absent})); }).what()} ==
        "device 'eth0' means 'eth0', and device 'absent' means no interface");
  CHECK(selected({absent, Selector::by_name("absent too")}).empty());
}

TEST_CASE_METHOD(Node, "runtimeConfig.deviceID wins over everything, and the losers are noted") {
  const auto selectors = effective({.runtime_device_id = "0000:3b:00.0",
                                    .device_id = "0000:3b:00.7",
                                    .device = "eth0",
                                    .hwaddr = mac("02:00:00:00:00:09"),
                                    .kernel_path = "/sys/devices/x",
                                    .rdma_device = {}});
  CHECK(texts(selectors) == Texts{"runtimeConfig.deviceID '0000:3b:00.0'"});
  CHECK(notes == Texts{"device 'eth0' is not used: runtimeConfig.deviceID '0000:3b:00.0' wins",
                       "hwaddr '02:00:00:00:00:09' is not used: runtimeConfig.deviceID '0000:3b:00.0' wins",
                       "kernelpath '/sys/devices/x' is not used: runtimeConfig.deviceID '0000:3b:00.0' wins",
                       "deviceID '0000:3b:00.7' is not used: runtimeConfig.deviceID '0000:3b:00.0' wins"});
}

TEST_CASE_METHOD(Node, "the same device id from both places loses nothing") {
  CHECK(effective({.runtime_device_id = "0000:3b:00.0",
                   .device_id = "0000:3b:00.0",
                   .device = {},
                   .hwaddr = {},
                   .kernel_path = {},
                   .rdma_device = {}})
            .size() == 1);
  CHECK(notes.empty());
}

TEST_CASE_METHOD(Node, "an injected deviceID loses to explicit selectors, which all count, and is noted") {
  const auto selectors = effective({.runtime_device_id = {},
                                    .device_id = "0000:3b:00.0",
                                    .device = "eth0",
                                    .hwaddr = mac("02:00:00:00:00:03"),
                                    .kernel_path = "/sys/devices/x",
                                    .rdma_device = {}});
  CHECK(texts(selectors) == Texts{"device 'eth0'", "hwaddr '02:00:00:00:00:03'", "kernelpath '/sys/devices/x'"});
  CHECK(notes == Texts{"deviceID '0000:3b:00.0' is not used: device 'eth0' wins"});
}

TEST_CASE_METHOD(Node, "a deviceID alone counts") {
  const auto selectors =
      effective({.runtime_device_id = {}, .device_id = "0000:3b:00.0", .device = {}, .hwaddr = {}, .kernel_path = {}, .rdma_device = {}});
  CHECK(texts(selectors) == Texts{"deviceID '0000:3b:00.0'"});
  CHECK(selected(selectors) == "ens3f0");
  CHECK(notes.empty());
}

TEST_CASE_METHOD(Node, "no selector at all is error 7 that tells the ways in which Multus may have failed to give one") {
  const auto error = thrown([&] { static_cast<void>(effective({})); });
  CHECK(error.code() == 7);
  CHECK(std::string{error.what()} ==
        "the configuration names no device: none of 'deviceID', 'device', 'hwaddr', "
        "'kernelpath' and 'rdmaDevice' is set");
  for (const auto* const word : {"resource", "k8s.v1.cni.cncf.io/resourceName", "kubelet"}) {
    CHECK(error.details().find(word) != std::string::npos);
  }
}

TEST_CASE_METHOD(Node, "a record is matched by what its device was in the host") {
  const auto record = record_of(kNic);
  CHECK(Selector::by_name("ens3f0").matches(record));
  CHECK(Selector::by_name("rail0").matches(record));
  CHECK_FALSE(Selector::by_name("net1").matches(record));
  CHECK(Selector::by_hardware_address(mac("02:00:00:00:00:01")).matches(record));
  CHECK(Selector::by_hardware_address(mac("b8:ce:f6:00:00:01")).matches(record));
  CHECK_FALSE(Selector::by_hardware_address(mac("02:00:00:00:00:02")).matches(record));
  CHECK(device_id("0000:3b:00.0").matches(record));
  CHECK_FALSE(device_id("0000:00:03.0").matches(record));
  CHECK(kernel_path(kKernelPath).matches(record));
  CHECK(device_id("0000:00:03.0").matches(record_of(kVirtio)));
}

TEST_CASE_METHOD(Node, "the record of a software device is matched by name alone") {
  const auto record = record_of(std::nullopt);
  CHECK(Selector::by_name("rail0").matches(record));
  CHECK_FALSE(Selector::by_hardware_address(mac("02:00:00:00:00:01")).matches(record));
  CHECK_FALSE(device_id("0000:3b:00.0").matches(record));
  CHECK_FALSE(kernel_path("/sys/devices/virtual/net/veth0").matches(record));
}

TEST_CASE_METHOD(Node, "the text that a selector is looked up by stands in every record that it matches") {
  auto record = record_of(kNic);
  record.before.altnames.emplace_back("quo\"ted\\größer");
  const auto virtio = record_of(kVirtio);
  int matching = 0;
  for (const auto& selector :
       {Selector::by_name("ens3f0"), Selector::by_name("rail0"), Selector::by_name("quo\"ted\\größer"), device_id("0000:3b:00.0"),
        device_id("0000:00:03.0"), kernel_path(kKernelPath), Selector::by_hardware_address(mac("02:00:00:00:00:01")),
        Selector::by_hardware_address(mac("B8-CE-F6-00-00-01"))}) {
    for (const auto& each : {record, virtio}) {
      if (selector.matches(each)) {
        CAPTURE(selector.text());
        CHECK(print_record(each).find(selector.record_text()) != std::string::npos);
        ++matching;
      }
    }
  }
  CHECK(matching > 8);
}

TEST_CASE_METHOD(Node, "a device that sysfs does not have is error 11, because its driver may still be starting") {
  for (const auto& selector : {device_id("0000:3b:00.7"), Selector::by_name("absent"), kernel_path("/sys/devices/absent")}) {
    const auto error = explain_absence({selector}, tree.roots());
    CHECK(error.code() == 11);
    CHECK(std::string{error.what()} == selector.text() + ": there is no such device in the host");
  }
  const auto selector = device_id("0000:3b:00.0");
  tree.remove(kNic);
  CHECK(std::string{explain_absence({selector}, tree.roots()).what()} == "deviceID '0000:3b:00.0': there is no such device in the host");
}

TEST_CASE_METHOD(Node, "a device without a driver is error 100 that says so") {
  tree.unbind(kNic);
  for (const auto& selector : {device_id("0000:3b:00.0"), kernel_path(std::string{kKernelPath} + "/")}) {
    const auto error = explain_absence({selector}, tree.roots());
    CHECK(error.code() == 100);
    CHECK(std::string{error.what()} == selector.text() + ": no driver is bound to it");
  }
}

TEST_CASE_METHOD(Node, "a virtio NIC lacks a driver when its virtio device does") {
  tree.unbind(kVirtio);
  CHECK(std::string{explain_absence({device_id("0000:00:03.0")}, tree.roots()).what()} ==
        "deviceID '0000:00:03.0': no driver is bound to it");
}

TEST_CASE_METHOD(Node, "a device bound to a userspace driver is what its address and its path mean, and a name does not") {
  const std::vector<Selector> by_id{device_id("0000:3b:00.0")};
  CHECK_FALSE(cni::select_userspace_device(by_id, tree.roots()));
  tree.unbind(kNic);
  CHECK_FALSE(cni::select_userspace_device(by_id, tree.roots()));
  tree.bind(kNic, "vfio-pci");
  tree.set_class(kNic, "0x030200");
  const auto error = thrown([&] { static_cast<void>(cni::select_userspace_device(by_id, tree.roots())); });
  CHECK(error.code() == 100);
  CHECK(std::string{error.what()} == "deviceID '0000:3b:00.0': it is bound to 'vfio-pci', and no network device");
  tree.set_class(kNic, "0x020000");
  const auto found = cni::select_userspace_device(by_id, tree.roots());
  REQUIRE(found);
  CHECK(found->address == kNic);
  CHECK(found->driver == "vfio-pci");
  CHECK_FALSE(cni::select_userspace_device({Selector::by_name("ens3f0")}, tree.roots()));
  // All selectors have to name it.
  CHECK_FALSE(cni::select_userspace_device({device_id("0000:3b:00.0"), Selector::by_name("ens3f0")}, tree.roots()));
}

TEST_CASE_METHOD(Node, "a device whose driver has made no interface yet is error 11 that names the driver") {
  const auto error = explain_absence({device_id("0000:3b:00.0")}, tree.roots());
  CHECK(error.code() == 11);
  CHECK(std::string{error.what()} == "deviceID '0000:3b:00.0': it is bound to 'mlx5_core' and has no network interface yet");
}

TEST_CASE("an RDMA device's name means the function below which it hangs in the host, or that of the record which has it") {
  Node node;
  const auto directory = std::filesystem::path{node.tree.roots().sys} / "class/infiniband/mlx5_0";
  std::filesystem::create_directories(directory);
  std::filesystem::create_directory_symlink(std::filesystem::path{node.tree.roots().sys} / "devices/pci0000:3a/0000:3b:00.0",
                                            directory / "device");
  const auto selector = Selector::by_rdma_device("mlx5_0", node.tree.roots());
  CHECK(node.selected({selector}) == "ens3f0");
  CHECK(selector.record_text() == "mlx5_0");
  const auto away = Selector::by_rdma_device("mlx5_1", node.tree.roots());
  CHECK(node.selected({away}).empty());
  auto record = record_of(kNic);
  CHECK_FALSE(away.matches(record));
  record.before.rdma = {{.index = 3, .name = "mlx5_1", .side = cni::Side::host, .is_infiniband = false}};
  CHECK(away.matches(record));
  CHECK_FALSE(selector.matches(record));
  Selectors selectors;
  selectors.rdma_device = "mlx5_0";
  selectors.device_id = kVirtioFunction.address;
  CHECK(texts(node.effective(selectors)) == Texts{"rdmaDevice 'mlx5_0'"});
  CHECK(node.notes.size() == 1);
}

TEST_CASE("an RDMA device that is in another namespace is said to be there, one that is nowhere to be nowhere") {
  const Node node;
  node.tree.add_uverbs("pci0000:3a/0000:3b:00.0", "uverbs0", "mlx5_0");
  const auto said = [&](const std::string& name) {
    const auto error = explain_absence({Selector::by_rdma_device(name, node.tree.roots())}, node.tree.roots());
    CHECK(error.code() == 11);
    return std::string{error.what()};
  };
  CHECK(said("mlx5_0") == "rdmaDevice 'mlx5_0': it is in another network namespace");
  CHECK(said("mlx5_1") == "rdmaDevice 'mlx5_1': there is no such device in the host");
}
