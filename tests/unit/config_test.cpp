#include "cni/config.hpp"

#include <filesystem>

#include "cni/error.hpp"
#include "cni/json.hpp"
#include "netlink/files.hpp"
#include "support/catch.hpp"
#include "support/temp_dir.hpp"

using cni::AttachConfig;
using cni::Json;
using cni::NetworkConfig;
using cni::read_attach_config;
using cni::read_network_config;
using netlink::HardwareAddress;
using netlink::IpPrefix;
using std::chrono::milliseconds;

namespace {

/// A configuration with these members besides the usual ones.
std::string stdin_with(const std::string& members) {
  return R"({"cniVersion": "1.0.0", "name": "rail0", "type": "fabric-nic")" + (members.empty() ? "" : ", " + members) + "}";
}

NetworkConfig network(const std::string& members) {
  return read_network_config(stdin_with(members));
}

AttachConfig attach(const std::string& members, const std::string& cni_args = {}) {
  return read_attach_config(network(members), cni_args);
}

struct Refusal {
  int code = 0;
  std::string message;

  [[nodiscard]] bool says(std::string_view part) const { return message.contains(part); }
};

template <typename Action>
Refusal refusal_of(const Action& action) {
  try {
    action();
  } catch (const cni::Error& error) {
    return {error.code(), error.what()};
  }
  return {};
}

Refusal refusal(const std::string& members, const std::string& cni_args = {}) {
  return refusal_of([&] { static_cast<void>(attach(members, cni_args)); });
}

/// That each of the configurations is refused with this code, and that the message names the key and is short.
void check_each_refused(int code, const std::string& key, const std::vector<std::string>& each) {
  for (const auto& members : each) {
    const auto seen = refusal(members);
    INFO(members.substr(0, 200) << "\n" << seen.message);
    CHECK(seen.code == code);
    CHECK(seen.says("'" + key + "'"));
    CHECK(seen.message.size() < 600);
  }
}

std::string nul(std::string text) {
  const std::string mark = "NUL";
  return text.replace(text.find(mark), mark.size(), R"(\u0000)");
}

std::string megabyte(char letter) {
  return std::string(std::size_t{1} << 20U, letter);
}

bool notes(const AttachConfig& config, std::string_view part) {
  return std::ranges::any_of(config.notes, [part](const std::string& note) { return note.contains(part); });
}

}  // namespace

