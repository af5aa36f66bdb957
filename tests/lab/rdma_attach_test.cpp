// Where the RDMA device of a NIC is while that is in a pod, what it is called there, and that it comes home.
#include <filesystem>

#include "lab.hpp"
#include "netlink/files.hpp"
#include "support/catch.hpp"

namespace {

using lab::AddedHca;
using lab::Function;
using lab::Pod;
using lab::RdmaMode;
using lab::Scenario;
using support::expect_error;
using support::expect_success;
using support::Json;
using support::sh;

using Names = std::vector<std::string>;

const auto kFunction = lab::vf(1, 0);
const auto kOther = lab::vf(1, 1);
/// Without a test HCA in the layout.
const auto kBare = lab::vf(1, 2);

Json keys(const std::string& rdma, const Json& more = Json::object()) {
  auto result = lab::with_address("10.7.0.5/24");
  result["rdma"] = rdma;
  result["mtu"] = 9000;
  result.merge_patch(more);
  return result;
}

void expect_words(const support::Answer& answer, std::initializer_list<std::string_view> words) {
  INFO(answer.err);
  CHECK(support::missing_words(answer.err, words) == "");
}

/// The requests in the last trace that move something to another namespace: `r` an RDMA device (RDMA_NLDEV_CMD_SET with
/// RDMA_NLDEV_NET_NS_FD), `m` a link.
std::string order_of_moves() {
  std::string order;
  for (const auto& line : support::trace()) {
    const bool sets_rdma = line.find("nlmsg_type=0x1402 ") != std::string::npos;
    order += sets_rdma && line.find(R"(\x08\x00\x44\x00)") != std::string::npos ? "r" : support::is_move(line) ? "m" : "";
  }
  return order;
}

/// What a pod, or its end, does before DEL comes.
void happen(const std::string& events, Pod& pod) {
  if (events.find("rename") != std::string::npos) {
    sh("ip netns exec pod rdma dev set " + lab::rdma_devices("pod").at(0) + " name tenant0");
  }
  if (events.find("die") != std::string::npos) {
    pod.destroy();
  }
}

}  // namespace

TEST_CASE("in exclusive mode an RDMA device goes to the pod with its netdev, works there, and both come home") {
  const Scenario scenario{lab::kExclusive};
  const auto function = GENERATE(lab::vf(1, 0), lab::pf(2));
  const auto rdma = GENERATE(as<std::string>{}, "exclusive", "auto", "");
  CAPTURE(function.address(), rdma);
  const Pod pod;
  const lab::Configured nic{function};
  const auto device = function.rdma_device();
  const auto numbers = function.char_devices();
  const auto machine = lab::look_at_machine();
  const auto attachment = lab::attachment(function, pod, rdma.empty() ? keys("", {{"rdma", nullptr}}) : keys(rdma));

  const auto result = expect_success(attachment.add());
  CHECK(lab::rdma_devices("pod") == Names{device});
  CHECK(function.rdma_device() == "");
  CHECK(function.char_devices() == numbers);
  // It was waited for: nobody else has to.
  CHECK(lab::rdma_port(device, "pod")["state"] == "ACTIVE");
  CHECK(lab::rdma_port(device, "pod")["netdev"] == "net1");
  const auto seen = lab::verbs_text(device, "pod");
  CHECK_THAT(seen, containing("::ffff:10.7.0.5, RoCE v2"));
  CHECK_THAT(seen, containing("active_mtu:\t\t4096"));
  expect_success(attachment.check(result));
  CHECK(expect_success(attachment.add()) == result);

  expect_success(attachment.del());
  CHECK(function.rdma_device() == device);
  nic.expect_home();
  lab::expect_as(machine);
  expect_success(attachment.del());
}

TEST_CASE("the RDMA device leaves the pod before its netdev") {
  const Scenario scenario{lab::kExclusive};
  const Pod pod;
  const auto attachment = lab::attachment(kFunction, pod, keys("exclusive"));
  expect_success(attachment.add());
  // A thread of its own may go into the pod for it.
  expect_success(attachment.under(support::strace({"-f", "-e", "trace=sendto,sendmsg"})).del());
  CHECK(order_of_moves() == "rm");
}

