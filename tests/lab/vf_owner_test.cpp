// VFs of one PF that come and go at the same time, and one VF that several want.
#include <fcntl.h>
#include <sys/file.h>

#include <cstdlib>
#include <memory>

#include "lab.hpp"
#include "support/catch.hpp"

namespace {

using lab::Configured;
using lab::OwnMac;
using lab::Pod;
using lab::Scenario;
using support::expect_error;
using support::expect_success;
using support::Json;
using support::sh;

const auto kFunction = lab::vf(1, 0);

int rounds() {
  const char* wanted = std::getenv("LAB_ROUNDS");
  return wanted != nullptr ? std::stoi(wanted) : 3;
}

std::string mac(int number) {
  return "02:00:00:00:ee:0" + std::to_string(number);
}

const Json kAsked{{"vlan", 100}, {"vlanQoS", 2}, {"mac", mac(1)}, {"trust", "on"}, {"mtu", 9000}};

struct Task {
  explicit Task(int number) : function(lab::vf(1, number)), own(function), pod("pod" + std::to_string(number)) {
    attachment = lab::attachment(function, pod, {{"vlan", 100 + number}, {"mac", mac(number)}, {"trust", "on"}, {"mtu", 9000}});
    attachment.container = "c" + std::to_string(number);
  }
  void start(const std::string& verb) { process = std::make_unique<support::Process>(support::program(attachment.to_call(verb))); }
  support::Answer wait() { return support::answer(process->wait()); }

  lab::Function function;
  OwnMac own;
  Pod pod;
  support::Attachment attachment;
  std::unique_ptr<support::Process> process;
};

}  // namespace

TEST_CASE("seven VFs of one PF at once: all ADDs and all DELs succeed, and the PF ends as it began") {
  const Scenario scenario{{.cards = {{{.vfs = 7, .mtu = 9000}, {.vfs = 0, .mtu = 9000}}}, .hcas = {}}};
  std::vector<std::unique_ptr<Task>> tasks;
  for (int number = 0; number < 7; ++number) {
    tasks.push_back(std::make_unique<Task>(number));
  }
  const auto before = lab::pf_text(1);
  for (int round = 0; round < rounds(); ++round) {
    CAPTURE(round);
    for (auto& task : tasks) {
      task->start("ADD");
    }
    for (auto& task : tasks) {
      expect_success(task->wait());
    }
    for (int number = 0; number < 7; ++number) {
      const auto& task = *tasks.at(static_cast<std::size_t>(number));
      const auto settings = lab::vf_settings(task.function);
      CHECK(settings["vlan_list"][0]["vlan"] == 100 + number);
      CHECK(settings["address"] == mac(number));
      CHECK(settings["trust"] == true);
      const auto link = support::show_link("net1", task.pod.name());
      CHECK(link["address"] == mac(number));
      CHECK(link["parentdev"] == task.function.address());
    }
    for (auto& task : tasks) {
      task->start("DEL");
    }
    for (auto& task : tasks) {
      expect_success(task->wait());
    }
    CHECK(lab::pf_text(1) == before);
    support::expect_no_traces();
  }
}

TEST_CASE("of two ADDs at once that want one MAC for two VFs of a PF one succeeds") {
  const Scenario scenario{lab::kLayout};
  Task one{0};
  Task other{1};
  other.attachment.network["mac"] = mac(0);
  const auto before = lab::pf_text(1);
  one.start("ADD");
  other.start("ADD");
  const auto first = one.wait();
  const auto second = other.wait();
  CHECK(first.status + second.status == 1);
  expect_error(first.status == 1 ? first : second, 100, {mac(0), "already"});
  expect_success(one.attachment.del());
  expect_success(other.attachment.del());
  CHECK(lab::pf_text(1) == before);
}

TEST_CASE("a VF of a live pod is not to be had, and a late DEL of its former owner changes nothing") {
  const Scenario scenario{lab::kLayout};
  const OwnMac own{kFunction};
  Pod pod;
  const Pod next_pod{"next"};
  const auto before = lab::pf_text(1);
  const auto first = lab::attachment(kFunction, pod, {{"vlan", 100}, {"mac", mac(1)}});
  auto next = lab::attachment(kFunction, next_pod, {{"vlan", 200}, {"mac", mac(2)}, {"wait", {{"owner", "200ms"}}}});
  next.container = "c2";
  expect_success(first.add());
  expect_error(next.add(), 11, {kFunction.address(), "'c1'", "net1"});
  CHECK(lab::vf_settings(kFunction)["vlan_list"][0]["vlan"] == 100);
  CHECK(support::show_link("net1", "pod")["address"] == mac(1));

  pod.destroy();
  lab::wait_for_netdev(kFunction);
  expect_success(next.add());
  const auto settings = lab::vf_settings(kFunction);
  CHECK(settings["vlan_list"][0]["vlan"] == 200);
  expect_success(first.del());
  CHECK(lab::vf_settings(kFunction) == settings);
  CHECK(support::show_link("net1", "next")["address"] == mac(2));
  expect_success(next.del());
  CHECK(lab::pf_text(1) == before);
}

