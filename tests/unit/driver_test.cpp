#include "netlink/driver.hpp"

#include <fcntl.h>

#include <cerrno>
#include <filesystem>

#include "netlink/error.hpp"
#include "netlink/files.hpp"
#include "netlink/unique_fd.hpp"
#include "support/catch.hpp"
#include "unit/device_tree.hpp"

using netlink::BusAddress;

namespace {

const BusAddress kVf{"pci", "0000:3b:00.2"};

/// What was written to a file of the driver, in a tree where nobody acts on it.
std::string written(const DeviceTree& tree, const std::string& name) {
  return netlink::read_file(tree.roots().sys + "/bus/pci/drivers/mlx5_core/" + name).value();
}

void make_file(const DeviceTree& tree, const std::string& name) {
  const auto path = tree.roots().sys + "/bus/pci/drivers/mlx5_core/" + name;
  std::filesystem::create_directories(std::filesystem::path{path}.parent_path());
  const netlink::UniqueFd fd{::open(path.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0644)};
  REQUIRE(fd.is_open());
}

}  // namespace

TEST_CASE("a device is taken from its driver by its address, and one without a driver is left") {
  const DeviceTree tree;
  tree.add(kVf, "pci0000:3a");
  CHECK_NOTHROW(netlink::unbind_driver(kVf, tree.roots()));
  tree.bind(kVf, "mlx5_core");
  make_file(tree, "unbind");
  netlink::unbind_driver(kVf, tree.roots());
  CHECK(written(tree, "unbind") == kVf.address);
}

TEST_CASE("a driver gets a device by its address, and one that has it already is not asked") {
  const DeviceTree tree;
  tree.add(kVf, "pci0000:3a");
  make_file(tree, "bind");
  netlink::bind_driver(kVf, "mlx5_core", tree.roots());
  CHECK(written(tree, "bind") == kVf.address);
  const DeviceTree bound;
  bound.add(kVf, "pci0000:3a");
  bound.bind(kVf, "mlx5_core");
  CHECK_NOTHROW(netlink::bind_driver(kVf, "mlx5_core", bound.roots()));
}

TEST_CASE("a driver that does not take a device is an error that says how to bind it by hand") {
  const DeviceTree tree;
  tree.add(kVf, "pci0000:3a");
  try {
    netlink::bind_driver(kVf, "mlx5_core", tree.roots());
    FAIL();
  } catch (const netlink::Error& error) {
    CHECK(error.error_number() == ENOENT);
    CHECK(std::string{error.what()} ==
          "bind pci 0000:3b:00.2 to its driver 'mlx5_core' again: No such file or directory (by hand: echo "
          "0000:3b:00.2 > " +
              tree.roots().sys + "/bus/pci/drivers/mlx5_core/bind)");
  }
}
