#include "netlink/announce.hpp"

#include <arpa/inet.h>
#include <linux/if_ether.h>
#include <linux/if_packet.h>
#include <net/if_arp.h>
#include <netinet/icmp6.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstring>

#include "netlink/error.hpp"
#include "netlink/unique_fd.hpp"

namespace netlink {

namespace {

constexpr std::array<std::byte, ETH_ALEN> kBroadcast{std::byte{0xff}, std::byte{0xff}, std::byte{0xff},
                                                     std::byte{0xff}, std::byte{0xff}, std::byte{0xff}};
constexpr std::array<std::byte, ETH_ALEN> kAllNodes{std::byte{0x33}, std::byte{0x33}, std::byte{0},
                                                    std::byte{0},    std::byte{0},    std::byte{1}};
constexpr std::uint8_t kHopLimit = 255;

class Packet {
 public:
  void put8(std::uint8_t value) { bytes_.push_back(std::byte{value}); }
  void put16(std::uint16_t value) {
    put8(static_cast<std::uint8_t>(value >> 8U));
    put8(static_cast<std::uint8_t>(value & 0xffU));
  }
  void put(std::span<const std::byte> bytes) { bytes_.insert(bytes_.end(), bytes.begin(), bytes.end()); }
  void zeros(std::size_t count) { bytes_.resize(bytes_.size() + count); }
  [[nodiscard]] std::vector<std::byte>& bytes() { return bytes_; }

 private:
  std::vector<std::byte> bytes_;
};

/// The Internet checksum (RFC 1071) of an even number of bytes.
std::uint16_t checksum(std::span<const std::byte> bytes) {
  std::uint32_t sum = 0;
  for (std::size_t at = 0; at + 1 < bytes.size(); at += 2) {
    sum += (std::to_integer<std::uint32_t>(bytes[at]) << 8U) | std::to_integer<std::uint32_t>(bytes[at + 1]);
  }
  while (sum > 0xffffU) {
    sum = (sum & 0xffffU) + (sum >> 16U);
  }
  return static_cast<std::uint16_t>(~sum);
}

std::array<std::byte, 16> all_nodes_group() {
  std::array<std::byte, 16> group{};
  group[0] = std::byte{0xff};
  group[1] = std::byte{0x02};
  group[15] = std::byte{0x01};
  return group;
}

}  // namespace

std::vector<std::byte> gratuitous_arp(const HardwareAddress& hardware, const IpAddress& address) {
  Packet packet;
  packet.put16(ARPHRD_ETHER);
  packet.put16(ETH_P_IP);
  packet.put8(ETH_ALEN);
  packet.put8(4);
  packet.put16(ARPOP_REQUEST);
  packet.put(hardware.bytes());
  packet.put(address.bytes());
  packet.zeros(ETH_ALEN);
  packet.put(address.bytes());
  return std::move(packet.bytes());
}

std::vector<std::byte> unsolicited_advertisement(const HardwareAddress& hardware, const IpAddress& address) {
  Packet advertisement;
  advertisement.put8(ND_NEIGHBOR_ADVERT);
  advertisement.put8(0);
  advertisement.put16(0);
  advertisement.put8(0x20);  // the override flag
  advertisement.zeros(3);
  advertisement.put(address.bytes());
  advertisement.put8(ND_OPT_TARGET_LINKADDR);
  advertisement.put8(1);
  advertisement.put(hardware.bytes());
  const auto length = static_cast<std::uint16_t>(advertisement.bytes().size());

  // RFC 8200, section 8.1: the checksum covers a header made of addresses, length and protocol.
  Packet covered;
  covered.put(address.bytes());
  covered.put(all_nodes_group());
  covered.put16(0);
  covered.put16(length);
  covered.put16(0);
  covered.put16(IPPROTO_ICMPV6);
  covered.put(advertisement.bytes());
  const auto sum = checksum(covered.bytes());
  advertisement.bytes()[2] = std::byte(sum >> 8U);
  advertisement.bytes()[3] = std::byte(sum & 0xffU);

  Packet packet;
  packet.put8(0x60);
  packet.zeros(3);
  packet.put16(length);
  packet.put8(IPPROTO_ICMPV6);
  packet.put8(kHopLimit);
  packet.put(address.bytes());
  packet.put(all_nodes_group());
  packet.put(advertisement.bytes());
  return std::move(packet.bytes());
}

void announce(const NetNs& net_ns, int index, const HardwareAddress& hardware, std::span<const IpAddress> addresses) {
  if (hardware.bytes().size() != ETH_ALEN || addresses.empty()) {
    return;
  }
  const NetNs::Visit visit{net_ns};
  // Protocol 0: the socket is for sending alone and receives nothing. One for all, because closing one waits for RCU.
  const UniqueFd socket{::socket(AF_PACKET, SOCK_DGRAM | SOCK_CLOEXEC, 0)};
  if (!socket.is_open()) {
    throw_errno("open a packet socket");
  }
  for (const auto& address : addresses) {
    const bool is_v4 = address.family() == Family::v4;
    const auto packet = is_v4 ? gratuitous_arp(hardware, address) : unsolicited_advertisement(hardware, address);
    sockaddr_ll destination{};
    destination.sll_family = AF_PACKET;
    destination.sll_protocol = htons(is_v4 ? ETH_P_ARP : ETH_P_IPV6);
    destination.sll_ifindex = index;
    destination.sll_halen = ETH_ALEN;
    std::memcpy(destination.sll_addr, (is_v4 ? kBroadcast : kAllNodes).data(), ETH_ALEN);
    if (::sendto(socket.get(), packet.data(), packet.size(), 0, reinterpret_cast<const sockaddr*>(&destination), sizeof destination) < 0) {
      throw_errno("announce " + address.text());
    }
  }
}

}  // namespace netlink
