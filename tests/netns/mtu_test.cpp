// The MTU: checked before anything is touched, set in the move, proved afterwards, and good for frames of that size.

#include "support/catch.hpp"
#include "support/plugin.hpp"
#include "support/sandbox.hpp"

using namespace support;

namespace {

/// An IPAM plugin that gives out nothing and does `action` in the pod while ADD waits for it.
Json meddling_ipam(const std::string& action) {
  write_plugin("meddler", "[ $CNI_COMMAND = DEL ] || { " + action +
                              "; echo '{\"cniVersion\": \"1.0.0\", \"ips\": [{\"address\": \"10.0.0.5/24\"}]}'; }");
  return Json{{"ipam", {{"type", "meddler"}}}};
}

}  // namespace

TEST_CASE_METHOD(NicAndPod, "the configured MTU is in the kernel and in the result, and full-size packets pass from pod to pod") {
  add_nic("nic1");
  add_pod("pod2");
  const Attachment first{.network = config({{"mtu", 9000}, {"runtimeConfig", {{"ips", {"10.0.0.1/24"}}}}})};
  const Attachment second{.network = config({{"device", "nic1"}, {"mtu", 9000}, {"runtimeConfig", {{"ips", {"10.0.0.2/24"}}}}}),
                          .container = "c2",
                          .net_ns = "/run/netns/pod2"};
  const Json result = expect_success(first.add());
  expect_success(second.add());
  CHECK(result["interfaces"][0]["mtu"] == 9000);
  CHECK(show_link("net1", "pod")["mtu"] == 9000);
  CHECK(show_link("net1", "pod2")["mtu"] == 9000);
  sh("ip netns exec pod ping -c 1 -W 5 -M do -s 8972 10.0.0.2");
}

TEST_CASE_METHOD(NicAndPod, "the MTU stays as it is when none is configured, and when it is 0") {
  sh("ip link set nic0 mtu 3210");
  const Json keys = GENERATE(Json::object(), Json{{"mtu", 0}});
  CAPTURE(keys.dump());
  const Json result = expect_success(Attachment{.network = config(keys)}.add());
  CHECK(show_link("net1", "pod")["mtu"] == 3210);
  CHECK(result["interfaces"][0]["mtu"] == 3210);
}

TEST_CASE_METHOD(NicAndPod, "an MTU that no device can have is a configuration error") {
  const Snapshot before = snapshot("nic0");
  const Json mtu = GENERATE(Json(67), Json(65536), Json(-1), Json(4294968796), Json(1500.5), Json("9000"), Json(true));
  CAPTURE(mtu.dump());
  expect_error(Attachment{.network = config({{"mtu", mtu}})}.add(), 7, {"mtu", mtu.is_string() ? mtu.get<std::string>() : mtu.dump()});
  expect_home(before);
}

TEST_CASE_METHOD(NicAndPod, "an MTU above the device's own limit is refused with both numbers before anything is touched") {
  // A driver-mode XDP program at the peer lowers the limit of a veth end to what fits a page.
  sh("ip -n fabric link set nic0-peer mtu 1500");
  pin_xdp_program("pass");
  sh("ip -n fabric link set nic0-peer xdpdrv pinned /run/bpf/pass");
  const std::string limit = show_link("nic0")["max_mtu"].dump();
  REQUIRE(std::stoi(limit) < 9000);
  const Snapshot before = snapshot("nic0");
  expect_error(Attachment{.network = config({{"mtu", 9000}})}.under(strace({"-e", "trace=" + kSends})).add(), std::nullopt,
               {"9000", limit});
  CHECK(traced_moves().empty());
  expect_home(before);
}

TEST_CASE_METHOD(NicAndPod, "an MTU too small for IPv6 is refused before anything is touched when IPv6 addresses are asked for") {
  const Snapshot before = snapshot("nic0");
  const Attachment attachment{.network = config({{"mtu", 1279}, {"runtimeConfig", {{"ips", {"fd00::5/64"}}}}})};
  expect_error(attachment.under(strace({"-e", "trace=" + kSends})).add(), std::nullopt, {"1279", "1280"});
  CHECK(traced_moves().empty());
  expect_home(before);
}

TEST_CASE_METHOD(NicAndPod, "ADD fails and the NIC is home when IPAM gives an IPv6 address and the MTU is too small for it") {
  write_plugin("v6", R"([ $CNI_COMMAND = DEL ] || echo '{"cniVersion": "1.0.0", "ips": [{"address": "fd00::5/64"}]}')");
  const Snapshot before = snapshot("nic0");
  expect_error(Attachment{.network = config({{"mtu", 1279}, {"ipam", {{"type", "v6"}}}})}.add(), std::nullopt, {"1279", "1280"});
  expect_home(before);
}

TEST_CASE_METHOD(NicAndPod, "what changed while IPAM was at work is set again or fails ADD, but is never reported as it was") {
  const std::string action =
      GENERATE(as<std::string>{}, "ip -n pod link set net1 mtu 1400", "ip -n pod link set net1 address 02:00:00:00:00:77",
               "ip -n pod link set net1 down", "ip -n pod link set net1 down; ip -n pod link set net1 name other",
               "ip -n pod link set net1 promisc off");
  CAPTURE(action);
  Json keys = meddling_ipam(action);
  keys.update({{"mtu", 9000}, {"mac", "02:00:00:00:00:42"}, {"promisc", true}});
  const Snapshot before = snapshot("nic0");
  const Attachment attachment{.network = config(keys)};
  const Answer added = attachment.add();
  if (added.status == 0) {
    const Json in_pod = show_link("net1", "pod");
    CHECK(in_pod["mtu"] == 9000);
    CHECK(in_pod["address"] == "02:00:00:00:00:42");
    CHECK(has_flag(in_pod, "UP"));
    CHECK(has_flag(in_pod, "PROMISC"));
    expect_success(attachment.del());
  } else {
    expect_error(added, 102, {});
  }
  expect_home(before);
}

TEST_CASE_METHOD(NicAndPod, "an MTU that does not hold fails ADD, and the NIC comes home") {
  // A macvlan follows the link below it downwards, and cannot be set higher than that.
  sh("ip link set nic0 up mtu 9000 && ip link add mac0 link nic0 type macvlan && ip link set mac0 mtu 1400");
  Json keys = meddling_ipam("ip link set nic0 mtu 1400");
  keys.update({{"device", "mac0"}, {"mtu", 9000}});
  expect_error(Attachment{.network = config(keys)}.add(), std::nullopt, {"9000"});
  REQUIRE(has_link("mac0"));
  CHECK(show_link("mac0")["mtu"] == 1400);
  CHECK(link_names("pod") == std::vector<std::string>{});
  expect_no_traces();
}

TEST_CASE_METHOD(NicAndPod, "ADD does not succeed when the NIC leaves the pod while it works") {
  const Snapshot before = snapshot("nic0");
  const Attachment attachment{.network = config(meddling_ipam("ip -n pod link set net1 netns 1 name nic0"))};
  expect_error(attachment.add(), 102, {"pod"});
  expect_home(before);
}
