#include "cni/infiniband.hpp"

#include <filesystem>

#include "cni/plan.hpp"
#include "cni/vf.hpp"
#include "support/catch.hpp"
#include "support/temp_dir.hpp"
#include "unit/device_tree.hpp"
#include "unit/mac.hpp"
#include "unit/thrown.hpp"

using cni::AttachConfig;
using cni::Guid;
using cni::guid_to_restore;
using cni::InfinibandFacts;
using cni::is_bound_by_others;
using cni::kGuidOfOnes;
using cni::Record;
using cni::State;
using netlink::BusAddress;

namespace {

constexpr Guid kFirst = 0x0200000000000001;
constexpr Guid kOfPod = 0x0211223344556677;
const BusAddress kVf{"pci", "0000:3b:00.2"};

/// Of an IPoIB netdev with this GUID and this queue pair.
netlink::HardwareAddress address(Guid guid, const std::string& queue_pair = "80:00:02:08") {
  return mac(queue_pair + ":fe:80:00:00:00:00:00:00:" + cni::guid_text(guid));
}

State in_host(Guid effective, std::optional<Guid> administrative) {
  State state;
  state.name = "ibp59s0v0";
  state.mac = address(effective);
  state.vf.emplace();
  state.vf->node_guid = administrative;
  state.vf->port_guid = administrative;
  return state;
}

State wanting(State state, Guid guid) {
  state.vf->node_guid = guid;
  state.vf->port_guid = guid;
  state.driver_to_bind = "mlx5_core";
  return state;
}

std::vector<std::string> plan_texts(const State& now, const State& wanted) {
  std::vector<std::string> texts;
  for (const auto& step : cni::plan(now, wanted)) {
    texts.push_back(describe(step));
  }
  return texts;
}

Record record_of(const State& before) {
  Record record;
  record.device = netlink::DeviceId::on_bus(kVf);
  record.before = before;
  record.bound_driver = "mlx5_core";
  return record;
}

InfinibandFacts vf_facts(std::optional<Guid> effective) {
  return {.name = "ibp59s0v0", .is_infiniband = true, .is_vf = true, .effective = effective};
}

int code_of(const AttachConfig& config, const InfinibandFacts& facts) {
  return thrown([&] { cni::refuse_for_infiniband(config, facts); }).code();
}

const std::vector<std::string> kSetAndBind{"set the VF's infinibandGUID to 02:11:22:33:44:55:66:77 (node)",
                                           "set the VF's infinibandGUID to 02:11:22:33:44:55:66:77 (port)",
                                           "bind its driver 'mlx5_core' anew"};

}  // namespace

TEST_CASE("a GUID is set, the driver bound anew, and the plan ends there") {
  const auto now = in_host(kFirst, 0);
  auto wanted = wanting(now, kOfPod);
  wanted.name = "another";
  CHECK(plan_texts(now, wanted) == kSetAndBind);
}

TEST_CASE("a driver is bound anew also where a GUID was set before and is not in effect, and not where it is") {
  const auto now = in_host(kFirst, kOfPod);
  CHECK(plan_texts(now, wanting(now, kOfPod)) == std::vector{kSetAndBind.back()});
  const auto in_effect = in_host(kOfPod, kOfPod);
  CHECK(plan_texts(in_effect, wanting(in_effect, kOfPod)).empty());
  auto node_differs = in_effect;
  node_differs.vf->node_guid = kFirst;
  CHECK(plan_texts(node_differs, wanting(in_effect, kOfPod)) == std::vector{kSetAndBind.front(), kSetAndBind.back()});
}

TEST_CASE("no driver is bound anew twice, in a pod, for a PF that is silent, or where nobody wants it") {
  const auto now = in_host(kFirst, kOfPod);
  auto wanted = wanting(now, kOfPod);
  auto bound = now;
  bound.is_bound_anew = true;
  CHECK(plan_texts(bound, wanted).empty());
  auto pod = now;
  pod.side = cni::Side::pod;
  auto wanted_in_pod = wanted;
  wanted_in_pod.side = cni::Side::pod;
  CHECK(plan_texts(pod, wanted_in_pod).empty());
  auto silent = now;
  silent.vf.reset();
  CHECK(plan_texts(silent, wanted).empty());
  wanted.driver_to_bind.clear();
  CHECK(plan_texts(now, wanted).empty());
}