TEST_CASE("in shared mode an RDMA device stays where it is, and is reached from the pod") {
  const Scenario scenario{lab::kLayout};
  const auto rdma = GENERATE(as<std::string>{}, "shared", "auto");
  CAPTURE(rdma);
  const Pod pod;
  const auto machine = lab::look_at_machine();
  const auto attachment = lab::attachment(kFunction, pod, keys(rdma));
  const auto result = expect_success(attachment.add());
  CHECK(kFunction.rdma_device() == "mlx5_0");
  CHECK(lab::rdma_port("mlx5_0", "pod")["netdev"] == "net1");
  CHECK_THAT(lab::verbs_text("mlx5_0", "pod"), containing("::ffff:10.7.0.5, RoCE v2") && containing("PORT_ACTIVE"));
  expect_success(attachment.check(result));
  expect_success(attachment.del());
  lab::expect_as(machine);
}

TEST_CASE("exclusive is refused in shared mode, which is chosen at boot, and nothing has moved") {
  const Scenario scenario{lab::kLayout};
  const Pod pod;
  const auto machine = lab::look_at_machine();
  expect_error(lab::attachment(kFunction, pod, keys("exclusive")).add(), 103, {"exclusive", "shared", "boot", "ib_core netns_mode=0"});
  lab::expect_as(machine);
}

TEST_CASE("STATUS says whether the node's mode is the one that a configuration needs") {
  auto layout = lab::kLayout;
  const bool is_shared = GENERATE(true, false);
  layout.mode = is_shared ? RdmaMode::shared : RdmaMode::exclusive;
  const Scenario scenario{layout};
  const Pod pod;
  const auto status = [&](const std::string& rdma) {
    auto asked = lab::attachment(kFunction, pod, {{"cniVersion", "1.1.0"}, {"ipam", nullptr}, {"rdma", rdma}});
    return support::call(asked.to_call("STATUS"));
  };
  for (const char* word : {"auto", "off", is_shared ? "shared" : "exclusive"}) {
    expect_success(status(word));
  }
  expect_error(status(is_shared ? "exclusive" : "shared"), 50, {"exclusive", "shared", "boot"});
}

TEST_CASE("shared is refused in exclusive mode, and nothing has moved") {
  const Scenario scenario{lab::kExclusive};
  const Pod pod;
  const auto machine = lab::look_at_machine();
  expect_error(lab::attachment(kFunction, pod, keys("shared")).add(), 103, {"exclusive", "shared", "boot"});
  lab::expect_as(machine);
}

TEST_CASE("an RDMA device that nobody wants stays in the host") {
  const Scenario scenario{lab::kExclusive};
  const Pod pod;
  const auto machine = lab::look_at_machine();
  const auto attachment = lab::attachment(kFunction, pod, keys("off"));
  const auto result = expect_success(attachment.add());
  CHECK(kFunction.rdma_device() == "mlx5_0");
  CHECK(lab::rdma_devices("pod").empty());
  expect_success(attachment.check(result));
  expect_success(attachment.del());
  lab::expect_as(machine);
}

TEST_CASE("a NIC without an RDMA device: auto takes it as it is, the others want one") {
  auto layout = lab::kExclusive;
  const auto rdma = GENERATE(as<std::string>{}, "exclusive", "shared");
  layout.mode = rdma == "shared" ? RdmaMode::shared : RdmaMode::exclusive;
  const Scenario scenario{layout};
  const Pod pod;
  const auto machine = lab::look_at_machine();
  expect_error(lab::attachment(kBare, pod, keys(rdma)).add(), 103, {kBare.address()});
  lab::expect_as(machine);
  const auto attachment = lab::attachment(kBare, pod, keys("auto"));
  expect_success(attachment.check(expect_success(attachment.add())));
  expect_success(attachment.del());
  lab::expect_as(machine);
}

