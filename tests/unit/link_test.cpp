#include "netlink/link.hpp"

#include <linux/if.h>
#include <linux/if_arp.h>
#include <linux/if_link.h>
#include <linux/rtnetlink.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <random>

#include "netlink/message.hpp"
#include "support/catch.hpp"
#include "unit/recorded.hpp"

using netlink::BusAddress;
using netlink::HardwareAddress;
using netlink::Link;
using netlink::parse_link;
using netlink::Request;
using netlink::XdpProgram;

namespace {

constexpr std::array kRecordings{"nic0", "port0", "br0", "up0", "up0-with-statistics", "lo", "virtio-nic"};

Link recorded_link(const std::string& name) {
  return parse_link(recorded(name)).value();
}

Request new_link(int index) {
  Request request{RTM_NEWLINK, 0};
  ifinfomsg header{};
  header.ifi_index = index;
  header.ifi_type = ARPHRD_ETHER;
  header.ifi_flags = IFF_BROADCAST;
  request.append(header);
  return request;
}

std::vector<std::byte> payload_of(Request& request) {
  const auto* header = nlmsg_hdr(request.get());
  const auto* data = static_cast<const std::byte*>(nlmsg_data(header));
  return {data, data + nlmsg_datalen(header)};
}

Link parse(Request& request) {
  return parse_link(payload_of(request)).value();
}

/// What a physical function in switchdev mode answers, written from the attributes that drivers give.
Request physical_function() {
  auto request = new_link(3);
  request.put(IFLA_IFNAME, "ens3f0np0");
  request.put(IFLA_MTU, std::uint32_t{1500});
  request.put(IFLA_MIN_MTU, std::uint32_t{68});
  request.put(IFLA_MAX_MTU, std::uint32_t{9978});
  request.put(IFLA_TXQLEN, std::uint32_t{1000});
  request.put(IFLA_ADDRESS, HardwareAddress::parse("02:00:00:00:00:99")->bytes());
  request.put(IFLA_PERM_ADDRESS, HardwareAddress::parse("b8:ce:f6:00:00:01")->bytes());
  request.put(IFLA_PHYS_PORT_NAME, "p0");
  request.put(IFLA_PHYS_SWITCH_ID, HardwareAddress::parse("b8:ce:f6:00:00:01")->bytes());
  request.put(IFLA_PARENT_DEV_NAME, "0000:3b:00.0");
  request.put(IFLA_PARENT_DEV_BUS_NAME, "pci");
  return request;
}

bool is_none_or(const std::string& text, const std::string& whole) {
  return text.empty() || text == whole;
}

template <typename T>
bool is_none_or(const std::vector<T>& list, const std::vector<T>& whole) {
  return list.empty() || list == whole;
}

template <typename T>
bool is_none_or(const std::optional<T>& value, const std::optional<T>& whole) {
  return !value || value == whole;
}

bool is_none_or(const HardwareAddress& address, const HardwareAddress& whole) {
  return address.is_empty() || address == whole;
}

/// What was read of a part is what is read of the whole, or nothing: never something in between.
void check_is_part(const Link& part, const Link& whole) {
  CHECK(part.index == whole.index);
  CHECK(part.flags == whole.flags);
  CHECK(is_none_or(part.name, whole.name));
  CHECK(is_none_or(part.altnames, whole.altnames));
  CHECK(is_none_or(part.alias, whole.alias));
  CHECK(is_none_or(part.mtu, whole.mtu));
  CHECK(is_none_or(part.tx_queue_length, whole.tx_queue_length));
  CHECK(is_none_or(part.master, whole.master));
  CHECK(is_none_or(part.lower, whole.lower));
  CHECK(is_none_or(part.address, whole.address));
  CHECK(is_none_or(part.permanent_address, whole.permanent_address));
  CHECK(is_none_or(part.kind, whole.kind));
  CHECK(is_none_or(part.xdp, whole.xdp));
  CHECK(is_none_or(part.ipv4_conf, whole.ipv4_conf));
  CHECK(is_none_or(part.ipv6_conf, whole.ipv6_conf));
}

/// Copied, so that a sanitizer sees a read past the end.
std::optional<Link> parse_exactly(std::span<const std::byte> bytes) {
  const std::vector<std::byte> copy{bytes.begin(), bytes.end()};
  return parse_link(copy);
}

/// Where the attributes of a recorded answer begin.
std::vector<std::size_t> attribute_offsets(std::span<const std::byte> payload) {
  std::vector<std::size_t> offsets;
  for (std::size_t at = sizeof(ifinfomsg); at + sizeof(nlattr) <= payload.size();) {
    offsets.push_back(at);
    nlattr header{};
    std::memcpy(&header, payload.data() + at, sizeof header);
    at += NLA_ALIGN(header.nla_len);
  }
  return offsets;
}

}  // namespace