TEST_CASE("a PF that had set no GUID gets the VF's own back, or all ones, and only where it has one now") {
  CHECK(guid_to_restore(kFirst, address(kOfPod), kOfPod) == kFirst);
  CHECK(guid_to_restore(0, address(kFirst), kOfPod) == kFirst);
  CHECK(guid_to_restore(0, address(0), kOfPod) == kGuidOfOnes);
  CHECK(guid_to_restore(0, address(kGuidOfOnes), kOfPod) == kGuidOfOnes);
  CHECK(guid_to_restore(0, {}, kOfPod) == kGuidOfOnes);
  CHECK(guid_to_restore(0, address(kFirst), 0) == 0);
  CHECK(guid_to_restore(kGuidOfOnes, address(kFirst), kOfPod) == kGuidOfOnes);
}

TEST_CASE("from every half-way state of an attachment the way home ends with the first GUID in effect") {
  const Guid administrative = GENERATE(Guid{0}, kFirst);
  const auto before = in_host(kFirst, administrative);
  const auto record = record_of(before);
  // Set; set and in effect; set back, and not yet in effect.
  for (const auto& now : {in_host(kFirst, kOfPod), in_host(kOfPod, kOfPod), in_host(kOfPod, kFirst)}) {
    auto state = now;
    for (const auto& step : cni::plan(state, cni::infiniband_home(before, state, record, true))) {
      if (const auto* set = std::get_if<cni::SetVf>(&step)) {
        state.vf->node_guid = set->setting.node_guid ? set->setting.node_guid : state.vf->node_guid;
        state.vf->port_guid = set->setting.port_guid ? set->setting.port_guid : state.vf->port_guid;
      } else {
        REQUIRE(std::holds_alternative<cni::BindAnew>(step));
        state.mac = address(state.vf->port_guid.value(), "80:00:02:09");
        state.is_bound_anew = true;
      }
    }
    CHECK(cni::guid_of(state.mac) == kFirst);
    CHECK(state.vf->node_guid == kFirst);
    CHECK(cni::plan(state, cni::infiniband_home(before, state, record, true)).empty());
  }
  // Nothing was set, and nothing is done.
  CHECK(cni::plan(before, cni::infiniband_home(before, before, record, true)).empty());
}

TEST_CASE("a netdev that is none of the record's is not bound anew, and its PF gets the GUID back all the same") {
  const auto before = in_host(kFirst, kFirst);
  const auto now = in_host(kOfPod, kOfPod);
  CHECK(plan_texts(now, cni::infiniband_home(before, now, record_of(before), false)) ==
        std::vector<std::string>{"set the VF's infinibandGUID to 02:00:00:00:00:00:00:01 (node)",
                                 "set the VF's infinibandGUID to 02:00:00:00:00:00:00:01 (port)"});
}

TEST_CASE("of an InfiniBand address nothing is set back but a GUID that the pod has changed") {
  const auto before = in_host(kFirst, {});
  auto record = record_of(before);
  record.bound_driver.clear();
  const auto mac_wanted = [&](const netlink::HardwareAddress& now) {
    State state = before;
    state.mac = now;
    return cni::infiniband_home(before, state, record, true).mac;
  };
  CHECK(mac_wanted(address(kOfPod)) == before.mac);
  CHECK(mac_wanted(address(kFirst, "80:00:02:09")).is_empty());
  record.bound_driver = "mlx5_core";
  CHECK(mac_wanted(address(kOfPod)).is_empty());
  State ethernet;
  ethernet.mac = mac("02:00:00:00:00:01");
  CHECK(cni::infiniband_home(ethernet, before, record, true).mac == ethernet.mac);
}

TEST_CASE("InfiniBand's keys are refused for a device of another kind") {
  const InfinibandFacts ethernet{.name = "ens3f0v0", .is_infiniband = false, .is_vf = true, .effective = {}};
  AttachConfig config;
  config.mac = mac("02:00:00:00:00:01");
  CHECK(code_of(config, ethernet) == 0);
  config.pkey = 0x8001;
  CHECK(code_of(config, ethernet) == 100);
  config.vf.guid = kOfPod;
  const auto error = thrown([&] { cni::refuse_for_infiniband(config, ethernet); });
  CHECK(error.code() == 100);
  CHECK(std::string{error.what()} == "'infinibandGUID' cannot be set: 'ens3f0v0' is no InfiniBand device");
  AttachConfig managed;
  managed.ib_kubernetes_enabled = true;
  CHECK(code_of(managed, ethernet) == 100);
}

