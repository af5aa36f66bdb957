// Whatever fails, and wherever the process dies, the NIC comes home as it was.

#include <csignal>
#include <filesystem>

#include "support/catch.hpp"
#include "support/plugin.hpp"
#include "support/sandbox.hpp"

using namespace support;

namespace {

/// Everything that ADD can be asked to do by itself, so that there is a call of each kind to fail. Without the wait for duplicate address
/// detection, which is many calls of one kind and half a second.
const Json kEverything = config({{"mtu", 9000},
                                 {"mac", "02:00:00:00:00:42"},
                                 {"promisc", true},
                                 {"allmulti", true},
                                 {"txQLen", 100},
                                 {"sysctl", {{"net.ipv4.conf.IFNAME.arp_ignore", "1"}, {"net.ipv6.conf.IFNAME.accept_dad", "0"}}},
                                 {"runtimeConfig", {{"ips", {"10.0.0.5/24", "fd00::5/64"}}}}});

class NicInUse : public NicAndPod {
 public:
  NicInUse() {
    sh("ip link set nic0 up mtu 2000 txqueuelen 555 alias 'rail zero' && ip link property add dev nic0 altname rail0 && "
       "echo 1 > /proc/sys/net/ipv4/conf/nic0/arp_announce && echo 99 > /proc/sys/net/ipv4/neigh/nic0/gc_stale_time");
  }
};

bool was_killed(const Answer& answer) {
  return answer.status == 128 + 9;
}

/// Runs a verb again and again, each time with its next system call of some kind disturbed, until a run has no such call any more.
class Sweep : public NicInUse {
 public:
  const Attachment attachment{.network = kEverything};
  const Snapshot before = snapshot("nic0");

  /// `disturb` gets the number of the call to disturb and says whether there was one.
  template <typename Disturb>
  void for_each_call(Disturb disturb) {
    int number = 1;
    for (bool there_was_one = true; there_was_one; ++number) {
      INFO("call number " << number);
      there_was_one = disturb(number);
    }
    REQUIRE(number > 2);
  }

  /// From the first file that the plugin itself opens on.
  template <typename Disturb>
  void for_each_open(Disturb disturb) {
    expect_success(attachment.under(strace({"-e", "trace=openat"})).add());
    int number = 1;
    for (const auto& line : trace()) {
      if (line.find("/etc/cni/fabric-nic.json") != std::string::npos) {
        break;
      }
      ++number;
    }
    expect_success(attachment.del());
    for (bool there_was_one = true; there_was_one; ++number) {
      INFO("open number " << number);
      there_was_one = disturb(number);
    }
    REQUIRE(number > 10);
  }

  void fail_add_at_each(const std::string& calls) {
    for_each_call([&](int number) {
      const Answer added = attachment.under(inject(calls, "error=ENOBUFS", number)).add();
      if (added.status == 0) {
        CHECK(show_link("net1", "pod")["mtu"] == 9000);
        expect_success(attachment.del());
      } else {
        expect_error(added, std::nullopt, {});
      }
      expect_home(before);
      return was_injected();
    });
  }

  void fail_del_at_each(const std::string& calls, const std::string& next) {
    for_each_call([&](int number) {
      expect_success(attachment.add());
      expect_success(attachment.under(inject(calls, "error=ENOBUFS", number)).del());
      const bool injected = was_injected();
      if (next == "ADD" && link_names("pod").empty()) {  // in the pod it is its owner's, and nobody may take it
        const Attachment other{.container = "c2"};
        expect_success(other.add());
        expect_success(other.del());
      } else {
        expect_success(attachment.del());
      }
      expect_home(before);
      return injected;
    });
  }

  void kill_add_at_each(const std::string& calls) {
    for_each_call([&](int number) {
      const Answer added = attachment.under(inject(calls, "signal=KILL", number)).add();
      expect_success(attachment.del());
      REQUIRE(has_link("nic0"));
      CHECK(changes(before, snapshot("nic0")) == "");
      CHECK(record_files().empty());
      return was_killed(added);
    });
  }

