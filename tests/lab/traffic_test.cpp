// Frames of full size through the emulated switches.
#include "lab.hpp"
#include "support/catch.hpp"

namespace {

using lab::Pod;
using lab::Scenario;
using support::expect_success;
using support::Json;

/// Between two VFs in two pods; the largest IPv4 packet that an MTU of 9000 takes, which nobody may cut.
void ping_between(const lab::Function& left, const lab::Function& right) {
  const Pod left_pod{"left"};
  const Pod right_pod{"right"};
  const auto keys = lab::full_size_with_address();
  const auto left_attachment = lab::attachment(left, left_pod, keys);
  auto right_attachment = lab::attachment(right, right_pod, keys);
  right_attachment.container = "c2";
  expect_success(left_attachment.add());
  const auto result = expect_success(right_attachment.add());
  lab::wait_for_carrier("net1", "left");
  lab::wait_for_carrier("net1", "right");
  const auto address = result["ips"][0]["address"].get<std::string>();
  const auto ping = [&](int size) {
    return support::run(support::shell("ip netns exec left ping -c 3 -i 0.3 -W 5 -M do -s " + std::to_string(size) + " " +
                                       address.substr(0, address.find('/'))));
  };
  const auto ending = ping(8972);
  INFO(ending.out << ending.err);
  CHECK(ending.status == 0);
  CHECK(ending.out.find(" 0% packet loss") != std::string::npos);
  CHECK(ping(8973).status != 0);
  expect_success(left_attachment.del());
  expect_success(right_attachment.del());
  support::expect_no_traces();
}

}  // namespace

TEST_CASE("full-size frames pass between two pods on VFs of one card") {
  const Scenario scenario{lab::kLayout};
  ping_between(lab::vf(1, 0), lab::vf(1, 1));
}

TEST_CASE("full-size frames pass between two pods on VFs of two cards") {
  const Scenario scenario{{.cards = {{{.vfs = 2, .mtu = 9000}, {.vfs = 2, .mtu = 9000}}}}};
  ping_between(lab::vf(1, 1), lab::vf(2, 1));
}
