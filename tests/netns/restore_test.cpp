// A pod with NET_ADMIN may change everything; DEL gives back what was there before ADD, whoever changed it.

#include "support/catch.hpp"
#include "support/plugin.hpp"
#include "support/sandbox.hpp"

using namespace support;

namespace {

/// A NIC on which nothing has its default value, so that putting defaults back is not enough.
class UnusualNic : public NicAndPod {
 public:
  UnusualNic() {
    sh("ip link set nic0 mtu 2000 txqueuelen 555 alias 'rail zero' promisc on allmulticast on");
    sh("ip link property add dev nic0 altname rail0 altname enp9s0");
    sh("cd /proc/sys/net && echo 1 > ipv6/conf/nic0/disable_ipv6 && echo 0 > ipv6/conf/nic0/accept_ra && echo 1 > "
       "ipv4/conf/nic0/arp_ignore && "
       "echo 2 > ipv4/conf/nic0/rp_filter && echo 3 > ipv6/conf/nic0/dad_transmits && echo 77 > ipv4/neigh/nic0/unres_qlen && "
       "echo 1234 > ipv6/neigh/nic0/base_reachable_time_ms && echo 9 > ipv6/conf/nic0/router_solicitation_interval && "
       "echo 2001:db8::1 > ipv6/conf/nic0/stable_secret && echo 0 > ipv6/conf/nic0/addr_gen_mode");
  }
};

/// What a pod can do to its interface, each by itself.
const std::vector<std::string> kChanges{
    "ip -n pod link set net1 mtu 1400",
    "ip -n pod link set net1 address 02:00:00:00:00:42",
    "ip -n pod link set net1 promisc on",
    "ip -n pod link set net1 promisc off",
    "ip -n pod link set net1 allmulticast on",
    "ip -n pod link set net1 allmulticast off",
    "ip -n pod link set net1 arp off",
    "ip -n pod link set net1 multicast off",
    "ip -n pod link set net1 txqueuelen 77",
    "ip -n pod link set net1 alias mine",
    "ip -n pod link set net1 alias ''",
    "ip -n pod link property add dev net1 altname mine",
    "ip -n pod link property del dev net1 altname rail0 2>/dev/null || true",
    "ip -n pod link set net1 down",
    "ip -n pod link set net1 down; ip -n pod link set net1 name mine",
    "ip netns exec pod sysctl -qw net.ipv4.conf.net1.arp_ignore=2 net.ipv6.conf.net1.accept_ra=2 net.ipv4.neigh.net1.unres_qlen=5",
    "ip -n pod link set net1 up; ip -n pod addr add 10.9.9.9/24 dev net1; ip -n pod route add 10.8.0.0/16 via 10.9.9.1 dev net1",
};

void expect_each_change_undone() {
  const Snapshot before = snapshot("nic0");
  const Attachment attachment;
  for (const std::string& change : kChanges) {
    CAPTURE(change);
    expect_success(attachment.add());
    sh(change);
    expect_success(attachment.del());
    expect_home(before);
  }
}

}  // namespace

/// Gives every sysctl that takes it a value that no other has. What stays as it was, a kernel does not let anybody change.
TEST_CASE_METHOD(NicAndPod, "every sysctl of the NIC comes home as it was, also those that only a newer kernel has") {
  sh("cd /proc/sys/net; value=2; for file in ipv[46]/conf/nic0/* ipv[46]/neigh/nic0/*; do value=$((value + 1)); "
     "{ echo $value > $file || echo 1 > $file || true; } 2>/dev/null; done; echo 0 > ipv6/conf/nic0/disable_ipv6");
  const Snapshot before = snapshot("nic0");
  const Attachment attachment;
  expect_success(attachment.add());
  expect_success(attachment.del());
  expect_home(before);
}

TEST_CASE_METHOD(NicAndPod, "DEL restores a plain NIC after any one change by the pod") {
  expect_each_change_undone();
}

TEST_CASE_METHOD(UnusualNic, "DEL restores an unusual NIC after any one change by the pod") {
  expect_each_change_undone();
}

