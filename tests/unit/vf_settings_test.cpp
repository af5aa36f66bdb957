#include "cni/vf_settings.hpp"

#include "cni/claim.hpp"
#include "cni/vf.hpp"
#include "support/catch.hpp"
#include "unit/mac.hpp"

using cni::asked_of_pf;
using cni::differing_settings;
using cni::first_difference;
using cni::holders_of_mac;
using cni::VfRequest;
using netlink::BusAddress;
using netlink::HardwareAddress;
using netlink::Link;
using netlink::VfLinkState;
using netlink::VfRates;
using netlink::VfSettings;
using netlink::VfVlan;

namespace {

const auto kMac = mac("02:00:00:00:00:01");
const auto kOtherMac = mac("02:00:00:00:00:02");

VfSettings by_default() {
  return {.mac = mac("00:00:00:00:00:00"),
          .vlan = VfVlan{},
          .rates = VfRates{},
          .spoof_check = true,
          .trust = false,
          .link_state = VfLinkState::automatic,
          .node_guid = 0,
          .port_guid = 0};
}

VfSettings all() {
  return {.mac = kMac,
          .vlan = VfVlan{.id = 100, .qos = 3},
          .rates = VfRates{.minimum = 10, .maximum = 100},
          .spoof_check = false,
          .trust = true,
          .link_state = VfLinkState::enable,
          .node_guid = 0x0011223344556677,
          .port_guid = 0xfedcba9876543210};
}

std::vector<std::string> texts(const std::vector<VfSettings>& settings) {
  std::vector<std::string> out;
  for (const auto& each : settings) {
    const auto [key, value] = cni::text_of_setting(each);
    out.push_back(key + '=' + value);
  }
  return out;
}

}  // namespace

TEST_CASE("what is asked of a PF is what was configured, and a rate that was not stays as it is") {
  CHECK(asked_of_pf({}, std::nullopt, all()).is_empty());
  const VfRequest max_only{.vlan = {}, .min_tx_rate = {}, .max_tx_rate = 50, .spoof_check = {}, .trust = {}, .link_state = {}, .guid = {}};
  CHECK(asked_of_pf(max_only, std::nullopt, all()).rates == VfRates{.minimum = 10, .maximum = 50});
  VfRequest min_only;
  min_only.min_tx_rate = 5;
  CHECK(asked_of_pf(min_only, std::nullopt, all()).rates == VfRates{.minimum = 5, .maximum = 100});
  CHECK(asked_of_pf({}, kMac, by_default()).mac == kMac);
}

TEST_CASE("an InfiniBand PF has no MAC of 6 bytes to be asked for") {
  auto infiniband = by_default();
  infiniband.mac = HardwareAddress{std::vector<std::byte>(20)};
  CHECK_FALSE(asked_of_pf({}, kMac, infiniband).mac);
}

TEST_CASE("settings differ one by one, in the order in which they are set") {
  CHECK(differing_settings(all(), all()).empty());
  CHECK(texts(differing_settings(by_default(), all())) ==
        std::vector<std::string>{"vlan=100 (qos 3, 802.1q)", "mac=02:00:00:00:00:01", "min_tx_rate, max_tx_rate=10, 100 Mbit/s",
                                 "spoofchk=off", "trust=on", "link_state=enable", "infinibandGUID=00:11:22:33:44:55:66:77 (node)",
                                 "infinibandGUID=fe:dc:ba:98:76:54:32:10 (port)"});
  CHECK(texts(differing_settings(all(), by_default())) ==
        std::vector<std::string>{"vlan=0", "mac=00:00:00:00:00:00", "min_tx_rate, max_tx_rate=0, 0 Mbit/s", "spoofchk=on", "trust=off",
                                 "link_state=auto", "infinibandGUID=00:00:00:00:00:00:00:00 (node)",
                                 "infinibandGUID=00:00:00:00:00:00:00:00 (port)"});
  VfSettings one;
  one.trust = true;
  CHECK(texts(differing_settings(by_default(), one)) == std::vector<std::string>{"trust=on"});
}

TEST_CASE("what a driver does not report is never written, and is named when it is asked for") {
  auto now = by_default();
  now.spoof_check.reset();
  now.trust.reset();
  CHECK(texts(differing_settings(now, all())) == std::vector<std::string>{"vlan=100 (qos 3, 802.1q)", "mac=02:00:00:00:00:01",
                                                                          "min_tx_rate, max_tx_rate=10, 100 Mbit/s", "link_state=enable",
                                                                          "infinibandGUID=00:11:22:33:44:55:66:77 (node)",
                                                                          "infinibandGUID=fe:dc:ba:98:76:54:32:10 (port)"});
  CHECK(cni::first_unreported(now, all()) == "spoofchk");
  CHECK(cni::first_unreported(by_default(), all()).empty());
  // Nor was it there before, to be put back.
  CHECK(texts(differing_settings(all(), now)).size() == 6);
}

TEST_CASE("the first setting that is not as asked is named with both values") {
  CHECK_FALSE(first_difference(all(), all()));
  CHECK_FALSE(first_difference(all(), {}));
  auto now = all();
  now.vlan->protocol = netlink::kProtocol8021ad;
  now.trust = false;
  CHECK(first_difference(now, all()) == "'vlan' is 100 (qos 3, 802.1ad) and shall be 100 (qos 3, 802.1q)");
  now.vlan = VfVlan{};
  CHECK(first_difference(now, all()) == "'vlan' is 0 and shall be 100 (qos 3, 802.1q)");
  now.vlan = all().vlan;
  CHECK(first_difference(now, all()) == "'trust' is off and shall be on");
}

TEST_CASE("settings laid over others replace those that they have") {
  VfSettings wanted;
  wanted.vlan = VfVlan{.id = 7};
  auto expected = by_default();
  expected.vlan = wanted.vlan;
  CHECK(cni::laid_over(by_default(), wanted) == expected);
}

TEST_CASE("a MAC is held by the PF, by another VF as the PF says, and by one whose netdev has it") {
  const BusAddress pf{"pci", "0000:3b:00.0"};
  const std::vector<BusAddress> functions{{"pci", "0000:3b:00.1"}, {"pci", "0000:3b:00.2"}, {"pci", "0000:3b:00.3"}};
  cni::Administration administration{.id = {.physical_function = pf, .number = 0}, .pf = {}};
  administration.pf.name = "ens3f0";
  administration.pf.address = kOtherMac;
  netlink::VfList list;
  list.vfs = {{0, all()}, {1, by_default()}, {2, by_default()}};
  std::vector<Link> links(2);
  links[0].parent = functions[0];
  links[0].address = kMac;
  links[1].parent = functions[2];
  links[1].address = mac("02:00:00:00:00:03");
  const auto held = [&](const HardwareAddress& wanted) {
    std::string text;
    for (const auto& holder : holders_of_mac(wanted, administration, list, functions, links)) {
      text += holder.text + " [" + holder.key + "] ";
    }
    return text;
  };
  // Its own is nobody else's, also when the netdev has it already.
  CHECK(held(kMac).empty());
  CHECK(held(kOtherMac) == "PF 'ens3f0' itself [pci-0000:3b:00.0] ");
  CHECK(held(mac("02:00:00:00:00:03")) == "VF 2 (0000:3b:00.3) of PF 'ens3f0' [pci-0000:3b:00.3] ");
  list.vfs.at(1).mac = kMac;
  CHECK(held(kMac) == "VF 1 (0000:3b:00.2) of PF 'ens3f0' [pci-0000:3b:00.2] ");
}
