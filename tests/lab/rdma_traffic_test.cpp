// Real RDMA traffic between two pods.
#include "lab.hpp"
#include "support/catch.hpp"

namespace {

using lab::Pod;
using lab::RdmaMode;
using lab::Scenario;
using support::expect_success;
using support::sh;

constexpr const char* kPort = "18515";

/// A pod with a NIC, and an rxe device for that: what the plugin moves has no data path in the lab, and rxe does not outlive a move.
struct Side {
  Side(const lab::Function& function, const std::string& name, std::string its_address, RdmaMode mode)
      : pod(name), address(std::move(its_address)), device("rxe_" + name) {
    auto keys = lab::with_address(address + "/24");
    keys["mtu"] = 4200;
    attachment = lab::attachment(function, pod, keys);
    attachment.container = name;
    expect_success(attachment.add());
    lab::wait_for_carrier("net1", name);
    sh("ip netns exec " + name + " rdma link add " + device + " type rxe netdev net1");
    if (mode == RdmaMode::exclusive) {
      sh("rdma dev set " + device + " netns " + name);
    }
    support::wait_until("the GID", [&] { return lab::verbs_text(device, name).find(gid()) != std::string::npos; });
  }

  [[nodiscard]] std::string gid() const { return "::ffff:" + address + ", RoCE v2"; }

  /// What sends 200 messages of 4 KiB and gets as many, in packets as large as active_mtu.
  [[nodiscard]] support::Program pingpong(const std::string& server = {}) const {
    const auto text = lab::verbs_text(device, pod.name());
    const auto line = text.rfind("GID[", text.find(gid()));
    const auto index = std::to_string(std::stoi(text.substr(line + 4)));
    return support::shell("ip netns exec " + pod.name() + " timeout 60 ibv_rc_pingpong -d " + device + " -g " + index + " -p " + kPort +
                          " -m 4096 -s 4096 -n 200 " + server);
  }

  Pod pod;
  std::string address;
  std::string device;
  support::Attachment attachment;
};

}  // namespace

TEST_CASE("real RDMA traffic passes between two pods") {
  // rxe hears nothing outside the initial namespace there, and nothing else of the lab carries data.
  if (lab::is_linux_6()) {
    SUCCEED();
    return;
  }
  const auto mode = GENERATE(RdmaMode::exclusive, RdmaMode::shared);
  const Scenario scenario{{.cards = {{{.vfs = 4, .mtu = 9000}, {.vfs = 0, .mtu = 9000}}}, .mode = mode}};
  {
    const Side left{lab::vf(1, 0), "left", "10.7.0.1", mode};
    const Side right{lab::vf(1, 1), "right", "10.7.0.2", mode};
    support::Process server{left.pingpong()};
    support::wait_until("the server", [] {
      return support::run(support::shell("ip netns exec left netstat -ltn | grep -q :" + std::string{kPort})).status == 0;
    });
    const auto sent = support::run(right.pingpong(left.address));
    INFO(sent.out << sent.err);
    CHECK(sent.status == 0);
    CHECK_THAT(sent.out, containing("200 iters"));
    CHECK(server.wait().status == 0);
    expect_success(left.attachment.del());
    expect_success(right.attachment.del());
  }
  CHECK(lab::rdma_devices().empty());
}