TEST_CASE("all that a veth end is set to is read from what the kernel said") {
  const auto link = recorded_link("nic0");
  CHECK(link.index == 10);
  CHECK(link.name == "nic0");
  CHECK(link.altnames == std::vector<std::string>{"enp59s0f0np0-of-the-left-rail", "rail0"});
  CHECK(link.alias == "the left rail");
  CHECK(link.hardware_type == ARPHRD_ETHER);
  CHECK(link.has_flag(IFF_UP));
  CHECK(link.has_flag(IFF_PROMISC));
  CHECK_FALSE(link.has_flag(IFF_ALLMULTI));
  CHECK_FALSE(link.has_flag(IFF_LOOPBACK));
  CHECK(link.mtu == 3000);
  CHECK(link.min_mtu == 68);
  CHECK(link.max_mtu == 65535);
  CHECK(link.address == HardwareAddress::parse("02:00:00:00:00:01"));
  CHECK(link.permanent_address.is_empty());
  CHECK(link.tx_queue_length == 500);
  CHECK(link.kind == "veth");
  CHECK_FALSE(link.master);
  CHECK_FALSE(link.parent);
  CHECK(link.physical_port_name.empty());
  CHECK_FALSE(link.has_switch_id);
  REQUIRE(link.xdp.size() == 1);
  CHECK(link.xdp[0].mode == XDP_ATTACHED_DRV);
  CHECK(link.xdp[0].id != 0);
}

TEST_CASE("a peer in another namespace is told from a neighbour with that index") {
  const auto link = recorded_link("nic0");
  CHECK(link.lower);
  CHECK(link.lower_is_elsewhere);
}

TEST_CASE("a bridge port is read with its master, its peer, and an XDP program in generic mode") {
  const auto link = recorded_link("port0");
  CHECK(link.index == 12);
  CHECK(link.master == 11);
  CHECK(link.lower == 13);
  CHECK_FALSE(link.lower_is_elsewhere);
  CHECK(link.has_flag(IFF_ALLMULTI));
  CHECK_FALSE(link.has_flag(IFF_PROMISC));  // the bridge holds the device in promiscuous mode; no user asked for it
  CHECK_FALSE(link.has_flag(IFF_UP));
  REQUIRE(link.xdp.size() == 1);
  CHECK(link.xdp[0].mode == XDP_ATTACHED_SKB);
  CHECK(link.xdp[0].id == recorded_link("nic0").xdp.at(0).id);
}