  void kill_del_at_each(const std::string& calls) {
    for_each_call([&](int number) {
      expect_success(attachment.add());
      const Answer deleted = attachment.under(inject(calls, "signal=KILL", number)).del();
      expect_success(was_killed(deleted) ? attachment.del() : deleted);
      expect_home(before);
      return was_killed(deleted);
    });
  }
};

/// The number, counted from 1, of the send in the last trace that moves the device.
int number_of_move() {
  int number = 0;
  for (const std::string& line : trace()) {
    ++number;
    if (is_move(line)) {
      return number;
    }
  }
  FAIL("no request in the trace moves the device");
  return 0;
}

}  // namespace

TEST_CASE_METHOD(Sweep, "ADD fails cleanly, or does without, whichever request cannot be sent") {
  fail_add_at_each(kSends);
}

TEST_CASE_METHOD(Sweep, "ADD fails cleanly, or does without, whichever answer of the kernel is lost") {
  fail_add_at_each(kReceives);
}

TEST_CASE_METHOD(Sweep, "ADD fails cleanly, or loses nothing, whichever file or directory cannot be opened") {
  for_each_open([&](int number) {
    const Answer added = attachment.under(inject("openat", "error=ENFILE", number)).add();
    const bool injected = was_injected();
    if (added.status == 0) {
      expect_success(attachment.del());
    } else {
      expect_error(added, std::nullopt, {});
    }
    expect_home(before);
    return injected;
  });
}

TEST_CASE_METHOD(Sweep, "DEL does not say that all is well when a file or directory could not be opened, or leaves it to the next one") {
  for_each_open([&](int number) {
    expect_success(attachment.add());
    const Answer deleted = attachment.under(inject("openat", "error=ENFILE", number)).del();
    const bool injected = was_injected();
    if (deleted.status == 0 && !record_files().empty()) {
      CHECK(deleted.err.find(R"("level":"error")") != std::string::npos);
    }
    expect_success(attachment.del());
    expect_home(before);
    return injected;
  });
}

TEST_CASE_METHOD(Sweep, "DEL succeeds whichever request cannot be sent, and the next DEL does what is left") {
  fail_del_at_each(kSends, "DEL");
}

TEST_CASE_METHOD(Sweep, "DEL succeeds whichever answer of the kernel is lost, and the next DEL does what is left") {
  fail_del_at_each(kReceives, "DEL");
}

TEST_CASE_METHOD(Sweep, "what a DEL left undone on a NIC that it brought home is done by the next ADD") {
  fail_del_at_each(kSends, "ADD");
}

TEST_CASE_METHOD(Sweep, "an ADD that was killed at any request is undone by DEL") {
  kill_add_at_each(kSends);
}

TEST_CASE_METHOD(Sweep, "an ADD that was killed at any answer is undone by DEL") {
  kill_add_at_each(kReceives);
}

TEST_CASE_METHOD(Sweep, "an ADD that was killed at any write or rename of a file is undone by DEL") {
  kill_add_at_each("write");
  kill_add_at_each(kRenames);
}

TEST_CASE_METHOD(Sweep, "an ADD that was killed at any request or rename is done again by the same ADD") {
  for (const std::string& calls : {kSends, kRenames}) {
    for_each_call([&](int number) {
      const Answer added = attachment.under(inject(calls, "signal=KILL", number)).add();
      expect_success(was_killed(added) ? attachment.add() : added);
      CHECK(addresses("net1", "pod") == std::vector<std::string>{"10.0.0.5/24", "fd00::5/64"});
      expect_success(attachment.del());
      expect_home(before);
      return was_killed(added);
    });
  }
}

