// The answer is in the caller's version, and what a version cannot say is refused before anything is touched.

#include "support/catch.hpp"
#include "support/plugin.hpp"
#include "support/sandbox.hpp"

using namespace support;

namespace {

const std::vector<std::string> kVersions{"0.1.0", "0.2.0", "0.3.0", "0.3.1", "0.4.0", "1.0.0", "1.1.0"};

/// An IPAM plugin of any version: it answers in the version of its input.
void write_scripted_ipam() {
  write_plugin("scripted", R"(
    [ $CNI_COMMAND = ADD ] || exit 0
    version=$(grep -o '"cniVersion":"[^"]*"' | cut -d '"' -f 4)
    case $version in
      0.1.0|0.2.0) echo '{"cniVersion": "'$version'",
        "ip4": {"ip": "10.0.0.5/24", "gateway": "10.0.0.1", "routes": [{"dst": "10.1.0.0/16", "gw": "10.0.0.1"}]},
        "ip6": {"ip": "fd00::5/64"}, "dns": {"nameservers": ["10.0.0.2"]}}';;
      0.*) echo '{"cniVersion": "'$version'",
        "ips": [{"version": "4", "address": "10.0.0.5/24", "gateway": "10.0.0.1"}, {"version": "6", "address": "fd00::5/64"}],
        "routes": [{"dst": "10.1.0.0/16", "gw": "10.0.0.1"}], "dns": {"nameservers": ["10.0.0.2"]}}';;
      *) echo '{"cniVersion": "'$version'",
        "ips": [{"address": "10.0.0.5/24", "gateway": "10.0.0.1"}, {"address": "fd00::5/64"}],
        "routes": [{"dst": "10.1.0.0/16", "gw": "10.0.0.1"}], "dns": {"nameservers": ["10.0.0.2"]}}';;
    esac)");
}

}  // namespace

TEST_CASE_METHOD(NicAndPod, "VERSION lists every version, in the version that it was asked in") {
  const std::string version = GENERATE(from_range(kVersions));
  const Answer asked = call({"VERSION", {}, Json{{"cniVersion", version}}.dump(), {}, plugin_binary()});
  const Json result = expect_success(asked);
  CHECK(result["cniVersion"] == version);
  CHECK(result["supportedVersions"] == Json(kVersions));
}

TEST_CASE_METHOD(NicAndPod, "VERSION needs no input") {
  const Json result = expect_success(call({"VERSION", {}, "", {}, plugin_binary()}));
  CHECK(result["supportedVersions"] == Json(kVersions));
}

TEST_CASE_METHOD(NicAndPod, "ADD answers in the caller's version with the fields that version has") {
  write_scripted_ipam();
  const Snapshot before = snapshot("nic0");
  const std::string mac = show_link("nic0")["address"];
  const std::string version = GENERATE(from_range(kVersions));
  CAPTURE(version);
  const Attachment attachment{.network = config({{"cniVersion", version}, {"mtu", 9000}, {"ipam", {{"type", "scripted"}}}})};
  const Json result = expect_success(attachment.add());

  Json interface{{"name", "net1"}, {"mac", mac}, {"sandbox", "/run/netns/pod"}};
  Json first{{"address", "10.0.0.5/24"}, {"gateway", "10.0.0.1"}, {"interface", 0}};
  Json second{{"address", "fd00::5/64"}, {"interface", 0}};
  const Json routes{{{"dst", "10.1.0.0/16"}, {"gw", "10.0.0.1"}}};
  Json expected{{"cniVersion", version}, {"dns", {{"nameservers", {"10.0.0.2"}}}}};
  if (version < "0.3.0") {
    expected["ip4"] = Json{{"ip", "10.0.0.5/24"}, {"gateway", "10.0.0.1"}, {"routes", routes}};
    expected["ip6"] = Json{{"ip", "fd00::5/64"}};
  } else {
    if (version >= "1.0.0") {
      interface["mtu"] = 9000;
    } else {
      first["version"] = "4";
      second["version"] = "6";
    }
    expected["interfaces"] = Json::array({interface});
    expected["ips"] = Json::array({first, second});
    expected["routes"] = routes;
  }
  CHECK(result == expected);
  CHECK(addresses("net1", "pod") == std::vector<std::string>{"10.0.0.5/24", "fd00::5/64"});
  expect_success(attachment.del());
  expect_home(before);
}

TEST_CASE_METHOD(NicAndPod, "a configuration without cniVersion is one of 0.1.0") {
  write_scripted_ipam();
  Attachment attachment{.network = config({{"cniVersion", "0.1.0"}, {"ipam", {{"type", "host-local"}, {"subnet", "10.7.0.0/24"}}}})};
  attachment.network.erase("cniVersion");
  const Json result = expect_success(attachment.add());
  CHECK(result["cniVersion"] == "0.1.0");
  CHECK(result["ip4"]["ip"] == "10.7.0.2/24");
}

TEST_CASE_METHOD(NicAndPod, "a version that nobody speaks is code 1, and nothing is touched") {
  const Snapshot before = snapshot("nic0");
  const std::string verb = GENERATE(as<std::string>{}, "ADD", "DEL");
  const std::string version = GENERATE(as<std::string>{}, "9.9.9", "1.2.0", "0.5.0");
  CAPTURE(verb, version);
  const Attachment attachment{.network = config({{"cniVersion", version}})};
  expect_error(call(attachment.to_call(verb)), 1, {version, "1.1.0"});
  expect_home(before);
}

TEST_CASE_METHOD(NicAndPod, "0.1.0 and 0.2.0 cannot say that there is no address: ADD without IPAM is refused and nothing is touched") {
  const Snapshot before = snapshot("nic0");
  const std::string version = GENERATE(as<std::string>{}, "0.1.0", "0.2.0");
  const Json keys = GENERATE(Json::object(), Json{{"ipam", Json::object()}});
  CAPTURE(version, keys.dump());
  Json network = config(keys);
  network["cniVersion"] = version;
  expect_error(Attachment{.network = network}.under(strace({"-e", "trace=" + kSends})).add(), 1, {version});
  CHECK(traced_moves().empty());
  expect_home(before);
}

TEST_CASE_METHOD(NicAndPod, "a verb that the configuration's version does not have is code 1") {
  const auto [verb, version] = GENERATE(
      table<std::string, std::string>({{"CHECK", "0.3.1"}, {"CHECK", "0.1.0"}, {"STATUS", "1.0.0"}, {"STATUS", "0.4.0"}, {"GC", "1.0.0"}}));
  CAPTURE(verb, version);
  expect_error(call(Attachment{.network = config({{"cniVersion", version}})}.to_call(verb)), 1, {verb});
}

TEST_CASE_METHOD(NicAndPod, "an error is answered in the caller's version") {
  const std::string version = GENERATE(from_range(kVersions));
  const Answer added = Attachment{.network = config({{"cniVersion", version}, {"mtu", 1}})}.add();
  expect_error(added, 7, {"mtu"});
  CHECK(added.json["cniVersion"] == version);
}
