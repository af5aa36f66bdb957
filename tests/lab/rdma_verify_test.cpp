// An RDMA device that came up is one that works: port, active_mtu and GIDs are as the pod's netdev wants them, or ADD fails and says what
// is not so.
#include <chrono>
#include <functional>
#include <thread>

#include "lab.hpp"
#include "netlink/files.hpp"
#include "support/catch.hpp"

namespace {

using lab::Pod;
using lab::RdmaMode;
using lab::Scenario;
using support::expect_error;
using support::expect_success;
using support::Json;
using support::sh;

const auto kFunction = lab::vf(1, 0);
constexpr const char* kAddress = "10.7.0.5";

/// What `rdma` wants is what the mode allows.
lab::Layout layout(const std::string& rdma) {
  auto result = lab::kExclusive;
  result.mode = rdma == "shared" ? RdmaMode::shared : RdmaMode::exclusive;
  return result;
}

Json keys(const std::string& rdma, const Json& more = Json::object()) {
  auto result = lab::with_address(std::string{kAddress} + "/24");
  result["rdma"] = rdma;
  result.merge_patch(more);
  return result;
}

void expect_words(const support::Answer& answer, std::initializer_list<std::string_view> words) {
  INFO(answer.err);
  CHECK(support::missing_words(answer.err, words) == "");
}

/// ADD while something that it waits for is not there, which comes when the pod has the address.
void expect_success_when(const support::Attachment& attachment, const std::function<void()>& come) {
  support::Process process{support::program(attachment.to_call("ADD"))};
  support::wait_until("the address in the pod",
                      [] { return support::has_link("net1", "pod") && !support::addresses("net1", "pod").empty(); });
  std::this_thread::sleep_for(std::chrono::seconds{1});
  come();
  expect_success(support::answer(process.wait()));
  expect_success(attachment.del());
}

/// As the host has it, which nobody asked for.
class HostMtu {
 public:
  explicit HostMtu(int mtu) { sh("ip link set " + kFunction.netdev() + " mtu " + std::to_string(mtu)); }
  HostMtu(const HostMtu&) = delete;
  HostMtu& operator=(const HostMtu&) = delete;
  HostMtu(HostMtu&&) = delete;
  HostMtu& operator=(HostMtu&&) = delete;
  ~HostMtu() { (void)support::run(support::shell("ip link set " + kFunction.netdev() + " mtu 1500")); }
};

}  // namespace

TEST_CASE("active_mtu is what the MTU allows, of a VF and of a PF") {
  const auto rdma = GENERATE(as<std::string>{}, "exclusive", "shared");
  const Scenario scenario{layout(rdma)};
  const auto function = GENERATE(lab::vf(1, 0), lab::pf(2));
  const Pod pod;
  const auto device = function.rdma_device();
  const auto machine = lab::look_at_machine();
  for (const auto& [mtu, active_mtu] : std::map<int, int>{{1500, 1024}, {2200, 2048}, {4200, 4096}, {9000, 4096}}) {
    CAPTURE(rdma, function.address(), mtu);
    const auto attachment = lab::attachment(function, pod, keys(rdma, {{"mtu", mtu}}));
    const auto result = expect_success(attachment.add());
    const auto seen = lab::verbs_text(device, "pod");
    CHECK_THAT(seen, containing("active_mtu:\t\t" + std::to_string(active_mtu)));
    CHECK_THAT(seen, containing("::ffff:10.7.0.5, RoCE v2"));
    expect_success(attachment.check(result));
    expect_success(attachment.del());
    lab::expect_as(machine);
  }
}

TEST_CASE("each address has its GID, and none of them is taken for a duplicate because the switch sends back what announced it") {
  const auto rdma = GENERATE(as<std::string>{}, "exclusive", "shared");
  const Scenario scenario{layout(rdma)};
  const Pod pod;
  auto asked = keys(rdma);
  asked["ipam"]["addresses"].push_back({{"address", "2001:db8::5/64"}});
  const auto attachment = lab::attachment(kFunction, pod, asked);
  const auto result = expect_success(attachment.add());
  CHECK_THAT(lab::verbs_text("mlx5_0", "pod"), containing("::ffff:10.7.0.5, RoCE v2") && containing("2001:db8::5, RoCE v2"));
  expect_success(attachment.check(result));
  expect_success(attachment.del());
}

TEST_CASE("an active_mtu below what the MTU allows fails ADD with both numbers, and is a warning where nobody asked for RDMA") {
  const auto rdma = GENERATE(as<std::string>{}, "exclusive", "shared");
  const Scenario scenario{layout(rdma)};
  const Pod pod;
  lab::set_hca(kFunction, "mtu=1024");
  const auto machine = lab::look_at_machine();
  const auto answer = lab::attachment(kFunction, pod, keys(rdma, {{"mtu", 9000}})).add();
  expect_error(answer, std::nullopt, {"mlx5_0", "1024", "4096"});
  CHECK((answer.json["code"] == 102 || answer.json["code"] == 103));
  lab::expect_as(machine);

  const HostMtu large{9000};
  const auto attachment = lab::attachment(kFunction, pod, keys("auto"));
  const auto warned = attachment.add();
  expect_success(warned);
  expect_words(warned, {"mlx5_0", "1024", "4096"});
  expect_success(attachment.del());
}

