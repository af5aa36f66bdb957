#include "netlink/vf.hpp"

#include <linux/if_link.h>
#include <linux/rtnetlink.h>

#include <cstring>

#include "netlink/message.hpp"
#include "support/catch.hpp"
#include "unit/device_tree.hpp"
#include "unit/recorded.hpp"

using netlink::BusAddress;
using netlink::HardwareAddress;
using netlink::Link;
using netlink::parse_vfs;
using netlink::VfId;
using netlink::VfLinkState;
using netlink::VfList;
using netlink::VfRates;
using netlink::VfSettings;
using netlink::VfVlan;

namespace {

const BusAddress kPf{"pci", "0000:3b:00.0"};
constexpr std::uint32_t kUnsupported = 0xffffffff;

/// A list of VFs as rtnetlink answers, attribute after attribute; longer than one of libnl's messages can be.
class Bytes {
 public:
  template <typename Payload>
  void put(int type, const Payload& payload) {
    const auto start = begin(type);
    append(&payload, sizeof payload);
    end(start);
  }
  std::size_t begin(int type) {
    const auto start = bytes_.size();
    const nlattr header{.nla_len = 0, .nla_type = static_cast<std::uint16_t>(type)};
    append(&header, sizeof header);
    return start;
  }
  /// As the kernel does it: the length is cut to 16 bits.
  void end(std::size_t start) {
    const auto length = static_cast<std::uint16_t>(bytes_.size() - start);
    std::memcpy(bytes_.data() + start, &length, sizeof length);
    bytes_.resize(NLA_ALIGN(bytes_.size()));
  }
  void append(const void* data, std::size_t size) {
    const auto* const from = static_cast<const std::byte*>(data);
    bytes_.insert(bytes_.end(), from, from + size);
  }
  [[nodiscard]] const std::vector<std::byte>& all() const { return bytes_; }

 private:
  std::vector<std::byte> bytes_;
};

void put_vf(Bytes& bytes, std::uint32_t number, std::uint32_t spoof_check, std::uint32_t trust) {
  const auto info = bytes.begin(IFLA_VF_INFO);
  ifla_vf_mac mac{.vf = number, .mac = {}};
  mac.mac[0] = 2;
  mac.mac[4] = static_cast<unsigned char>(number >> 8U);
  mac.mac[5] = static_cast<unsigned char>(number);
  bytes.put(IFLA_VF_MAC, mac);
  bytes.put(IFLA_VF_BROADCAST, ifla_vf_broadcast{});
  bytes.put(IFLA_VF_VLAN, ifla_vf_vlan{.vf = number, .vlan = 100, .qos = 3});
  bytes.put(IFLA_VF_TX_RATE, ifla_vf_tx_rate{.vf = number, .rate = 77});
  bytes.put(IFLA_VF_SPOOFCHK, ifla_vf_spoofchk{.vf = number, .setting = spoof_check});
  bytes.put(IFLA_VF_LINK_STATE, ifla_vf_link_state{.vf = number, .link_state = 2});
  bytes.put(IFLA_VF_RATE, ifla_vf_rate{.vf = number, .min_tx_rate = 10, .max_tx_rate = 77});
  bytes.put(IFLA_VF_RSS_QUERY_EN, ifla_vf_rss_query_en{.vf = number, .setting = kUnsupported});
  bytes.put(IFLA_VF_TRUST, ifla_vf_trust{.vf = number, .setting = trust});
  const auto list = bytes.begin(IFLA_VF_VLAN_LIST);
  bytes.put(IFLA_VF_VLAN_INFO, ifla_vf_vlan_info{.vf = number, .vlan = 100, .qos = 3, .vlan_proto = 0xa888});  // big-endian 802.1ad
  bytes.end(list);
  bytes.end(info);
}

std::vector<std::byte> answer(std::uint32_t count, std::uint32_t spoof_check = 1, std::uint32_t trust = 0) {
  Bytes bytes;
  const ifinfomsg header{};
  bytes.append(&header, sizeof header);
  bytes.put(IFLA_ADDRESS, std::array<unsigned char, 6>{});
  bytes.put(IFLA_NUM_VF, count);
  const auto list = bytes.begin(IFLA_VFINFO_LIST);
  for (std::uint32_t number = 0; number < count; ++number) {
    put_vf(bytes, number, spoof_check, trust);
  }
  bytes.end(list);
  bytes.put(IFLA_MTU, std::uint32_t{1500});
  return bytes.all();
}

HardwareAddress mac_of(int number) {
  const std::array bytes{std::byte{2}, std::byte{0}, std::byte{0}, std::byte{0}, std::byte(number / 256), std::byte(number % 256)};
  return HardwareAddress{bytes};
}

Link link(int index, const std::string& port, bool has_switch_id) {
  Link made;
  made.index = index;
  made.parent = kPf;
  made.physical_port_name = port;
  made.has_switch_id = has_switch_id;
  return made;
}

}  // namespace

