#include "cni/refuse.hpp"

#include <linux/if.h>

#include "support/catch.hpp"
#include "unit/device_tree.hpp"
#include "unit/recorded.hpp"
#include "unit/thrown.hpp"

using cni::NodeConfig;
using cni::RecordStore;
using cni::Selector;
using netlink::BusAddress;
using netlink::Link;

namespace {

const BusAddress kNic{"pci", "0000:3b:00.0"};
const BusAddress kFirst{"pci", "0000:3b:00.1"};
const BusAddress kSecond{"pci", "0000:3b:00.2"};

Link nic() {
  Link link;
  link.index = 3;
  link.name = "ens3f0";
  link.parent = kNic;
  return link;
}

Link other(int index, const std::string& name, const std::string& kind) {
  Link link;
  link.index = index;
  link.name = name;
  link.kind = kind;
  return link;
}

/// The sentence of the refusal, whose code has to be 100; empty when there is none.
template <typename Action>
std::string refusal(const Action& action) {
  const auto error = thrown(action);
  if (error.code() == 0) {
    return "";
  }
  CHECK(error.code() == 100);
  CHECK_FALSE(error.details().empty());
  return error.what();
}

std::string entangled(const Link& link, std::vector<Link> others = {}) {
  others.push_back(link);
  return refusal([&] { cni::refuse_entangled(link, others); });
}

std::string representor(const std::string& port, bool has_switch_id = true) {
  auto link = nic();
  link.physical_port_name = port;
  link.has_switch_id = has_switch_id;
  return entangled(link);
}

/// A PF with two VFs that are idle in the host.
struct PhysicalFunction {
  DeviceTree tree;
  RecordStore store{tree.roots().proc + "/data"};
  std::vector<Link> links{nic(), other(4, "ens3f0v0", ""), other(5, "ens3f0v1", "")};

  PhysicalFunction() {
    tree.add(kNic, "pci0000:3a");
    tree.bind(kNic, "igb");
    int number = 0;
    for (const auto& function : {kFirst, kSecond}) {
      tree.add_virtual_function(kNic, number, function);
      tree.bind(function, "igbvf");
      links.at(static_cast<std::size_t>(++number)).parent = function;
    }
  }

  [[nodiscard]] std::string busy(bool allow_in_use) const {
    return refusal([&] { cni::refuse_busy_physical_function(links[0], links, allow_in_use, store, tree.roots()); });
  }
};

std::string by_node(const NodeConfig& node, const std::vector<Selector>& selectors, const Link& link = nic(), bool allow_in_use = false) {
  return refusal([&] { cni::refuse_by_node(node, selectors, link, allow_in_use); });
}

NodeConfig allowing(std::vector<std::string> devices) {
  NodeConfig node;
  node.allowed_devices = std::move(devices);
  return node;
}

}  // namespace

TEST_CASE("a NIC by itself, beside others, is refused by nothing") {
  CHECK(entangled(nic()).empty());
  CHECK(entangled(nic(), {other(4, "br0", "bridge"), other(5, "vlan5", "vlan")}).empty());
}

TEST_CASE("the loopback interface, bridges, bonds and teams are refused as what cannot leave their namespace") {
  CHECK(entangled(netlink::parse_link(recorded("lo")).value()) == "'lo' cannot be taken: it is the loopback interface");
  CHECK(entangled(netlink::parse_link(recorded("br0")).value()) ==
        "'br0' cannot be taken: it is a bridge, which cannot leave its network namespace");
  CHECK(entangled(other(4, "bond0", "bond")) == "'bond0' cannot be taken: it is a bond, which cannot leave its network namespace");
  CHECK(entangled(other(4, "team0", "team")) == "'team0' cannot be taken: it is a team, which cannot leave its network namespace");
}

TEST_CASE("a port is refused, and its master named, by its index where it is not to be seen") {
  const auto port = netlink::parse_link(recorded("port0")).value();
  CHECK(entangled(port, {netlink::parse_link(recorded("br0")).value()}) == "'port0' cannot be taken: it is a port of the bridge 'br0'");
  CHECK(entangled(port) == "'port0' cannot be taken: it is a port of the interface with index 11");
}

