// ADD takes a NIC into the pod and DEL brings it home: selectors, names, altnames, interface indexes, one request a move.

#include <algorithm>

#include "support/catch.hpp"
#include "support/plugin.hpp"
#include "support/sandbox.hpp"

using namespace support;

TEST_CASE_METHOD(NicAndPod, "ADD moves the NIC into the pod and DEL brings it home as it was, whatever selects it") {
  sh("ip link property add dev nic0 altname rail0");
  sh("ip link set nic0 up");
  const Json selector = GENERATE(Json{{"device", "nic0"}}, Json{{"device", "rail0"}},
                                 Json{{"device", nullptr}, {"kernelpath", "/sys/devices/virtual/net/nic0"}});
  CAPTURE(selector.dump());
  const Snapshot before = snapshot("nic0");
  const std::string mac = show_link("nic0")["address"];
  const Attachment attachment{.network = config(selector)};

  const Json result = expect_success(attachment.add());
  CHECK(link_names() == std::vector<std::string>{});
  CHECK(link_names("pod") == std::vector<std::string>{"net1"});
  const Json in_pod = show_link("net1", "pod");
  CHECK(has_flag(in_pod, "UP"));
  CHECK(in_pod["address"] == mac);
  CHECK(in_pod["mtu"] == 1500);
  CHECK(result["cniVersion"] == "1.0.0");
  REQUIRE(result["interfaces"].size() == 1);
  CHECK(result["interfaces"][0]["name"] == "net1");
  CHECK(result["interfaces"][0]["mac"] == mac);
  CHECK(result["interfaces"][0]["sandbox"] == "/run/netns/pod");
  CHECK(record_files().size() == 1);

  const Answer deleted = attachment.del();
  expect_success(deleted);
  CHECK(deleted.out == "");
  expect_home(before);
  CHECK(link_names("pod") == std::vector<std::string>{});
}

TEST_CASE_METHOD(NicAndPod, "a MAC does not select a device that has no parent device") {
  const std::string mac = show_link("nic0")["address"];
  const Attachment attachment{.network = config({{"device", nullptr}, {"hwaddr", mac}, {"wait", {{"device", "100ms"}}}})};
  const Snapshot before = snapshot("nic0");
  expect_error(attachment.add(), 11, {mac});
  expect_home(before);
}

