// The device of a record is not the device that is there now: what was configured since belongs to the host.
#include "lab.hpp"
#include "support/catch.hpp"

namespace {

using lab::Configured;
using lab::Pod;
using lab::Scenario;
using support::expect_error;
using support::expect_success;
using support::Json;
using support::sh;

const auto kFunction = lab::vf(1, 0);

/// Attaches a VF that its host had configured.
support::Attachment attach(const lab::Function& function, const Pod& pod, const std::string& container) {
  Configured nic{function};
  nic.forget();
  auto attachment = lab::attachment(function, pod, lab::full_size_with_address());
  attachment.container = container;
  const auto records = support::record_files().size();
  const auto addresses = lab::reserved_addresses().size();
  expect_success(attachment.add());
  REQUIRE(support::record_files().size() == records + 1);
  REQUIRE(lab::reserved_addresses().size() == addresses + 1);
  return attachment;
}

/// The same, and the namespace dies without a DEL.
support::Attachment attach_and_die() {
  Pod pod;
  auto attachment = attach(kFunction, pod, "c1");
  pod.destroy();
  lab::wait_for_netdev(kFunction);
  return attachment;
}

/// As its host sets up a device that is new to it.
support::Snapshot configure_anew(const lab::Function& function = kFunction) {
  lab::wait_for_netdev(function);
  const auto name = function.netdev();
  sh("ip link set " + name + " alias 'the new one' mtu 1300 txqueuelen 300 address 02:00:00:00:ab:99 && ip link set " + name + " up");
  lab::wait_for_carrier(name);
  return support::snapshot(name);
}

void expect_as(const support::Snapshot& configured) {
  CHECK(support::changes(configured, support::snapshot(kFunction.netdev())) == "");
  support::expect_no_traces();
  CHECK(lab::reserved_addresses().empty());
}

void attach_and_detach_another() {
  const Pod pod{"next"};
  auto next = lab::attachment(kFunction, pod, lab::full_size_with_address());
  next.container = "c2";
  expect_success(next.add());
  CHECK(support::show_link("net1", "next")["mtu"] == 9000);
  CHECK(lab::reserved_addresses().size() == 1);
  expect_success(next.del());
}

/// The late DEL comes before the device goes to another pod, or after.
void expect_left_alone_by_del(const support::Attachment& late) {
  const auto configured = configure_anew();
  expect_success(late.del());
  expect_as(configured);
  attach_and_detach_another();
  expect_as(configured);
}

void expect_left_alone_by_add(const support::Attachment& late) {
  const auto configured = configure_anew();
  attach_and_detach_another();
  expect_as(configured);
  expect_success(late.del());
  expect_as(configured);
}

}  // namespace

TEST_CASE("DEL leaves a VF alone that was made anew since, and settles IPAM") {
  Scenario scenario{lab::kLayout};
  const auto attachment = attach_and_die();
  scenario.make_vfs_anew(1);
  expect_left_alone_by_del(attachment);
}

TEST_CASE("ADD of another pod leaves a VF as it is that was made anew since, and settles IPAM") {
  Scenario scenario{lab::kLayout};
  const auto attachment = attach_and_die();
  scenario.make_vfs_anew(1);
  expect_left_alone_by_add(attachment);
}

TEST_CASE("DEL leaves a VF alone whose driver was bound anew since, and settles IPAM") {
  Scenario scenario{lab::kLayout};
  const auto attachment = attach_and_die();
  scenario.unbind(kFunction);
  scenario.bind(kFunction, "igbvf");
  expect_left_alone_by_del(attachment);
}

TEST_CASE("ADD of another pod leaves a VF as it is whose driver was bound anew since, and settles IPAM") {
  Scenario scenario{lab::kLayout};
  const auto attachment = attach_and_die();
  scenario.unbind(kFunction);
  scenario.bind(kFunction, "igbvf");
  expect_left_alone_by_add(attachment);
}

TEST_CASE("DEL and the next ADD after a reboot leave the VFs alone, and settle IPAM") {
  const auto function_of_del = lab::vf(1, 1);
  Scenario scenario{lab::kLayout};
  if (!lab::was_restarted()) {
    const Pod pod;
    const Pod pod_too{"other"};
    (void)attach(function_of_del, pod, "c3");
    (void)attach(kFunction, pod_too, "c1");
    scenario.restart();
    return;
  }
  REQUIRE(support::record_files().size() == 2);
  REQUIRE(lab::reserved_addresses().size() == 2);
  const auto configured = configure_anew(function_of_del);
  sh("ip link set " + function_of_del.netdev() + " address 02:00:00:00:ab:98");
  Pod pod;
  auto attachment = lab::attachment(function_of_del, pod, lab::full_size_with_address());
  attachment.container = "c3";
  pod.destroy();
  expect_success(attachment.del());
  CHECK(support::changes(configured, support::snapshot(function_of_del.netdev())) ==
        "address: \"02:00:00:00:ab:99\" -> \"02:00:00:00:ab:98\"\n");
  CHECK(lab::reserved_addresses().size() == 1);

  const auto configured_too = configure_anew();
  attach_and_detach_another();
  expect_as(configured_too);
  scenario.make_vfs_anew(1);
}

TEST_CASE("VFs that are taken away under a pod: CHECK says what is gone, DEL succeeds and IPAM gets its address back") {
  Scenario scenario{lab::kLayout};
  Configured nic{kFunction};
  nic.forget();
  const Pod pod;
  const auto attachment = lab::attachment(kFunction, pod, lab::full_size_with_address());
  const auto address = kFunction.address();
  const auto result = expect_success(attachment.add());
  REQUIRE(lab::reserved_addresses().size() == 1);
  scenario.remove_vfs(1);

  expect_error(attachment.check(result), 102, {address, "not in the pod"});
  expect_success(attachment.del());
  support::expect_no_traces();
  CHECK(lab::reserved_addresses().empty());
  expect_success(attachment.del());
}