TEST_CASE("a device with upper devices is refused, and they are named") {
  auto vlan = other(8, "ens3f0.5", "vlan");
  auto macvlan = other(9, "mac0", "macvlan");
  vlan.lower = 3;
  macvlan.lower = 3;
  CHECK(entangled(nic(), {vlan, other(4, "br0", "bridge"), macvlan}) ==
        "'ens3f0' cannot be taken: the vlan 'ens3f0.5', the macvlan 'mac0' sits on it");
}

TEST_CASE("an upper device in the host of a lower one elsewhere with this index does not sit on it") {
  auto macvlan = other(9, "mac0", "macvlan");
  macvlan.lower = 3;
  macvlan.lower_is_elsewhere = true;
  CHECK(entangled(nic(), {macvlan}).empty());
}

TEST_CASE("a veth or netkit peer does not sit on the device, and a macvlan on it does") {
  auto first = other(3, "veth0", "veth");
  auto second = other(4, "veth1", "veth");
  first.lower = 4;
  second.lower = 3;
  CHECK(entangled(first, {second}).empty());
  second.kind = "netkit";
  CHECK(entangled(first, {second}).empty());

  auto peer = other(13, "port0-peer", "veth");
  peer.lower = 12;
  CHECK(entangled(peer, {netlink::parse_link(recorded("up0")).value()}) == "'port0-peer' cannot be taken: the macvlan 'up0' sits on it");
}

TEST_CASE("a device that names itself as its lower one does not sit on itself") {
  auto link = nic();
  link.lower = 3;
  CHECK(entangled(link).empty());
}

TEST_CASE("a macvlan is no port and can be taken") {
  CHECK(entangled(netlink::parse_link(recorded("up0")).value()).empty());
}

TEST_CASE("a switchdev representor of a PF, VF or SF is refused") {
  const std::string port = GENERATE("pf0vf3", "pf12vf127", "pf0sf7", "c1pf0vf3", "c1pf0sf7", "pf0", "c1pf0");
  CHECK(representor(port) == "'ens3f0' cannot be taken: it is the switchdev representor '" + port + "', not a NIC");
}

TEST_CASE("an uplink, a split port and a NIC without a switch are no representors") {
  CHECK(representor("p0").empty());
  CHECK(representor("p0s1").empty());
  CHECK(representor("").empty());
  CHECK(representor("pf").empty());
  CHECK(representor("pfvf").empty());
  CHECK(representor("pf0vf3", false).empty());
}

TEST_CASE_METHOD(PhysicalFunction, "a PF with idle VFs is taken with allowInUse alone") {
  CHECK(busy(false) == "'ens3f0' cannot be taken: it has 2 VFs");
  CHECK(busy(true).empty());
}

TEST_CASE_METHOD(PhysicalFunction, "a VF and a software device are no PFs") {
  links[0].parent = kFirst;
  CHECK(busy(false).empty());
  links[0].parent.reset();
  CHECK(busy(false).empty());
}

TEST_CASE_METHOD(PhysicalFunction, "a PF with a VF on record is refused, also when the record cannot be read, whatever allowInUse says") {
  cni::Record record;
  record.device.parent = kSecond;
  store.write(record);
  const bool is_truncated = GENERATE(false, true);
  if (is_truncated) {
    std::filesystem::resize_file(store.data_dir() + "/devices/pci-0000:3b:00.2.json", 10);
  }
  CHECK(busy(GENERATE(false, true)) == "'ens3f0' cannot be taken: its VF 0000:3b:00.2 is attached to a pod");
}

TEST_CASE_METHOD(PhysicalFunction, "a PF with a VF in another namespace is refused, whatever allowInUse says") {
  links.pop_back();
  CHECK(busy(GENERATE(false, true)) == "'ens3f0' cannot be taken: its VF 0000:3b:00.2 is in another network namespace");
}

TEST_CASE_METHOD(PhysicalFunction, "a PF with a VF bound to a userspace driver is refused, whatever allowInUse says") {
  links.pop_back();
  tree.unbind(kSecond);
  tree.bind(kSecond, "vfio-pci");
  CHECK(busy(GENERATE(false, true)) == "'ens3f0' cannot be taken: its VF 0000:3b:00.2 is bound to the userspace driver 'vfio-pci'");
}

