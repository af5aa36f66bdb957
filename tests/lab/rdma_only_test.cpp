// A function that has RDMA devices and no netdev: they alone go to the pod and come home.
#include "lab.hpp"
#include "support/catch.hpp"

namespace {

using lab::Pod;
using lab::RdmaMode;
using lab::Scenario;
using support::expect_error;
using support::expect_success;
using support::Json;

using Names = std::vector<std::string>;

const auto kFunction = lab::vf(1, 3);

/// A driver that makes no netdev, and a test HCA. The netdev is back at its end.
class RdmaOnly {
 public:
  explicit RdmaOnly(RdmaMode mode) : scenario_(layout(mode)), hca_(bound(scenario_)) { REQUIRE(kFunction.netdev().empty()); }
  RdmaOnly(const RdmaOnly&) = delete;
  RdmaOnly& operator=(const RdmaOnly&) = delete;
  RdmaOnly(RdmaOnly&&) = delete;
  RdmaOnly& operator=(RdmaOnly&&) = delete;
  ~RdmaOnly() = default;

 private:
  static lab::Layout layout(RdmaMode mode) {
    auto layout = lab::kLayout;
    layout.mode = mode;
    return layout;
  }
  static lab::Hca bound(Scenario& scenario) {
    scenario.unbind(kFunction);
    scenario.bind(kFunction, "pci-stub");
    return {kFunction, "alone"};
  }

  Scenario scenario_;
  lab::AddedHca hca_;
};

support::Attachment attachment(const Pod& pod, const Json& keys) {
  auto made = lab::attachment(kFunction, pod, keys);
  made.network["cniVersion"] = "1.1.0";
  made.network["wait"] = {{"device", "200ms"}, {"owner", "200ms"}, {"carrier", "0s"}};
  return made;
}

}  // namespace

TEST_CASE("an RDMA device without a netdev goes to the pod and comes home") {
  const RdmaOnly rdma_only{RdmaMode::exclusive};
  const bool dies = GENERATE(false, true);
  CAPTURE(dies);
  Pod pod;
  // Its port has no netdev and is DOWN, which auto says and does not mind.
  const auto call = attachment(pod, {{"rdma", "auto"}, {"rdmaName", "rail0"}});
  const auto answer = call.add();
  const auto result = expect_success(answer);
  CHECK(result["interfaces"] == Json::array({{{"name", "net1"}, {"sandbox", pod.path()}, {"pciID", kFunction.address()}}}));
  CHECK(support::missing_words(answer.err, {"rail0", "DOWN", "ACTIVE"}) == "");
  CHECK(lab::rdma_devices("pod") == Names{"rail0"});
  expect_success(call.check(result));
  CHECK(expect_success(call.add()) == result);

  const Pod other{"other"};
  auto second = attachment(other, Json::object());
  second.container = "c2";
  expect_error(second.add(), 11, {"'c1'"});
  if (dies) {
    pod.destroy();
  }
  expect_success(call.del());
  CHECK(kFunction.rdma_device() == "alone");
  support::expect_no_traces();
}

TEST_CASE("the next ADD gets an RDMA device without a netdev whose pod has died") {
  const RdmaOnly rdma_only{RdmaMode::exclusive};
  Pod pod;
  const Pod next_pod{"next"};
  expect_success(attachment(pod, {{"rdmaName", "rail0"}}).add());
  pod.destroy();
  auto next = attachment(next_pod, Json::object());
  next.container = "c2";
  expect_success(next.add());
  CHECK(lab::rdma_devices("next") == Names{"alone"});
  expect_success(next.del());
  CHECK(kFunction.rdma_device() == "alone");
  support::expect_no_traces();
}

TEST_CASE("what only a netdev has is refused for an RDMA device without one, and a port that does not work too") {
  const RdmaOnly rdma_only{RdmaMode::exclusive};
  const Pod pod;
  const auto machine = lab::look_at_machine();
  const std::map<std::string, Json> settings{{"mtu", 9000}, {"promisc", true}, {"txQLen", 500}};
  for (const auto& [key, value] : settings) {
    CAPTURE(key);
    expect_error(attachment(pod, {{key, value}}).add(), 100, {"'" + key + "'", "network interface"});
    lab::expect_as(machine);
  }
  expect_error(attachment(pod, lab::with_address("10.7.0.5/24")).add(), 100, {"'ipam'", "network interface"});
  expect_error(attachment(pod, {{"rdma", "off"}}).add(), 100, {"network interface"});
  expect_error(attachment(pod, {{"rdma", "exclusive"}}).add(), 103, {"'alone'", "DOWN", "ACTIVE"});
  lab::expect_as(machine);
}

TEST_CASE("in shared mode an RDMA device without a netdev stays where it is, and is its owner's until the DEL") {
  const RdmaOnly rdma_only{RdmaMode::shared};
  const Pod pod;
  const auto call = attachment(pod, Json::object());
  expect_success(call.check(expect_success(call.add())));
  CHECK(kFunction.rdma_device() == "alone");
  const Pod other{"other"};
  auto second = attachment(other, Json::object());
  second.container = "c2";
  expect_error(second.add(), 11, {"'c1'"});
  expect_success(call.del());
  support::expect_no_traces();
}