TEST_CASE("an rxe device is none of a function's: whoever wants one is refused before the move ends it") {
  const auto rdma = GENERATE(as<std::string>{}, "exclusive", "shared");
  const Scenario scenario{
      {.cards = lab::kLayout.cards, .mode = rdma == "shared" ? RdmaMode::shared : RdmaMode::exclusive, .rxes = {kFunction}}};
  const Pod pod;
  const auto machine = lab::look_at_machine();
  expect_error(lab::attachment(kFunction, pod, keys(rdma)).add(), 103, {kFunction.address()});
  lab::expect_as(machine);
  CHECK(lab::rdma_devices() == Names{"rxe_1_0"});
  const auto attachment = lab::attachment(kFunction, pod, keys("auto"));
  expect_success(attachment.add());
  expect_success(attachment.del());
  CHECK(lab::rdma_devices().empty());
  sh("rdma link add rxe_1_0 type rxe netdev " + kFunction.netdev());
}

TEST_CASE("an RDMA device has the name that was asked for in the pod, and its own at home, whatever the pod does") {
  const Scenario scenario{lab::kExclusive};
  const auto function = GENERATE(lab::vf(1, 0), lab::pf(2));
  const auto events = GENERATE(as<std::string>{}, "", "rename", "die", "rename, die");
  CAPTURE(function.address(), events);
  Pod pod;
  const auto machine = lab::look_at_machine();
  const auto attachment = lab::attachment(function, pod, keys("exclusive", {{"rdmaName", "rail0"}}));
  const auto result = expect_success(attachment.add());
  CHECK(lab::rdma_devices("pod") == Names{"rail0"});
  expect_success(attachment.check(result));
  happen(events, pod);
  expect_success(attachment.del());
  lab::expect_as(machine);
}

TEST_CASE("an RDMA device that its pod has renamed is not what CHECK was told") {
  const Scenario scenario{lab::kExclusive};
  const Pod pod;
  const auto attachment = lab::attachment(kFunction, pod, keys("exclusive", {{"rdmaName", "rail0"}}));
  const auto result = expect_success(attachment.add());
  sh("ip netns exec pod rdma dev set rail0 name tenant0");
  expect_error(attachment.check(result), std::nullopt, {"rail0", "tenant0"});
  expect_success(attachment.del());
}

TEST_CASE("a name that an RDMA device in the pod has is refused, and nothing has moved") {
  const Scenario scenario{lab::kExclusive};
  Pod pod;
  const AddedHca holder{{kBare, "rail0"}};
  sh("rdma dev set rail0 netns pod");
  const auto machine = lab::look_at_machine();
  expect_error(lab::attachment(kFunction, pod, keys("exclusive", {{"rdmaName", "rail0"}})).add(), 103, {"rail0"});
  lab::expect_as(machine);
  CHECK(lab::rdma_devices("pod") == Names{"rail0"});
  pod.destroy();
  support::wait_until("the device", [] { return kBare.rdma_device() == "rail0"; });
}

TEST_CASE("an RDMA device whose own name was taken meanwhile comes home under another") {
  const Scenario scenario{lab::kExclusive};
  const auto events = GENERATE(as<std::string>{}, "", "rename", "die");
  const bool is_renamed = lab::is_linux_6() || GENERATE(true, false);
  CAPTURE(events, is_renamed);
  Pod pod;
  const auto attachment = lab::attachment(kFunction, pod, keys("exclusive", {{"rdmaName", is_renamed ? Json("rail0") : Json()}}));
  expect_success(attachment.add());
  AddedHca squatter{{kBare, "mlx5_0"}};
  happen(events, pod);
  const auto answer = attachment.del();
  expect_success(answer);
  const auto name = kFunction.rdma_device();
  CHECK(name != "");
  CHECK(name != "mlx5_0");
  CHECK(kBare.rdma_device() == "mlx5_0");
  expect_words(answer, {"mlx5_0", name});
  support::expect_no_traces();
  squatter.leave();
  sh("rdma dev set " + name + " name mlx5_0");
}

