// What cannot be taken is refused, with a sentence of its own, before anything is touched.

#include "support/catch.hpp"
#include "support/plugin.hpp"
#include "support/sandbox.hpp"

using namespace support;

namespace {

/// ADD has to be refused with code 100 and these words, having asked the kernel to move nothing.
void expect_refused(const Attachment& attachment, std::initializer_list<std::string_view> words,
                    std::source_location where = std::source_location::current()) {
  const Snapshot before = snapshot("nic0");
  expect_error(attachment.under(strace({"-e", "trace=" + kSends})).add(), 100, words, where);
  CHECK(traced_moves().empty());
  expect_home(before, where);
}

const Json kInUse{{"allowInUse", true}};

}  // namespace

TEST_CASE_METHOD(NicAndPod, "a port of a bridge is refused, and the bridge is named") {
  sh("ip link add br7 type bridge && ip link set nic0 master br7");
  expect_refused(Attachment{.network = config(GENERATE(Json::object(), kInUse))}, {"'nic0'", "'br7'"});
  CHECK(show_link("nic0")["master"] == "br7");
}

TEST_CASE_METHOD(NicAndPod, "a device with upper devices is refused, and they are named") {
  sh("ip link add up7 link nic0 type macvlan mode bridge && ip link add up8 link nic0 type macvlan mode bridge");
  expect_refused(Attachment{.network = config(GENERATE(Json::object(), kInUse))}, {"'nic0'", "'up7'", "'up8'"});
}

TEST_CASE_METHOD(NicAndPod, "the device of the node's default route is refused, whatever allowInUse says") {
  const auto [address, route] = GENERATE(table<std::string, std::string>({
      {"192.0.2.2/24", "default via 192.0.2.1"},
      {"2001:db8::2/64", "default via 2001:db8::1"},
      {"192.0.2.2/24", "default via 192.0.2.1 metric 4000"},
      {"192.0.2.2/24", "0.0.0.0/0"},
  }));
  CAPTURE(route);
  sh("ip link set nic0 up && ip addr add " + address + " dev nic0 nodad && ip route add " + route + " dev nic0");
  expect_refused(Attachment{.network = config(GENERATE(Json::object(), kInUse))}, {"'nic0'", "default route"});
}

TEST_CASE_METHOD(NicAndPod, "a device with a permanent global address is refused, and the address is named") {
  const std::string address = GENERATE(as<std::string>{}, "192.0.2.2/24", "2001:db8::2/64", "10.0.0.1/32");
  CAPTURE(address);
  sh("ip addr add " + address + " dev nic0 nodad");
  expect_refused(Attachment{}, {"'nic0'", address, "allowInUse"});
}

TEST_CASE_METHOD(NicAndPod, "with allowInUse the host's addresses and routes are back after DEL") {
  sh("ip link set nic0 up && ip addr add 192.0.2.2/24 dev nic0 && ip addr add 192.0.2.3/24 dev nic0 && ip addr add 2001:db8::2/64 dev nic0 "
     "nodad && ip route add 198.51.100.0/24 via 192.0.2.1 dev nic0 metric 50 mtu 1400 && ip route add 203.0.113.0/24 dev nic0 table 100 && "
     "ip route add 2001:db8:1::/48 via 2001:db8::1 dev nic0");
  const Snapshot before = snapshot("nic0");
  const Attachment attachment{.network = config(kInUse)};
  expect_success(attachment.add());
  CHECK(addresses("net1", "pod").empty());
  expect_success(attachment.del());
  expect_home(before);
}

TEST_CASE_METHOD(NicAndPod, "addresses of every kind come home as they were") {
  sh("ip link set nic0 up && ip addr add 192.0.2.2/24 metric 77 dev nic0 && ip addr add 169.254.9.9/16 dev nic0 && "
     "ip addr add 10.1.1.1/24 scope link dev nic0 && ip addr add 10.2.2.1 peer 10.2.2.2/32 dev nic0 && "
     "ip addr add 2001:db8:9::1 peer 2001:db8:9::2/128 nodad dev nic0");
  const Snapshot before = snapshot("nic0");
  const std::string addresses = sh("ip -o addr show dev nic0 scope global; ip -o addr show dev nic0 scope link to 10.1.1.0/24; ip route");
  const Attachment attachment{.network = config(kInUse)};
  expect_success(attachment.add());
  expect_success(attachment.del());
  expect_home(before);
  CHECK(sh("ip -o addr show dev nic0 scope global; ip -o addr show dev nic0 scope link to 10.1.1.0/24; ip route") == addresses);
}