TEST_CASE_METHOD(PhysicalFunction, "a VF without a driver, which has no netdev anywhere, is idle") {
  links.pop_back();
  tree.unbind(kSecond);
  CHECK(busy(false) == "'ens3f0' cannot be taken: it has 2 VFs");
  CHECK(busy(true).empty());
}

TEST_CASE("a node that says nothing allows every selector and device") {
  const DeviceTree tree;
  CHECK(by_node({}, {Selector::by_name("ens3f0"), Selector::by_device_id("deviceID", "0000:3b:00.0", tree.roots())}, nic(), true).empty());
}

TEST_CASE("a node allows the selectors that it lists, and runtimeConfig.deviceID as deviceID") {
  const DeviceTree tree;
  const auto by_name = Selector::by_name("ens3f0");
  const auto injected = Selector::by_device_id("deviceID", "0000:3b:00.0", tree.roots());
  const auto runtime = Selector::by_device_id("runtimeConfig.deviceID", "0000:3b:00.0", tree.roots());
  const auto hwaddr = Selector::by_hardware_address(netlink::HardwareAddress::parse("02:00:00:00:00:01").value());
  const auto path = Selector::by_kernel_path("/sys/devices/x", tree.roots());
  NodeConfig node;
  node.allowed_selectors = {"deviceID"};
  CHECK(by_node(node, {injected}).empty());
  CHECK(by_node(node, {runtime}).empty());
  CHECK(by_node(node, {by_name}) == "this node does not allow devices to be chosen by 'device'");
  CHECK(by_node(node, {hwaddr}) == "this node does not allow devices to be chosen by 'hwaddr'");
  CHECK(by_node(node, {path}) == "this node does not allow devices to be chosen by 'kernelpath'");
  node.allowed_selectors = {"device", "hwaddr", "kernelpath"};
  CHECK(by_node(node, {by_name, hwaddr, path}).empty());
  CHECK(by_node(node, {injected}) == "this node does not allow devices to be chosen by 'deviceID'");
  CHECK(by_node(node, {runtime}) == "this node does not allow devices to be chosen by 'deviceID'");
  node.allowed_selectors.emplace();
  CHECK_FALSE(by_node(node, {by_name}).empty());
}

TEST_CASE("a node that forbids allowInUse refuses who says it, and nobody else") {
  NodeConfig node;
  node.allow_in_use = false;
  CHECK(by_node(node, {}, nic(), true) == "this node does not allow 'allowInUse'");
  CHECK(by_node(node, {}, nic(), false).empty());
}

TEST_CASE("a node allows the devices whose name, altname or bus address matches one of its patterns") {
  auto link = nic();
  link.altnames = {"enp59s0f0np0", "rail0"};
  const std::string pattern = GENERATE("ens3f0", "ens*", "ens?f0", "ens[34]f0", "rail?", "0000:3b:00.0", "0000:3b:*", "*");
  CAPTURE(pattern);
  CHECK(by_node(allowing({"eth0", pattern}), {}, link).empty());
}

TEST_CASE("a node refuses the devices that match none of its patterns") {
  CHECK(by_node(allowing({"eth0", "0000:3c:*", "ens3f", "ens3f0?", "NS3F0"}), {}) ==
        "this node does not allow 'ens3f0' (0000:3b:00.0) to be taken");
  CHECK(by_node(allowing({}), {}, other(3, "veth0", "veth")) == "this node does not allow 'veth0' to be taken");
}

TEST_CASE("a node allows a virtio NIC by the PCI function above it, which is how its pods ask for it") {
  const BusAddress function{"pci", "0000:00:03.0"};
  const BusAddress device{"virtio", "virtio2"};
  const DeviceTree tree;
  tree.add(device, tree.add(function, "pci0000:00"));
  auto link = nic();
  link.parent = device;
  const auto selector = Selector::by_device_id("deviceID", function.address, tree.roots());
  REQUIRE(selector.matches(link));
  CHECK(by_node(allowing({"0000:00:*"}), {selector}, link).empty());
  CHECK_FALSE(by_node(allowing({"0000:01:*"}), {selector}, link).empty());
}
