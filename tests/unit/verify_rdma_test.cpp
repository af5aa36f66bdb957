#include "cni/verify_rdma.hpp"

#include "support/catch.hpp"

using cni::judge;
using cni::RdmaExpectation;
using fabric::Verdict;

namespace {

/// A RoCE device whose one port works at the MTU of 9000, without GIDs.
fabric::Device working() {
  return {
      .name = "mlx5_0",
      .problem = {},
      .is_unusable = false,
      .ports = {{.number = 1, .state = fabric::PortState::active, .is_ethernet = true, .active_mtu = 4096, .max_mtu = 4096, .gids = {}}}};
}

RdmaExpectation expecting(std::vector<std::string_view> addresses = {}) {
  RdmaExpectation expectation{.addresses = {}, .netdev_index = 7, .netdev_mtu = 9000, .driver = "mlx5_core"};
  for (const auto address : addresses) {
    expectation.addresses.push_back(netlink::IpAddress::parse(address).value());
  }
  return expectation;
}

/// `id verdict`, in the order of the findings.
std::vector<std::string> verdicts(const std::vector<cni::PortFindings>& ports) {
  std::vector<std::string> all;
  for (const auto& port : ports) {
    for (const auto& finding : port.findings) {
      all.push_back(finding.id + (finding.verdict == Verdict::holds   ? " holds"
                                  : finding.verdict == Verdict::fails ? " fails"
                                                                      : " unknown"));
    }
  }
  return all;
}

using Texts = std::vector<std::string>;

}  // namespace

TEST_CASE("a device that works holds in everything, and each of its ports is judged") {
  CHECK(verdicts(judge({working()}, expecting())) == Texts{"port_active holds", "active_mtu holds", "gid holds"});
  auto two_ports = working();
  two_ports.ports.push_back(two_ports.ports[0]);
  two_ports.ports[1].number = 2;
  two_ports.ports[1].state = fabric::PortState::down;
  const auto ports = judge({two_ports}, expecting());
  REQUIRE(ports.size() == 2);
  CHECK(ports[1].port == "RDMA device 'mlx5_0', port 2");
  CHECK(ports[1].findings.at(0).verdict == Verdict::fails);
}

TEST_CASE("each way in which a port is half there is found by itself") {
  auto device = working();
  device.ports[0].active_mtu = 1024;
  auto ports = judge({device}, expecting());
  CHECK(verdicts(ports) == Texts{"port_active holds", "active_mtu fails", "gid holds"});
  CHECK(ports[0].findings[1].seen.contains("1024"));
  CHECK(ports[0].findings[1].wanted.contains("4096"));
  device = working();
  device.ports[0].state = fabric::PortState::init;
  CHECK(verdicts(judge({device}, expecting())) == Texts{"port_active fails", "active_mtu holds", "gid holds"});
  ports = judge({working()}, expecting({"10.0.0.5", "2001:db8::5"}));
  CHECK(verdicts(ports) == Texts{"port_active holds", "active_mtu holds", "gid fails"});
  CHECK(ports[0].findings[2].seen.contains("10.0.0.5"));
  CHECK(ports[0].findings[2].seen.contains("2001:db8::5"));
}

TEST_CASE("what cannot be asked is unknown, with the reason, and never a false alarm") {
  const auto ports =
      judge({{.name = "mlx5_0", .problem = "no provider knows its driver", .is_unusable = false, .ports = {}}}, expecting({"10.0.0.5"}));
  REQUIRE(ports.size() == 1);
  REQUIRE(ports[0].findings.size() == 1);
  CHECK(ports[0].findings[0].verdict == Verdict::unknown);
  CHECK(ports[0].findings[0].advice == "no provider knows its driver");
}

TEST_CASE("a device that no program could open either does not hold") {
  const auto ports = judge({{.name = "mlx5_0", .problem = "uverbs0 cannot be opened", .is_unusable = true, .ports = {}}}, expecting());
  REQUIRE(ports.size() == 1);
  CHECK(ports[0].findings.at(0).verdict == Verdict::fails);
  CHECK(ports[0].findings.at(0).seen == "uverbs0 cannot be opened");
}

TEST_CASE("without an MTU to go by, active_mtu is not judged") {
  auto expectation = expecting();
  expectation.netdev_mtu.reset();
  CHECK(verdicts(judge({working()}, expectation)) == Texts{"port_active holds", "gid holds"});
}