TEST_CASE_METHOD(NicAndPod, "a link-local or link-scope address is no reason to refuse a NIC, and comes home") {
  sh("ip link set nic0 up && ip addr add 169.254.9.9/16 dev nic0 && ip addr add 10.1.1.1/24 scope link dev nic0");
  const Snapshot before = snapshot("nic0");
  expect_success(Attachment{}.add());
  expect_success(Attachment{}.del());
  expect_home(before);
}

TEST_CASE_METHOD(NicAndPod, "a NIC with a route that could not be given back as it is is refused") {
  sh("ip link set nic0 up && ip addr add 192.0.2.2/24 dev nic0 && ip addr add 2001:db8::2/64 nodad dev nic0");
  sh("ip " + GENERATE(as<std::string>{}, "route add 10.2.0.0/16 tos 0x10 via 192.0.2.9",
                      "-6 route add 2001:db8:6::/48 from 2001:db8::/64 via 2001:db8::9 dev nic0",
                      "route add 10.6.0.0/16 via inet6 2001:db8::7 dev nic0",
                      "route add 10.4.0.0/16 nexthop via 192.0.2.8 nexthop via 192.0.2.9", "route add local 10.11.0.0/16 dev nic0",
                      "route add 10.5.0.0/16 via 192.0.2.9 mtu lock 1400", "route add 10.5.0.0/16 via 192.0.2.9 initcwnd 20"));
  const Snapshot before = snapshot("nic0");
  expect_error(Attachment{.network = config(kInUse)}.add(), 100, {"'nic0'", "route"});
  expect_home(before);
}

TEST_CASE_METHOD(NicAndPod, "with allowInUse the host's addresses are back after an ADD that failed") {
  sh("ip link set nic0 up && ip addr add 192.0.2.2/24 dev nic0 && ip route add 198.51.100.0/24 via 192.0.2.1 dev nic0");
  write_plugin("broken", "[ $CNI_COMMAND = DEL ]");
  const Snapshot before = snapshot("nic0");
  Json keys = kInUse;
  keys["ipam"]["type"] = "broken";
  expect_error(Attachment{.network = config(keys)}.add(), std::nullopt, {"broken"});
  expect_home(before);
}

TEST_CASE_METHOD(NicAndPod, "the node's own file can forbid allowInUse") {
  sh("ip link set nic0 up && ip addr add 192.0.2.2/24 dev nic0 && echo '{\"allowInUse\": false}' > /etc/cni/fabric-nic.json");
  const Snapshot before = snapshot("nic0");
  expect_error(Attachment{.network = config(kInUse)}.add(), std::nullopt, {"allowInUse", "/etc/cni/fabric-nic.json"});
  expect_home(before);
}

TEST_CASE_METHOD(NicAndPod, "link-local and dynamic addresses do not make a device one in use") {
  sh("ip link set nic0 up && ip addr add 169.254.7.7/16 dev nic0 scope link && ip addr add 192.0.2.2/24 dev nic0 valid_lft 1000 "
     "preferred_lft 1000 && ip addr add 2001:db8::2/64 dev nic0 valid_lft 1000 preferred_lft 1000 nodad");
  wait_until("a link-local IPv6 address", [] { return sh("ip -6 addr show dev nic0 scope link").find("fe80") != std::string::npos; });
  expect_success(Attachment{}.add());
  CHECK(has_link("net1", "pod"));
}

TEST_CASE_METHOD(NicAndPod, "the host's own namespace as CNI_NETNS is refused, whatever CNI_NETNS_OVERRIDE says") {
  sh("touch /run/netns/host && mount --bind /proc/1/ns/net /run/netns/host");
  const Snapshot before = snapshot("nic0");
  for (const std::string path : {"/run/netns/host", "/proc/1/ns/net"}) {
    for (const std::string override : {"", "0", "1", "TRUE"}) {
      CAPTURE(path, override);
      Call add = Attachment{.net_ns = path}.to_call("ADD");
      if (!override.empty()) {
        add.variables["CNI_NETNS_OVERRIDE"] = override;
      }
      expect_error(call(add), 8, {path});
      expect_home(before);
    }
  }
}

TEST_CASE_METHOD(NicAndPod, "an ADD for a NIC that has left its owner's namespace for another names the process that holds it") {
  expect_success(Attachment{}.add());
  add_pod("elsewhere");
  const Holder holder("elsewhere");
  sh("ip -n pod link set net1 netns elsewhere && umount /run/netns/elsewhere && rm /run/netns/elsewhere");
  const Attachment second{.network = config({{"wait", {{"owner", "100ms"}}}}), .container = "c2"};
  expect_error(second.add(), 11, {"pid " + holder.pid(), "c1"});
}