TEST_CASE("a bridge, a macvlan, the loopback interface and a virtio NIC are read as what they are") {
  const auto bridge = recorded_link("br0");
  CHECK(bridge.kind == "bridge");
  CHECK_FALSE(bridge.lower);
  CHECK_FALSE(bridge.master);

  const auto macvlan = recorded_link("up0");
  CHECK(macvlan.kind == "macvlan");
  CHECK(macvlan.lower == 13);
  CHECK_FALSE(macvlan.lower_is_elsewhere);

  const auto loopback = recorded_link("lo");
  CHECK(loopback.has_flag(IFF_LOOPBACK));
  CHECK(loopback.hardware_type == ARPHRD_LOOPBACK);
  CHECK(loopback.kind.empty());
  CHECK(loopback.address.is_zero());
  CHECK(loopback.max_mtu == 0);

  const auto nic = recorded_link("virtio-nic");
  CHECK(nic.name == "eth0");
  CHECK(nic.kind.empty());
  CHECK(nic.parent == BusAddress{"virtio", "virtio2"});
  CHECK(nic.xdp.empty());
  CHECK(nic.altnames.empty());
}

TEST_CASE("an answer with statistics in it says the same") {
  const auto with = recorded_link("up0-with-statistics");
  const auto without = recorded_link("up0");
  CHECK(recorded("up0-with-statistics").size() > recorded("up0").size());
  CHECK(with.name == without.name);
  CHECK(with.address == without.address);
  CHECK(with.kind == without.kind);
  CHECK(with.ipv6_conf == without.ipv6_conf);
}

TEST_CASE("a physical function is read with its bus address, permanent address, port and switch") {
  auto request = physical_function();
  const auto link = parse(request);
  CHECK(link.parent == BusAddress{"pci", "0000:3b:00.0"});
  CHECK(link.address == HardwareAddress::parse("02:00:00:00:00:99"));
  CHECK(link.permanent_address == HardwareAddress::parse("b8:ce:f6:00:00:01"));
  CHECK(link.physical_port_name == "p0");
  CHECK(link.has_switch_id);
  CHECK(link.max_mtu == 9978);
  CHECK(link.kind.empty());
  CHECK_FALSE(link.lower);
}

TEST_CASE("an InfiniBand address keeps its 20 bytes") {
  constexpr auto kAddress = "80:00:02:08:fe:80:00:00:00:00:00:00:00:02:c9:03:00:11:22:33";
  auto request = new_link(3);
  request.put(IFLA_ADDRESS, HardwareAddress::parse(kAddress)->bytes());
  CHECK(parse(request).address.text() == kAddress);
}

TEST_CASE("a link without attributes has an index and flags, and nothing else") {
  auto request = new_link(7);
  const auto link = parse(request);
  CHECK(link.index == 7);
  CHECK(link.flags == IFF_BROADCAST);
  CHECK(link.name.empty());
  CHECK_FALSE(link.mtu);
  CHECK_FALSE(link.tx_queue_length);
  CHECK(link.address.is_empty());
  CHECK(link.xdp.empty());
  CHECK(link.ipv4_conf.empty());
}

TEST_CASE("an attribute that is too short for its value is as if absent") {
  auto request = new_link(7);
  request.put(IFLA_MTU, std::as_bytes(std::span{"\x01\x02\x03", 3}));
  request.put(IFLA_MASTER, std::span<const std::byte>{});
  request.put(IFLA_TXQLEN, std::uint32_t{5});
  const auto link = parse(request);
  CHECK_FALSE(link.mtu);
  CHECK_FALSE(link.master);
  CHECK(link.tx_queue_length == 5);
}

TEST_CASE("a bus name without a device name is no parent") {
  auto request = new_link(7);
  request.put(IFLA_PARENT_DEV_BUS_NAME, "pci");
  CHECK_FALSE(parse(request).parent);
}

TEST_CASE("an XDP program of each mode is read, and one of id 0 is none") {
  auto request = new_link(7);
  {
    const auto nest = request.nest(IFLA_XDP);
    request.put(IFLA_XDP_DRV_PROG_ID, std::uint32_t{11});
    request.put(IFLA_XDP_SKB_PROG_ID, std::uint32_t{0});
    request.put(IFLA_XDP_HW_PROG_ID, std::uint32_t{13});
  }
  CHECK(parse(request).xdp == std::vector<XdpProgram>{{XDP_ATTACHED_DRV, 11}, {XDP_ATTACHED_HW, 13}});
}

