#include "cni/rdma.hpp"

#include "support/catch.hpp"
#include "unit/thrown.hpp"

using cni::AttachConfig;
using cni::decide_rdma;
using cni::RdmaAttachment;
using cni::RdmaFacts;
using cni::RdmaRequest;
using cni::RdmaUse;
using cni::Side;
using netlink::RdmaMode;

namespace {

const auto kDevice = netlink::DeviceId::on_bus({"pci", "0000:3b:00.2"});

/// A function with one RDMA device that programs can use.
RdmaFacts facts_in(std::optional<RdmaMode> mode) {
  return {.mode = mode,
          .candidates = {{.device = {.index = 3, .name = "mlx5_0", .side = Side::host, .is_infiniband = false},
                          .foreign_netdevs = {},
                          .char_devices = {{.name = "uverbs0", .major = 231, .minor = 192}}}},
          .has_connection_manager = true,
          .pod_uid = {},
          .elsewhere = {}};
}

AttachConfig asking(RdmaRequest request) {
  AttachConfig config;
  config.rdma = request;
  return config;
}

struct Decided {
  RdmaAttachment attachment;
  std::vector<std::string> notes;
};

Decided decide(const RdmaFacts& facts, const AttachConfig& config) {
  Decided decided;
  decided.attachment = decide_rdma(facts, config, kDevice, decided.notes);
  return decided;
}

/// The refusal of a request, with its advice; what `auto` makes of the same facts is a note and no error.
std::string refusal(const RdmaFacts& facts, AttachConfig config) {
  const auto error = thrown([&] { (void)decide(facts, config); });
  CHECK(error.code() == 103);
  config.rdma = RdmaRequest::automatic;
  CHECK_NOTHROW(decide(facts, config));
  return error.what() + std::string{"|"} + error.details();
}

bool says(const std::string& text, std::initializer_list<std::string_view> words) {
  INFO(text);
  return std::ranges::all_of(words, [&](std::string_view word) { return text.contains(word); });
}

}  // namespace

TEST_CASE("in exclusive mode the RDMA device is moved, in shared mode it is everybody's") {
  for (const auto request : {RdmaRequest::exclusive, RdmaRequest::automatic}) {
    const auto decided = decide(facts_in(RdmaMode::exclusive), asking(request));
    CHECK(decided.attachment.use == RdmaUse::moved);
    CHECK(decided.attachment.is_required == (request == RdmaRequest::exclusive));
    REQUIRE(decided.attachment.devices.size() == 1);
    CHECK(decided.attachment.devices[0] == cni::RdmaState{.index = 3, .name = "mlx5_0", .side = Side::pod, .is_infiniband = false});
    CHECK(decided.notes.empty());
  }
  for (const auto request : {RdmaRequest::shared, RdmaRequest::automatic}) {
    const auto decided = decide(facts_in(RdmaMode::shared), asking(request));
    CHECK(decided.attachment.use == RdmaUse::shared);
    CHECK(decided.attachment.is_required == (request == RdmaRequest::shared));
    CHECK(decided.attachment.devices.at(0).side == Side::host);
    CHECK(decided.notes.empty());
  }
}

TEST_CASE("off leaves RDMA devices alone, whatever there is") {
  for (const auto mode : {std::optional<RdmaMode>{}, std::optional{RdmaMode::shared}, std::optional{RdmaMode::exclusive}}) {
    const auto decided = decide(facts_in(mode), asking(RdmaRequest::off));
    CHECK(decided.attachment == RdmaAttachment{});
    CHECK(decided.notes.empty());
  }
}

TEST_CASE("a mode that does not fit is error 103 that says when and how it is set") {
  CHECK(says(refusal(facts_in(RdmaMode::shared), asking(RdmaRequest::exclusive)), {"\"exclusive\"", "shared", "boot", "netns_mode=0"}));
  CHECK(says(refusal(facts_in(RdmaMode::exclusive), asking(RdmaRequest::shared)), {"\"shared\"", "one network namespace", "boot"}));
}

