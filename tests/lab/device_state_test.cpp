// A PCI device without a netdev that could be taken: each state has its own message.
#include <chrono>
#include <thread>

#include "lab.hpp"
#include "support/catch.hpp"

namespace {

using lab::Pod;
using lab::Scenario;
using support::expect_error;
using support::sh;

const support::Json kNoWait{{"wait", {{"device", "0s"}}}};

support::Attachment attachment_of(const std::string& address, const Pod& pod) {
  auto attachment = lab::attachment(lab::pf(1), pod, kNoWait);
  attachment.network["deviceID"] = address;
  return attachment;
}

}  // namespace

TEST_CASE("a device that is not there: ADD can be tried again, and the device is named") {
  const Scenario scenario{lab::kLayout};
  const Pod pod;
  expect_error(attachment_of("0000:01:1f.7", pod).add(), 11, {"0000:01:1f.7", "no such device"});
  support::expect_no_traces();
}

TEST_CASE("a VF without a driver is refused with its state and what to do") {
  Scenario scenario{lab::kLayout};
  const Pod pod;
  const auto function = lab::vf(1, 3);
  const auto attachment = attachment_of(function.address(), pod);
  scenario.unbind(function);
  expect_error(attachment.add(), 100, {function.address(), "no driver is bound"});
  scenario.bind(function, "igbvf");
  support::expect_success(attachment.add());
  support::expect_success(attachment.del());
  support::expect_no_traces();
}

TEST_CASE("a VF that somebody has put into another namespace is refused, and the holder of the namespace named") {
  const Scenario scenario{lab::kLayout};
  const Pod pod;
  Pod other{"other"};
  const auto function = lab::vf(1, 3);
  const auto name = function.netdev();
  sh("ip link set " + name + " netns other");
  expect_error(attachment_of(function.address(), pod).add(), 100, {function.address(), "another network namespace", "/run/netns/other"});
  sh("ip netns exec other ip link set " + name + " netns 1");
  support::expect_no_traces();
}

TEST_CASE("ADD waits for a VF whose netdev is not there yet") {
  Scenario scenario{lab::kLayout};
  const Pod pod;
  const auto function = lab::vf(1, 3);
  auto attachment = attachment_of(function.address(), pod);
  attachment.network["wait"]["device"] = "50s";
  scenario.unbind(function);
  support::Process process{support::program(attachment.to_call("ADD"))};
  std::this_thread::sleep_for(std::chrono::seconds{1});
  scenario.bind(function, "igbvf");
  support::expect_success(support::answer(process.wait()));
  CHECK(support::show_link("net1", "pod")["parentdev"] == function.address());
  support::expect_success(attachment.del());
  support::expect_no_traces();
}

TEST_CASE("a device that its driver has given no netdev: ADD can be tried again, and the driver is named") {
  const Scenario scenario{lab::kLayout};
  const Pod pod;
  // The root port of the first card: to the plugin a device whose driver is still starting.
  expect_error(attachment_of("0000:00:01.0", pod).add(), 11, {"0000:00:01.0", "'pcieport'", "no network interface yet"});
  support::expect_no_traces();
}
