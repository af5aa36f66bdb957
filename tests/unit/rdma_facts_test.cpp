#include "fabric/rdma_facts.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "support/catch.hpp"

using fabric::Finding;
using fabric::Gid;
using fabric::GidType;
using fabric::Port;
using fabric::PortState;
using fabric::Verdict;
using netlink::IpAddress;

namespace {

constexpr int kNetdev = 7;

Port roce_port(PortState state = PortState::active) {
  return {.number = 1, .state = state, .is_ethernet = true, .active_mtu = 4096, .max_mtu = 4096, .gids = {}};
}

Port infiniband_port(PortState state = PortState::active) {
  auto port = roce_port(state);
  port.is_ethernet = false;
  return port;
}

Port port_with_mtu(std::uint32_t active_mtu, std::uint32_t max_mtu = 4096) {
  auto port = roce_port();
  port.active_mtu = active_mtu;
  port.max_mtu = max_mtu;
  return port;
}

IpAddress address(const std::string& text) {
  return IpAddress::parse(text).value();
}

/// `text` is an IPv6 address, also for a mapped one.
Gid gid_of(std::uint32_t index, GidType type, const std::string& text, int netdev_index = kNetdev) {
  Gid gid;
  gid.index = index;
  gid.type = type;
  gid.netdev_index = netdev_index;
  std::ranges::transform(address(text).bytes(), gid.bytes.begin(), [](std::byte byte) { return std::to_integer<std::uint8_t>(byte); });
  return gid;
}

Port port_with_gids(std::vector<Gid> gids) {
  auto port = roce_port();
  port.gids = std::move(gids);
  return port;
}

}  // namespace

TEST_CASE("active_mtu: these drivers take the headers off the netdev's MTU, and so does one that is not known") {
  const std::string driver = GENERATE("mlx5_core", "mlx4_core", "bnxt_en", "hns3", "qede", "ionic", "igbvf", "", "somebody's");
  const auto [netdev_mtu, expected] = GENERATE(table<std::uint32_t, std::uint32_t>({{65535, 4096},
                                                                                    {9000, 4096},
                                                                                    {4200, 4096},
                                                                                    {4192, 4096},
                                                                                    {4191, 2048},
                                                                                    {2200, 2048},
                                                                                    {2144, 2048},
                                                                                    {2143, 1024},
                                                                                    {1500, 1024},
                                                                                    {1120, 1024},
                                                                                    {1119, 512},
                                                                                    {608, 512},
                                                                                    {607, 256},
                                                                                    {352, 256},
                                                                                    {351, 256},
                                                                                    {68, 256},
                                                                                    {0, 256}}));
  CAPTURE(driver, netdev_mtu);
  CHECK(fabric::expected_active_mtu(netdev_mtu, driver) == expected);
}

TEST_CASE("active_mtu: these drivers do not") {
  const std::string driver = GENERATE("ice", "i40e", "iavf", "idpf", "erdma", "mana", "efa", "cxgb4", "siw");
  const auto [netdev_mtu, expected] = GENERATE(table<std::uint32_t, std::uint32_t>({{65535, 4096},
                                                                                    {9000, 4096},
                                                                                    {4096, 4096},
                                                                                    {4095, 2048},
                                                                                    {2048, 2048},
                                                                                    {2047, 1024},
                                                                                    {1500, 1024},
                                                                                    {1024, 1024},
                                                                                    {1023, 512},
                                                                                    {512, 512},
                                                                                    {511, 256},
                                                                                    {256, 256},
                                                                                    {255, 256},
                                                                                    {0, 256}}));
  CAPTURE(driver, netdev_mtu);
  CHECK(fabric::expected_active_mtu(netdev_mtu, driver) == expected);
}

TEST_CASE("active_mtu holds when it is what the netdev allows") {
  const auto finding = fabric::active_mtu(port_with_mtu(1024), 1500, "mlx5_core");
  CHECK(finding == Finding{.id = "active_mtu", .verdict = Verdict::holds, .seen = "1024", .wanted = "1024", .advice = {}});
  CHECK(fabric::active_mtu(port_with_mtu(4096), 9000, "mlx5_core").verdict == Verdict::holds);
  CHECK(fabric::active_mtu(port_with_mtu(4096), 4096, "ice").verdict == Verdict::holds);
}

TEST_CASE("active_mtu: a driver may have smaller headers than those that are known, as rxe has") {
  CHECK(fabric::active_mtu(port_with_mtu(4096), 4191, "igbvf").verdict == Verdict::holds);
}

