// Functions that a program drives by itself (vfio-pci): what their PF sets for them, and addresses; they stay where they are.
#include "lab.hpp"
#include "support/catch.hpp"

namespace {

using lab::Pod;
using lab::Scenario;
using support::expect_error;
using support::expect_success;
using support::Json;
using support::sh;

const auto kFunction = lab::vf(1, 3);
constexpr const char* kMac = "02:00:00:00:be:03";

/// A VF that is bound to vfio-pci as long as this lives.
class Userspace {
 public:
  explicit Userspace(Scenario& scenario) : scenario_(scenario) {
    scenario_.unbind(kFunction);
    scenario_.bind(kFunction, "vfio-pci");
  }
  Userspace(const Userspace&) = delete;
  Userspace& operator=(const Userspace&) = delete;
  Userspace(Userspace&&) = delete;
  Userspace& operator=(Userspace&&) = delete;
  ~Userspace() {
    scenario_.unbind(kFunction);
    scenario_.bind(kFunction, "igbvf");
  }

 private:
  Scenario& scenario_;
};

Json with_address(const Json& keys) {
  auto all = lab::full_size_with_address();
  all.erase("mtu");
  all.merge_patch(keys);
  return all;
}

}  // namespace

TEST_CASE("a VF bound to vfio-pci gets its settings on the PF and an address, and gives them back") {
  Scenario scenario{lab::kLayout};
  const Userspace userspace{scenario};
  Pod pod;
  const auto attachment =
      lab::attachment(kFunction, pod, with_address({{"vlan", 100}, {"vlanQoS", 3}, {"mac", kMac}, {"trust", "on"}, {"mtu", 4000}}));
  const auto before = lab::pf_text(1);
  const auto result = expect_success(attachment.add());
  CHECK(result["interfaces"] == Json::array({{{"name", "net1"}, {"mac", kMac}, {"mtu", 4000}, {"sandbox", pod.path()}}}));
  CHECK(result["ips"].size() == 1);
  CHECK(lab::reserved_addresses().size() == 1);
  CHECK(lab::vf_settings(kFunction)["address"] == kMac);
  CHECK(lab::vf_settings(kFunction)["vlan_list"][0]["vlan"] == 100);
  CHECK(support::link_names("pod").empty());
  expect_success(attachment.check(result));
  CHECK(expect_success(attachment.add())["interfaces"] == result["interfaces"]);
  sh("ip link set eth0 vf 3 vlan 8");
  expect_error(attachment.check(result), 102, {"'vlan' is 8"});

  SECTION("by its DEL") {
    expect_success(attachment.del());
  }
  SECTION("by its DEL after its namespace died") {
    pod.destroy();
    expect_success(attachment.del());
  }
  SECTION("by its DEL without its namespace's path") {
    auto late = attachment;
    late.net_ns = "";
    expect_success(late.del());
  }
  CHECK(lab::pf_text(1) == before);
  CHECK(lab::reserved_addresses().empty());
  support::expect_no_traces();
}

TEST_CASE("a VF bound to vfio-pci belongs to its owner until that deletes it, also when its namespace is gone") {
  Scenario scenario{lab::kLayout};
  const Userspace userspace{scenario};
  Pod pod;
  const Pod next_pod{"next"};
  const auto attachment = lab::attachment(kFunction, pod, {{"vlan", 100}});
  auto next = lab::attachment(kFunction, next_pod, {{"vlan", 200}, {"wait", {{"owner", "100ms"}}}});
  next.container = "c2";
  const auto before = lab::pf_text(1);
  expect_success(attachment.add());
  expect_error(next.add(), 11, {kFunction.address(), "'c1'"});
  pod.destroy();
  expect_error(next.add(), 11, {kFunction.address(), "'c1'"});
  CHECK(lab::vf_settings(kFunction)["vlan_list"][0]["vlan"] == 100);
  expect_success(attachment.del());
  expect_success(next.add());
  expect_success(attachment.del());
  CHECK(lab::vf_settings(kFunction)["vlan_list"][0]["vlan"] == 200);
  expect_success(next.del());
  CHECK(lab::pf_text(1) == before);
}

