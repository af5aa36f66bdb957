// Bad input gets a CNI error that says which key or variable and why. Nothing is touched, nothing is left behind.

#include <filesystem>
#include <utility>

#include "support/catch.hpp"
#include "support/plugin.hpp"
#include "support/sandbox.hpp"

using namespace support;

namespace {

Call add_call(const Json& keys = Json::object()) {
  return Attachment{.network = config(keys)}.to_call("ADD");
}

/// With the value as it is, where config() would take null for a key to remove.
Call with_key(const std::string& key, const Json& value) {
  Json network = config();
  network[key] = value;
  return Attachment{.network = network}.to_call("ADD");
}

Call with_variable(const std::string& name, const std::string& value) {
  Call call = add_call();
  call.variables[name] = value;
  return call;
}

Call with_input(const std::string& input) {
  Call call = add_call();
  call.input = input;
  return call;
}

class BadInput : public NicAndPod {
 public:
  /// The call has to fail soon, with this code (any where none is given) and these words, and to leave the NIC, the pod and the file system
  /// alone.
  void expect_refused(const Call& call, std::optional<int> code, std::initializer_list<std::string_view> words,
                      std::source_location where = std::source_location::current()) {
    const Answer answer = support::call(call);
    INFO("called at " << where.file_name() << ":" << where.line());
    CHECK(answer.elapsed < std::chrono::milliseconds{20'000});
    CHECK(answer.out.size() < 20000);
    expect_error(answer, code, words, where);
    CHECK(changes(before_, snapshot("nic0")) == "");
    CHECK(link_names("pod") == std::vector<std::string>{});
    CHECK(files() == files_before_);
  }

 private:
  static std::string files() { return sh("find /var/lib/cni /etc/cni /var/log -type f"); }

  Snapshot before_ = snapshot("nic0");
  std::string files_before_ = files();
};

using Values = std::vector<std::string>;

}  // namespace

TEST_CASE_METHOD(BadInput, "stdin that is no JSON object is code 6") {
  for (const std::string& input :
       Values{"", " ", "{", "[]", "7", "null", "\"text\"", "{\"name\": \"rail\"} trailing", "{\"name\": \"\xff\"}",
              std::string(100000, '['), std::string(200000, '{'), std::string("\0\0\0", 3)}) {
    CAPTURE(input.substr(0, 50));
    expect_refused(with_input(input), 6, {});
  }
}

TEST_CASE_METHOD(BadInput, "10 MB of stdin are refused") {
  expect_refused(add_call({{"example.com/ballast", std::string(10'000'000, 'x')}}), std::nullopt, {"stdin"});
}

TEST_CASE_METHOD(BadInput, "a network name that is missing, of another type or not a name is code 7") {
  for (const Json& name : {Json(7), Json(""), Json("../rail"), Json("a/b"), Json("-rail"), Json("a b"), Json("..")}) {
    CAPTURE(name.dump());
    expect_refused(with_key("name", name), 7, {"name"});
  }
  expect_refused(add_call({{"name", nullptr}}), 7, {"name"});
}

TEST_CASE_METHOD(BadInput, "a malformed container id is code 4 and the variable is named") {
  for (const std::string& value : Values{"../../etc/passwd", "a/b", "-a", "a b", "..", "\xff\xfe"}) {
    CAPTURE(value);
    expect_refused(with_variable("CNI_CONTAINERID", value), 4, {"CNI_CONTAINERID"});
  }
}

TEST_CASE_METHOD(NicAndPod, "an identifier too long for the name of a file is refused by ADD, and DEL of it succeeds") {
  const Snapshot before = snapshot("nic0");
  SECTION("the container id") {
    const Attachment attachment{.network = config({{"ipam", {{"type", "host-local"}, {"subnet", "10.1.0.0/24"}}}}),
                                .container = std::string(250, 'c')};
    expect_error(attachment.add(), 4, {"CNI_CONTAINERID", "250"});
    expect_success(attachment.del());
  }
  SECTION("the network's name") {
    const Attachment attachment{.network = config({{"name", std::string(256, 'n')}})};
    expect_error(attachment.add(), 7, {"name", "256"});
    expect_success(attachment.del());
  }
  expect_home(before);
}

TEST_CASE_METHOD(BadInput, "a malformed interface name is code 4 and the variable is named") {
  for (const std::string& value : Values{"sixteen-bytes-xx", "a/b", "..", ".", "a b", "a:b", "a\tb", "\xff\xfe/"}) {
    CAPTURE(value);
    expect_refused(with_variable("CNI_IFNAME", value), 4, {"CNI_IFNAME"});
  }
}

TEST_CASE_METHOD(BadInput, "an interface name of 16 bytes leads to no request to the kernel") {
  Call call = with_variable("CNI_IFNAME", "sixteen-bytes-xx");
  call.wrapper = strace({"-e", "trace=" + kSends + ",socket"});
  expect_refused(call, 4, {"CNI_IFNAME", "sixteen-bytes-xx"});
  CHECK(trace("NETLINK").empty());
}

TEST_CASE_METHOD(BadInput, "variables that are missing are named together") {
  Call call = add_call();
  call.variables.clear();
  expect_refused(call, 4, {"CNI_CONTAINERID,CNI_NETNS,CNI_IFNAME,CNI_PATH"});
}

TEST_CASE_METHOD(BadInput, "whoever runs the plugin by hand is told what it is, and nothing else happens") {
  const Answer answer = call({"", {}, "", {}, plugin_binary()});
  expect_success(answer);
  CHECK(answer.out == "");
  CHECK(missing_words(answer.err, {"CNI", "1.1.0"}) == "");
}

TEST_CASE_METHOD(BadInput, "an unknown command is code 4") {
  for (const std::string& command : Values{"ADDD", "add", "\xff", "UPDATE"}) {
    Call call = add_call();
    call.command = command;
    expect_refused(call, 4, {"CNI_COMMAND"});
  }
}

TEST_CASE_METHOD(BadInput, "CNI_ARGS that are no pairs are refused") {
  for (const std::string& args : Values{"nonsense", "A=1;B", "\xff\xfe"}) {
    CAPTURE(args);
    expect_refused(with_variable("CNI_ARGS", args), 4, {"CNI_ARGS"});
  }
}

TEST_CASE_METHOD(BadInput, "CNI_NETNS that is no network namespace is refused and named") {
  sh("touch /run/file && mkfifo /run/fifo && mkdir /run/dir && ln -s /run/missing /run/dangling && ln -s /run/loop /run/loop");
  for (const std::string& path : Values{"/run/file", "/run/fifo", "/run/dir", "/run/missing", "/run/dangling", "/run/loop", "/dev/null",
                                        "/proc/self/ns/mnt", "/proc/1/ns/uts", "run/netns/pod", "/run/netns/pod/x"}) {
    CAPTURE(path);
    expect_refused(with_variable("CNI_NETNS", path), std::nullopt, {path});
  }
}

TEST_CASE_METHOD(BadInput, "values of another type or out of range are code 7 and the key is named") {
  const std::vector<std::pair<std::string, Json>> values{
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
  };
  for (const auto& [key, value] : values) {
    CAPTURE(key, value.dump());
    expect_refused(with_key(key, value), 7, {key});
  }
}

TEST_CASE_METHOD(BadInput, "numbers too large for any type are refused") {
  for (const std::string& number : Values{"1e400", "123456789012345678901234567890", "-1e400"}) {
    expect_refused(with_input(R"({"cniVersion": "1.0.0", "name": "rail", "type": "fabric-nic", "device": "nic0", "mtu": )" + number + "}"),
                   std::nullopt, {});
  }
}

TEST_CASE_METHOD(BadInput, "an unknown top-level key is code 2 with key, value, and the key that was probably meant") {
  expect_refused(add_call({{"mtuu", 9000}}), 2, {"mtuu", "9000", "'mtu'"});
  expect_refused(add_call({{"promsic", true}}), 2, {"promsic", "true", "'promisc'"});
  expect_refused(add_call({{"entirely-unheard-of", {{"a", 1}}}}), 2, {"entirely-unheard-of"});
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

TEST_CASE_METHOD(BadInput, "what belongs to the node is refused in a NAD, and the node's file is named") {
  for (const std::string& key : Values{"dataDir", "logDir"}) {
    expect_refused(add_call({{key, "/run/elsewhere"}}), 2, {key, "/etc/cni/fabric-nic.json"});
    CHECK_FALSE(std::filesystem::exists("/run/elsewhere"));
  }
}

TEST_CASE_METHOD(BadInput, "an IPAM type that is a path is refused and nothing is run, on DEL neither") {
  sh("printf '#!/bin/bash\\ntouch /run/was-run\\n' > /run/evil && chmod 755 /run/evil && mkdir -p /run/plugins");
  for (const std::string& type : Values{"../evil", "/run/evil", "./evil", "..", "a/../../evil"}) {
    CAPTURE(type);
    Call call = add_call({{"ipam", {{"type", type}}}});
    expect_refused(call, 7, {"ipam.type", type});
    call.command = "DEL";
    (void)support::call(call);
    CHECK_FALSE(std::filesystem::exists("/run/was-run"));
  }
}

TEST_CASE_METHOD(NicAndPod, "the plugin itself as IPAM plugin is refused") {
  const Snapshot before = snapshot("nic0");
  sh("mkdir -p /run/plugins && ln -s " + plugin_binary() + " /run/plugins/itself");
  const Answer added = Attachment{.network = config({{"ipam", {{"type", "itself"}}}})}.add();
  expect_error(added, 7, {"'itself'", "this very plugin"});
  CHECK(added.elapsed < std::chrono::milliseconds{20'000});
  expect_home(before);
}

TEST_CASE_METHOD(BadInput, "a device id that is a path leads nowhere") {
  for (const std::string& id : Values{"../../../class/net/nic0", "/sys/class/net/nic0", "..", "0000:00:00.0/../.."}) {
    CAPTURE(id);
    expect_refused(add_call({{"device", nullptr}, {"deviceID", id}, {"wait", {{"device", "0s"}}}}), std::nullopt, {"deviceID"});
  }
}

TEST_CASE_METHOD(BadInput, "the error is whole JSON when a variable is not UTF-8") {
  expect_refused(with_variable("CNI_NETNS", "/run/netns/\xff\xfe"), std::nullopt, {"/run/netns/"});
}
