// Other plugins before and after us in a list, at 1.0.0: tuning, sbr and bandwidth as Debian ships them.

#include "support/catch.hpp"
#include "support/plugin.hpp"
#include "support/sandbox.hpp"

using namespace support;

namespace {

const Json kStatic{{"ipam",
                    {{"type", "static"},
                     {"addresses", Json::array({Json{{"address", "10.7.0.9/24"}, {"gateway", "10.7.0.1"}}})},
                     {"routes", Json::array({Json{{"dst", "10.8.0.0/16"}}})}}}};

/// The same attachment for another plugin of the list.
Attachment for_plugin(Attachment attachment, const std::string& type, const Json& keys) {
  attachment.binary = "/usr/lib/cni/" + type;
  attachment.network = Json{{"cniVersion", "1.0.0"}, {"name", "rail"}, {"type", type}};
  attachment.network.update(keys);
  return attachment;
}

Attachment with_result(Attachment attachment, const Json& result) {
  attachment.network["prevResult"] = result;
  return attachment;
}

}  // namespace

TEST_CASE_METHOD(NicAndPod, "tuning after us works on our result, CHECK accepts what it changed, and both DELs bring the NIC home") {
  const Snapshot before = snapshot("nic0");
  const Attachment ours{.network = config(kStatic)};
  const Attachment tuning =
      for_plugin(ours, "tuning", {{"mtu", 1400}, {"mac", "02:00:00:00:00:42"}, {"sysctl", {{"net.ipv4.conf.IFNAME.arp_ignore", "1"}}}});
  const Json first = expect_success(ours.add());
  const Json second = expect_success(with_result(tuning, first).add());
  CHECK(show_link("net1", "pod")["mtu"] == 1400);
  CHECK(show_link("net1", "pod")["address"] == "02:00:00:00:00:42");
  expect_success(with_result(tuning, second).del());
  expect_success(with_result(ours, second).del());
  expect_home(before);
}

TEST_CASE_METHOD(NicAndPod, "sbr after us moves the routes, CHECK does not mind, and both DELs bring the NIC home") {
  const Snapshot before = snapshot("nic0");
  const Attachment ours{.network = config(kStatic)};
  const Attachment sbr = for_plugin(ours, "sbr", Json::object());
  const Json first = expect_success(ours.add());
  const Json second = expect_success(with_result(sbr, first).add());
  CHECK_FALSE(ip_json("-n pod rule show").size() <= 3);
  CHECK(ip_json("-n pod route show 10.8.0.0/16").empty());
  expect_success(ours.check(second));
  expect_success(with_result(sbr, second).del());
  expect_success(with_result(ours, second).del());
  expect_home(before);
}

TEST_CASE_METHOD(Sandbox, "bandwidth after us shapes the host's end that the result before us lists, and both DELs bring the NIC home") {
  add_pod();
  // bandwidth works on the peer of the pod's interface, which it wants in the host and in the result; no NIC has one, so others list it.
  sh("ip link add nic0 type veth peer name nic0-peer");
  const Json previous{{"cniVersion", "1.0.0"}, {"interfaces", Json::array({Json{{"name", "nic0-peer"}}})}};
  const Snapshot before = snapshot("nic0");
  const Attachment ours{.network = config(kStatic)};
  const Attachment bandwidth = for_plugin(
      ours, "bandwidth", {{"ingressRate", 8000000}, {"ingressBurst", 8000000}, {"egressRate", 8000000}, {"egressBurst", 8000000}});
  const Json first = expect_success(with_result(ours, previous).add());
  const Json second = expect_success(with_result(bandwidth, first).add());
  CHECK(missing_words(sh("tc qdisc show dev nic0-peer"), {"tbf"}) == "");
  expect_success(ours.check(second));
  expect_success(with_result(bandwidth, second).del());
  expect_success(with_result(ours, second).del());
  expect_home(before);
}