TEST_CASE("active_mtu fails when the netdev allows more") {
  const auto finding = fabric::active_mtu(port_with_mtu(1024), 9000, "mlx5_core");
  CHECK(finding.verdict == Verdict::fails);
  CHECK(finding.seen == "1024");
  CHECK(finding.wanted == "4096");
  CHECK_THAT(finding.advice, containing("the MTU of 9000"));
  CHECK(fabric::active_mtu(port_with_mtu(2048), 4096, "ice").verdict == Verdict::fails);
}

TEST_CASE("active_mtu is never wanted above the port's own limit") {
  const auto finding = fabric::active_mtu(port_with_mtu(2048, 2048), 9000, "hns3");
  CHECK(finding.verdict == Verdict::holds);
  CHECK(finding.wanted == "2048");
  CHECK(fabric::active_mtu(port_with_mtu(1024, 2048), 9000, "hns3").wanted == "2048");
  CHECK(fabric::active_mtu(port_with_mtu(1024, 0), 9000, "hns3").wanted == "4096");
}

TEST_CASE("active_mtu: a netdev without room for the smallest packet is said to be that") {
  const auto finding = fabric::active_mtu(port_with_mtu(0), 300, "mlx5_core");
  CHECK(finding.verdict == Verdict::fails);
  CHECK(finding.wanted == "256");
  CHECK_THAT(finding.advice, containing("to 352 or more: with 300"));
  CHECK_THAT(fabric::active_mtu(port_with_mtu(0), 255, "ice").advice, containing("to 256 or more: with 255"));
  CHECK(fabric::active_mtu(port_with_mtu(256), 300, "mlx4_core").verdict == Verdict::holds);
}

TEST_CASE("active_mtu that the driver does not tell is unknown, and not too small") {
  const auto finding = fabric::active_mtu(port_with_mtu(0, 0), 1500, "mana");
  CHECK(finding.verdict == Verdict::unknown);
  CHECK(finding.seen == "not told by the driver");
  CHECK(finding.wanted == "1024");
  CHECK_FALSE(finding.advice.empty());
}

TEST_CASE("active_mtu of InfiniBand does not follow the netdev") {
  auto port = infiniband_port();
  const auto finding = fabric::active_mtu(port, 2044, "mlx5_core");
  CHECK(finding == Finding{.id = "active_mtu", .verdict = Verdict::holds, .seen = "4096", .wanted = "4096", .advice = {}});
  port.active_mtu = 2048;
  const auto lower = fabric::active_mtu(port, 200, "mlx5_core");
  CHECK(lower.verdict == Verdict::unknown);
  CHECK(lower.wanted == "4096");
  CHECK_THAT(lower.advice, containing("subnet manager"));
}

TEST_CASE("port_active: each state of a RoCE port") {
  CHECK(fabric::port_active(roce_port(PortState::active)) ==
        Finding{.id = "port_active", .verdict = Verdict::holds, .seen = "ACTIVE", .wanted = "ACTIVE", .advice = {}});

  const auto down = fabric::port_active(roce_port(PortState::down));
  CHECK(down.verdict == Verdict::fails);
  CHECK(down.seen == "DOWN");
  CHECK(down.wanted == "ACTIVE");
  CHECK_THAT(down.advice, containing("carrier") && containing("PF"));

  const auto init = fabric::port_active(roce_port(PortState::init));
  CHECK(init.verdict == Verdict::fails);
  CHECK(init.seen == "INIT (its interface has no IPv4 address)");
  CHECK_THAT(init.advice, containing("iWARP") && !containing("subnet manager"));

  const auto unknown = fabric::port_active(roce_port(PortState::unknown));
  CHECK(unknown.verdict == Verdict::unknown);
  CHECK(unknown.seen == "not told by the driver");
  CHECK_FALSE(unknown.advice.empty());
}

TEST_CASE("port_active: each state of an InfiniBand port") {
  CHECK(fabric::port_active(infiniband_port(PortState::active)).verdict == Verdict::holds);

  const auto down = fabric::port_active(infiniband_port(PortState::down));
  CHECK(down.verdict == Verdict::fails);
  CHECK(down.seen == "DOWN");
  CHECK_THAT(down.advice, containing("link") && !containing("carrier"));

  const auto init = fabric::port_active(infiniband_port(PortState::init));
  CHECK(init.verdict == Verdict::fails);
  CHECK(init.seen == "INIT (no subnet manager has configured it)");
  CHECK_THAT(init.advice, containing("subnet manager") && containing("GUID"));

  const auto armed = fabric::port_active(infiniband_port(PortState::armed));
  CHECK(armed.verdict == Verdict::fails);
  CHECK(armed.seen == "ARMED");
  CHECK_THAT(armed.advice, containing("subnet manager"));
}