TEST_CASE("an InfiniBand VF gets a GUID and no MAC, and does not come without a GUID that counts") {
  AttachConfig config;
  CHECK(code_of(config, vf_facts(kFirst)) == 0);
  CHECK(code_of(config, vf_facts(std::nullopt)) == 0);
  CHECK(code_of(config, vf_facts(0)) == 100);
  const auto error = thrown([&] { cni::refuse_for_infiniband(config, vf_facts(kGuidOfOnes)); });
  CHECK(error.code() == 100);
  CHECK(std::string{error.what()} == "the VF 'ibp59s0v0' has no valid GUID, and none is configured: it has ff:ff:ff:ff:ff:ff:ff:ff");
  CHECK(error.details().contains("runtimeConfig.infinibandGUID"));
  config.ib_kubernetes_enabled = true;
  CHECK(code_of(config, vf_facts(kFirst)) == 7);
  config.vf.guid = kOfPod;
  CHECK(code_of(config, vf_facts(0)) == 0);
  config.mac = address(kOfPod);
  CHECK(code_of(config, vf_facts(kFirst)) == 100);
  const InfinibandFacts nic{.name = "ibp59s0", .is_infiniband = true, .is_vf = false, .effective = kFirst};
  CHECK(code_of(config, nic) == 0);
}

TEST_CASE("a GUID is held by another VF of the PF, as its node's or its port's") {
  const std::vector<BusAddress> functions{{"pci", "0000:3b:00.1"}, {"pci", "0000:3b:00.2"}};
  cni::Administration administration{.id = {.physical_function = {"pci", "0000:3b:00.0"}, .number = 1}, .pf = {}};
  administration.pf.name = "ibp59s0";
  netlink::VfList list;
  list.vfs[0].port_guid = kFirst;
  list.vfs[1].port_guid = kOfPod;
  CHECK(cni::holders_of_guid(kOfPod, administration, list, functions).empty());
  const auto holders = cni::holders_of_guid(kFirst, administration, list, functions);
  REQUIRE(holders.size() == 1);
  CHECK(holders.front().text == "VF 0 (0000:3b:00.1) of PF 'ibp59s0'");
  list.vfs[0].port_guid.reset();
  list.vfs[0].node_guid = kFirst;
  CHECK(cni::holders_of_guid(kFirst, administration, list, functions).size() == 1);
}

TEST_CASE("a driver that its attachment binds anew, or has left unbound, was not bound by others") {
  const DeviceTree tree;
  tree.add(kVf, "pci0000:3a");
  tree.bind(kVf, "mlx5_core");
  auto record = record_of(in_host(kFirst, 0));
  const auto is_by_others = [&] { return is_bound_by_others(record, netlink::incarnation(record.device, tree.roots()), tree.roots()); };
  record.incarnation = netlink::incarnation(record.device, tree.roots());
  CHECK_FALSE(is_by_others());
  tree.unbind(kVf);
  CHECK(is_by_others());
  record.incarnation.driver_inode = 0;
  CHECK_FALSE(is_by_others());
  tree.bind(kVf, "mlx5_core");
  CHECK_FALSE(is_by_others());
  record.bound_driver.clear();
  CHECK(is_by_others());
  record.bound_driver = "mlx5_core";
  tree.unbind(kVf);
  tree.bind(kVf, "vfio-pci");
  CHECK(is_by_others());
}

TEST_CASE("udev is waited for where it runs, until it has done with the netdev") {
  const support::TempDir directory;
  const auto path = directory.path().string();
  const auto takes = [&](int index, std::chrono::milliseconds limit) {
    const cni::Deadline deadline{limit};
    cni::wait_for_udev(index, deadline, path);
    return deadline.has_passed();
  };
  constexpr std::chrono::milliseconds kBrief{30};
  constexpr std::chrono::milliseconds kLong{60'000};
  CHECK_FALSE(takes(7, kLong));
  directory.write("control", "");
  CHECK(takes(7, kBrief));
  std::filesystem::create_directories(directory.path() / "data");
  directory.write("data/n7", "");
  CHECK_FALSE(takes(7, kLong));
  CHECK(takes(8, kBrief));
}
