// What ADD is configured to set: MAC and its sources, promisc, allmulti, txQLen, sysctls.

#include "support/catch.hpp"
#include "support/plugin.hpp"
#include "support/sandbox.hpp"

using namespace support;

TEST_CASE_METHOD(NicAndPod, "promisc, allmulti and txQLen are set in the pod") {
  const Snapshot before = snapshot("nic0");
  const Attachment attachment{.network = config({{"promisc", true}, {"allmulti", true}, {"txQLen", 4321}})};
  expect_success(attachment.add());
  const Json in_pod = show_link("net1", "pod");
  CHECK(has_flag(in_pod, "PROMISC"));
  CHECK(has_flag(in_pod, "ALLMULTI"));
  CHECK(in_pod["txqlen"] == 4321);
  expect_success(attachment.del());
  expect_home(before);
}

TEST_CASE_METHOD(NicAndPod, "promisc and allmulti are switched off when they are configured to be off, and left alone when they are not") {
  sh("ip link set nic0 promisc on allmulticast on");
  SECTION("off") {
    expect_success(Attachment{.network = config({{"promisc", false}, {"allmulti", false}})}.add());
    CHECK_FALSE(has_flag(show_link("net1", "pod"), "PROMISC"));
    CHECK_FALSE(has_flag(show_link("net1", "pod"), "ALLMULTI"));
  }
  SECTION("absent") {
    expect_success(Attachment{}.add());
    CHECK(has_flag(show_link("net1", "pod"), "PROMISC"));
    CHECK(has_flag(show_link("net1", "pod"), "ALLMULTI"));
  }
}

TEST_CASE_METHOD(NicAndPod, "a MAC in args.cni outranks runtimeConfig, which outranks CNI_ARGS, which outranks the configuration") {
  Attachment attachment{.network = config({{"mac", "02:00:00:00:00:01"}})};
  std::string expected = "02:00:00:00:00:01";
  SECTION("configuration") {}
  SECTION("CNI_ARGS") {
    attachment.args = "IgnoreUnknown=1;MAC=02:00:00:00:00:02";
    expected = "02:00:00:00:00:02";
  }
  SECTION("runtimeConfig") {
    attachment.args = "IgnoreUnknown=1;MAC=02:00:00:00:00:02";
    attachment.network["runtimeConfig"]["mac"] = "02:00:00:00:00:03";
    expected = "02:00:00:00:00:03";
  }
  SECTION("args.cni") {
    attachment.args = "IgnoreUnknown=1;MAC=02:00:00:00:00:02";
    attachment.network["runtimeConfig"]["mac"] = "02:00:00:00:00:03";
    attachment.network["args"]["cni"]["mac"] = "02:00:00:00:00:04";
    expected = "02:00:00:00:00:04";
  }
  const Json result = expect_success(attachment.add());
  CHECK(show_link("net1", "pod")["address"] == expected);
  CHECK(result["interfaces"][0]["mac"] == expected);
}

TEST_CASE_METHOD(NicAndPod, "a MAC that no interface can carry is refused, with its source, before anything is touched") {
  const Snapshot before = snapshot("nic0");
  Attachment attachment;
  SECTION("a multicast address") {
    attachment.network["mac"] = "01:00:5e:00:00:01";
    expect_error(attachment.add(), 7, {"mac", "01:00:5e:00:00:01"});
  }
  SECTION("all zeros") {
    attachment.network["mac"] = "00:00:00:00:00:00";
    expect_error(attachment.add(), 7, {"mac", "00:00:00:00:00:00"});
  }
  SECTION("no MAC at all, in CNI_ARGS") {
    attachment.args = "MAC=nonsense";
    expect_error(attachment.add(), std::nullopt, {"CNI_ARGS", "MAC", "nonsense"});
  }
  SECTION("no MAC at all, in runtimeConfig") {
    attachment.network["runtimeConfig"]["mac"] = "02:00";
    expect_error(attachment.add(), 7, {"runtimeConfig.mac", "02:00"});
  }
  expect_home(before);
}