TEST_CASE("a device is chosen by its RDMA device") {
  const Scenario scenario{lab::kExclusive};
  const Pod pod;
  const auto machine = lab::look_at_machine();
  for (const auto& function : {lab::vf(1, 1), lab::pf(2)}) {
    const auto name = function.rdma_device();
    CAPTURE(name);
    const auto attachment = lab::attachment(function, pod, keys("exclusive", {{"deviceID", nullptr}, {"rdmaDevice", name}}));
    const auto result = expect_success(attachment.add());
    CHECK(support::show_link("net1", "pod")["parentdev"] == function.address());
    CHECK(lab::rdma_devices("pod") == Names{name});
    expect_success(attachment.check(result));
    expect_success(attachment.del());
    lab::expect_as(machine);
  }
  expect_error(lab::attachment(kFunction, pod, keys("exclusive", {{"deviceID", nullptr}, {"rdmaDevice", "mlx5_9"}})).add(), std::nullopt,
               {"mlx5_9"});
}

TEST_CASE("of two pods that choose one RDMA device the second is told who has it") {
  const Scenario scenario{lab::kExclusive};
  const Pod pod;
  const Pod other{"other"};
  const Json by_rdma{{"deviceID", nullptr}, {"rdmaDevice", "mlx5_0"}};
  const auto first = lab::attachment(kFunction, pod, keys("exclusive", by_rdma));
  auto second = lab::attachment(kFunction, other, keys("exclusive", by_rdma));
  second.container = "c2";
  second.network["wait"] = {{"owner", "200ms"}, {"device", "200ms"}};
  expect_success(first.add());
  expect_error(second.add(), 11, {"'c1'"});
  expect_success(second.del());
  CHECK(lab::rdma_devices("pod") == Names{"mlx5_0"});
  expect_success(first.del());
}

TEST_CASE("an RDMA device that goes away under its pod: CHECK names it, DEL succeeds") {
  const Scenario scenario{lab::kExclusive};
  const Pod pod;
  const auto attachment = lab::attachment(kFunction, pod, keys("exclusive"));
  const auto result = expect_success(attachment.add());
  lab::destroy_hca(kFunction);
  const auto answer = attachment.check(result);
  expect_error(answer, std::nullopt, {"mlx5_0"});
  CHECK((answer.json["code"] == 102 || answer.json["code"] == 103));
  expect_success(attachment.del());
  CHECK(kFunction.netdev() != "");
  support::expect_no_traces();
  lab::create_hca({kFunction, "mlx5_0"});
}

TEST_CASE("all RDMA devices of a function go with it, and come home") {
  auto layout = lab::kExclusive;
  layout.hcas = {{kFunction, "first"}, {kFunction, "second"}, kOther};
  const Scenario scenario{layout};
  const auto events = GENERATE(as<std::string>{}, "", "rename", "die");
  CAPTURE(events);
  Pod pod;
  const auto machine = lab::look_at_machine();
  const auto attachment = lab::attachment(kFunction, pod, keys("exclusive"));
  const auto result = expect_success(attachment.add());
  CHECK(lab::rdma_devices("pod") == Names{"first", "second"});
  CHECK(kFunction.rdma_devices().empty());
  expect_success(attachment.check(result));
  happen(events, pod);
  expect_success(attachment.del());
  lab::expect_as(machine);
}

TEST_CASE("an RDMA device that cannot go with its netdev: exclusive says why, auto leaves it in the host") {
  const Scenario scenario{lab::kExclusive};
  const auto way = GENERATE(as<std::string>{}, "cannot move", "two netdevs", "a bond");
  CAPTURE(way);
  const auto second = lab::vf(1, 3);
  if (way == "a bond") {
    sh("modprobe bonding max_bonds=0 && ip link add bond0 type bond mode active-backup");
  }
  {
    const auto options = way == "cannot move"   ? "move=no"
                         : way == "two netdevs" ? "port=" + kBare.address() + " port=" + second.address()
                                                : "port=bond0";
    const AddedHca hca{{kBare, "special", options}};
    const Pod pod;
    const auto machine = lab::look_at_machine();
    const auto why = way == "cannot move" ? "special" : way == "two netdevs" ? second.netdev() : "bond0";
    expect_error(lab::attachment(kBare, pod, keys("exclusive")).add(), 103, {"special", why});
    lab::expect_as(machine);

    const auto attachment = lab::attachment(kBare, pod, keys("auto", {{"rdmaName", GENERATE(Json(), Json("rail0"))}}));
    const auto answer = attachment.add();
    const auto result = expect_success(answer);
    expect_words(answer, {"special", why});
    CHECK(kBare.rdma_device() == "special");
    CHECK(lab::rdma_devices("pod").empty());
    expect_success(attachment.check(result));
    expect_success(attachment.del());
    lab::expect_as(machine);
  }
  if (way == "a bond") {
    sh("ip link del bond0");
  }
}

