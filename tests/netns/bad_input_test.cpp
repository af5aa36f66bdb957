// Bad input gets a CNI error that says which key or variable and why. Nothing is touched, nothing is left behind.

#include <filesystem>
#include <functional>

#include "support/catch.hpp"
#include "support/plugin.hpp"
#include "support/sandbox.hpp"

using namespace support;

namespace {

/// ADD has to fail with this code (any where none is given) and these words, and to leave the NIC, the pod and the file system alone.
void expect_untouched(const Call& call, std::optional<int> code, std::initializer_list<std::string_view> words,
                      std::source_location where = std::source_location::current()) {
  const Snapshot before = snapshot("nic0");
  const std::string files = sh("find /var/lib/cni /etc/cni /var/log -type f");
  const Answer answer = support::call(call);
  INFO("called at " << where.file_name() << ":" << where.line());
  CHECK(answer.elapsed < std::chrono::milliseconds{5000});
  CHECK(answer.out.size() < 20000);
  expect_error(answer, code, words, where);
  expect_home(before, where);
  CHECK(link_names("pod") == std::vector<std::string>{});
  CHECK(sh("find /var/lib/cni /etc/cni /var/log -type f") == files);
}

Call add_call(const Json& keys = Json::object()) {
  return Attachment{.network = config(keys)}.to_call("ADD");
}

Call with_variable(const std::string& name, const std::string& value) {
  Call call = add_call();
  call.variables[name] = value;
  return call;
}

}  // namespace

TEST_CASE_METHOD(NicAndPod, "stdin that is no JSON object is code 6") {
  Call call = add_call();
  call.input = GENERATE(as<std::string>{}, "", " ", "{", "[]", "7", "null", "\"text\"", "{\"name\": \"rail\"} trailing", "{\"name\": \"\xff\"}",
                        std::string(100000, '['), std::string(200000, '{'), std::string("\0\0\0", 3));
  CAPTURE(call.input.substr(0, 50));
  expect_untouched(call, 6, {});
}

TEST_CASE_METHOD(NicAndPod, "10 MB of stdin are refused") {
  Call call = add_call({{"example.com/ballast", std::string(10'000'000, 'x')}});
  expect_untouched(call, std::nullopt, {"stdin"});
}

TEST_CASE_METHOD(NicAndPod, "a network name that is missing, of another type or not a name is code 7") {
  Call call = add_call();
  Json network = config();
  network["name"] = GENERATE(Json(nullptr), Json(7), Json(""), Json("../rail"), Json("a/b"), Json("-rail"), Json("a b"), Json(".."));
  CAPTURE(network["name"].dump());
  if (network["name"].is_null()) {
    network.erase("name");
  }
  call.input = network.dump();
  expect_untouched(call, 7, {"name"});
}

TEST_CASE_METHOD(NicAndPod, "a malformed container id or interface name is code 4 and names the variable") {
  const auto [name, value] = GENERATE(table<std::string, std::string>({
      {"CNI_CONTAINERID", "../../etc/passwd"},
      {"CNI_CONTAINERID", "a/b"},
      {"CNI_CONTAINERID", "-a"},
      {"CNI_CONTAINERID", "a b"},
      {"CNI_CONTAINERID", "\xff\xfe"},
      {"CNI_IFNAME", "sixteen-bytes-xx"},
      {"CNI_IFNAME", "a/b"},
      {"CNI_IFNAME", ".."},
      {"CNI_IFNAME", "."},
      {"CNI_IFNAME", "a b"},
      {"CNI_IFNAME", "a:b"},
      {"CNI_IFNAME", "a\tb"},
      {"CNI_IFNAME", "\xff\xfe/"},
  }));
  CAPTURE(name, value);
  expect_untouched(with_variable(name, value), 4, {name});
}

TEST_CASE_METHOD(NicAndPod, "an interface name of 16 bytes leads to no request to the kernel") {
  Call call = with_variable("CNI_IFNAME", "sixteen-bytes-xx");
  call.wrapper = strace({"-e", "trace=" + kSends + ",socket"});
  expect_untouched(call, 4, {"CNI_IFNAME", "sixteen-bytes-xx"});
  CHECK(trace("NETLINK").empty());
}

