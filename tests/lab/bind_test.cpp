// A VF's driver is bound anew for an InfiniBand GUID. What was interrupted there is finished here on Ethernet VFs, with a record that says
// so: what a GUID does needs hardware that the lab has not.
#include <fstream>

#include "lab.hpp"
#include "netlink/device_id.hpp"
#include "netlink/driver.hpp"
#include "support/catch.hpp"

namespace {

using lab::Configured;
using lab::Pod;
using lab::Scenario;
using support::expect_success;
using support::Json;

const auto kFunction = lab::vf(1, 0);

/// As an ADD leaves it that was killed while it bound the driver anew.
void say_that_driver_is_being_bound() {
  const auto files = support::record_files();
  REQUIRE(files.size() == 1);
  auto record = Json::parse(std::ifstream{files.front()});
  record["boundDriver"] = "igbvf";
  record["incarnation"]["driverInode"] = 0;
  std::ofstream{files.front()} << record.dump() << std::flush;
}

void expect_finished(const support::Attachment& attachment, const Configured& nic) {
  expect_success(attachment.del());
  CHECK(std::filesystem::read_symlink(kFunction.sysfs() + "/driver").filename() == "igbvf");
  nic.expect_home();
  CHECK(lab::reserved_addresses().empty());
}

}  // namespace

TEST_CASE("a driver that is bound anew makes another netdev, of the same bus address") {
  Scenario scenario{lab::kLayout};
  scenario.unbind(kFunction);
  scenario.bind(kFunction, "igbvf");
  lab::wait_for_netdev(kFunction);
  const netlink::BusAddress device{"pci", kFunction.address()};
  const auto id = netlink::DeviceId::on_bus(device);
  const auto before = netlink::incarnation(id, {});
  netlink::unbind_driver(device, {});
  CHECK_FALSE(netlink::driver(device, {}));
  CHECK(kFunction.netdev().empty());
  netlink::bind_driver(device, "igbvf", {});
  lab::wait_for_netdev(kFunction);
  CHECK(netlink::driver(device, {}) == "igbvf");
  const auto after = netlink::incarnation(id, {});
  CHECK(after.device_inode == before.device_inode);
  CHECK(after.driver_inode != before.driver_inode);
}

TEST_CASE("DEL binds a driver again that was left unbound half-way, and gives its new netdev what the record has") {
  Scenario scenario{lab::kLayout};
  const Configured nic{kFunction};
  const Pod pod;
  const auto attachment = lab::attachment(kFunction, pod, lab::full_size_with_address());
  expect_success(attachment.add());
  say_that_driver_is_being_bound();
  scenario.unbind(kFunction);
  expect_finished(attachment, nic);
}

TEST_CASE("DEL gives a netdev what the record has whose driver was bound anew, and the record not yet told") {
  Scenario scenario{lab::kLayout};
  const Configured nic{kFunction};
  const Pod pod;
  const auto attachment = lab::attachment(kFunction, pod, lab::full_size_with_address());
  expect_success(attachment.add());
  say_that_driver_is_being_bound();
  scenario.unbind(kFunction);
  scenario.bind(kFunction, "igbvf");
  expect_finished(attachment, nic);
}

TEST_CASE("ADD of another pod binds a driver again that was left unbound half-way") {
  Scenario scenario{lab::kLayout};
  const Configured nic{kFunction};
  const Pod pod;
  expect_success(lab::attachment(kFunction, pod, lab::full_size_with_address()).add());
  say_that_driver_is_being_bound();
  scenario.unbind(kFunction);
  const Pod other{"next"};
  auto next = lab::attachment(kFunction, other, lab::full_size_with_address());
  next.container = "c2";
  expect_success(next.add());
  CHECK(support::show_link("net1", "next")["mtu"] == 9000);
  expect_finished(next, nic);
}