TEST_CASE("a VF bound to vfio-pci whose ADD was killed is free for the next, and as it was") {
  Scenario scenario{lab::kLayout};
  const Userspace userspace{scenario};
  const Pod pod;
  const auto before = lab::pf_text(1);
  const auto attachment = lab::attachment(kFunction, pod, with_address({{"vlan", 100}, {"trust", "on"}}));
  (void)attachment.under(support::inject("?vfork,clone", "signal=KILL", 1)).add();
  REQUIRE(support::was_injected());
  CHECK(lab::vf_settings(kFunction)["vlan_list"][0]["vlan"] == 100);
  auto next = lab::attachment(kFunction, pod, {{"vlan", 200}});
  next.container = "c2";
  expect_success(next.add());
  CHECK(lab::vf_settings(kFunction)["vlan_list"][0]["vlan"] == 200);
  CHECK(lab::vf_settings(kFunction)["trust"] == false);
  expect_success(next.del());
  CHECK(lab::pf_text(1) == before);
  expect_success(attachment.del());
  support::expect_no_traces();
}

TEST_CASE("what only a network interface has is refused for a VF bound to vfio-pci, and nothing is touched") {
  Scenario scenario{lab::kLayout};
  const Userspace userspace{scenario};
  const Pod pod;
  const auto before = lab::pf_text(1);
  for (const auto& keys : {Json{{"promisc", true}}, Json{{"txQLen", 7}}, Json{{"sysctl", {{"net.ipv4.conf.IFNAME.arp_ignore", "1"}}}}}) {
    CAPTURE(keys.dump());
    auto all = keys;
    all["vlan"] = 100;
    expect_error(lab::attachment(kFunction, pod, all).add(), 100, {keys.begin().key(), "vfio-pci", "no network interface"});
  }
  expect_error(lab::attachment(kFunction, pod, {{"mtu", 9100}}).add(), 102, {"9100", "9000", "'eth0'"});
  CHECK(lab::pf_text(1) == before);
  support::expect_no_traces();
}

TEST_CASE("what an ADD for a VF bound to vfio-pci had set is back when IPAM fails") {
  Scenario scenario{lab::kLayout};
  const Userspace userspace{scenario};
  const Pod pod;
  const auto before = lab::pf_text(1);
  expect_error(lab::attachment(kFunction, pod, {{"vlan", 100}, {"ipam", {{"type", "static"}, {"addresses", "wrong"}}}}).add(), std::nullopt,
               {"static"});
  CHECK(lab::pf_text(1) == before);
  support::expect_no_traces();
}

TEST_CASE("a PF without VFs that is bound to vfio-pci gets an address, and nothing else") {
  Scenario scenario{lab::kLayout};
  const auto function = lab::pf(2);
  scenario.unbind(function);
  scenario.bind(function, "vfio-pci");
  {
    const Pod pod;
    expect_error(lab::attachment(function, pod, {{"vlan", 100}, {"mtu", 9000}, {"mac", kMac}}).add(), 100,
                 {"'vlan', 'mac', 'mtu'", "no VF"});
    const auto attachment = lab::attachment(function, pod, with_address(Json::object()));
    const auto result = expect_success(attachment.add());
    CHECK(result["interfaces"][0]["name"] == "net1");
    CHECK(result["ips"].size() == 1);
    expect_success(attachment.del());
    CHECK(lab::reserved_addresses().empty());
  }
  scenario.unbind(function);
  scenario.bind(function, "igb");
  lab::wait_for_netdev(function);
  sh("ip link set " + function.netdev() + " mtu 9000 up");
  lab::wait_for_carrier(function.netdev());
}

TEST_CASE("a VF whose driver is changed under its pod: what the PF had set comes back, the new driver's business is left alone") {
  Scenario scenario{lab::kLayout};
  Pod pod;
  const auto before = lab::vf_settings(kFunction);
  const auto attachment = lab::attachment(kFunction, pod, {{"vlan", 100}, {"trust", "on"}});
  expect_success(attachment.add());
  {
    const Userspace userspace{scenario};
    SECTION("by its DEL") {
      expect_success(attachment.del());
      CHECK(lab::vf_settings(kFunction) == before);
    }
    SECTION("by the next ADD") {
      auto next = attachment;
      next.container = "c2";
      next.network.erase("trust");
      expect_success(next.add());
      CHECK(lab::vf_settings(kFunction)["trust"] == false);
      CHECK(lab::vf_settings(kFunction)["vlan_list"][0]["vlan"] == 100);
      expect_success(attachment.del());
      expect_success(next.del());
      CHECK(lab::vf_settings(kFunction) == before);
    }
  }
  support::expect_no_traces();
}