TEST_CASE_METHOD(Sweep, "after an ADD was killed another pod gets the NIC, once it is not in the first one") {
  add_pod("pod2");
  const Attachment other{
      .network = config({{"wait", {{"owner", "0s"}, {"device", "0s"}}}}), .container = "c2", .net_ns = "/run/netns/pod2"};
  for_each_call([&](int number) {
    const Answer added = attachment.under(inject(kSends, "signal=KILL", number)).add();
    if (!link_names("pod").empty()) {
      expect_error(other.add(), 11, {"c1"});
      expect_success(attachment.del());
    }
    expect_success(other.add());
    CHECK(show_link("net1", "pod2")["mtu"] == 2000);
    expect_success(other.del());
    expect_home(before);
    return was_killed(added);
  });
}

TEST_CASE_METHOD(Sweep, "a DEL that was killed at any request is completed by the next DEL") {
  kill_del_at_each(kSends);
}

TEST_CASE_METHOD(Sweep, "a DEL that was killed at any answer is completed by the next DEL") {
  kill_del_at_each(kReceives);
}

TEST_CASE_METHOD(Sweep, "a DEL that was killed at any write or removal of a file is completed by the next DEL") {
  kill_del_at_each("write");
  kill_del_at_each(kUnlinks);
}

TEST_CASE_METHOD(NicInUse, "ADD fails and the NIC is home when the record cannot be written") {
  const Snapshot before = snapshot("nic0");
  SECTION("rename fails") {
    expect_error(Attachment{}.under(inject(kRenames, "error=ENOSPC", 1)).add(), std::nullopt, {});
    REQUIRE(was_injected());
  }
  SECTION("the second rename fails") {
    expect_error(Attachment{}.under(inject(kRenames, "error=ENOSPC", 2)).add(), std::nullopt, {});
    REQUIRE(was_injected());
  }
  SECTION("the file system is read-only") {
    sh("mount -t tmpfs -o ro tmpfs /var/lib/cni");
    expect_error(Attachment{}.add(), 5, {kDataDirectory});
  }
  REQUIRE(has_link("nic0"));
  CHECK(changes(before, snapshot("nic0")) == "");
  CHECK(record_files().empty());
}

TEST_CASE_METHOD(NicInUse, "the NIC comes home when its name or its index is taken in the pod at the moment of the move") {
  const Snapshot before = snapshot("nic0");
  const Attachment attachment{.network = kEverything};
  expect_success(attachment.under(strace({"-e", "trace=" + kSends})).add());
  const int move = number_of_move();
  expect_success(attachment.del());

  Process adding(program(attachment.under(inject(kSends, "delay_enter=1500000", move)).to_call("ADD")));
  wait_until("the record", [] { return !record_files().empty(); });
  const std::string index = show_link("nic0")["ifindex"].dump();
  SECTION("the name: the kernel moves the NIC, and then finds that it cannot rename it") {
    sh("ip -n pod link add net1 index 4242 type bridge");
    expect_error(answer(adding.wait()), 101, {"'net1'", "File exists"});
    CHECK(link_names("pod") == std::vector<std::string>{"net1"});
  }
  SECTION("the index") {
    sh("ip -n pod link add other index " + index + " type bridge");
    const Answer added = answer(adding.wait());
    if (added.status == 0) {
      expect_success(attachment.del());
    } else {
      expect_error(added, 101, {index});
    }
    CHECK(link_names("pod") == std::vector<std::string>{"other"});
  }
  REQUIRE(trace("(DELAYED)").size() == 1);
  CHECK(is_move(trace("(DELAYED)")[0]));
  expect_home(before);
}

