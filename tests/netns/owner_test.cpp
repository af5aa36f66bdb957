// One owner a device: who has it, who waits for it, and what becomes of an owner that is gone.

#include <csignal>
#include <filesystem>
#include <memory>
#include <thread>

#include "support/catch.hpp"
#include "support/plugin.hpp"
#include "support/sandbox.hpp"

using namespace support;

namespace {

class TwoPods : public NicAndPod {
 public:
  TwoPods() { add_pod("pod2"); }

  Attachment first{.network = config({{"mtu", 9000}}), .args = "IgnoreUnknown=1;K8S_POD_NAMESPACE=default;K8S_POD_NAME=job-0"};
  Attachment second{.network = config({{"wait", {{"owner", "300ms"}}}}), .container = "c2", .net_ns = "/run/netns/pod2"};
};

}  // namespace

TEST_CASE_METHOD(TwoPods, "a second pod waits for the owner of the NIC and then is told who it is") {
  expect_success(first.add());
  const Snapshot before = snapshot("net1", "pod");
  const Answer refused = second.add();
  expect_error(refused, 11, {"c1", "net1", "default/job-0"});
  CHECK(refused.elapsed >= std::chrono::milliseconds{300});
  CHECK(refused.elapsed < std::chrono::milliseconds{20'000});
  CHECK(changes(before, snapshot("net1", "pod")) == "");
  expect_success(second.del());
  CHECK(changes(before, snapshot("net1", "pod")) == "");
  CHECK(record_files().size() == 1);
}

TEST_CASE_METHOD(TwoPods, "who got the index of a software device in the host meanwhile is not taken for it") {
  const std::string index = show_link("nic0")["ifindex"].dump();
  const Snapshot home = snapshot("nic0");
  expect_success(first.add());
  const Snapshot before = snapshot("net1", "pod");
  sh("ip link add other index " + index + " type veth peer name other-peer && ip link set other up");
  const Snapshot other = snapshot("other");
  add_nic("nic1");
  second.network["device"] = "nic1";
  for (int round = 0; round < 5; ++round) {  // each looks at one other record
    expect_success(second.add());
    expect_success(second.del());
  }
  CHECK(changes(before, snapshot("net1", "pod")) == "");
  CHECK(changes(other, snapshot("other")) == "");
  expect_success(first.del());
  CHECK(changes(other, snapshot("other")) == "");
  CHECK(changes(home, snapshot("nic0")).find("mtu") == std::string::npos);
  CHECK(record_files().empty());
}

TEST_CASE_METHOD(TwoPods, "a second pod gets the NIC as soon as its owner's DEL is done") {
  second.network["wait"]["owner"] = "60s";
  const Snapshot before = snapshot("nic0");
  expect_success(first.add());
  Process adding(program(second.to_call("ADD")));
  std::this_thread::sleep_for(std::chrono::milliseconds{500});
  expect_success(first.del());
  const Answer added = answer(adding.wait());
  expect_success(added);
  CHECK(added.elapsed < std::chrono::milliseconds{20'000});
  CHECK(show_link("net1", "pod2")["mtu"] == 1500);
  expect_success(second.del());
  expect_home(before);
}

TEST_CASE_METHOD(TwoPods, "a repeated ADD of the owner gives the same result again and moves nothing") {
  const Json result = expect_success(first.add());
  const Snapshot before = snapshot("net1", "pod");
  CHECK(expect_success(first.under(strace({"-e", "trace=" + kSends})).add()) == result);
  CHECK(traced_moves().empty());
  CHECK(changes(before, snapshot("net1", "pod")) == "");
}

TEST_CASE_METHOD(TwoPods, "a repeated ADD of the owner asks IPAM for no second address") {
  first.network["ipam"] = {{"type", "host-local"}, {"ranges", {{{{"subnet", "10.7.0.0/24"}}}}}};
  const Json result = expect_success(first.add());
  CHECK(expect_success(first.add()) == result);
  CHECK(sh("ls /var/lib/cni/networks/rail | grep -c '^10'") == "1\n");
}

TEST_CASE_METHOD(TwoPods, "a repeated ADD of the owner is code 4 when the attachment is not what it was") {
  expect_success(first.add());
  sh("ip -n pod link set net1 mtu 1400");
  expect_error(first.add(), 4, {"MTU", "9000", "1400"});
  CHECK(show_link("net1", "pod")["mtu"] == 1400);
}

TEST_CASE_METHOD(TwoPods, "a repeated ADD that asks for something else is code 4 and names it") {
  auto attachment = first;
  attachment.network["mtu"] = 9000;
  expect_success(attachment.add());
  attachment.network["mtu"] = 4000;
  expect_error(attachment.add(), 4, {"'mtu'"});
  attachment.network["mtu"] = 9000;
  attachment.network["mac"] = "02:00:00:00:00:77";
  expect_error(attachment.add(), 4, {"'mac'"});
  attachment.network.erase("mac");
  expect_success(attachment.add());
}

TEST_CASE_METHOD(TwoPods, "one container cannot have a NIC under two names") {
  expect_success(first.add());
  const Snapshot before = snapshot("net1", "pod");
  first.interface = "net2";
  expect_error(first.add(), 100, {"'net1'"});
  CHECK(changes(before, snapshot("net1", "pod")) == "");
}

TEST_CASE_METHOD(TwoPods, "a NIC that came home without DEL is restored and given to the next pod") {
  sh("ip link set nic0 mtu 2000");
  const Snapshot before = snapshot("nic0");
  first.network["mac"] = "02:00:00:00:00:42";
  expect_success(first.add());
  SECTION("under the name that it had in the pod") {
    sh("ip -n pod link set net1 netns 1");
  }
  SECTION("as dev<ifindex>") {
    sh("ip -n pod link set net1 netns 1 name dev77");
  }
  expect_success(second.add());
  CHECK(show_link("net1", "pod2")["mtu"] == 2000);
  expect_success(second.del());
  expect_home(before);
}

TEST_CASE_METHOD(TwoPods, "the MAC and altnames that a record knows select a NIC that came home under another name") {
  sh("ip link property add dev nic0 altname rail0");
  const Snapshot before = snapshot("nic0");
  expect_success(first.add());
  sh("ip -n pod link property del dev net1 altname rail0 && ip -n pod link set net1 netns 1 name dev77");
  second.network["device"] = "rail0";
  expect_success(second.add());
  expect_success(second.del());
  expect_home(before);
}

TEST_CASE_METHOD(TwoPods, "the record of a pod whose namespace is gone is settled, IPAM included, and the next pod gets the new device") {
  write_plugin("ledger", R"(echo $CNI_COMMAND $CNI_CONTAINERID >> /run/verbs
    [ $CNI_COMMAND = DEL ] || echo '{"cniVersion": "1.0.0", "ips": [{"address": "10.0.0.5/24"}]}')");
  first.network["ipam"]["type"] = "ledger";
  second.network["ipam"]["type"] = "ledger";
  expect_success(first.add());
  sh("ip netns del pod");
  wait_until("the end of the veth pair", [] { return !has_link("nic0-peer", "fabric"); });
  add_nic();
  expect_success(second.add());
  CHECK(has_link("net1", "pod2"));
  expect_success(first.del());
  expect_success(second.del());
  const std::string verbs = sh("cat /run/verbs");
  CHECK(missing_words(verbs, {"ADD c1\n", "DEL c1\n", "ADD c2\n", "DEL c2\n"}) == "");
  CHECK(has_link("nic0"));
  expect_no_traces();
}

TEST_CASE_METHOD(TwoPods, "of two pods that ask for a NIC at the same moment one gets it") {
  second.network["wait"]["owner"] = "0s";
  first.network["wait"]["owner"] = "0s";
  const Snapshot before = snapshot("nic0");
  for (int round = 0; round < 10; ++round) {
    CAPTURE(round);
    Process one(program(first.to_call("ADD")));
    Process two(program(second.to_call("ADD")));
    const Answer from_one = answer(one.wait());
    const Answer from_two = answer(two.wait());
    REQUIRE((from_one.status == 0) != (from_two.status == 0));
    expect_error(from_one.status == 0 ? from_two : from_one, 11, {from_one.status == 0 ? "c1" : "c2"});
    CHECK(has_link("net1", from_one.status == 0 ? "pod" : "pod2"));
    expect_success(first.del());
    expect_success(second.del());
    expect_home(before);
  }
}

TEST_CASE_METHOD(TwoPods, "eight pods take eight NICs at the same moment") {
  constexpr int kCount = 8;
  for (int number = 1; number <= kCount; ++number) {
    add_nic("rail" + std::to_string(number));
    add_pod("job" + std::to_string(number));
  }
  const auto attachment = [](int number) {
    const std::string text = std::to_string(number);
    return Attachment{
        .network = config({{"device", "rail" + text}, {"mtu", 9000}}), .container = "c" + text, .net_ns = "/run/netns/job" + text};
  };
  for (const std::string verb : {"ADD", "DEL"}) {
    std::vector<std::unique_ptr<Process>> running;
    for (int number = 1; number <= kCount; ++number) {
      running.push_back(std::make_unique<Process>(program(attachment(number).to_call(verb))));
    }
    for (const auto& process : running) {
      expect_success(answer(process->wait()));
    }
  }
  for (int number = 1; number <= kCount; ++number) {
    CHECK(show_link("rail" + std::to_string(number))["mtu"] == 1500);
  }
  expect_no_traces();
}

TEST_CASE_METHOD(TwoPods, "a DEL in the middle of ADD ends with the NIC at home and nothing owed") {
  write_plugin("slow", R"(case $CNI_COMMAND in
    ADD) touch /run/asked; sleep 2; touch /run/allocated; echo '{"cniVersion": "1.0.0", "ips": [{"address": "10.0.0.5/24"}]}';;
    DEL) rm -f /run/allocated;;
  esac)");
  first.network["ipam"]["type"] = "slow";
  const Snapshot before = snapshot("nic0");
  Process adding(program(first.to_call("ADD")));
  wait_until("IPAM", [] { return std::filesystem::exists("/run/asked"); });
  SECTION("both live on") {
    const Answer deleted = first.del();
    (void)adding.wait();
    if (deleted.status != 0) {
      expect_error(deleted, 11, {});
    }
  }
  SECTION("ADD is killed, and its IPAM plugin is still at work") {
    ::kill(adding.pid(), SIGKILL);
    expect_success(first.del());
  }
  CHECK_FALSE(std::filesystem::exists("/run/allocated"));
  expect_home(before);
}

TEST_CASE_METHOD(TwoPods, "ADD brings one other stale attachment home on the way") {
  add_nic("nic1");
  const Snapshot before = snapshot("nic0");
  expect_success(first.add());
  sh("ip -n pod link set net1 netns 1");
  const Attachment other{.network = config({{"device", "nic1"}}), .container = "c3", .net_ns = "/run/netns/pod2"};
  expect_success(other.add());
  CHECK(changes(before, snapshot("nic0")) == "");
  CHECK(record_files().size() == 1);
}