TEST_CASE_METHOD(NicAndPod, "our result lists exactly one interface, with its sandbox, and addresses that refer to it") {
  const Json result = expect_success(Attachment{.network = config(kStatic)}.add());
  REQUIRE(result["interfaces"].size() == 1);
  CHECK(result["interfaces"][0]["sandbox"] == "/run/netns/pod");
  REQUIRE(result["ips"].size() == 1);
  CHECK(result["ips"][0]["interface"] == 0);
  CHECK(result["ips"][0]["gateway"] == "10.7.0.1");
}

TEST_CASE_METHOD(NicAndPod, "ADD passes a prevResult on with its own interface, addresses and routes appended") {
  const Json previous{{"cniVersion", "1.0.0"},
                      {"interfaces", Json::array({Json{{"name", "eth0"}, {"mac", "02:00:00:00:00:99"}, {"sandbox", "/run/netns/pod"}},
                                                  Json{{"name", "veth7"}, {"mac", "02:00:00:00:00:98"}}})},
                      {"ips", Json::array({Json{{"address", "172.16.0.2/24"}, {"gateway", "172.16.0.1"}, {"interface", 0}}})},
                      {"routes", Json::array({Json{{"dst", "0.0.0.0/0"}, {"gw", "172.16.0.1"}}})},
                      {"dns", {{"nameservers", {"172.16.0.53"}}}}};
  const Attachment ours{.network = config(kStatic)};
  const Json result = expect_success(with_result(ours, previous).add());
  REQUIRE(result["interfaces"].size() == 3);
  CHECK(result["interfaces"][0] == previous["interfaces"][0]);
  CHECK(result["interfaces"][1] == previous["interfaces"][1]);
  CHECK(result["interfaces"][2]["name"] == "net1");
  REQUIRE(result["ips"].size() == 2);
  CHECK(result["ips"][0] == previous["ips"][0]);
  CHECK(result["ips"][1] == Json{{"address", "10.7.0.9/24"}, {"gateway", "10.7.0.1"}, {"interface", 2}});
  REQUIRE(result["routes"].size() == 2);
  CHECK(result["routes"][0] == previous["routes"][0]);
  CHECK(result["routes"][1]["dst"] == "10.8.0.0/16");
  CHECK(result["dns"]["nameservers"][0] == "172.16.0.53");
  expect_success(ours.check(result));
  expect_success(with_result(ours, result).del());
}

TEST_CASE_METHOD(NicAndPod, "a prevResult is read in its own cniVersion") {
  Json previous{{"cniVersion", "0.4.0"},
                {"interfaces", Json::array({Json{{"name", "eth0"}, {"sandbox", "/run/netns/pod"}}})},
                {"ips", Json::array({Json{{"version", "4"}, {"address", "172.16.0.2/24"}, {"interface", 0}}})}};
  SECTION("an older one") {}
  SECTION("one without interfaces") {
    previous = Json{{"cniVersion", "0.2.0"}, {"ip4", {{"ip", "172.16.0.2/24"}}}};
  }
  SECTION("none: the configuration's") {
    previous.erase("cniVersion");
    previous["ips"][0].erase("version");
  }
  const Json result = expect_success(with_result(Attachment{}, previous).add());
  CHECK(result["cniVersion"] == "1.0.0");
  CHECK(result["interfaces"].back()["name"] == "net1");
  REQUIRE(result["ips"].size() == 1);
  CHECK(result["ips"][0]["address"] == "172.16.0.2/24");
  CHECK_FALSE(result["ips"][0].contains("version"));
}

TEST_CASE_METHOD(NicAndPod, "a prevResult that is broken is refused before anything is touched") {
  const Json previous = GENERATE(Json("text"), Json::array(), Json{{"cniVersion", "9.9.9"}}, Json{{"cniVersion", "1.0.0"}, {"ips", 7}},
                                 Json{{"cniVersion", "1.0.0"}, {"ips", Json::array({Json{{"address", "10.0.0.1/24"}, {"interface", 5}}})}});
  CAPTURE(previous.dump());
  const Snapshot before = snapshot("nic0");
  expect_error(with_result(Attachment{}, previous).under(strace({"-e", "trace=" + kSends})).add(), std::nullopt, {"prevResult"});
  CHECK(traced_moves().empty());
  expect_home(before);
}