TEST_CASE("all that a PF says of its VFs is read from what the kernel said") {
  const auto list = parse_vfs(recorded("pf-with-vfs"));
  CHECK(list.is_complete);
  REQUIRE(list.vfs.size() == 3);
  CHECK(list.vfs.at(0) == VfSettings{.mac = HardwareAddress::parse("02:00:00:00:be:01"),
                                     .vlan = VfVlan{.id = 100, .qos = 3},
                                     .rates = VfRates{.minimum = 0, .maximum = 200},
                                     .spoof_check = false,
                                     .trust = true,
                                     .link_state = VfLinkState::automatic,
                                     .node_guid = {},
                                     .port_guid = {}});
  CHECK(list.vfs.at(2) == VfSettings{.mac = HardwareAddress::parse("00:00:00:00:00:00"),
                                     .vlan = VfVlan{},
                                     .rates = VfRates{},
                                     .spoof_check = true,
                                     .trust = false,
                                     .link_state = VfLinkState::automatic,
                                     .node_guid = {},
                                     .port_guid = {}});
}

TEST_CASE("the protocol of a VLAN, a least rate and a link state are read, and what the driver does not report is absent") {
  const auto list = parse_vfs(answer(2, kUnsupported, kUnsupported));
  CHECK(list.is_complete);
  CHECK(list.vfs.at(1) == VfSettings{.mac = mac_of(1),
                                     .vlan = VfVlan{.id = 100, .qos = 3, .protocol = netlink::kProtocol8021ad},
                                     .rates = VfRates{.minimum = 10, .maximum = 77},
                                     .spoof_check = {},
                                     .trust = {},
                                     .link_state = VfLinkState::disable,
                                     .node_guid = {},
                                     .port_guid = {}});
}

TEST_CASE("a list of VFs longer than the kernel can say is incomplete, and what is in it is right") {
  for (const std::uint32_t count : {100U, 200U, 260U, 280U, 400U, 512U, 1000U}) {
    CAPTURE(count);
    const auto bytes = answer(count);
    const bool fits = bytes.size() < 65536;
    const auto list = parse_vfs(bytes);
    CHECK(list.is_complete == fits);
    CHECK(list.vfs.size() <= count);
    for (const auto& [number, settings] : list.vfs) {
      CHECK(settings.mac == mac_of(number));
      CHECK(settings.rates == VfRates{.minimum = 10, .maximum = 77});
    }
  }
}

TEST_CASE("an answer that breaks off anywhere is read as far as it is whole") {
  const auto bytes = recorded("pf-with-vfs");
  const auto whole = parse_vfs(bytes);
  for (std::size_t size = 0; size < bytes.size(); ++size) {
    const std::vector<std::byte> part{bytes.begin(), bytes.begin() + static_cast<std::ptrdiff_t>(size)};
    const auto list = parse_vfs(part);
    for (const auto& [number, settings] : list.vfs) {
      REQUIRE(whole.vfs.contains(number));
      CHECK(settings == whole.vfs.at(number));
    }
  }
  CHECK_FALSE(parse_vfs({}).is_complete);
}

TEST_CASE("a PF without VFs has a complete list of none") {
  const auto list = parse_vfs(recorded("virtio-nic"));
  CHECK(list.is_complete);
  CHECK(list.vfs.empty());
}

TEST_CASE("a VF is known by its PF and its number there, a PF and a device that is not there are none") {
  const DeviceTree tree;
  const BusAddress first{"pci", "0000:3b:00.1"};
  const BusAddress second{"pci", "0000:3b:00.2"};
  tree.add(kPf, "pci0000:3a");
  tree.add_virtual_function(kPf, 0, first);
  tree.add_virtual_function(kPf, 1, second);
  CHECK(netlink::find_vf_id(first, tree.roots()) == VfId{.physical_function = kPf, .number = 0});
  CHECK(netlink::find_vf_id(second, tree.roots()) == VfId{.physical_function = kPf, .number = 1});
  CHECK_FALSE(netlink::find_vf_id(kPf, tree.roots()));
  CHECK_FALSE(netlink::find_vf_id({"pci", "0000:3b:00.7"}, tree.roots()));
  CHECK_FALSE(netlink::find_vf_id({"auxiliary", "mlx5_core.sf.4"}, tree.roots()));
}

