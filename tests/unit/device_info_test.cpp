#include "cni/device_info.hpp"

#include "cni/json.hpp"
#include "support/catch.hpp"
#include "unit/device_tree.hpp"

using cni::device_info_of;
using cni::DeviceInfo;
using cni::Json;
using cni::merge_device_info;
using netlink::BusAddress;

namespace {

const DeviceInfo kVf{.pci_address = "0000:3b:00.2", .pf_pci_address = "0000:3b:00.0", .rdma_device = {}};

Json merged(const std::string& existing, const DeviceInfo& info = kVf) {
  return Json::parse(merge_device_info(existing, info).value());
}

cni::Record of_device(const BusAddress& parent) {
  cni::Record record;
  record.device.parent = parent;
  return record;
}

}  // namespace

TEST_CASE("a device-info of a VF says its address and its PF's, one of another device its address alone") {
  CHECK(merged("") == Json::parse(R"({"type": "pci", "version": "1.1.0",
      "pci": {"pci-address": "0000:3b:00.2", "pf-pci-address": "0000:3b:00.0"}})"));
  CHECK(merged("", {.pci_address = "0000:3b:00.0", .pf_pci_address = {}, .rdma_device = {}}) ==
        Json::parse(R"({"type": "pci", "version": "1.1.0", "pci": {"pci-address": "0000:3b:00.0"}})"));
}

TEST_CASE("what a device plugin wrote is kept") {
  CHECK(
      merged(R"({"type": "pci", "version": "1.0.0", "x": [1], "pci": {"pci-address": "?", "rdma-device": "mlx5_3,mlx5_4", "y": "z"}})") ==
      Json::parse(R"({"type": "pci", "version": "1.1.0", "x": [1], "pci": {"pci-address": "0000:3b:00.2", "pf-pci-address": "0000:3b:00.0",
            "rdma-device": "mlx5_3,mlx5_4", "y": "z"}})"));
}

TEST_CASE("the RDMA devices that a pod has take the place of those that a device plugin saw") {
  auto info = kVf;
  info.rdma_device = "rail0,rail1";
  CHECK(merged(R"({"type": "pci", "pci": {"rdma-device": "mlx5_3"}})", info)["pci"]["rdma-device"] == "rail0,rail1");
  const DeviceTree tree;
  const BusAddress function{"pci", "0000:3b:00.0"};
  tree.add(function, "pci0000:3a");
  auto record = of_device(function);
  record.rdma.devices = {{.index = 3, .name = "rail0", .side = cni::Side::pod, .is_infiniband = false},
                         {.index = 4, .name = "rail1", .side = cni::Side::pod, .is_infiniband = false}};
  const auto named = [&](cni::RdmaUse use) {
    record.rdma.use = use;
    return device_info_of(record, tree.roots()).value().rdma_device;
  };
  CHECK(named(cni::RdmaUse::moved) == "rail0,rail1");
  CHECK(named(cni::RdmaUse::shared) == "rail0,rail1");
  CHECK(named(cni::RdmaUse::left).empty());
  CHECK(named(cni::RdmaUse::none).empty());
}

TEST_CASE("what is about another type of device is not touched, what is no device-info is replaced") {
  CHECK_FALSE(merge_device_info(R"({"type": "vdpa", "version": "1.1.0", "vdpa": {}})", kVf));
  const auto alone = merged("");
  for (const auto* text : {"not JSON", "[]", "7", R"({"pci": 5})", R"({"type": "pci", "type": "pci"})", "{"}) {
    CAPTURE(text);
    CHECK(merged(text) == alone);
  }
}

TEST_CASE("a device-info names the PCI function that a device is, or is on") {
  const DeviceTree tree;
  const BusAddress pf{"pci", "0000:3b:00.0"};
  const BusAddress vf{"pci", "0000:3b:00.2"};
  const BusAddress sub_function{"auxiliary", "mlx5_core.sf.4"};
  const auto place = tree.add(pf, "pci0000:3a");
  tree.add_virtual_function(pf, 0, vf);
  tree.add(sub_function, place);
  tree.add({"auxiliary", "elsewhere.1"}, "platform");
  const auto text = [&](const BusAddress& address) {
    const auto info = device_info_of(of_device(address), tree.roots());
    return info ? info->pci_address + ' ' + info->pf_pci_address : "none";
  };
  CHECK(text(vf) == "0000:3b:00.2 0000:3b:00.0");
  CHECK(text(pf) == "0000:3b:00.0 ");
  CHECK(text(sub_function) == "0000:3b:00.0 ");
  CHECK(text({"auxiliary", "elsewhere.1"}) == "none");
  CHECK(text({"pci", "0000:00:00.0"}) == "none");
  CHECK_FALSE(device_info_of({}, tree.roots()));
}