TEST_CASE_METHOD(NicAndPod, "variables that are missing are named together") {
  Call call = add_call();
  call.variables.clear();
  expect_untouched(call, 4, {"CNI_CONTAINERID,CNI_NETNS,CNI_IFNAME,CNI_PATH"});
  call.command = "";
  expect_untouched(call, 4, {"CNI_COMMAND"});
}

TEST_CASE_METHOD(NicAndPod, "an unknown command is code 4") {
  Call call = add_call();
  call.command = GENERATE("ADDD", "add", "\xff", "UPDATE");
  expect_untouched(call, 4, {"CNI_COMMAND"});
}

TEST_CASE_METHOD(NicAndPod, "CNI_ARGS that are no pairs are refused") {
  const std::string args = GENERATE(as<std::string>{}, "nonsense", "A=1;B", "\xff\xfe");
  CAPTURE(args);
  expect_untouched(with_variable("CNI_ARGS", args), 4, {"CNI_ARGS"});
}

TEST_CASE_METHOD(NicAndPod, "CNI_NETNS that is no network namespace is refused and named") {
  sh("touch /run/file && mkfifo /run/fifo && mkdir /run/dir && ln -s /run/missing /run/dangling && ln -s /run/loop /run/loop");
  const std::string path = GENERATE(as<std::string>{}, "/run/file", "/run/fifo", "/run/dir", "/run/missing", "/run/dangling", "/run/loop",
                                    "/dev/null", "/proc/self/ns/mnt", "/proc/1/ns/uts", "run/netns/pod", "/run/netns/pod/x", "\xff");
  CAPTURE(path);
  expect_untouched(with_variable("CNI_NETNS", path), std::nullopt, {path == "\xff" ? "CNI_NETNS" : path});
}

TEST_CASE_METHOD(NicAndPod, "values of another type or out of range are code 7 and name the key and the value") {
  const auto [key, value] = GENERATE(table<std::string, Json>({
      {"device", 7},
      {"device", Json::array()},
      {"device", ""},
      {"device", "../../x"},
      {"device", std::string(200, 'x')},
      {"hwaddr", "zz:zz"},
      {"hwaddr", 7},
      {"kernelpath", "sys/devices/x"},
      {"kernelpath", "/etc"},
      {"kernelpath", "/sys/devices/../../etc"},
      {"mtu", "9000"},
      {"mtu", 67},
      {"mtu", 65536},
      {"mtu", -1},
      {"mtu", 1.5},
      {"mtu", Json::array({9000})},
      {"mtu", 18446744073709551615U},
      {"txQLen", -1},
      {"txQLen", 4294967296},
      {"txQLen", "many"},
      {"promisc", "yes"},
      {"promisc", 1},
      {"allmulti", "no"},
      {"allowInUse", 1},
      {"defaultRoute", "perhaps"},
      {"defaultRoute", true},
      {"mac", "02:00"},
      {"mac", 7},
      {"sysctl", "net.ipv4.conf.IFNAME.arp_ignore=1"},
      {"sysctl", Json{{"net.ipv4.conf.IFNAME.arp_ignore", Json::array()}}},
      {"wait", "5s"},
      {"wait", Json{{"owner", "5"}}},
      {"wait", Json{{"owner", "-5s"}}},
      {"wait", Json{{"owner", 5}}},
      {"ipam", 7},
      {"ipam", "host-local"},
      {"ipam", Json{{"type", 7}}},
      {"dns", 7},
      {"dns", Json{{"nameservers", "10.0.0.1"}}},
      {"runtimeConfig", 7},
      {"runtimeConfig", Json{{"ips", "10.0.0.5/24"}}},
      {"runtimeConfig", Json{{"ips", Json::array({"10.0.0.5"})}}},
      {"runtimeConfig", Json{{"ips", Json::array({"10.0.0.5/33"})}}},
      {"runtimeConfig", Json{{"ips", Json::array({7})}}},
      {"runtimeConfig", Json{{"mac", 7}}},
      {"runtimeConfig", Json{{"deviceID", 7}}},
      {"args", 7},
      {"args", Json{{"cni", 7}}},
      {"args", Json{{"cni", Json{{"mtu", "9000"}}}}},
      {"prevResult", 7},
  }));
  CAPTURE(key, value.dump());
  Call call = add_call();
  Json network = config();
  network[key] = value;
  call.input = network.dump();
  expect_untouched(call, 7, {key});
}