TEST_CASE("a device that is not there is error 103 for who asks for it, and nothing to auto") {
  auto facts = facts_in(RdmaMode::exclusive);
  facts.candidates.clear();
  CHECK(says(refusal(facts, asking(RdmaRequest::exclusive)), {"pci 0000:3b:00.2 has no RDMA device", "driver"}));
  CHECK(decide(facts, asking(RdmaRequest::automatic)).attachment == RdmaAttachment{});
  CHECK(decide(facts, asking(RdmaRequest::automatic)).notes.empty());
  facts.elsewhere = {"mlx5_0"};
  CHECK(says(refusal(facts, asking(RdmaRequest::exclusive)), {"'mlx5_0'", "in another network namespace"}));
  CHECK(decide(facts, asking(RdmaRequest::automatic)).notes.size() == 1);
  facts = {};
  CHECK(says(refusal(facts, asking(RdmaRequest::exclusive)), {"kernel has no RDMA devices"}));
  CHECK(says(refusal(facts, asking(RdmaRequest::shared)), {"\"shared\"", "kernel has no RDMA devices"}));
}

TEST_CASE("a device whose ports belong to other netdevs is not moved, and these are named") {
  auto facts = facts_in(RdmaMode::exclusive);
  facts.candidates[0].foreign_netdevs = {"'bond0' (bond)"};
  CHECK(says(refusal(facts, asking(RdmaRequest::exclusive)), {"'mlx5_0'", "'bond0' (bond)"}));
  const auto decided = decide(facts, asking(RdmaRequest::automatic));
  CHECK(decided.attachment.use == RdmaUse::left);
  CHECK(decided.notes.size() == 1);
  facts.mode = RdmaMode::shared;
  CHECK(decide(facts, asking(RdmaRequest::shared)).attachment.use == RdmaUse::shared);
}

TEST_CASE("rdmaName is the name in the pod, of one device in exclusive mode") {
  auto config = asking(RdmaRequest::exclusive);
  config.rdma_name = "rail0";
  auto facts = facts_in(RdmaMode::exclusive);
  CHECK(decide(facts, config).attachment.devices.at(0).name == "rail0");
  facts.candidates.push_back(facts.candidates[0]);
  facts.candidates[1].device = {.index = 4, .name = "mlx5_1", .side = Side::host, .is_infiniband = false};
  CHECK(says(refusal(facts, config), {"\"rail0\"", "'mlx5_0', 'mlx5_1'"}));
  config.rdma_name.clear();
  CHECK(decide(facts, config).attachment.devices.size() == 2);

  config = asking(RdmaRequest::shared);
  config.rdma_name = "rail0";
  CHECK(says(refusal(facts_in(RdmaMode::shared), config), {"\"rail0\"", "shared mode"}));
  config.rdma = RdmaRequest::automatic;
  const auto decided = decide(facts_in(RdmaMode::shared), config);
  CHECK(decided.attachment.devices.at(0).name == "mlx5_0");
  CHECK(decided.notes.size() == 1);
}

TEST_CASE("a device without uverbs is of no use to a program, and the module is named") {
  auto facts = facts_in(RdmaMode::exclusive);
  facts.candidates[0].char_devices = {{.name = "umad0", .major = 231, .minor = 0}};
  CHECK(says(refusal(facts, asking(RdmaRequest::exclusive)), {"'mlx5_0'", "ib_uverbs"}));
  CHECK(decide(facts, asking(RdmaRequest::automatic)).notes.size() == 1);
  facts = facts_in(RdmaMode::exclusive);
  facts.has_connection_manager = false;
  const auto decided = decide(facts, asking(RdmaRequest::exclusive));
  CHECK(decided.attachment.use == RdmaUse::moved);
  REQUIRE(decided.notes.size() == 1);
  CHECK(decided.notes[0].contains("rdma_ucm"));
}

TEST_CASE("active_mtu has to fit where RDMA or an MTU is asked for") {
  auto config = asking(RdmaRequest::automatic);
  CHECK_FALSE(decide(facts_in(RdmaMode::exclusive), config).attachment.is_mtu_required);
  config.mtu = 9000;
  CHECK(decide(facts_in(RdmaMode::exclusive), config).attachment.is_mtu_required);
  CHECK(decide(facts_in(RdmaMode::exclusive), asking(RdmaRequest::exclusive)).attachment.is_mtu_required);
}

TEST_CASE("the turn of RDMA moves lasts from the first step about one to the last") {
  const std::vector<cni::Step> none{cni::SetMtu{9000}};
  cni::RdmaTurn nothing{none, "a test", cni::Deadline{std::chrono::milliseconds{0}}};
  CHECK_NOTHROW(nothing.before(0));
}