TEST_CASE("a VF that cannot be taken home keeps its pod's VLAN, and goes home with the next DEL") {
  const Scenario scenario{lab::kLayout};
  Pod pod;
  const auto before = lab::pf_text(1);
  const auto attachment = lab::attachment(kFunction, pod, {{"vlan", 100}});
  expect_success(attachment.add());
  // From the fourth request on the kernel gets none: the VF is found in the pod, and that is all.
  expect_success(attachment.under(support::strace({"-e", "trace=sendto", "-e", "inject=sendto:error=ENOBUFS:when=4+"})).del());
  REQUIRE(support::was_injected());
  REQUIRE(support::has_link("net1", "pod"));
  CHECK(lab::vf_settings(kFunction)["vlan_list"][0]["vlan"] == 100);
  expect_success(attachment.del());
  CHECK(lab::pf_text(1) == before);
  support::expect_no_traces();
}

TEST_CASE("whatever state a killed ADD leaves a VF in, the next ADD of another pod cleans it up") {
  const Scenario scenario{lab::kLayout};
  const OwnMac own{kFunction};
  const auto before = lab::pf_text(1);
  const Pod next_pod{"next"};
  auto next = lab::attachment(kFunction, next_pod);
  next.container = "c2";
  int kills = 0;
  for (bool was_killed = true; was_killed; ++kills) {
    CAPTURE(kills);
    Pod pod;
    const auto attachment = lab::attachment(kFunction, pod, kAsked);
    (void)attachment.under(support::inject("sendto", "signal=KILL", 3 * kills + 1)).add();
    was_killed = support::was_injected();
    pod.destroy();
    lab::wait_for_netdev(kFunction);
    expect_success(next.add());
    CHECK(lab::pf_text(1) == before);
    expect_success(attachment.del());
    expect_success(next.del());
    CHECK(lab::pf_text(1) == before);
    support::expect_no_traces();
  }
  CHECK(kills > 10);
}

TEST_CASE("whatever state a killed DEL leaves a VF in, the next DEL or the next ADD of another pod completes it") {
  const Scenario scenario{lab::kLayout};
  const OwnMac own{kFunction};
  const auto before = lab::pf_text(1);
  const Pod pod;
  const Pod next_pod{"next"};
  const auto attachment = lab::attachment(kFunction, pod, kAsked);
  auto next = lab::attachment(kFunction, next_pod);
  next.container = "c2";
  int kills = 0;
  for (bool was_killed = true; was_killed; ++kills) {
    CAPTURE(kills);
    expect_success(attachment.add());
    (void)attachment.under(support::inject("sendto", "signal=KILL", 2 * kills + 1)).del();
    was_killed = support::was_injected();
    const bool is_home = kFunction.netdev() != "";
    if (is_home && kills % 2 == 0) {
      expect_success(next.add());
      CHECK(lab::pf_text(1) == before);
      expect_success(next.del());
    }
    expect_success(attachment.del());
    CHECK(lab::pf_text(1) == before);
    CHECK(support::show_link(kFunction.netdev())["address"] == own.mac());
    support::expect_no_traces();
  }
  CHECK(kills > 10);
}

TEST_CASE("a PF whose lock somebody holds does not keep a VF's netdev from coming home whole, and the rest is done with the next call") {
  const Scenario scenario{lab::kLayout};
  const auto before = lab::pf_text(1);
  const auto name = kFunction.netdev();
  const auto link_before = support::snapshot(name);
  const Pod pod;
  const auto attachment = lab::attachment(kFunction, pod, {{"vlan", 100}, {"mtu", 9000}});
  expect_success(attachment.add());
  {
    const netlink::UniqueFd lock{::open("/run/fabric-nic/pci-0000:01:00.0.lock", O_RDWR | O_CLOEXEC)};
    REQUIRE(::flock(lock.get(), LOCK_EX | LOCK_NB) == 0);
    expect_success(attachment.del());
    CHECK(support::changes(link_before, support::snapshot(name)) == "");
    CHECK(lab::vf_settings(kFunction)["vlan_list"][0]["vlan"] == 100);
    CHECK(support::record_files().size() == 1);
  }
  auto next = lab::attachment(kFunction, pod);
  next.container = "c2";
  expect_success(next.add());
  CHECK(lab::pf_text(1) == before);
  expect_success(next.del());
  CHECK(lab::pf_text(1) == before);
  CHECK(support::changes(link_before, support::snapshot(name)) == "");
  support::expect_no_traces();
}