TEST_CASE_METHOD(NicAndPod, "numbers too large for any type are refused") {
  Call call = add_call();
  const std::string number = GENERATE(as<std::string>{}, "1e400", "123456789012345678901234567890", "-1e400");
  call.input = R"({"cniVersion": "1.0.0", "name": "rail", "type": "fabric-nic", "device": "nic0", "mtu": )" + number + "}";
  expect_untouched(call, std::nullopt, {});
}

TEST_CASE_METHOD(NicAndPod, "an unknown top-level key is code 2 with key, value, and the key that was probably meant") {
  expect_untouched(add_call({{"mtuu", 9000}}), 2, {"mtuu", "9000", "'mtu'"});
  expect_untouched(add_call({{"promiscuous", true}}), 2, {"promiscuous", "'promisc'"});
  expect_untouched(add_call({{"entirely-unheard-of", {{"a", 1}}}}), 2, {"entirely-unheard-of"});
}

TEST_CASE_METHOD(NicAndPod, "keys of others, and anything inside the members that are others', are not judged") {
  const Json keys{{"example.com/x", 7},
                  {"cni.dev/attachments", Json::array()},
                  {"disableCheck", true},
                  {"capabilities", {{"mac", true}, {"unheard-of", true}}},
                  {"args", {{"cni", {{"unheard-of", 1}}}, {"labels", Json::array()}}},
                  {"runtimeConfig", {{"portMappings", Json::array()}, {"unheard-of", 7}}},
                  {"dns", {{"unheard-of", 1}}}};
  expect_success(call(add_call(keys)));
  CHECK(has_link("net1", "pod"));
}

TEST_CASE_METHOD(NicAndPod, "what belongs to the node is refused in a NAD, and the node's file is named") {
  const std::string key = GENERATE(as<std::string>{}, "dataDir", "logDir");
  expect_untouched(add_call({{key, "/run/elsewhere"}}), 2, {key, "/etc/cni/fabric-nic.json"});
  CHECK_FALSE(std::filesystem::exists("/run/elsewhere"));
}

TEST_CASE_METHOD(NicAndPod, "an IPAM type that is a path is refused and nothing is run") {
  sh("printf '#!/bin/bash\\ntouch /run/was-run\\n' > /run/evil && chmod 755 /run/evil && mkdir -p /run/plugins");
  const std::string type = GENERATE(as<std::string>{}, "../evil", "/run/evil", "./evil", "..", "a/../../evil");
  CAPTURE(type);
  expect_untouched(add_call({{"ipam", {{"type", type}}}}), 7, {"ipam.type", type});
  Call del = add_call({{"ipam", {{"type", type}}}});
  del.command = "DEL";
  (void)call(del);
  CHECK_FALSE(std::filesystem::exists("/run/was-run"));
}

TEST_CASE_METHOD(NicAndPod, "a device id that is a path leads nowhere") {
  const std::string id = GENERATE(as<std::string>{}, "../../../class/net/nic0", "/sys/class/net/nic0", "..", "0000:00:00.0/../..");
  CAPTURE(id);
  Json network = config({{"deviceID", id}, {"wait", {{"device", "0s"}}}});
  network.erase("device");
  Call call = add_call();
  call.input = network.dump();
  expect_untouched(call, std::nullopt, {"deviceID"});
}

TEST_CASE_METHOD(NicAndPod, "the error is printed whole when the input is not UTF-8") {
  Call call = add_call();
  call.variables["CNI_NETNS"] = "/run/netns/\xff\xfe";
  const Answer answer = support::call(call);
  expect_error(answer, std::nullopt, {"/run/netns/"});
}
