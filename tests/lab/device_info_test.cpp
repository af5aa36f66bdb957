// The file by which Multus tells a pod what device it has.
#include <filesystem>
#include <fstream>

#include "lab.hpp"
#include "netlink/files.hpp"
#include "support/catch.hpp"

namespace {

using lab::Pod;
using lab::Scenario;
using support::expect_error;
using support::expect_success;
using support::Json;

const auto kFunction = lab::vf(1, 0);
const std::filesystem::path kDirectory = "/run/k8s.cni.cncf.io/devinfo/cni";
const auto kFile = kDirectory / "default-fabric-c1_net1";

/// The directory, empty before and after.
struct DeviceInfoDirectory {
  DeviceInfoDirectory() { clear(); }
  DeviceInfoDirectory(const DeviceInfoDirectory&) = delete;
  DeviceInfoDirectory& operator=(const DeviceInfoDirectory&) = delete;
  DeviceInfoDirectory(DeviceInfoDirectory&&) = delete;
  DeviceInfoDirectory& operator=(DeviceInfoDirectory&&) = delete;
  ~DeviceInfoDirectory() { clear(); }
  static void clear() { std::filesystem::remove_all("/run/k8s.cni.cncf.io"); }
};

support::Attachment attachment(const Pod& pod, const std::string& file) {
  return lab::attachment(kFunction, pod, {{"runtimeConfig", {{"CNIDeviceInfoFile", file}}}});
}

Json device_info() {
  return Json::parse(netlink::read_file(kFile).value());
}

std::size_t files_in_directory() {
  return netlink::directory_entries(kDirectory).size();
}

}  // namespace

TEST_CASE("a device-info file is written where the runtime says, by the directory's other name too, and removed with the attachment") {
  const Scenario scenario{lab::kLayout};
  const DeviceInfoDirectory directory;
  const Pod pod;
  const auto call = attachment(pod, "/var" + kFile.string());
  expect_success(call.add());
  CHECK(device_info() ==
        Json{{"type", "pci"},
             {"version", "1.1.0"},
             {"pci",
              {{"pci-address", kFunction.address()}, {"pf-pci-address", lab::pf(1).address()}, {"rdma-device", kFunction.rdma_device()}}}});
  CHECK(files_in_directory() == 1);
  expect_success(call.del());
  CHECK(files_in_directory() == 0);
}

TEST_CASE("what a device plugin wrote into the device-info file, which nobody may write, stays and is added to") {
  const Scenario scenario{lab::kLayout};
  const DeviceInfoDirectory directory;
  const Pod pod;
  std::filesystem::create_directories(kDirectory);
  const Json written{{"type", "pci"},
                     {"version", "1.0.0"},
                     {"pci", {{"pci-address", kFunction.address()}, {"rdma-device", "mlx5_3"}, {"vhost-net", "/dev/vhost-net"}}},
                     {"vendor", "kept"}};
  std::ofstream(kFile) << written;
  std::filesystem::permissions(kFile, std::filesystem::perms{0444});
  const auto call = attachment(pod, kFile);
  std::ifstream reader(kFile);
  expect_success(call.add());
  // Who was reading it reads the old one to its end.
  CHECK(Json::parse(reader) == written);
  auto expected = written;
  expected["version"] = "1.1.0";
  expected["pci"]["pf-pci-address"] = lab::pf(1).address();
  expected["pci"]["rdma-device"] = kFunction.rdma_device();
  CHECK(device_info() == expected);
  CHECK(files_in_directory() == 1);
  expect_success(call.del());
  CHECK(files_in_directory() == 0);
}

TEST_CASE("a device-info file that this attachment did not write stays") {
  const Scenario scenario{lab::kLayout};
  const DeviceInfoDirectory directory;
  const Pod pod;
  std::filesystem::create_directories(kDirectory);
  const Json other{{"type", "vdpa"}, {"version", "1.1.0"}, {"vdpa", {{"parent-device", "vdpa0"}, {"driver", "vhost"}}}};
  std::ofstream(kFile) << other;
  const auto call = attachment(pod, kFile);
  expect_success(call.add());
  CHECK(device_info() == other);
  expect_success(call.del());
  CHECK(device_info() == other);

  // Neither does an ADD take it along that failed before it came to the file.
  auto failing = call;
  failing.network["ipam"] = {{"type", "static"}, {"addresses", "wrong"}};
  expect_error(failing.add(), std::nullopt, {});
  CHECK(device_info() == other);
}

TEST_CASE("the device-info file of another attachment is refused, and stays") {
  const Scenario scenario{lab::kLayout};
  const DeviceInfoDirectory directory;
  const Pod pod;
  const Pod other_pod{"other"};
  const auto call = attachment(pod, kFile);
  expect_success(call.add());
  const auto written = device_info();
  auto other = lab::attachment(lab::vf(1, 1), other_pod, {{"runtimeConfig", {{"CNIDeviceInfoFile", kFile}}}});
  other.container = "c2";
  expect_error(other.add(), 7, {"CNIDeviceInfoFile", "'c1'"});
  other.network["runtimeConfig"]["CNIDeviceInfoFile"] = "/var" + kFile.string();
  expect_error(other.add(), 7, {"CNIDeviceInfoFile", "'c1'"});
  CHECK(device_info() == written);
  CHECK(lab::vf(1, 1).netdev() != "");
  expect_success(call.del());
  CHECK(files_in_directory() == 0);
}

TEST_CASE("a device-info file anywhere else, or through a link, is refused and nothing is left") {
  const Scenario scenario{lab::kLayout};
  const DeviceInfoDirectory directory;
  const Pod pod;
  const auto before = lab::pf_text(1);
  for (const char* path : {"/etc/cni/x", "/run/k8s.cni.cncf.io/devinfo/", "/run/k8s.cni.cncf.io/devinfo/../../x", "cni/x",
                           "/run/k8s.cni.cncf.io/devinfo/cni/../../../x", "/run/k8s.cni.cncf.io/devinfox/x"}) {
    CAPTURE(path);
    expect_error(attachment(pod, path).add(), 7, {"CNIDeviceInfoFile", "/run/k8s.cni.cncf.io/devinfo/"});
  }
  std::filesystem::create_directories(kDirectory);
  std::filesystem::create_directories("/run/victim");
  std::ofstream("/run/victim/file") << "precious";
  std::filesystem::create_symlink("/run/victim/file", kDirectory / "file");
  const auto expect_refusal = [&] {
    auto call = attachment(pod, kDirectory / "file");
    call.network["vlan"] = 100;
    expect_error(call.add(), 5, {"devinfo/cni/file"});
    CHECK(lab::pf_text(1) == before);
    CHECK(lab::vf(1, 0).netdev() != "");
    support::expect_no_traces();
  };
  expect_refusal();
  CHECK(std::filesystem::is_symlink(kDirectory / "file"));
  std::filesystem::remove_all(kDirectory);
  std::filesystem::create_symlink("/run/victim", kDirectory);
  expect_refusal();
  CHECK(netlink::directory_entries("/run/victim") == std::vector<std::string>{"file"});
  CHECK(netlink::read_file("/run/victim/file") == "precious");
  std::filesystem::remove_all("/run/victim");
}