TEST_CASE_METHOD(NicAndPod, "ADD waits for a device that is not there yet, and no longer than wait.device") {
  sh("ip link set nic0 name later");
  Attachment attachment{.network = config()};
  SECTION("it comes") {
    attachment.network["wait"]["device"] = "30s";
    const Process renamer(shell("sleep 0.4; ip link set later name nic0"));
    const Answer answer = attachment.add();
    expect_success(answer);
    CHECK(answer.elapsed < std::chrono::milliseconds{20'000});
    CHECK(has_link("net1", "pod"));
  }
  SECTION("it does not come") {
    attachment.network["wait"]["device"] = "1500ms";
    const Answer answer = attachment.add();
    expect_error(answer, 11, {"'nic0'"});
    CHECK(answer.elapsed >= std::chrono::milliseconds{1500});
    CHECK(answer.elapsed < std::chrono::milliseconds{20'000});
    expect_no_traces();
  }
}

TEST_CASE_METHOD(NicAndPod, "ADD succeeds when the NIC's host name is taken in the pod") {
  sh("ip -n pod link add nic0 type bridge");
  const Snapshot before = snapshot("nic0");
  const Attachment attachment;
  expect_success(attachment.add());
  CHECK(link_names("pod") == std::vector<std::string>{"net1", "nic0"});
  CHECK(show_link("nic0", "pod")["linkinfo"]["info_kind"] == "bridge");
  expect_success(attachment.del());
  expect_home(before);
  CHECK(link_names("pod") == std::vector<std::string>{"nic0"});
}

TEST_CASE_METHOD(NicAndPod, "ADD refuses an interface name that is in use in the pod and touches nothing") {
  const std::string taken_by = GENERATE(as<std::string>{}, "name", "altname");
  CAPTURE(taken_by);
  if (taken_by == "name") {
    sh("ip -n pod link add net1 type bridge");
  } else {
    sh("ip -n pod link add other type bridge && ip -n pod link property add dev other altname net1");
  }
  const Snapshot before = snapshot("nic0");
  const Snapshot pod_before = snapshot("net1", "pod");
  const Attachment attachment;
  expect_error(attachment.add(), std::nullopt, {"'net1'"});
  expect_home(before);
  expect_success(attachment.del());
  CHECK(changes(pod_before, snapshot("net1", "pod")) == "");
  CHECK(link_names("pod").size() == 1);
}

TEST_CASE_METHOD(NicAndPod, "names of 15 bytes work on both sides") {
  sh("ip link set nic0 name host-0123456789");
  const Snapshot before = snapshot("host-0123456789");
  const Attachment attachment{.network = config({{"device", "host-0123456789"}}), .interface = "pod-01234567890"};
  expect_success(attachment.add());
  CHECK(has_link("pod-01234567890", "pod"));
  expect_success(attachment.del());
  CHECK(changes(before, snapshot("host-0123456789")) == "");
}

TEST_CASE_METHOD(NicAndPod, "an altname of more than 15 bytes selects the NIC and comes back") {
  sh("ip link property add dev nic0 altname a-name-that-is-longer-than-interface-names-may-be");
  const Snapshot before = snapshot("nic0");
  const Attachment attachment{.network = config({{"device", "a-name-that-is-longer-than-interface-names-may-be"}})};
  expect_success(attachment.add());
  expect_success(attachment.del());
  expect_home(before);
}

TEST_CASE_METHOD(NicAndPod, "the NIC keeps its interface index in the pod when it is free there") {
  const Json before = show_link("nic0");
  REQUIRE(run(shell("ip -n pod link show | grep -q '^" + before["ifindex"].dump() + ":'")).status != 0);
  expect_success(Attachment{}.add());
  CHECK(show_link("net1", "pod")["ifindex"] == before["ifindex"]);
}

TEST_CASE_METHOD(NicAndPod, "ADD and DEL work when the NIC's interface index is taken on the other side") {
  const std::string index = show_link("nic0")["ifindex"].dump();
  const Snapshot before = snapshot("nic0");
  const Attachment attachment;
  SECTION("in the pod before ADD") {
    sh("ip -n pod link add other index " + index + " type bridge");
    expect_success(attachment.add());
    CHECK(show_link("net1", "pod")["ifindex"].dump() != index);
  }
  SECTION("in the host while the NIC is away") {
    expect_success(attachment.add());
    sh("ip link add other index " + show_link("net1", "pod")["ifindex"].dump() + " type bridge");
  }
  expect_success(attachment.del());
  expect_home(before);
}

TEST_CASE_METHOD(NicAndPod, "DEL finds a NIC that the pod renamed") {
  const Snapshot before = snapshot("nic0");
  const Attachment attachment;
  expect_success(attachment.add());
  SECTION("renamed") {
    sh("ip -n pod link set net1 down && ip -n pod link set net1 name renamed");
  }
  SECTION("renamed, and something else has its name now") {
    sh("ip -n pod link set net1 down && ip -n pod link set net1 name renamed && ip -n pod link add net1 type bridge");
  }
  SECTION("renamed to the name it has in the host") {
    sh("ip -n pod link set net1 down && ip -n pod link set net1 name nic0");
  }
  expect_success(attachment.del());
  expect_home(before);
  CHECK_FALSE(has_link("renamed", "pod"));
}

TEST_CASE_METHOD(NicAndPod, "ADD works when the asked name is an altname of the NIC itself, which has it again after DEL") {
  sh("ip link property add dev nic0 altname net1 altname rail0");
  const Snapshot before = snapshot("nic0");
  const Attachment attachment;
  expect_success(attachment.add());
  CHECK(show_link("net1", "pod")["ifname"] == "net1");
  expect_success(attachment.del());
  expect_home(before);
}

TEST_CASE_METHOD(NicAndPod, "ADD works when an altname of the NIC is in use in the pod, and the NIC has it again after DEL") {
  sh("ip link property add dev nic0 altname enp9s0 && ip -n pod link add enp9s0 type bridge");
  const Snapshot before = snapshot("nic0");
  const Attachment attachment;
  expect_success(attachment.add());
  CHECK(show_link("enp9s0", "pod")["linkinfo"]["info_kind"] == "bridge");
  expect_success(attachment.del());
  expect_home(before);
  CHECK(show_link("enp9s0", "pod")["linkinfo"]["info_kind"] == "bridge");
}

TEST_CASE_METHOD(NicAndPod, "DEL brings the NIC home when an altname that the pod gave it is in use in the host") {
  const Snapshot before = snapshot("nic0");
  const Attachment attachment;
  expect_success(attachment.add());
  SECTION("as the name of another link") {
    sh("ip link add enp9s0 type bridge && ip -n pod link property add dev net1 altname enp9s0");
  }
  SECTION("as the name that the NIC itself is to get back") {
    sh("ip -n pod link property add dev net1 altname nic0");
  }
  expect_success(attachment.del());
  expect_home(before);
}

TEST_CASE_METHOD(NicAndPod, "DEL brings the NIC home without an altname that another link has got meanwhile") {
  sh("ip link property add dev nic0 altname enp9s0");
  Snapshot before = snapshot("nic0");
  const Attachment attachment;
  expect_success(attachment.add());
  sh("ip link add enp9s0 type bridge");
  const Answer deleted = attachment.del();
  expect_success(deleted);
  CHECK(missing_words(deleted.err, {"enp9s0"}) == "");
  before["altnames"] = "[]";
  CHECK(changes(before, snapshot("nic0")) == "");
  CHECK(show_link("enp9s0")["linkinfo"]["info_kind"] == "bridge");
}

TEST_CASE_METHOD(NicAndPod, "one request moves, renames and sets MTU and MAC, and one takes the NIC home") {
  const Attachment attachment{.network = config({{"mtu", 9000}, {"mac", "02:00:00:00:00:42"}})};
  expect_success(attachment.under(strace({"-e", "trace=" + kSends})).add());
  const std::vector<std::string> moves = traced_moves();
  REQUIRE(moves.size() == 1);
  CHECK(missing_words(moves[0], {"IFLA_IFNAME", "\"net1\"", "IFLA_MTU", "9000", "IFLA_ADDRESS", "02:00:00:00:00:42"}) == "");
  for (const char* attribute : {"IFLA_MTU", "IFLA_ADDRESS"}) {
    const std::vector<std::string> requests = trace("nlmsg_type");
    CHECK(std::ranges::count_if(requests, [&](const std::string& line) { return sets_attribute(line, attribute); }) == 1);
  }
  const Json in_pod = show_link("net1", "pod");
  CHECK(in_pod["mtu"] == 9000);
  CHECK(in_pod["address"] == "02:00:00:00:00:42");

  expect_success(attachment.under(strace({"-e", "trace=" + kSends})).del());
  CHECK(traced_moves().size() == 1);
}

TEST_CASE_METHOD(NicAndPod, "neither ADD nor DEL asks the kernel for an attribute that nobody has changed") {
  const Attachment attachment;
  const std::string verb = GENERATE(as<std::string>{}, "ADD", "DEL");
  if (verb == "DEL") {
    expect_success(attachment.add());
  }
  expect_success(call(attachment.under(strace({"-e", "trace=" + kSends})).to_call(verb)));
  REQUIRE(traced_moves().size() == 1);
  for (const std::string& line : trace("nlmsg_type")) {
    INFO(line);
    for (const char* attribute : {"IFLA_MTU", "IFLA_ADDRESS", "IFLA_TXQLEN"}) {
      CHECK_FALSE(sets_attribute(line, attribute));
    }
  }
}

TEST_CASE_METHOD(NicAndPod, "two NICs go into one pod as two attachments, and each comes home by its own DEL") {
  add_nic("nic1");
  const Snapshot before = snapshot("nic0");
  const Snapshot other_before = snapshot("nic1");
  const Attachment first;
  const Attachment second{.network = config({{"device", "nic1"}}), .interface = "net2"};
  expect_success(first.add());
  expect_success(second.add());
  CHECK(link_names("pod") == std::vector<std::string>{"net1", "net2"});
  expect_success(first.del());
  CHECK(link_names("pod") == std::vector<std::string>{"net2"});
  CHECK(changes(before, snapshot("nic0")) == "");
  expect_success(second.del());
  CHECK(changes(other_before, snapshot("nic1")) == "");
  expect_no_traces();
}
