// NICs with hardware behind them, moved out and home as whole NICs.
#include "lab.hpp"
#include "support/catch.hpp"

namespace {

using lab::Configured;
using lab::Function;
using lab::Pod;
using lab::Scenario;
using support::expect_success;
using support::Json;
using support::sh;

/// Out with an MTU of 9000 and home; `in_pod` is what happens between.
template <typename Action>
void go_out_and_home(const Function& function, const Action& in_pod) {
  const Configured nic{function};
  const Pod pod;
  const auto attachment = lab::attachment(function, pod, {{"mtu", 9000}, {"cniVersion", "1.1.0"}});

  const auto result = expect_success(attachment.add());
  CHECK(result["interfaces"][0]["name"] == "net1");
  CHECK(result["interfaces"][0]["mtu"] == 9000);
  CHECK(result["interfaces"][0]["pciID"] == function.address());
  CHECK(function.netdev() == "");
  const auto link = support::show_link("net1", "pod");
  CHECK(link["mtu"] == 9000);
  CHECK(link["parentdev"] == function.address());
  CHECK(support::has_flag(link, "UP"));
  lab::wait_for_carrier("net1", "pod");
  in_pod();
  CHECK(attachment.check(result).status == 0);

  expect_success(attachment.del());
  nic.expect_home();
}

}  // namespace

TEST_CASE("a VF goes into a pod as a whole NIC and comes home as it was") {
  const Scenario scenario{lab::kLayout};
  go_out_and_home(lab::vf(1, 0), [] {});
}

TEST_CASE("a PF without VFs goes into a pod as a whole NIC and comes home as it was") {
  const Scenario scenario{lab::kLayout};
  go_out_and_home(lab::pf(2), [] {});
}

TEST_CASE("what a pod does to a VF stays in the pod") {
  const Scenario scenario{lab::kLayout};
  go_out_and_home(lab::vf(1, 1), [] {
    sh("ip -n pod link property add dev net1 altname tenant && ip -n pod link set net1 alias tenant txqueuelen 77 promisc off");
    sh("ip netns exec pod sysctl -qw net.ipv4.conf.net1.arp_ignore=2 net.ipv4.neigh.net1.gc_stale_time=1");
  });
}

TEST_CASE("a VF whose netdev is selected by name, MAC or sysfs path comes home as it was") {
  const Scenario scenario{lab::kLayout};
  const auto function = lab::vf(1, 2);
  const Configured nic{function};
  const Json by_name{{"deviceID", nullptr}, {"device", "left-rail"}};
  const Json by_mac{{"deviceID", nullptr}, {"hwaddr", "02:00:00:00:ab:01"}};
  const Json by_path{{"deviceID", nullptr}, {"kernelpath", "/sys/devices/pci0000:00/0000:00:01.0/" + function.address()}};
  for (const auto& keys : {by_name, by_mac, by_path}) {
    CAPTURE(keys.dump());
    const Pod pod;
    const auto attachment = lab::attachment(function, pod, keys);
    expect_success(attachment.add());
    CHECK(support::show_link("net1", "pod")["parentdev"] == function.address());
    expect_success(attachment.del());
    nic.expect_home();
  }
}

TEST_CASE("a PF whose VFs are in use is not taken away from them") {
  const Scenario scenario{lab::kLayout};
  const Pod first{"first"};
  const Pod second{"second"};
  const auto user = lab::attachment(lab::vf(1, 0), first);
  expect_success(user.add());
  support::expect_error(lab::attachment(lab::pf(1), second).add(), 100, {"'eth0'", lab::vf(1, 0).address(), "attached to a pod"});
  expect_success(user.del());
}