TEST_CASE("stdin that is no JSON object is error 6") {
  for (const auto& text :
       {std::string{}, std::string{"{"}, std::string{"[]"}, std::string{"null"}, std::string{R"("name")"}, std::string{"{}}"},
        std::string{R"({"name": "a", "name": "a"})"}, std::string{"\xff\xfe"}, std::string(100'000, '[')}) {
    const auto seen = refusal_of([&] { static_cast<void>(read_network_config(text)); });
    INFO(seen.message);
    CHECK(seen.code == 6);
    CHECK(seen.says("the configuration on stdin is"));
    CHECK(seen.message.size() < 300);
  }
}

TEST_CASE("a cniVersion that is no string is error 6") {
  const auto seen = refusal_of([] { static_cast<void>(read_network_config(R"({"name": "a", "cniVersion": 1.0})")); });
  CHECK(seen.code == 6);
  CHECK(seen.says("'cniVersion' is 1.0"));
}

TEST_CASE("a missing name is error 7, and so is a malformed one") {
  CHECK(refusal_of([] { static_cast<void>(read_network_config(R"({"cniVersion": "1.0.0"})")); }).says("missing network name"));
  for (const auto* name : {R"("")", "null"}) {
    const auto seen = refusal_of([&] { static_cast<void>(read_network_config(std::string{R"({"name": )"} + name + "}")); });
    CHECK(seen.code == 7);
    CHECK(seen.says("missing network name"));
  }
  for (const auto* name : {R"("../etc")", R"("a b")", "5", R"("a\u0000b")", "{}"}) {
    const auto seen = refusal_of([&] { static_cast<void>(read_network_config(std::string{R"({"name": )"} + name + "}")); });
    INFO(seen.message);
    CHECK(seen.code == 7);
    CHECK(seen.says("'name' is"));
  }
}

TEST_CASE("what every verb needs is read, and stdin is kept as it came") {
  const auto text = stdin_with(R"("ipam": {"type": "host-local"}, "logFile": "/var/log/x", "logLevel": "debug", "device": "nic0",
      "hwaddr": "02:00:00:00:00:0A", "kernelpath": "/sys/devices/virtual/net/nic0", "deviceID": "0000:3b:00.2", "pciBusID": "0000:3b:00.2",
      "runtimeConfig": {"deviceID": "mlx5_core.sf.4"}, "prevResult": {"cniVersion": "1.0.0"}, "args": {"cni": {"a": "b"}})");
  const auto config = read_network_config(text);
  CHECK(config.raw == text);
  CHECK(config.cni_version == "1.0.0");
  CHECK(config.name == "rail0");
  CHECK(config.ipam_type == "host-local");
  CHECK(config.log_file == "/var/log/x");
  CHECK(config.log_level == cni::LogLevel::debug);
  CHECK(config.selectors.device == "nic0");
  CHECK(config.selectors.hwaddr == HardwareAddress::parse("02:00:00:00:00:0a"));
  CHECK(config.selectors.kernel_path == "/sys/devices/virtual/net/nic0");
  CHECK(config.selectors.device_id == "0000:3b:00.2");
  CHECK(config.selectors.runtime_device_id == "mlx5_core.sf.4");
  CHECK(config.prev_result == R"({"cniVersion":"1.0.0"})");
}

TEST_CASE("what is not given is absent") {
  const auto config = read_network_config(R"({"name": "a"})");
  CHECK(config.cni_version.empty());
  CHECK(config.ipam_type.empty());
  CHECK_FALSE(config.prev_result);
  CHECK_FALSE(config.log_file);
  CHECK(config.log_level == cni::LogLevel::info);
  CHECK_FALSE(config.selectors.device);
  CHECK_FALSE(config.selectors.device_id);
  const auto attachment = read_attach_config(config, "");
  CHECK_FALSE(attachment.mtu);
  CHECK_FALSE(attachment.mac);
  CHECK_FALSE(attachment.promisc);
  CHECK_FALSE(attachment.allmulti);
  CHECK_FALSE(attachment.tx_queue_length);
  CHECK(attachment.sysctls.empty());
  CHECK(attachment.ips.empty());
  CHECK(attachment.dns.is_empty());
  CHECK(attachment.default_route == cni::DefaultRoute::drop);
  CHECK_FALSE(attachment.allow_in_use);
  CHECK_FALSE(attachment.waits.carrier);
  CHECK(attachment.waits.device == milliseconds{2000});
  CHECK(attachment.waits.owner == milliseconds{5000});
  CHECK(attachment.notes.empty());
}

TEST_CASE("wrong types do not fail the reading that DEL does") {
  const auto config = network(R"("ipam": ["x"], "logFile": 5, "logLevel": {}, "device": ["nic0"], "hwaddr": true, "kernelpath": -1,
      "deviceID": {}, "pciBusID": 7, "runtimeConfig": "x", "args": 3, "prevResult": [], "mtu": "huge", "unknown": 1, "vlan": 5)");
  CHECK(config.ipam_type.empty());
  CHECK_FALSE(config.log_file);
  CHECK(config.log_level == cni::LogLevel::info);
  CHECK_FALSE(config.selectors.device);
  CHECK_FALSE(config.selectors.hwaddr);
  CHECK_FALSE(config.selectors.kernel_path);
  CHECK_FALSE(config.selectors.device_id);
  CHECK_FALSE(config.selectors.runtime_device_id);
  CHECK_FALSE(config.prev_result);
}

TEST_CASE("an IPAM type that is a path is not there for DEL, and error 7 for ADD") {
  for (const auto* type : {R"("../bin/sh")", R"("a/b")", R"("..")", R"(".")", R"("a b")", R"("a\u0000b")", "5", R"(["host-local"])"}) {
    const auto members = std::string{R"("ipam": {"type": )"} + type + "}";
    CAPTURE(members);
    CHECK(network(members).ipam_type.empty());
    CHECK(refusal(members).code == 7);
    CHECK(refusal(members).says("'ipam.type' is"));
  }
}

TEST_CASE("an empty ipam is none, one without a type is error 7") {
  for (const auto* ipam : {"{}", "null", R"({"type": ""})"}) {
    CHECK(network(std::string{R"("ipam": )"} + ipam).ipam_type.empty());
    CHECK_NOTHROW(attach(std::string{R"("ipam": )"} + ipam));
  }
  for (const auto* ipam : {R"({"foo": 1})", R"({"type": "", "foo": 1})", "[]", "true", R"("host-local")"}) {
    const auto seen = refusal(std::string{R"("ipam": )"} + ipam);
    CAPTURE(ipam);
    CHECK(seen.code == 7);
    CHECK(seen.says("'ipam'"));
  }
}

TEST_CASE("keys are found whatever their case, an exact match first") {
  CHECK(attach(R"("MTU": 9000)").mtu == 9000U);
  CHECK(attach(R"("Mtu": 1400, "mtu": 9000, "MTU": 1300)").mtu == 9000U);
  CHECK(notes(attach(R"("mtu": 9000, "MTU": 1300)"), "'MTU' is ignored"));
  CHECK(network(R"("pciBusId": "0000:3b:00.2")").selectors.device_id == "0000:3b:00.2");
  CHECK(read_network_config(R"({"NAME": "a", "CniVersion": "0.3.1", "IPAM": {"Type": "static"}})").ipam_type == "static");
  CHECK(attach(R"("RuntimeConfig": {"MAC": "02:00:00:00:00:01"}, "Args": {"CNI": {"mtu": 1400}})").mtu == 1400U);
  CHECK(attach(R"("WAIT": {"Carrier": "3s"})").waits.carrier == milliseconds{3000});
}

TEST_CASE("an unknown key is error 2 with key, value and what was probably meant") {
  const auto seen = refusal(R"("mtuu": 9000)");
  CHECK(seen.code == 2);
  CHECK(seen.message == "unknown key: 'mtuu' is 9000, 'mtu' was probably meant");
}

TEST_CASE("the key that was probably meant is named only when it is plausible") {
  const std::map<std::string, std::string> guesses{{"mut", "mtu"},
                                                   {"tx_q_len", "txQLen"},
                                                   {"device_id", "deviceID"},
                                                   {"hwadr", "hwaddr"},
                                                   {"promiscuous", ""},
                                                   {"maxTxRate", "max_tx_rate"},
                                                   {"foo", ""},
                                                   {"kernel-path", "kernelpath"},
                                                   {"sysctls", "sysctl"},
                                                   {"alowInUse", "allowInUse"},
                                                   {"", ""},
                                                   {"loglevle", "logLevel"},
                                                   {"abc", ""},
                                                   {"bandwidth", ""}};
  for (const auto& [key, guess] : guesses) {
    const auto seen = refusal('"' + key + R"(": null)");
    INFO(seen.message);
    CHECK(seen.code == 2);
    CHECK(seen.says("'" + key + "' is null"));
    CHECK(seen.says("probably meant") == !guess.empty());
    CHECK((guess.empty() || seen.says("'" + guess + "' was probably meant")));
  }
}

TEST_CASE("a key or value of a megabyte makes a short message") {
  check_each_refused(2, "mtu" + std::string(77, 'u'), {'"' + ("mtu" + megabyte('u')) + R"(": 1)"});
  check_each_refused(2, "bigger", {R"("bigger": ")" + megabyte('x') + '"'});
  check_each_refused(7, "device", {R"("device": ")" + megabyte('x') + '"'});
  check_each_refused(7, "mac", {R"("mac": ")" + megabyte('0') + '"'});
}

TEST_CASE("keys of the specification, of its library, and of others pass") {
  const auto config =
      attach(R"("cniVersions": ["1.0.0"], "plugins": 5, "capabilities": {"ips": true}, "args": {"labels": []}, "ipMasq": false,
      "disableCheck": true, "disableGC": 1, "loadOnlyInlinedPlugins": false, "cni.dev/attachments": [], "cni.dev/valid-attachments": 7,
      "example.com/x": {}, "x.y": 0, "runtimeConfig": {"bandwidth": {}, "portMappings": 5, "CNIDeviceInfoFile": "/run/k8s.cni.cncf.io/devinfo/cni/x"}, "prevResult": {})");
  CHECK(config.notes.empty());
}

TEST_CASE("a peer's key without meaning here is accepted and noted") {
  const auto config = attach(R"("resourceName": "example.com/nic", "vfioPciMode": false, "Master": "eth0", "VFID": 3)");
  CHECK(config.notes.size() == 4);
  for (const auto* key : {"'resourceName' is ignored", "'vfioPciMode' is ignored", "'master' is ignored", "'vfid' is ignored"}) {
    CHECK(notes(config, key));
  }
}

TEST_CASE("a peer's key that something else replaces is error 2 and names it") {
  const std::map<std::string, std::string> replacements{{R"("rdmaIsolation": true)", "'rdma'"},
                                                        {R"("dataDir": "/run/cni/tuning")", "/etc/cni/fabric-nic.json"},
                                                        {R"("logDir": "/tmp")", "/etc/cni/fabric-nic.json"},
                                                        {R"("allowedDevices": [])", "/etc/cni/fabric-nic.json"},
                                                        {R"("infinibandGUID": "02:11:22:33:44:55:66:77")", "runtimeConfig.infinibandGUID"},
                                                        {R"("guid": "02:11:22:33:44:55:66:77")", "args.cni.guid"},
                                                        {R"("table": 100)", "'sbr'"},
                                                        {R"("ips": ["10.0.0.5/24"])", "runtimeConfig.ips"}};
  for (const auto& [members, replacement] : replacements) {
    const auto seen = refusal(members);
    INFO(seen.message);
    CHECK(seen.code == 2);
    CHECK(seen.says(replacement));
  }
}

TEST_CASE("what this release does not do is error 2 with key and value") {
  const auto seen = refusal(R"("path": {"target": "gateway"})");
  CHECK(seen.code == 2);
  CHECK(seen.message == R"(unsupported key: 'path' is {"target":"gateway"}, but this release does not probe the path)");
  for (const auto* member : {R"("require": ["gid"])", R"("path": {"target": "gateway"})", R"("path": {})", R"("sourceRouting": true)",
                             R"("ipMasq": true)", R"("infinibandGUID": "x")", R"("guid": "x")"}) {
    const auto each = refusal(member);
    INFO(member << "\n" << each.message);
    const Json value = Json::parse(std::string{"{"} + member + "}").begin().value();
    CHECK(each.code == 2);
    CHECK(each.says(value.dump()));
  }
}

TEST_CASE("settings of a VF are read as sriov-cni's, in any case of the keys") {
  const auto config =
      attach(R"("vlan": 100, "vlanQoS": 3, "VlanProto": "802.1AD", "spoofchk": "off", "trust": "on", "link_state": "disable",
      "min_tx_rate": 10, "max_tx_rate": 100)");
  CHECK(config.vf == cni::VfRequest{.vlan = netlink::VfVlan{.id = 100, .qos = 3, .protocol = netlink::kProtocol8021ad},
                                    .min_tx_rate = 10,
                                    .max_tx_rate = 100,
                                    .spoof_check = false,
                                    .trust = true,
                                    .link_state = netlink::VfLinkState::disable,
                                    .guid = {}});
  CHECK(config.notes.empty());
  CHECK(attach("").vf.is_empty());
  CHECK(attach(R"("vlan": null, "spoofchk": "", "trust": "", "link_state": "")").vf.is_empty());
  CHECK(attach(R"("vlan": 0)").vf.vlan == netlink::VfVlan{});
  CHECK(attach(R"("max_tx_rate": 0, "min_tx_rate": 5)").vf.min_tx_rate == 5U);
  // As the operator of SR-IOV networks writes it.
  cni::VfRequest none;
  none.vlan = netlink::VfVlan{};
  CHECK(attach(R"("vlan": 0, "vlanQoS": 0, "vlanProto": "802.1q")").vf == none);
}

TEST_CASE("settings of a VF that are out of range, of the wrong type, or go with no VLAN, are error 7") {
  check_each_refused(7, "vlan", {R"("vlan": 4095)", R"("vlan": -1)", R"("vlan": "100")", R"("vlan": 1.5)", R"("vlan": true)"});
  check_each_refused(
      7, "vlanQoS",
      {R"("vlan": 5, "vlanQoS": 8)", R"("vlan": 5, "vlanQoS": "3")", R"("vlanQoS": 3)", R"("vlanQoS": 0)", R"("vlan": 0, "vlanQoS": 1)"});
  check_each_refused(7, "vlanProto",
                     {R"("vlan": 5, "vlanProto": "802.1x")", R"("vlan": 5, "vlanProto": 5)", R"("vlanProto": "802.1q")",
                      R"("vlan": 0, "vlanProto": "802.1ad")"});
  check_each_refused(7, "spoofchk", {R"("spoofchk": "yes")", R"("spoofchk": true)", R"("spoofchk": "ON")"});
  check_each_refused(7, "trust", {R"("trust": "enabled")", R"("trust": false)"});
  check_each_refused(7, "link_state", {R"("link_state": "up")", R"("link_state": 1)"});
  check_each_refused(7, "min_tx_rate", {R"("min_tx_rate": -1)", R"("min_tx_rate": 4294967296)", R"("min_tx_rate": 20, "max_tx_rate": 10)"});
  check_each_refused(7, "max_tx_rate", {R"("max_tx_rate": "10")", R"("max_tx_rate": 4294967296)"});
}

TEST_CASE("settings of a VF are not a pod's to choose") {
  CHECK(attach(R"("args": {"cni": {"vlan": 5, "trust": "on", "spoofchk": "off", "max_tx_rate": 5}}, "runtimeConfig": {"vlan": 5})")
            .vf.is_empty());
}

TEST_CASE("a device-info file is where the runtime keeps them, and nowhere else") {
  const auto file = [](const std::string& path) { return R"("runtimeConfig": {"CNIDeviceInfoFile": ")" + path + "\"}"; };
  for (const auto* path : {"/run/k8s.cni.cncf.io/devinfo/cni/a_net1", "/run/k8s.cni.cncf.io/devinfo/x"}) {
    CHECK(attach(file(path)).device_info_file == path);
    CHECK(attach(file(std::string{"/var"} + path)).device_info_file == path);
  }
  CHECK(attach(R"("runtimeConfig": {"CNIDeviceInfoFile": ""})").device_info_file.empty());
  CHECK(attach("").device_info_file.empty());
  for (const auto* path : {"/etc/x",
                           "x",
                           "/run/k8s.cni.cncf.io/devinfo",
                           "/run/k8s.cni.cncf.io/devinfo/",
                           "/run/k8s.cni.cncf.io/devinfo/a/",
                           "/run/k8s.cni.cncf.io/devinfo/../x",
                           "/run/k8s.cni.cncf.io/devinfo/a/../../x",
                           "/run/k8s.cni.cncf.io/devinfo/.",
                           "/run/k8s.cni.cncf.io/devinfo/cni/.hidden",
                           "/run/k8s.cni.cncf.io/devinfo/dp",
                           "/run/k8s.cni.cncf.io/devinfo/cni",
                           "/run/k8s.cni.cncf.io/devinfo/cni/",
                           "/run/k8s.cni.cncf.io/devinfo/a/b",
                           "/run/k8s.cni.cncf.io/devinfo/cni/a/b",
                           "/var/var/run/k8s.cni.cncf.io/devinfo/x",
                           "/run/k8s.cni.cncf.io/devinfo/dp/x",
                           "/var/run/k8s.cni.cncf.io/devinfo//dp/x",
                           "/run/k8s.cni.cncf.io/devinfox/a",
                           "/var/k8s.cni.cncf.io/devinfo/a",
                           R"(/run/k8s.cni.cncf.io/devinfo/a\nb)"}) {
    CAPTURE(path);
    check_each_refused(7, "runtimeConfig.CNIDeviceInfoFile", {file(path)});
  }
  check_each_refused(7, "runtimeConfig.CNIDeviceInfoFile", {R"("runtimeConfig": {"CNIDeviceInfoFile": 5})"});
}

TEST_CASE("values that ask for nothing are accepted") {
  CHECK(attach(R"("rdma": "auto", "require": [], "sourceRouting": false, "ipMasq": false, "ibKubernetesEnabled": false, "vlan": null,
      "spoofchk": "", "trust": "", "link_state": "", "path": null, "pkey": "", "runtimeConfig": {"infinibandGUID": ""}, "mac": "", "hwaddr": "",
      "device": "", "kernelpath": "", "logLevel": "", "logFile": "", "defaultRoute": "", "deviceID": "", "dns": {}, "wait": {})")
            .notes.empty());
}

TEST_CASE("a value of the wrong type is error 7 also for keys that this release does not have") {
  check_each_refused(7, "require", {R"("require": "gid")", R"("require": {})"});
  check_each_refused(7, "sourceRouting", {R"("sourceRouting": "false")", R"("sourceRouting": 0)"});
}

TEST_CASE("mtu is a whole number from 68 to 65535, and 0 keeps the device's") {
  CHECK(attach(R"("mtu": 68)").mtu == 68U);
  CHECK(attach(R"("mtu": 65535)").mtu == 65535U);
  CHECK_FALSE(attach(R"("mtu": 0)").mtu);
  CHECK_FALSE(attach(R"("mtu": null)").mtu);
  check_each_refused(7, "mtu",
                     {R"("mtu": 67)", R"("mtu": 1)", R"("mtu": 65536)", R"("mtu": -1)", R"("mtu": -9000)", R"("mtu": 9000.5)",
                      R"("mtu": 9000.0)", R"("mtu": 1e300)", R"("mtu": 18446744073709551616)", R"("mtu": 4294976296)", R"("mtu": true)",
                      R"("mtu": "9000")", R"("mtu": "")", R"("mtu": [9000])", R"("mtu": {"mtu": 9000})"});
  CHECK(refusal(R"("mtu": 66000)").message == "'mtu' is 66000, a number from 68 to 65535, or 0 to keep the device's, was wanted");
}

TEST_CASE("mac is a unicast address of 6 or 20 bytes") {
  const auto config = attach(R"("mac": "02:AB:00:00:00:01")");
  CHECK(config.mac == HardwareAddress::parse("02:ab:00:00:00:01"));
  CHECK(config.mac_source == "mac");
  CHECK(attach(R"("mac": "80:00:02:08:fe:80:00:00:00:00:00:00:00:02:c9:03:00:0a:0b:0c")").mac->bytes().size() == 20);
  check_each_refused(7, "mac",
                     {R"("mac": "00:00:00:00:00:00")", R"("mac": "01:00:5e:00:00:01")", R"("mac": "ff:ff:ff:ff:ff:ff")",
                      R"("mac": "02:00:00:00:00")", R"("mac": "02:00:00:00:00:01:")", R"("mac": "random")", R"("mac": 5)",
                      R"("mac": ["02:00:00:00:00:01"])", R"("mac": "02:00:00:00:00:01 ")", nul(R"("mac": "02:00:00:00:00:01NUL")")});
}

TEST_CASE("mac comes from the configuration, CNI_ARGS, runtimeConfig and args.cni, the last of them winning") {
  const std::string config = R"("mac": "02:00:00:00:00:01")";
  const std::string args = "IgnoreUnknown=1;MAC=02:00:00:00:00:02";
  const std::string runtime = R"(, "runtimeConfig": {"mac": "02:00:00:00:00:03"})";
  const std::string pod = R"(, "args": {"cni": {"mac": "02:00:00:00:00:04"}})";
  const auto check = [](const AttachConfig& seen, const std::string& mac, const std::string& source) {
    CHECK(seen.mac == HardwareAddress::parse(mac));
    CHECK(seen.mac_source == source);
  };
  check(attach(config), "02:00:00:00:00:01", "mac");
  check(attach(config, args), "02:00:00:00:00:02", "CNI_ARGS MAC");
  check(attach(config + runtime, args), "02:00:00:00:00:03", "runtimeConfig.mac");
  check(attach(config + pod, args), "02:00:00:00:00:04", "args.cni.mac");
  check(attach(config + runtime + pod, args), "02:00:00:00:00:04", "args.cni.mac");
  check(attach(config, "MAC="), "02:00:00:00:00:01", "mac");
}

TEST_CASE("a wrong address is an error that names its source, also where it does not count") {
  const auto seen = refusal(R"("args": {"cni": {"mac": "02:00:00:00:00:04"}})", "MAC=nonsense\xff");
  CHECK(seen.code == 7);
  CHECK(seen.says("'CNI_ARGS MAC' is"));
  check_each_refused(7, "runtimeConfig.mac", {R"("runtimeConfig": {"mac": "x"})", R"("runtimeConfig": {"mac": 5})"});
  check_each_refused(7, "args.cni.mac", {R"("args": {"cni": {"mac": "00:00:00:00:00:00"}})"});
}

TEST_CASE("malformed CNI_ARGS are error 4 for ADD") {
  CHECK(refusal("", "nonsense").code == 4);
}

TEST_CASE("promisc and allmulti are booleans") {
  const auto config = attach(R"("promisc": true, "allmulti": false)");
  CHECK(config.promisc == true);
  CHECK(config.allmulti == false);
  check_each_refused(7, "promisc", {R"("promisc": 1)", R"("promisc": "on")", R"("promisc": "")", R"("promisc": {})"});
  check_each_refused(7, "allmulti", {R"("allmulti": 0)", R"("allmulti": "true")"});
}

TEST_CASE("txQLen is a number that the kernel takes, 0 included") {
  CHECK(attach(R"("txQLen": 0)").tx_queue_length == 0U);
  CHECK(attach(R"("txQLen": 2147483647)").tx_queue_length == 2147483647U);
  check_each_refused(7, "txQLen",
                     {R"("txQLen": -1)", R"("txQLen": 2147483648)", R"("txQLen": 1e3)", R"("txQLen": "1000")", R"("txQLen": true)"});
}

TEST_CASE("a pod's args.cni outranks the configuration for what it may say, and nothing else of it is read") {
  const auto config =
      attach(R"("mtu": 9000, "promisc": false, "txQLen": 10, "device": "nic0", "args": {"cni": {"mtu": 1400, "promisc": true,
      "allmulti": true, "txQLen": 20, "device": "eth0", "allowInUse": true, "vlan": 5, "unknown": {}, "defaultRoute": 5, "logFile": "/x",
      "ipam": 1, "wait": []}})");
  CHECK(config.mtu == 1400U);
  CHECK(config.promisc == true);
  CHECK(config.allmulti == true);
  CHECK(config.tx_queue_length == 20U);
  CHECK(config.selectors.device == "nic0");
  CHECK_FALSE(config.allow_in_use);
  CHECK(config.default_route == cni::DefaultRoute::drop);
  CHECK_FALSE(attach(R"("mtu": 9000, "args": {"cni": {"mtu": 0}})").mtu);
}

TEST_CASE("wrong types in args and runtimeConfig are errors with the whole path") {
  check_each_refused(7, "args.cni.mtu", {R"("args": {"cni": {"mtu": "1400"}})", R"("args": {"cni": {"mtu": 67}})"});
  check_each_refused(7, "args.cni.promisc", {R"("args": {"cni": {"promisc": "yes"}})"});
  check_each_refused(7, "args.cni.debug", {R"("args": {"cni": {"debug": "yes"}})"});
  check_each_refused(7, "args.cni.sysctl", {R"("args": {"cni": {"sysctl": ["x"]}})"});
  check_each_refused(7, "args.cni.ips", {R"("args": {"cni": {"ips": "10.0.0.5/24"}})"});
  check_each_refused(7, "args.cni", {R"("args": {"cni": "mtu=9000"})"});
  check_each_refused(7, "args", {R"("args": ["mtu"])"});
  check_each_refused(7, "runtimeConfig", {R"("runtimeConfig": [])", R"("runtimeConfig": "x")"});
  check_each_refused(7, "runtimeConfig.deviceID", {R"("runtimeConfig": {"deviceID": 5})", R"("runtimeConfig": {"deviceID": "../x"})"});
  check_each_refused(7, "prevResult", {R"("prevResult": "x")", R"("prevResult": [])"});
}

TEST_CASE("args.cni.debug raises the level of the log") {
  CHECK(network(R"("logLevel": "error", "args": {"cni": {"debug": true}})").log_level == cni::LogLevel::debug);
  CHECK(network(R"("logLevel": "error", "args": {"cni": {"debug": false}})").log_level == cni::LogLevel::error);
}

TEST_CASE("an unknown log level is info, and a wrong logFile is no error, both noted") {
  CHECK(network(R"("logLevel": "verbose")").log_level == cni::LogLevel::info);
  CHECK(notes(attach(R"("logLevel": "verbose")"), "'logLevel' is 'verbose'"));
  CHECK(notes(attach(R"("logFile": 5)"), "'logFile' is ignored"));
  check_each_refused(7, "logLevel", {R"("logLevel": 5)"});
}

TEST_CASE("a sysctl key is read as sysctl(8) does") {
  const auto path = [](const std::string& key) { return attach(R"("sysctl": {")" + key + R"(": "1"})").sysctls.at(0).path; };
  CHECK(path("net.ipv4.conf.IFNAME.arp_ignore") == "net/ipv4/conf/IFNAME/arp_ignore");
  CHECK(path("net/ipv4/conf/IFNAME/arp_ignore") == "net/ipv4/conf/IFNAME/arp_ignore");
  CHECK(path("net.ipv4.conf.eth0/100.arp_ignore") == "net/ipv4/conf/eth0.100/arp_ignore");
  CHECK(path("net/ipv4/conf/eth0.100/arp_ignore") == "net/ipv4/conf/eth0.100/arp_ignore");
  CHECK(path("net.core.somaxconn") == "net/core/somaxconn");
}

TEST_CASE("a sysctl value is a text or a whole number") {
  const auto value = [](const std::string& json) { return attach(R"("sysctl": {"net.core.x": )" + json + "}").sysctls.at(0).value; };
  CHECK(value(R"("4096 87380 6291456")") == "4096 87380 6291456");
  CHECK(value("1") == "1");
  CHECK(value("-1") == "-1");
  CHECK(attach(R"("sysctl": {"net.core.x": "1"})").sysctls.at(0).key == "net.core.x");
  check_each_refused(7, "sysctl.net.core.x",
                     {R"("sysctl": {"net.core.x": true})", R"("sysctl": {"net.core.x": 1.5})", R"("sysctl": {"net.core.x": 1e300})",
                      R"("sysctl": {"net.core.x": null})", R"("sysctl": {"net.core.x": ""})", R"("sysctl": {"net.core.x": ["1"]})",
                      nul(R"("sysctl": {"net.core.x": "1NUL2"})")});
}

TEST_CASE("a sysctl outside of net/ is refused, however it is written") {
  for (const auto* key : {"kernel.shmmax",
                          "net",
                          "net.",
                          "net/",
                          "netfilter/x",
                          "net/../kernel/shmmax",
                          "net...kernel.shmmax",
                          "net/./x",
                          "net//x",
                          "/net/ipv4/x",
                          ".net.ipv4.x",
                          "../net/x",
                          "net/ipv4/",
                          "net.ipv4.",
                          "",
                          R"(net.ipv4.\u0000x)",
                          R"(net.ipv4.\nx)",
                          "net.ipv4. x",
                          "../../etc/passwd",
                          "net/ipv4/..",
                          "NET.ipv4.x"}) {
    const auto seen = refusal(std::string{R"("sysctl": {")"} + key + R"(": "1"})");
    INFO(key << "\n" << seen.message);
    CHECK(seen.code == 7);
    CHECK(seen.says("'sysctl' has the key"));
  }
  check_each_refused(7, "sysctl",
                     {R"("sysctl": {"net.)" + megabyte('x') + R"(": "1"})", R"("sysctl": ["net.core.x"])", R"("sysctl": "x")"});
}

TEST_CASE("two keys for one sysctl are error 7 and both named") {
  const auto seen = refusal(R"("sysctl": {"net.core.x": "1", "net/core/x": "2"})");
  CHECK(seen.code == 7);
  CHECK(seen.says("'net.core.x' and 'net/core/x'"));
}

TEST_CASE("args.cni.sysctl is laid over sysctl key by key, and needs none below it") {
  const auto config =
      attach(R"("sysctl": {"net.core.a": "1", "net.core.b": "2"}, "args": {"cni": {"sysctl": {"net/core/b": "3", "net.core.c": 4}}})");
  std::map<std::string, std::string> seen;
  for (const auto& sysctl : config.sysctls) {
    CHECK(seen.emplace(sysctl.path, sysctl.value).second);
  }
  CHECK(seen == std::map<std::string, std::string>{{"net/core/a", "1"}, {"net/core/b", "3"}, {"net/core/c", "4"}});
  CHECK(attach(R"("args": {"cni": {"sysctl": {"net.core.c": "4"}}})").sysctls.size() == 1);
}

TEST_CASE("device names are what the kernel has, altnames included") {
  CHECK(attach(R"("device": ")" + std::string(127, 'x') + '"').selectors.device == std::string(127, 'x'));
  check_each_refused(
      7, "device",
      {R"("device": ")" + std::string(128, 'x') + '"', R"("device": "a/b")", R"("device": "..")", R"("device": "a b")",
       R"("device": "a\nb")", nul(R"("device": "nic0NUL")"), R"("device": 5)", R"("device": ["nic0"])", R"("device": true)"});
}

TEST_CASE("device ids have no way out of sysfs") {
  for (const auto* id : {"0000:3b:00.2", "mlx5_core.sf.4", "virtio3", "00000000-0000-0000"}) {
    CHECK(attach(std::string{R"("deviceID": ")"} + id + '"').selectors.device_id == id);
  }
  for (const auto* key : {"deviceID", "pciBusID"}) {
    for (const auto& value : {std::string{R"("a/b")"}, std::string{R"(".")"}, std::string{R"("..")"}, std::string{R"("a b")"},
                              std::string{"5"}, '"' + std::string(65, 'x') + '"', nul(R"("0000:3b:00.2NUL")"), std::string{R"("ä")"}}) {
      check_each_refused(7, key, {std::string{"\""} + key + "\": " + value});
    }
  }
}

TEST_CASE("deviceID and pciBusID that disagree are an error that names both, unless runtimeConfig has the last word") {
  const std::string both = R"("deviceID": "0000:3b:00.2", "pciBusID": "0000:3b:00.3")";
  const auto seen = refusal(both);
  CHECK(seen.code == 7);
  CHECK(seen.says("'0000:3b:00.2'"));
  CHECK(seen.says("'0000:3b:00.3'"));
  CHECK(attach(both + R"(, "runtimeConfig": {"deviceID": "0000:3b:00.4"})").selectors.runtime_device_id == "0000:3b:00.4");
  CHECK(attach(R"("deviceID": "", "pciBusID": "0000:3b:00.3")").selectors.device_id == "0000:3b:00.3");
}

TEST_CASE("kernelpath stays beneath /sys/devices/") {
  CHECK(attach(R"("kernelpath": "/sys/devices/pci0000:3a/0000:3b:00.2")").selectors.kernel_path == "/sys/devices/pci0000:3a/0000:3b:00.2");
  check_each_refused(7, "kernelpath",
                     {R"("kernelpath": "/sys/devices/")", R"("kernelpath": "/sys/class/net/nic0")", R"("kernelpath": "sys/devices/x")",
                      R"("kernelpath": "/sys/devices/../class")", R"("kernelpath": "/sys/devices/a/..")",
                      R"("kernelpath": "/sys/devicesx/a")", nul(R"("kernelpath": "/sys/devices/aNUL")"), R"("kernelpath": 5)"});
}

TEST_CASE("hwaddr is an address that an interface can have") {
  check_each_refused(7, "hwaddr",
                     {R"("hwaddr": "ff:ff:ff:ff:ff:ff")", R"("hwaddr": "nic0")", R"("hwaddr": 5)", R"("hwaddr": "00:00:00:00:00:00")"});
}

TEST_CASE("addresses come from CNI_ARGS, runtimeConfig and args.cni, the last of them winning") {
  const auto ips = [](const AttachConfig& config) {
    std::vector<std::string> texts;
    for (const auto& ip : config.ips) {
      texts.push_back(ip.text());
    }
    return texts;
  };
  using Texts = std::vector<std::string>;
  const std::string runtime = R"("runtimeConfig": {"ips": ["10.0.0.5/24", "fd00::5/64"]})";
  const std::string pod = R"(, "args": {"cni": {"ips": ["10.0.0.6/24"]}})";
  CHECK(ips(attach("", "IP=10.0.0.4/24,fd00::4/64")) == Texts{"10.0.0.4/24", "fd00::4/64"});
  CHECK(ips(attach("", "IP=")).empty());
  CHECK_FALSE(attach("", "IP=").gets_addresses);
  CHECK(attach("", "IP=10.0.0.4/24").gets_addresses);
  CHECK(attach(R"("ipam": {"type": "host-local"})").gets_addresses);
  CHECK_FALSE(attach(R"("ipam": {})").gets_addresses);
  CHECK(ips(attach(runtime, "IP=10.0.0.4/24")) == Texts{"10.0.0.5/24", "fd00::5/64"});
  CHECK(ips(attach(runtime + pod, "IP=10.0.0.4/24")) == Texts{"10.0.0.6/24"});
  CHECK(ips(attach(R"("runtimeConfig": {"ips": []})", "IP=10.0.0.4/24")) == Texts{"10.0.0.4/24"});
}

TEST_CASE("an address needs its prefix length, and the error says so") {
  const auto seen = refusal(R"("runtimeConfig": {"ips": ["10.0.0.5/24", "10.0.0.6"]})");
  CHECK(seen.code == 7);
  CHECK(seen.message == R"('runtimeConfig.ips[1]' is "10.0.0.6", an address with its prefix length such as "10.0.0.5/24" was wanted)");
  CHECK(refusal("", "IP=10.0.0.5").says("'CNI_ARGS IP[0]'"));
  CHECK(refusal("", "IP=10.0.0.5/24,").says("'CNI_ARGS IP[1]'"));
  check_each_refused(
      7, "args.cni.ips[0]",
      {R"("args": {"cni": {"ips": ["10.0.0.5/33"]}})", R"("args": {"cni": {"ips": ["fd00::5/129"]}})", R"("args": {"cni": {"ips": [5]}})",
       R"("args": {"cni": {"ips": ["10.0.0/24"]}})", R"("args": {"cni": {"ips": [""]}})", R"("args": {"cni": {"ips": [null]}})",
       R"("args": {"cni": {"ips": ["10.0.0.5/-1"]}})", nul(R"("args": {"cni": {"ips": ["10.0.0.5NUL/24"]}})")});
  check_each_refused(7, "runtimeConfig.ips", {R"("runtimeConfig": {"ips": {}})", R"("runtimeConfig": {"ips": "10.0.0.5/24"})"});
}

TEST_CASE("with an IPAM plugin the addresses are its business") {
  const auto config = attach(R"("ipam": {"type": "host-local"}, "runtimeConfig": {"ips": ["10.0.0.6"]})", "IP=10.0.0.5");
  CHECK(config.ips.empty());
}

TEST_CASE("dns is read and validated") {
  const auto config =
      attach(R"("dns": {"nameservers": ["10.0.0.1"], "Domain": "a.example", "search": ["b.example"], "options": ["ndots:2"], "x": 1})");
  CHECK(config.dns == cni::Dns{{"10.0.0.1"}, "a.example", {"b.example"}, {"ndots:2"}});
  for (const auto* dns : {"[]", "5", R"({"nameservers": "10.0.0.1"})", R"({"nameservers": [5]})", R"({"domain": []})", R"({"search": {}})",
                          R"({"options": [true]})"}) {
    const auto seen = refusal(std::string{R"("dns": )"} + dns);
    INFO(seen.message);
    CHECK(seen.code == 7);
    CHECK(seen.message.starts_with("'dns"));
  }
}

TEST_CASE("defaultRoute is drop or keep") {
  CHECK(attach(R"("defaultRoute": "keep")").default_route == cni::DefaultRoute::keep);
  CHECK(attach(R"("defaultRoute": "drop")").default_route == cni::DefaultRoute::drop);
  check_each_refused(7, "defaultRoute",
                     {R"("defaultRoute": true)", R"("defaultRoute": "Keep")", R"("defaultRoute": "never")", R"("defaultRoute": {})"});
}

TEST_CASE("allowInUse is a boolean") {
  CHECK(attach(R"("allowInUse": true)").allow_in_use);
  check_each_refused(7, "allowInUse", {R"("allowInUse": "true")", R"("allowInUse": 1)"});
}

TEST_CASE("waits are durations of at most ten minutes") {
  const auto carrier = [](const std::string& json) { return attach(R"("wait": {"carrier": )" + json + "}").waits.carrier.value().count(); };
  CHECK(carrier(R"("5s")") == 5000);
  CHECK(carrier(R"("500ms")") == 500);
  CHECK(carrier(R"("1m")") == 60'000);
  CHECK(carrier(R"("1m30s")") == 90'000);
  CHECK(carrier(R"("10m")") == 600'000);
  CHECK(carrier(R"("0")") == 0);
  CHECK(carrier(R"("0s")") == 0);
  CHECK(carrier("0") == 0);
  check_each_refused(
      7, "wait.carrier",
      {R"("wait": {"carrier": "5"})", R"("wait": {"carrier": 5})", R"("wait": {"carrier": -1})", R"("wait": {"carrier": "-5s"})",
       R"("wait": {"carrier": "+5s"})", R"("wait": {"carrier": "10m1ms"})", R"("wait": {"carrier": "99999999999999999999s"})",
       R"("wait": {"carrier": "4294967295m4294967295m"})", R"("wait": {"carrier": "s"})", R"("wait": {"carrier": ""})",
       R"("wait": {"carrier": "5 s"})", R"("wait": {"carrier": "5h"})", R"("wait": {"carrier": true})", R"("wait": {"carrier": "5ss"})",
       R"("wait": {"carrier": ["5s"]})", R"("wait": {"carrier": 1e300})", nul(R"("wait": {"carrier": "5sNUL"})")});
  const auto waits = attach(R"("wait": {"device": "1s", "owner": 0})").waits;
  CHECK(waits.device == milliseconds{1000});
  CHECK(waits.owner == milliseconds{0});
  CHECK_FALSE(waits.carrier);
  CHECK(waits.gid == milliseconds{5000});
  CHECK(attach(R"("wait": {"gid": "250ms"})").waits.gid == milliseconds{250});
  check_each_refused(7, "wait.gid", {R"("wait": {"gid": "5"})", R"("wait": {"gid": true})"});
}

TEST_CASE("what becomes of RDMA devices is read, also by the verbs that read little") {
  using cni::RdmaRequest;
  const std::map<std::string, RdmaRequest> words{
      {"auto", RdmaRequest::automatic}, {"exclusive", RdmaRequest::exclusive}, {"shared", RdmaRequest::shared}, {"off", RdmaRequest::off}};
  for (const auto& [word, request] : words) {
    const auto member = R"("RDMA": ")" + word + '"';
    CHECK(attach(member).rdma == request);
    CHECK(cni::read_network_config(R"({"cniVersion": "1.1.0", "name": "n", )" + member + "}").rdma == request);
  }
  CHECK(attach("").rdma == RdmaRequest::automatic);
  CHECK(cni::read_network_config(R"({"cniVersion": "1.1.0", "name": "n", "rdma": 7})").rdma == RdmaRequest::automatic);
  check_each_refused(7, "rdma", {R"("rdma": "on")", R"("rdma": true)", R"("rdma": "AUTO")"});
}

TEST_CASE("the name of an RDMA device is one that the kernel takes") {
  CHECK(attach(R"("rdmaName": "rail0")").rdma_name == "rail0");
  CHECK(attach("").rdma_name.empty());
  CHECK(attach(R"("rdmaName": ")" + std::string(63, 'x') + '"').rdma_name.size() == 63);
  CHECK(attach(R"("rdmaDevice": "mlx5_3")").selectors.rdma_device == "mlx5_3");
  for (const std::string key : {"rdmaName", "rdmaDevice"}) {
    for (const std::string& value :
         std::vector<std::string>{R"("a/b")", R"("rail%d")", R"("..")", R"("a b")", "7", '"' + std::string(64, 'x') + '"'}) {
      check_each_refused(7, key, {'"' + key + "\": " + value});
    }
  }
}

TEST_CASE("an unknown key inside wait is error 2") {
  const auto seen = refusal(R"("wait": {"carier": "5s"})");
  CHECK(seen.code == 2);
  CHECK(seen.message == R"(unknown key: 'wait.carier' is "5s", 'carrier' was probably meant)");
  check_each_refused(7, "wait", {R"("wait": "5s")", R"("wait": [])"});
}

TEST_CASE("an allowlist decides which sysctls a node allows") {
  const support::TempDir directory;
  const auto check = [&](const std::string& allowlist, const std::string& key) {
    const auto path = directory.write("allowlist.conf", allowlist);
    return refusal_of([&] { cni::check_sysctl_allowlist({{.key = key, .path = "", .value = "7"}}, path); });
  };
  const std::string list = "# comment\n\n  ^net\\.ipv4\\.conf\\.IFNAME\\.arp_[a-z]+$ \r\nnet.core\n";
  CHECK(check(list, "net.ipv4.conf.IFNAME.arp_ignore").code == 0);
  CHECK(check(list, "net/core/somaxconn").code == 0);
  const auto seen = check(list, "net.ipv4.ip_forward");
  CHECK(seen.code == 2);
  CHECK(seen.says("'net.ipv4.ip_forward' with value '7'"));
  CHECK(check(list, "net/ipv4/conf/IFNAME/arp_ignore").code == 2);
  CHECK(check("", "net.core.x").code == 2);
  CHECK(check("(?:net|vm)\\.\\w+\\.x", "net.core.x").code == 0);
}

TEST_CASE("a line of the allowlist that is no regular expression is error 5 with its number") {
  const support::TempDir directory;
  const auto path = directory.write("allowlist.conf", "net\n# (\nnet(\n");
  const auto seen = refusal_of([&] { cni::check_sysctl_allowlist({{.key = "net.core.x", .path = "", .value = "7"}}, path); });
  CHECK(seen.code == 5);
  CHECK(seen.says("line 3 of " + path.string() + " is 'net('"));
}

TEST_CASE("without an allowlist, or without sysctls, everything is allowed; an unreadable list allows nothing") {
  const support::TempDir directory;
  const std::vector<cni::SysctlSetting> one{{.key = "net.core.x", .path = "", .value = "7"}};
  CHECK_NOTHROW(cni::check_sysctl_allowlist(one, (directory.path() / "absent").string()));
  CHECK_NOTHROW(cni::check_sysctl_allowlist({}, directory.path().string()));
  CHECK(refusal_of([&] { cni::check_sysctl_allowlist(one, directory.path().string()); }).code == 5);
}

TEST_CASE("a key as long as a sysctl key may be does not exhaust the stack of the regular expressions") {
  const support::TempDir directory;
  const auto path = directory.write("allowlist.conf", "^(net|x)(.|/)*(a|b|.)*$\n");
  const auto config = attach(R"("sysctl": {"net.)" + std::string(251, 'x') + R"(": "1"})");
  CHECK_NOTHROW(cni::check_sysctl_allowlist(config.sysctls, path));
}

namespace {

/// What Multus and libcni make of a NetworkAttachmentDefinition for the first plugin of its list.
std::string stdin_of(const Json& definition) {
  auto config = Json::parse(definition.at("spec").at("config").get<std::string>());
  if (config.contains("plugins")) {
    auto first = config.at("plugins").at(0);
    first["name"] = config.at("name");
    first["cniVersion"] = config.at("cniVersion");
    config = first;
  }
  if (definition.at("metadata").contains("annotations")) {
    REQUIRE(definition["metadata"]["annotations"].contains("k8s.v1.cni.cncf.io/resourceName"));
    config["deviceID"] = "0000:3b:00.2";
    config["pciBusID"] = "0000:3b:00.2";
  }
  if (config.contains("capabilities")) {
    config["runtimeConfig"] = {{"ips", {"10.20.0.5/24"}}, {"mac", "02:00:00:00:00:05"}, {"infinibandGUID", "02:11:22:33:44:55:66:77"}};
  }
  return config.dump();
}

}  // namespace

TEST_CASE("every example is a configuration that ADD takes without a note") {
  std::size_t count = 0;
  for (const auto& entry : std::filesystem::directory_iterator{EXAMPLES_DIR "/nad"}) {
    CAPTURE(entry.path().string());
    REQUIRE(entry.path().extension() == ".json");
    const auto file = Json::parse(netlink::read_file(entry.path()).value());
    // A definition alone, or behind what else makes its devices.
    const auto& definition = file.at("kind") == "List" ? file.at("items").back() : file;
    CHECK(definition.at("kind") == "NetworkAttachmentDefinition");
    CHECK(definition.at("apiVersion") == "k8s.cni.cncf.io/v1");
    const auto text = stdin_of(definition);
    CHECK(Json::parse(text).at("type") == "fabric-nic");
    const auto network = read_network_config(text);
    const auto config = read_attach_config(network, "IgnoreUnknown=true;K8S_POD_NAME=p");
    CHECK(network.name == entry.path().stem());
    CHECK(definition.at("metadata").at("name") == network.name);
    // That of an IPoIB netdev comes from its subnet.
    CHECK(config.mtu == (network.name == "infiniband" ? std::nullopt : std::optional{9000U}));
    CHECK((config.selectors.device_id || config.selectors.device));
    CHECK(config.notes.empty());
    ++count;
  }
  CHECK(count >= 8);
}

TEST_CASE("the policy of the example with an operator makes the devices that its definition asks for, with room for its MTU") {
  const auto file = Json::parse(netlink::read_file(EXAMPLES_DIR "/nad/sriov-operator.json").value());
  const auto& policy = file.at("items").front();
  CHECK(policy.at("kind") == "SriovNetworkNodePolicy");
  CHECK(file.at("items").back().at("metadata").at("annotations").at("k8s.v1.cni.cncf.io/resourceName") ==
        "openshift.io/" + policy.at("spec").at("resourceName").get<std::string>());
  CHECK(policy.at("spec").at("mtu") == 9000);
}