TEST_CASE("of the properties of a link only altnames are names") {
  auto request = new_link(7);
  {
    const auto nest = request.nest(IFLA_PROP_LIST);
    request.put(IFLA_ALT_IFNAME, "b");
    request.put(IFLA_ALT_IFNAME + 100, "c");
    request.put(IFLA_ALT_IFNAME, "a");
  }
  CHECK(parse(request).altnames == std::vector<std::string>{"a", "b"});
}

TEST_CASE("every beginning of a recorded answer is read as far as it goes") {
  const auto* const name = GENERATE(from_range(kRecordings));
  CAPTURE(name);
  const auto payload = recorded(name);
  const auto whole = parse_link(payload).value();
  for (std::size_t size = 0; size < payload.size(); ++size) {
    CAPTURE(size);
    const auto part = parse_exactly(std::span{payload}.first(size));
    REQUIRE(part.has_value() == (size >= sizeof(ifinfomsg)));
    if (part) {
      check_is_part(*part, whole);
    }
  }
}

TEST_CASE("an attribute of an impossible length ends the reading, and what came before it counts") {
  const auto* const name = GENERATE(from_range(kRecordings));
  CAPTURE(name);
  const auto payload = recorded(name);
  for (const auto offset : attribute_offsets(payload)) {
    for (const std::size_t length : {std::size_t{0}, std::size_t{1}, std::size_t{3}, payload.size() - offset + 1, std::size_t{0xffff}}) {
      CAPTURE(offset, length);
      auto bytes = payload;
      const auto value = static_cast<std::uint16_t>(length);
      std::memcpy(bytes.data() + offset, &value, sizeof value);
      const auto whole = parse_exactly(bytes).value();
      const auto before = parse_exactly(std::span{payload}.first(offset)).value();
      CHECK(whole.name == before.name);
      CHECK(whole.mtu == before.mtu);
      CHECK(whole.address == before.address);
      CHECK(whole.kind == before.kind);
      CHECK(whole.altnames == before.altnames);
      CHECK(whole.ipv6_conf == before.ipv6_conf);
    }
  }
}

TEST_CASE("nests full of garbage are read without harm, and their neighbours are still there") {
  std::mt19937 random{1};
  for (int round = 0; round < 500; ++round) {
    CAPTURE(round);
    auto request = new_link(7);
    request.put(IFLA_IFNAME, "before");
    for (const int nest : {IFLA_PROP_LIST, IFLA_LINKINFO, IFLA_XDP, IFLA_AF_SPEC}) {
      std::vector<std::byte> garbage(random() % 64);
      std::ranges::generate(garbage, [&] { return static_cast<std::byte>(random() % 20); });
      request.put(nest, garbage);
    }
    request.put(IFLA_MTU, std::uint32_t{1400});
    const auto link = parse_exactly(payload_of(request));
    REQUIRE(link);
    CHECK(link->name == "before");
    CHECK(link->mtu == 1400);
  }
}

TEST_CASE("any bytes are read without harm: the index is what stands in the header") {
  std::mt19937 random{2};
  const auto recording = recorded("nic0");
  for (int round = 0; round < 3000; ++round) {
    CAPTURE(round);
    std::vector<std::byte> bytes(random() % 300);
    std::ranges::generate(bytes, [&] { return static_cast<std::byte>(random()); });
    if (round % 2 == 0) {
      bytes = recording;
      for (int change = 0; change < 8; ++change) {
        bytes[random() % bytes.size()] = static_cast<std::byte>(random());
      }
    }
    const auto link = parse_link(bytes);
    REQUIRE(link.has_value() == (bytes.size() >= sizeof(ifinfomsg)));
    if (link) {
      int index = 0;
      std::memcpy(&index, bytes.data() + offsetof(ifinfomsg, ifi_index), sizeof index);
      CHECK(link->index == index);
    }
  }
}