TEST_CASE_METHOD(UnusualNic, "DEL restores everything at once, also what the plugin itself had set") {
  const std::string state = GENERATE(as<std::string>{}, "up", "down");
  CAPTURE(state);
  sh("ip link set nic0 " + state);
  const Snapshot before = snapshot("nic0");
  const Attachment attachment{.network = config({{"mtu", 9000},
                                                 {"mac", "02:00:00:00:00:43"},
                                                 {"promisc", false},
                                                 {"allmulti", false},
                                                 {"txQLen", 100},
                                                 {"sysctl", {{"net.ipv4.conf.IFNAME.arp_ignore", "8"}}}})};
  expect_success(attachment.add());
  for (const std::string& change : kChanges) {
    if (change.find("name mine") == std::string::npos) {
      sh(change);
    }
  }
  sh("ip -n pod link set net1 down; ip -n pod link set net1 name renamed");
  expect_success(attachment.del());
  expect_home(before);
}

TEST_CASE_METHOD(NicAndPod, "what a pod has put onto its NIC does not stay connected to it") {
  const Snapshot before = snapshot("nic0");
  const Attachment attachment;
  expect_success(attachment.add());
  sh("ip -n pod link add link net1 name mv type macvlan mode bridge && ip -n pod link set mv up");
  sh("ip -n pod link add own0 type veth peer name own1");
  const auto answer = attachment.del();
  expect_success(answer);
  CHECK(answer.err.find("'mv' is removed") != std::string::npos);
  expect_home(before);
  CHECK(link_names("pod") == std::vector<std::string>{"own0", "own1"});
}

TEST_CASE_METHOD(NicAndPod, "a NIC that was up comes home up and one that was down comes home down") {
  const std::string state = GENERATE(as<std::string>{}, "up", "down");
  const std::string state_in_pod = GENERATE(as<std::string>{}, "up", "down");
  CAPTURE(state, state_in_pod);
  sh("ip link set nic0 " + state);
  const Attachment attachment;
  expect_success(attachment.add());
  CHECK(has_flag(show_link("net1", "pod"), "UP"));
  sh("ip -n pod link set net1 " + state_in_pod);
  expect_success(attachment.del());
  CHECK(has_flag(show_link("nic0"), "UP") == (state == "up"));
}

TEST_CASE_METHOD(NicAndPod, "DEL detaches an XDP program that the pod attached") {
  const std::string mode = GENERATE(as<std::string>{}, "xdpgeneric", "xdpdrv");
  CAPTURE(mode);
  sh("ip -n fabric link set nic0-peer mtu 1500");  // a veth takes no driver-mode program while its peer's frames can be larger than a page
  pin_xdp_program("pass");
  const Snapshot before = snapshot("nic0");
  const Attachment attachment;
  expect_success(attachment.add());
  sh("ip -n pod link set net1 " + mode + " pinned /run/bpf/pass");
  REQUIRE(show_link("net1", "pod").contains("xdp"));
  expect_success(attachment.del());
  expect_home(before);
}

TEST_CASE_METHOD(NicAndPod, "an XDP program that was there before ADD is still there after DEL") {
  pin_xdp_program("pass");
  sh("ip link set nic0 xdpgeneric pinned /run/bpf/pass");
  const Snapshot before = snapshot("nic0");
  REQUIRE(before.at("xdp") != "null");
  const Attachment attachment;
  expect_success(attachment.add());
  expect_success(attachment.del());
  expect_home(before);
}

TEST_CASE_METHOD(NicAndPod, "DEL brings the NIC home as dev<ifindex>, and says so, when its name is taken in the host") {
  sh("ip link set nic0 mtu 2000");
  Snapshot before = snapshot("nic0");
  const Attachment attachment;
  expect_success(attachment.add());
  sh("ip link add nic0 type bridge");
  sh("ip -n pod link set net1 mtu 1400");

  const Answer deleted = attachment.del();
  expect_success(deleted);
  CHECK(show_link("nic0")["linkinfo"]["info_kind"] == "bridge");
  const std::vector<std::string> names = link_names();
  REQUIRE(names.size() == 2);
  const std::string name = names[0];
  CHECK(name == "dev" + show_link(name)["ifindex"].dump());
  CHECK(missing_words(deleted.err, {"nic0", name}) == "");
  before["ifname"] = "\"" + name + "\"";
  CHECK(changes(before, snapshot(name)) == "");
  CHECK(link_names("pod") == std::vector<std::string>{});
}

TEST_CASE_METHOD(NicAndPod, "a NIC that has been in twenty pods, one after the other, is as it was") {
  const Snapshot before = snapshot("nic0");
  for (int round = 0; round < 20; ++round) {
    const Attachment attachment{.network = config({{"mtu", 1500 + round}}), .container = "c" + std::to_string(round)};
    expect_success(attachment.add());
    CHECK(show_link("net1", "pod")["mtu"] == 1500 + round);
    expect_success(attachment.del());
  }
  expect_home(before);
}
