// RDMA devices that move at the same time keep their char devices, and a call that is killed loses none.
#include <cstdlib>
#include <memory>

#include "lab.hpp"
#include "support/catch.hpp"

namespace {

using lab::Pod;
using lab::Scenario;
using support::expect_error;
using support::expect_success;
using support::Json;
using support::sh;

using Names = std::vector<std::string>;

const auto kFunction = lab::vf(1, 0);
const auto kOther = lab::vf(1, 1);

int rounds() {
  const char* wanted = std::getenv("LAB_ROUNDS");
  return wanted != nullptr ? std::stoi(wanted) : 3;
}

Json keys(const std::string& address) {
  auto result = lab::with_address(address + "/24");
  result["rdma"] = "exclusive";
  result["mtu"] = 9000;
  return result;
}

struct Task {
  explicit Task(int number)
      : function(lab::vf(1, number)),
        address("10.7.0.1" + std::to_string(number)),
        device(function.rdma_device()),
        numbers(function.char_devices()),
        pod("pod" + std::to_string(number)),
        attachment(lab::attachment(function, pod, keys(address))) {
    attachment.container = "c" + std::to_string(number);
  }
  void start(const std::string& verb) { process = std::make_unique<support::Process>(support::program(attachment.to_call(verb))); }
  support::Answer wait() { return support::answer(process->wait()); }

  lab::Function function;
  std::string address;
  std::string device;
  std::map<std::string, std::string> numbers;
  Pod pod;
  support::Attachment attachment;
  std::unique_ptr<support::Process> process;
};

/// `193` of `231:193`.
std::string minor_of(const std::string& numbers) {
  return numbers.substr(numbers.find(':') + 1);
}

}  // namespace

TEST_CASE("seven RDMA devices at once: each pod has its own, with the char device that was its own before") {
  lab::Layout layout{.cards = {{{.vfs = 7, .mtu = 9000}, {.vfs = 0, .mtu = 9000}}}, .mode = lab::RdmaMode::exclusive};
  for (int number = 0; number < 7; ++number) {
    layout.hcas.emplace_back(lab::vf(1, number));
  }
  const Scenario scenario{layout};
  std::vector<std::unique_ptr<Task>> tasks;
  for (int number = 0; number < 7; ++number) {
    tasks.push_back(std::make_unique<Task>(number));
    REQUIRE(tasks.back()->numbers.size() == 1);
  }
  const auto machine = lab::look_at_machine();
  for (int round = 0; round < rounds(); ++round) {
    CAPTURE(round);
    for (auto& task : tasks) {
      task->start("ADD");
    }
    for (auto& task : tasks) {
      expect_success(task->wait());
    }
    CHECK(lab::rdma_devices().empty());
    for (auto& task : tasks) {
      CAPTURE(task->device);
      CHECK(lab::rdma_devices(task->pod.name()) == Names{task->device});
      CHECK(task->function.char_devices() == task->numbers);
      CHECK_THAT(lab::verbs_text(task->device, task->pod.name()), containing("::ffff:" + task->address + ", RoCE v2"));
    }
    for (auto& task : tasks) {
      task->start("DEL");
    }
    for (auto& task : tasks) {
      expect_success(task->wait());
      CHECK(task->function.char_devices() == task->numbers);
    }
    lab::expect_as(machine);
  }
}

TEST_CASE("an RDMA device that gets another char device on its way is refused: the pod was given what is now another's") {
  const Scenario scenario{lab::kExclusive};
  const Pod pod;
  // The kernel gives the first that is free.
  const auto freed = kFunction.char_devices().at("mlx5_0");
  const auto first = kOther.char_devices().at("mlx5_1");
  lab::destroy_hca(kFunction);
  auto attachment = lab::attachment(kOther, pod, keys("10.7.0.5"));
  attachment.args = "IgnoreUnknown=1;K8S_POD_UID=first";
  expect_error(attachment.add(), 103, {"mlx5_1", minor_of(first), minor_of(freed), "pod"});
  CHECK(kOther.rdma_device() == "mlx5_1");
  support::expect_no_traces();

  REQUIRE(kOther.char_devices().at("mlx5_1") == freed);
  // The runtime tries the same pod again, which has what it was given.
  expect_error(attachment.add(), 103, {kOther.address(), "pod"});
  // The pod that is made instead is given what is right.
  attachment.args = "IgnoreUnknown=1;K8S_POD_UID=second";
  expect_success(attachment.add());
  CHECK(kOther.char_devices().at("mlx5_1") == freed);
  expect_success(attachment.del());
  lab::create_hca({kFunction, "mlx5_0"});
}

TEST_CASE("whatever state a killed ADD leaves an RDMA device in, DEL or the next ADD of another pod brings it home") {
  const Scenario scenario{lab::kExclusive};
  const auto machine = lab::look_at_machine();
  const Pod next_pod{"next"};
  auto next = lab::attachment(kFunction, next_pod, keys("10.7.0.6"));
  next.container = "c2";
  int kills = 0;
  for (bool was_killed = true; was_killed; ++kills) {
    CAPTURE(kills);
    Pod pod;
    auto asked = keys("10.7.0.5");
    asked["rdmaName"] = "rail0";
    const auto attachment = lab::attachment(kFunction, pod, asked);
    (void)attachment.under(support::inject("sendto", "signal=KILL", 4 * kills + 1)).add();
    was_killed = support::was_injected();
    if (kills % 3 == 0) {
      pod.destroy();
    } else if (kills % 3 == 1) {
      pod.destroy();
      expect_success(next.add());
      CHECK(lab::rdma_devices("next") == Names{"mlx5_0"});
      expect_success(next.del());
    }
    expect_success(attachment.del());
    lab::expect_as(machine);
  }
  CHECK(kills > 10);
}

TEST_CASE("whatever state a killed DEL leaves an RDMA device in, the next DEL completes it") {
  const Scenario scenario{lab::kExclusive};
  const auto machine = lab::look_at_machine();
  const Pod pod;
  auto asked = keys("10.7.0.5");
  asked["rdmaName"] = "rail0";
  const auto attachment = lab::attachment(kFunction, pod, asked);
  int kills = 0;
  for (bool was_killed = true; was_killed; ++kills) {
    CAPTURE(kills);
    expect_success(attachment.add());
    (void)attachment.under(support::inject("sendto", "signal=KILL", 3 * kills + 1)).del();
    was_killed = support::was_injected();
    expect_success(attachment.del());
    lab::expect_as(machine);
  }
  CHECK(kills > 10);
}