TEST_CASE("an RDMA device that somebody has put into another namespace: exclusive is refused, auto does without it") {
  const Scenario scenario{lab::kExclusive};
  const Pod pod;
  Pod other{"other"};
  sh("rdma dev set mlx5_0 netns other");
  const auto machine = lab::look_at_machine();
  expect_error(lab::attachment(kFunction, pod, keys("exclusive")).add(), 103, {kFunction.address(), "another network namespace"});
  lab::expect_as(machine);
  const auto attachment = lab::attachment(kFunction, pod, keys("auto"));
  expect_success(attachment.add());
  expect_success(attachment.del());
  CHECK(lab::rdma_devices("other") == Names{"mlx5_0"});
  lab::expect_as(machine);
  other.destroy();
  support::wait_until("the device", [] { return kFunction.rdma_device() == "mlx5_0"; });
}

TEST_CASE("the next ADD takes both home whose namespace died without a DEL, and a late DEL changes nothing") {
  const Scenario scenario{lab::kExclusive};
  Pod pod;
  const Pod next_pod{"next"};
  const auto machine = lab::look_at_machine();
  const auto first = lab::attachment(kFunction, pod, keys("exclusive", {{"rdmaName", "rail0"}}));
  auto next = lab::attachment(kFunction, next_pod, keys("exclusive"));
  next.container = "c2";
  expect_success(first.add());
  pod.destroy();
  expect_success(next.add());
  CHECK(lab::rdma_devices("next") == Names{"mlx5_0"});
  expect_success(first.del());
  CHECK(lab::rdma_devices("next") == Names{"mlx5_0"});
  expect_success(next.del());
  lab::expect_as(machine);
}

TEST_CASE("a device-info file names the RDMA device") {
  const std::string directory = "/run/k8s.cni.cncf.io/devinfo/cni";
  auto layout = lab::kExclusive;
  const auto rdma = GENERATE(as<std::string>{}, "exclusive", "shared");
  layout.mode = rdma == "shared" ? RdmaMode::shared : RdmaMode::exclusive;
  const Scenario scenario{layout};
  const Pod pod;
  const auto attachment =
      lab::attachment(kFunction, pod, keys(rdma, {{"runtimeConfig", {{"CNIDeviceInfoFile", directory + "/default-fabric-c1_net1"}}}}));
  expect_success(attachment.add());
  const auto text = netlink::read_file(directory + "/default-fabric-c1_net1");
  REQUIRE(text);
  CHECK(Json::parse(*text)["pci"]["rdma-device"] == "mlx5_0");
  expect_success(attachment.del());
  std::filesystem::remove_all("/run/k8s.cni.cncf.io");
}

TEST_CASE("a DEL whose record was lost brings the RDMA device home too") {
  const Scenario scenario{lab::kExclusive};
  const Pod pod;
  const auto name = kFunction.netdev();
  const auto attachment = lab::attachment(kFunction, pod, keys("exclusive"));
  expect_success(attachment.add());
  sh("rm /var/lib/cni/fabric-nic/devices/*");
  expect_success(attachment.del());
  CHECK(kFunction.rdma_device() == "mlx5_0");
  CHECK(lab::rdma_devices("pod").empty());
  sh("ip link set " + kFunction.netdev() + " down name " + name + " mtu 1500");
  support::expect_no_traces();
}

TEST_CASE("a repeated ADD that asks for another RDMA device than it has is no repetition") {
  const Scenario scenario{lab::kExclusive};
  const Pod pod;
  const auto attachment = lab::attachment(kFunction, pod, keys("exclusive", {{"rdmaName", "rail0"}}));
  expect_success(attachment.add());
  for (const auto& [key, value] : std::map<std::string, std::string>{{"rdmaName", "rail1"}, {"rdma", "off"}}) {
    auto other = attachment;
    other.network[key] = value;
    expect_error(other.add(), 4, {"'" + key + "'"});
  }
  expect_success(attachment.del());
}