TEST_CASE("the netdev of a PF is none of the representors that have the same parent") {
  const std::vector links{link(3, "pf0vf0", true), link(4, "pf0", true), link(5, "p0", true), link(6, "c1pf0sf7", true)};
  CHECK(netlink::find_physical_function(links, kPf)->index == 5);
  CHECK(netlink::find_physical_function(std::vector{link(7, "", false)}, kPf)->index == 7);
  CHECK_FALSE(netlink::find_physical_function(std::vector{link(3, "pf0vf0", true)}, kPf));
  CHECK_FALSE(netlink::find_physical_function(links, {"pci", "0000:3b:00.1"}));
  CHECK_FALSE(netlink::find_physical_function(std::vector<Link>{}, kPf));
}

TEST_CASE("the GUIDs of an InfiniBand PF's VF are read") {
  Bytes bytes;
  const ifinfomsg header{};
  bytes.append(&header, sizeof header);
  bytes.put(IFLA_ADDRESS, std::array<unsigned char, 20>{});
  bytes.put(IFLA_NUM_VF, std::uint32_t{1});
  const auto list = bytes.begin(IFLA_VFINFO_LIST);
  const auto info = bytes.begin(IFLA_VF_INFO);
  bytes.put(IFLA_VF_MAC, ifla_vf_mac{.vf = 0, .mac = {}});
  bytes.put(IFLA_VF_IB_NODE_GUID, ifla_vf_guid{.vf = 0, .guid = 0x0011223344556677});
  bytes.put(IFLA_VF_IB_PORT_GUID, ifla_vf_guid{.vf = 0, .guid = 0xfedcba9876543210});
  bytes.end(info);
  bytes.end(list);
  const auto vfs = parse_vfs(bytes.all()).vfs;
  REQUIRE(vfs.size() == 1);
  CHECK(vfs.at(0).node_guid == 0x0011223344556677U);
  CHECK(vfs.at(0).port_guid == 0xfedcba9876543210U);
  CHECK(vfs.at(0).mac == HardwareAddress{std::vector<std::byte>(20)});
  const auto ethernet = parse_vfs(answer(1)).vfs;
  CHECK_FALSE(ethernet.at(0).node_guid);
  CHECK_FALSE(ethernet.at(0).port_guid);
}

TEST_CASE("each GUID is a part of its own in a request, behind the other settings") {
  VfSettings change;
  change.link_state = VfLinkState::enable;
  change.node_guid = 0x0011223344556677;
  change.port_guid = 0xfedcba9876543210;
  auto request = netlink::vf_request(7, 3, change);
  auto* const header = nlmsg_hdr(request.get());
  CHECK(header->nlmsg_type == RTM_NEWLINK);
  const std::span payload{static_cast<const std::byte*>(nlmsg_data(header)), static_cast<std::size_t>(nlmsg_datalen(header))};
  ifinfomsg link{};
  std::memcpy(&link, payload.data(), sizeof link);
  CHECK(link.ifi_index == 7);
  const auto list = netlink::Attributes{payload.subspan(sizeof link)}.nested(IFLA_VFINFO_LIST);
  REQUIRE(list.all().size() == 3);
  const auto part = [&](std::size_t at) {
    CHECK(list.all().at(at).type == IFLA_VF_INFO);
    const netlink::Attributes attributes{list.all().at(at).bytes};
    CHECK(attributes.all().size() == 1);
    return attributes;
  };
  const auto state = part(0).value<ifla_vf_link_state>(IFLA_VF_LINK_STATE);
  REQUIRE(state);
  CHECK((state->vf == 3 && state->link_state == 1));
  const auto node = part(1).value<ifla_vf_guid>(IFLA_VF_IB_NODE_GUID);
  REQUIRE(node);
  CHECK((node->vf == 3 && node->guid == 0x0011223344556677));
  const auto port = part(2).value<ifla_vf_guid>(IFLA_VF_IB_PORT_GUID);
  REQUIRE(port);
  CHECK((port->vf == 3 && port->guid == 0xfedcba9876543210));
}