TEST_CASE_METHOD(NicAndPod, "two selectors that disagree are an error that names both devices") {
  add_nic("nic1");
  const Snapshot other_before = snapshot("nic1");
  const Snapshot before = snapshot("nic0");
  expect_error(Attachment{.network = config({{"kernelpath", "/sys/devices/virtual/net/nic1"}})}.add(), std::nullopt,
               {"device", "nic0", "kernelpath", "nic1"});
  expect_home(before);
  CHECK(changes(other_before, snapshot("nic1")) == "");
}

TEST_CASE_METHOD(NicAndPod, "two selectors that agree are one") {
  expect_success(Attachment{.network = config({{"kernelpath", "/sys/devices/virtual/net/nic0"}})}.add());
  CHECK(has_link("net1", "pod"));
}

TEST_CASE_METHOD(NicAndPod, "an injected deviceID loses to an explicit device, and that is logged") {
  const std::string key = GENERATE(as<std::string>{}, "deviceID", "pciBusID");
  const Answer added = Attachment{.network = config({{key, "0000:7f:1f.7"}})}.add();
  expect_success(added);
  CHECK(has_link("net1", "pod"));
  CHECK(missing_words(added.err, {"0000:7f:1f.7"}) == "");
}

TEST_CASE_METHOD(NicAndPod, "runtimeConfig.deviceID wins over everything, also when there is no such device") {
  const Snapshot before = snapshot("nic0");
  const Attachment attachment{.network = config({{"runtimeConfig", {{"deviceID", "0000:7f:1f.7"}}}, {"wait", {{"device", "0s"}}}})};
  expect_error(attachment.add(), 11, {"0000:7f:1f.7"});
  expect_home(before);
}

TEST_CASE_METHOD(NicAndPod, "a configuration that names no device is an error that says where one comes from") {
  expect_error(Attachment{.network = config({{"device", nullptr}})}.add(), 7, {"deviceID", "device", "resourceName"});
}

TEST_CASE_METHOD(NicAndPod, "the node's own file limits what NADs may select") {
  const Snapshot before = snapshot("nic0");
  SECTION("the selector is not allowed") {
    sh("echo '{\"allowedSelectors\": [\"deviceID\"]}' > /etc/cni/fabric-nic.json");
    expect_error(Attachment{}.add(), std::nullopt, {"device", "/etc/cni/fabric-nic.json"});
  }
  SECTION("the device is not allowed") {
    sh("echo '{\"allowedDevices\": [\"rail*\"]}' > /etc/cni/fabric-nic.json");
    expect_error(Attachment{}.add(), std::nullopt, {"nic0", "/etc/cni/fabric-nic.json"});
  }
  SECTION("the file can be written by others") {
    sh("echo '{}' > /etc/cni/fabric-nic.json && chmod 666 /etc/cni/fabric-nic.json");
    expect_error(Attachment{}.add(), 5, {"/etc/cni/fabric-nic.json"});
  }
  SECTION("the file is broken") {
    sh("echo '{' > /etc/cni/fabric-nic.json");
    expect_error(Attachment{}.add(), 7, {"/etc/cni/fabric-nic.json"});
  }
  expect_home(before);
}

TEST_CASE_METHOD(NicAndPod, "the node's own file says where records are kept") {
  sh("echo '{\"dataDir\": \"/var/lib/cni/elsewhere\"}' > /etc/cni/fabric-nic.json");
  const Snapshot before = snapshot("nic0");
  const Attachment attachment;
  expect_success(attachment.add());
  CHECK(sh("ls /var/lib/cni/elsewhere/devices | wc -l") == "1\n");
  CHECK(record_files().empty());
  expect_success(attachment.del());
  expect_home(before);
}

TEST_CASE_METHOD(NicAndPod, "a NIC without an RDMA device is refused to who asks for one, and taken by who does not") {
  const Snapshot before = snapshot("nic0");
  for (const char* word : {"exclusive", "shared"}) {
    CAPTURE(word);
    expect_error(Attachment{.network = config({{"rdma", word}})}.add(), 103, {word, "RDMA"});
    expect_home(before);
  }
  for (const char* word : {"auto", "off"}) {
    CAPTURE(word);
    const Attachment attachment{.network = config({{"rdma", word}, {"rdmaName", "rail0"}})};
    const auto result = expect_success(attachment.add());
    expect_success(attachment.check(result));
    expect_success(attachment.del());
    expect_home(before);
  }
}

TEST_CASE_METHOD(NicAndPod, "an RDMA device that nobody has is waited for as any device, and named") {
  expect_error(Attachment{.network = config({{"device", nullptr}, {"rdmaDevice", "mlx5_77"}, {"wait", {{"device", "0s"}}}})}.add(), 11,
               {"rdmaDevice 'mlx5_77'"});
}