TEST_CASE_METHOD(NicAndPod, "args.cni sets what a pod's author may set") {
  const Json values{{"mac", "02:00:00:00:00:04"}, {"mtu", 4000},   {"promisc", true},
                    {"allmulti", true},           {"txQLen", 321}, {"sysctl", {{"net.ipv4.conf.IFNAME.arp_ignore", "2"}}},
                    {"ips", {"10.0.0.9/24"}}};
  expect_success(Attachment{.network = config({{"mtu", 2000}, {"args", {{"cni", values}}}})}.add());
  const Json in_pod = show_link("net1", "pod");
  CHECK(in_pod["address"] == "02:00:00:00:00:04");
  CHECK(in_pod["mtu"] == 4000);
  CHECK(has_flag(in_pod, "PROMISC"));
  CHECK(has_flag(in_pod, "ALLMULTI"));
  CHECK(in_pod["txqlen"] == 321);
  CHECK(sysctl("net/ipv4/conf/net1/arp_ignore", "pod") == "2");
  CHECK(addresses("net1", "pod") == std::vector<std::string>{"10.0.0.9/24"});
}

TEST_CASE_METHOD(NicAndPod, "args.cni cannot say which device, take one in use, or let a default route in") {
  add_nic("nic1");
  sh("ip link set nic0 up && ip addr add 192.0.2.1/24 dev nic0");
  const Snapshot before = snapshot("nic0");
  const Json values{{"device", "nic1"}, {"allowInUse", true}, {"defaultRoute", "keep"}};
  expect_error(Attachment{.network = config({{"args", {{"cni", values}}}})}.add(), 100, {"192.0.2.1"});
  expect_home(before);
  CHECK(has_link("nic1"));
}

TEST_CASE_METHOD(NicAndPod, "sysctls are set in the pod after the move, and not in the host") {
  const std::string host_value = sysctl("net/ipv4/conf/nic0/arp_announce");
  const std::string host_all = sysctl("net/ipv4/conf/all/arp_ignore");
  const Attachment attachment{.network = config({{"sysctl",
                                                  {{"net.ipv4.conf.IFNAME.arp_announce", "2"},
                                                   {"net.ipv6.conf.IFNAME.accept_dad", "0"},
                                                   {"net/ipv4/conf/IFNAME/rp_filter", "2"},
                                                   {"net.ipv4.conf.all.arp_ignore", "1"}}}})};
  expect_success(attachment.add());
  CHECK(sysctl("net/ipv4/conf/net1/arp_announce", "pod") == "2");
  CHECK(sysctl("net/ipv6/conf/net1/accept_dad", "pod") == "0");
  CHECK(sysctl("net/ipv4/conf/net1/rp_filter", "pod") == "2");
  CHECK(sysctl("net/ipv4/conf/all/arp_ignore", "pod") == "1");
  CHECK(sysctl("net/ipv4/conf/all/arp_ignore") == host_all);
  expect_success(attachment.del());
  CHECK(sysctl("net/ipv4/conf/nic0/arp_announce") == host_value);
}

TEST_CASE_METHOD(NicAndPod, "a sysctl that is not below net, or climbs out of it, is refused before anything is touched") {
  const Snapshot before = snapshot("nic0");
  const std::string key =
      GENERATE(as<std::string>{}, "kernel.hostname", "net.ipv4.../../kernel/hostname", "net/../kernel/hostname", "/etc/passwd", "..");
  CAPTURE(key);
  expect_error(Attachment{.network = config({{"sysctl", {{key, "1"}}}})}.add(), std::nullopt, {key});
  expect_home(before);
}

TEST_CASE_METHOD(NicAndPod, "a sysctl that the kernel does not have or whose value it refuses is error 101, and the NIC is home") {
  const Snapshot before = snapshot("nic0");
  SECTION("unknown") {
    expect_error(Attachment{.network = config({{"sysctl", {{"net.ipv4.conf.IFNAME.no_such_thing", "1"}}}})}.add(), 101, {"no_such_thing"});
  }
  SECTION("refused") {
    expect_error(Attachment{.network = config({{"sysctl", {{"net.ipv4.conf.IFNAME.arp_ignore", "many"}}}})}.add(), 101,
                 {"arp_ignore", "many"});
  }
  expect_home(before);
}

TEST_CASE_METHOD(NicAndPod, "a sysctl of which the kernel kept something else is said") {
  const Answer added = Attachment{.network = config({{"sysctl", {{"net.ipv4.conf.IFNAME.arp_ignore", "1 2 3"}}}})}.add();
  expect_success(added);
  CHECK(missing_words(added.err, {"arp_ignore", "'1 2 3'", "'1'", "warning"}) == "");
  expect_success(Attachment{}.del());
  const Answer plain = Attachment{.network = config({{"sysctl", {{"net/ipv4/ip_local_port_range", "20000 30000"}}}})}.add();
  expect_success(plain);
  CHECK(plain.err.find("warning") == std::string::npos);
}