TEST_CASE("gid: every address has one, at whatever index") {
  const auto port = port_with_gids({gid_of(0, GidType::roce_v1, "fe80::1"), gid_of(1, GidType::roce_v2, "fe80::1"),
                                    gid_of(4, GidType::roce_v1, "::ffff:10.0.0.5"), gid_of(17, GidType::roce_v2, "::ffff:10.0.0.5")});
  const auto finding = fabric::gid(port, {address("10.0.0.5"), address("fe80::1")}, kNetdev);
  CHECK(finding == Finding{.id = "gid",
                           .verdict = Verdict::holds,
                           .seen = "17 for 10.0.0.5, 1 for fe80::1",
                           .wanted = "a RoCE v2 GID for each address",
                           .advice = {}});
  CHECK(fabric::gid_index(port, address("10.0.0.5"), kNetdev) == 17);
  CHECK(fabric::gid_index(port, address("fe80::1"), kNetdev) == 1);
  CHECK(fabric::gid_index(port, address("fe80::2"), kNetdev) == std::nullopt);
  CHECK(fabric::gid_index(port, address("10.0.0.5"), kNetdev + 1) == std::nullopt);
}

TEST_CASE("gid: an IPv4 address has the GID of its mapped form and of no other") {
  CHECK(fabric::gid_index(port_with_gids({gid_of(2, GidType::roce_v2, "::10.0.0.5")}), address("10.0.0.5"), kNetdev) == std::nullopt);
  CHECK(fabric::gid_index(port_with_gids({gid_of(2, GidType::roce_v2, "::ffff:10.0.0.5")}), address("::ffff:10.0.0.5"), kNetdev) == 2);
}

TEST_CASE("gid: each address without one is named, with what there is instead") {
  const auto port = port_with_gids({gid_of(0, GidType::roce_v2, "fe80::1"), gid_of(2, GidType::roce_v1, "::ffff:10.0.0.5"),
                                    gid_of(3, GidType::roce_v2, "fd00::5", kNetdev + 1)});
  const auto finding = fabric::gid(port, {address("fe80::1"), address("10.0.0.5"), address("fd00::5"), address("10.0.0.6")}, kNetdev);
  CHECK(finding.verdict == Verdict::fails);
  CHECK(finding.seen == "RoCE v1 only for 10.0.0.5, on another netdev for fd00::5, none for 10.0.0.6");
  CHECK_THAT(finding.advice, containing("RoCE v2"));
}

TEST_CASE("gid: the advice is for what is missing") {
  const auto advice = [](std::vector<Gid> gids) {
    return fabric::gid(port_with_gids(std::move(gids)), {address("10.0.0.5")}, kNetdev).advice;
  };
  CHECK_THAT(advice({}), containing("ip address"));
  CHECK_THAT(advice({gid_of(1, GidType::roce_v2, "::ffff:10.0.0.5", 0)}), containing("netdev that has the address"));
  CHECK_THAT(advice({gid_of(0, GidType::roce_v2, "::ffff:10.0.0.5", kNetdev + 1), gid_of(1, GidType::roce_v1, "::ffff:10.0.0.5")}),
             containing("firmware"));
}

TEST_CASE("gid: nothing is needed without addresses, on InfiniBand and on iWARP") {
  const auto without = fabric::gid(port_with_gids({}), {}, kNetdev);
  CHECK(without.verdict == Verdict::holds);
  CHECK(without.seen == "not needed (there is no address)");

  const auto infiniband = fabric::gid(infiniband_port(), {address("10.0.0.5")}, kNetdev);
  CHECK(infiniband.verdict == Verdict::holds);
  CHECK(infiniband.seen == "not needed (this is no RoCE port)");

  const auto iwarp = fabric::gid(port_with_gids({gid_of(0, GidType::infiniband, "200:0:1::")}), {address("10.0.0.5")}, kNetdev);
  CHECK(iwarp.verdict == Verdict::holds);
  CHECK(iwarp.seen == "not needed (this is no RoCE port)");
}