TEST_CASE("an address without a GID fails ADD, and is a warning where nobody asked for RDMA") {
  const auto rdma = GENERATE(as<std::string>{}, "exclusive", "shared");
  const Scenario scenario{layout(rdma)};
  const Pod pod;
  const Json wait{{"wait", {{"gid", "500ms"}}}};
  lab::set_hca(kFunction, "gids=no");
  const auto machine = lab::look_at_machine();
  expect_error(lab::attachment(kFunction, pod, keys(rdma, wait)).add(), 103, {"mlx5_0", kAddress, "RoCE v2"});
  lab::expect_as(machine);

  const auto attachment = lab::attachment(kFunction, pod, keys("auto", wait));
  const auto warned = attachment.add();
  expect_success(warned);
  expect_words(warned, {"mlx5_0", kAddress, "RoCE v2"});
  expect_success(attachment.del());
  lab::expect_as(machine);
}

TEST_CASE("a GID that comes late is waited for") {
  const auto rdma = GENERATE(as<std::string>{}, "exclusive", "shared");
  const Scenario scenario{layout(rdma)};
  const Pod pod;
  lab::set_hca(kFunction, "gids=no");
  const auto attachment = lab::attachment(kFunction, pod, keys(rdma, {{"wait", {{"gid", "50s"}}}}));
  expect_success_when(attachment, [] { lab::set_hca(kFunction, "gids=yes"); });
  support::expect_no_traces();
}

TEST_CASE("without addresses no GID is wanted") {
  const auto rdma = GENERATE(as<std::string>{}, "exclusive", "shared");
  const Scenario scenario{layout(rdma)};
  const Pod pod;
  lab::set_hca(kFunction, "gids=no");
  const auto machine = lab::look_at_machine();
  const auto attachment = lab::attachment(kFunction, pod, {{"rdma", rdma}, {"mtu", 9000}});
  expect_success(attachment.check(expect_success(attachment.add())));
  expect_success(attachment.del());
  lab::expect_as(machine);
}

TEST_CASE("a port that does not become ACTIVE fails ADD, and is a warning where nobody asked for RDMA") {
  const auto rdma = GENERATE(as<std::string>{}, "exclusive", "shared");
  const Scenario scenario{layout(rdma)};
  const auto state = GENERATE(as<std::string>{}, "DOWN", "INIT");
  CAPTURE(rdma, state);
  const Pod pod;
  const Json wait{{"wait", {{"carrier", "1s"}}}};
  lab::set_hca(kFunction, "state=" + state);
  const auto machine = lab::look_at_machine();
  expect_error(lab::attachment(kFunction, pod, keys(rdma, wait)).add(), 103, {"mlx5_0", state, "ACTIVE"});
  lab::expect_as(machine);

  const auto attachment = lab::attachment(kFunction, pod, keys("auto", wait));
  const auto warned = attachment.add();
  expect_success(warned);
  expect_words(warned, {"mlx5_0", state, "ACTIVE"});
  expect_success(attachment.del());
  lab::expect_as(machine);
}

TEST_CASE("a port that becomes ACTIVE late is waited for") {
  const auto rdma = GENERATE(as<std::string>{}, "exclusive", "shared");
  const Scenario scenario{layout(rdma)};
  const Pod pod;
  lab::set_hca(kFunction, "state=INIT");
  const auto attachment = lab::attachment(kFunction, pod, keys(rdma, {{"wait", {{"carrier", "50s"}}}}));
  expect_success_when(attachment, [] { lab::set_hca(kFunction, "state=auto"); });
  support::expect_no_traces();
}

TEST_CASE("a device that no program can open fails ADD, and is a warning where nobody asked for RDMA") {
  // A move would make the node anew.
  const Scenario scenario{layout("shared")};
  const Pod pod;
  const auto node = "/dev/infiniband/" + netlink::directory_entries(kFunction.sysfs() + "/infiniband_verbs").at(0);
  sh("mv " + node + " /dev/away");
  const auto machine = lab::look_at_machine();
  expect_error(lab::attachment(kFunction, pod, keys("shared")).add(), 103, {"mlx5_0", node});
  lab::expect_as(machine);
  const auto attachment = lab::attachment(kFunction, pod, keys("auto"));
  const auto warned = attachment.add();
  expect_success(warned);
  expect_words(warned, {"mlx5_0", node});
  expect_success(attachment.del());
  sh("rm -f " + node + " && mv /dev/away " + node);
}