TEST_CASE_METHOD(NicAndPod, "tuning's allowlist holds for sysctls") {
  sh("mkdir -p /etc/cni/tuning && echo '^net\\.ipv4\\.conf\\.IFNAME\\.arp_[a-z]*$' > /etc/cni/tuning/allowlist.conf");
  const Snapshot before = snapshot("nic0");
  expect_error(Attachment{.network = config({{"sysctl", {{"net.ipv4.conf.IFNAME.rp_filter", "2"}}}})}.add(), 2,
               {"net.ipv4.conf.IFNAME.rp_filter", "allowlist.conf"});
  expect_home(before);
  expect_success(Attachment{.network = config({{"sysctl", {{"net.ipv4.conf.IFNAME.arp_ignore", "2"}}}})}.add());
  CHECK(sysctl("net/ipv4/conf/net1/arp_ignore", "pod") == "2");
}

TEST_CASE_METHOD(NicAndPod, "runtimeConfig.ips without IPAM are set as they are") {
  const Json result = expect_success(Attachment{.network = config({{"runtimeConfig", {{"ips", {"10.0.0.5/24", "fd00::5/64"}}}}})}.add());
  CHECK(addresses("net1", "pod") == std::vector<std::string>{"10.0.0.5/24", "fd00::5/64"});
  REQUIRE(result["ips"].size() == 2);
  CHECK(result["ips"][0]["address"] == "10.0.0.5/24");
  CHECK(result["ips"][0]["interface"] == 0);
  CHECK(result["ips"][1]["address"] == "fd00::5/64");
}

TEST_CASE_METHOD(NicAndPod, "keys are matched without regard to case, an exact match first") {
  SECTION("another spelling") {
    expect_success(Attachment{.network = config({{"device", nullptr}, {"DEVICE", "nic0"}, {"Mtu", 4000}, {"TXQLEN", 55}})}.add());
    CHECK(show_link("net1", "pod")["mtu"] == 4000);
    CHECK(show_link("net1", "pod")["txqlen"] == 55);
  }
  SECTION("both spellings") {
    expect_success(Attachment{.network = config({{"MTU", 3000}, {"mtu", 4000}})}.add());
    CHECK(show_link("net1", "pod")["mtu"] == 4000);
  }
}

TEST_CASE_METHOD(NicAndPod, "the log is one JSON object a line, with container, interface and device, and stdout has the answer alone") {
  const Attachment attachment{.network = config({{"mtu", 4000}}), .container = "container-of-the-log"};
  const Answer added = attachment.add();
  expect_success(added);
  const Answer deleted = attachment.del();
  expect_success(deleted);
  for (const std::string& text : {added.err, deleted.err}) {
    std::istringstream lines(text);
    bool any = false;
    for (std::string line; std::getline(lines, line); any = true) {
      INFO(line);
      const Json entry = Json::parse(line, nullptr, false);
      REQUIRE(entry.is_object());
      CHECK(missing_words(line, {"container-of-the-log", "net1"}) == "");
    }
    CHECK(any);
    CHECK(missing_words(text, {"nic0"}) == "");
  }
}

TEST_CASE_METHOD(NicAndPod, "logFile is written below /var/log only, and nothing about it fails ADD") {
  SECTION("a new file") {
    expect_success(Attachment{.network = config({{"logFile", "/var/log/fabric.log"}})}.add());
    CHECK(missing_words(sh("cat /var/log/fabric.log"), {"net1"}) == "");
  }
  SECTION("elsewhere") {
    const std::string path = GENERATE(as<std::string>{}, "/run/log", "/var/log/../../run/log", "relative.log");
    expect_success(Attachment{.network = config({{"logFile", path}})}.add());
    CHECK(run(shell("ls /run/log relative.log")).out == "");
  }
  SECTION("through a link") {
    sh("echo precious > /run/victim && ln -s /run/victim /var/log/fabric.log");
    expect_success(Attachment{.network = config({{"logFile", "/var/log/fabric.log"}})}.add());
    CHECK(sh("cat /run/victim") == "precious\n");
  }
  SECTION("a fifo that nobody reads") {
    sh("mkfifo /var/log/fabric.log");
    expect_success(Attachment{.network = config({{"logFile", "/var/log/fabric.log"}})}.add());
  }
}