TEST_CASE_METHOD(NicInUse, "the NIC comes home when the kernel refuses a setting after it has moved it") {
  sh("ip link add mac0 link nic0 type macvlan");
  const Json mac = show_link("nic0")["address"];
  Json keys{{"device", "mac0"}};
  std::string refused;
  SECTION("the MTU: a macvlan says that it takes up to 65535, and refuses more than the link below it has") {
    keys["mtu"] = 9000;
    refused = "MTU 9000";
  }
  SECTION("the MAC: a macvlan refuses that of the link below it") {
    keys["runtimeConfig"]["mac"] = mac;
    refused = "runtimeConfig.mac";
  }
  SECTION("going up: so does one that has it already") {
    sh("ip link set nic0 address " + show_link("mac0")["address"].get<std::string>());
    refused = "up";
  }
  const Snapshot before = snapshot("mac0");
  expect_error(Attachment{.network = config(keys)}.add(), 101, {"macvlan", refused});
  REQUIRE(has_link("mac0"));
  CHECK(changes(before, snapshot("mac0")) == "");
  expect_no_traces();
  CHECK(link_names("pod") == std::vector<std::string>{});
}

TEST_CASE_METHOD(NicInUse, "ADD takes everything back when nobody can read its result") {
  const Snapshot before = snapshot("nic0");
  const Attachment attachment{.network = kEverything};
  const std::string redirection = GENERATE(as<std::string>{}, "exec \"$@\" > /dev/full", "exec \"$@\" >&-");
  CAPTURE(redirection);
  const Answer added = attachment.under({"bash", "-c", redirection, "bash"}).add();
  CHECK(added.status != 0);
  expect_home(before);
}

TEST_CASE_METHOD(NicInUse, "ADD takes everything back when the pod's namespace is another one by the time it is done") {
  write_plugin("slow", R"(
    if [ $CNI_COMMAND = ADD ]; then
      umount -l /run/netns/pod && mount --bind /run/netns/fabric /run/netns/pod
      echo '{"cniVersion": "1.0.0", "ips": [{"address": "10.0.0.5/24"}]}'
    fi
    echo $CNI_COMMAND >> /run/verbs)");
  const Holder holder("pod");
  const Snapshot before = snapshot("nic0");
  expect_error(Attachment{.network = config({{"ipam", {{"type", "slow"}}}})}.add(), 11, {"CNI_NETNS"});
  expect_home(before);
  CHECK(sh("cat /run/verbs") == "ADD\nDEL\n");
}

TEST_CASE_METHOD(NicInUse, "SIGTERM in the middle of ADD leaves the NIC either in the pod, recorded, or home as it was") {
  write_plugin(
      "slow",
      R"([ $CNI_COMMAND = DEL ] || { touch /run/asked; sleep 1; echo '{"cniVersion": "1.0.0", "ips": [{"address": "10.0.0.5/24"}]}'; })");
  const Snapshot before = snapshot("nic0");
  const Attachment attachment{.network = config({{"ipam", {{"type", "slow"}}}})};
  Process adding(program(attachment.to_call("ADD")));
  wait_until("IPAM", [] { return std::filesystem::exists("/run/asked"); });
  adding.send(SIGTERM);
  (void)adding.wait();
  if (!has_link("nic0")) {
    CHECK(record_files().size() == 1);
  }
  expect_success(attachment.del());
  expect_home(before);
}

TEST_CASE_METHOD(NicInUse, "DEL finishes in spite of SIGTERM") {
  write_plugin("slow", R"(case $CNI_COMMAND in
    ADD) echo '{"cniVersion": "1.0.0", "ips": [{"address": "10.0.0.5/24"}]}';;
    DEL) touch /run/asked; sleep 1; touch /run/freed;;
  esac)");
  const Snapshot before = snapshot("nic0");
  const Attachment attachment{.network = config({{"ipam", {{"type", "slow"}}}})};
  expect_success(attachment.add());
  Process deleting(program(attachment.to_call("DEL")));
  wait_until("IPAM", [] { return std::filesystem::exists("/run/asked"); });
  ::kill(deleting.pid(), SIGTERM);
  expect_success(answer(deleting.wait()));
  CHECK(std::filesystem::exists("/run/freed"));
  expect_home(before);
}
