#include "netlink/message.hpp"

#include <linux/if_link.h>
#include <linux/rtnetlink.h>

#include <algorithm>
#include <array>

#include "support/catch.hpp"

using netlink::Attributes;
using netlink::Request;

namespace {

std::vector<std::byte> bytes_of(std::initializer_list<int> numbers) {
  std::vector<std::byte> bytes;
  for (const int number : numbers) {
    bytes.push_back(static_cast<std::byte>(number));
  }
  return bytes;
}

/// The whole message; the sequence number, which is the socket's business, is zero until it is sent.
std::vector<std::byte> bytes_of(Request& request) {
  auto* header = nlmsg_hdr(request.get());
  header->nlmsg_seq = 0;
  header->nlmsg_pid = 0;
  const auto bytes = std::as_bytes(std::span{reinterpret_cast<const char*>(header), header->nlmsg_len});
  return {bytes.begin(), bytes.end()};
}

}  // namespace

TEST_CASE("a request is the header, then attributes that begin at multiples of four, with lengths that leave the padding out") {
  Request request{RTM_NEWLINK, NLM_F_ACK};
  request.append(std::array<std::uint8_t, 4>{1, 2, 3, 4});
  request.put(IFLA_MTU, std::uint32_t{0x01020304});
  request.put(IFLA_IFNAME, std::string{"net1"});
  request.put(IFLA_IFALIAS, std::as_bytes(std::span{"rail", 4}));
  request.put(IFLA_LINK, std::int32_t{-2});
  // clang-format off
  CHECK(bytes_of(request) == bytes_of({
      16 + 4 + 8 + 12 + 8 + 8, 0, 0, 0,  RTM_NEWLINK, 0, NLM_F_ACK, 0,  0, 0, 0, 0,  0, 0, 0, 0,
      1, 2, 3, 4,
      8, 0, IFLA_MTU, 0,      4, 3, 2, 1,
      9, 0, IFLA_IFNAME, 0,   'n', 'e', 't', '1',  0, 0, 0, 0,
      8, 0, IFLA_IFALIAS, 0,  'r', 'a', 'i', 'l',
      8, 0, IFLA_LINK, 0,     0xfe, 0xff, 0xff, 0xff}));
  // clang-format on
}

TEST_CASE("an attribute without bytes is a header alone") {
  Request request{RTM_NEWLINK, 0};
  request.put(IFLA_IFALIAS, std::span<const std::byte>{});
  CHECK(bytes_of(request) == bytes_of({20, 0, 0, 0, RTM_NEWLINK, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 4, 0, IFLA_IFALIAS, 0}));
}

TEST_CASE("a nest ends with its scope, carries the nested flag, and its length covers what is inside") {
  Request request{RTM_NEWLINK, 0};
  {
    const auto outer = request.nest(IFLA_AF_SPEC);
    {
      const auto inner = request.nest(10);
      request.put(1, std::uint32_t{7});
    }
    request.put(2, std::uint32_t{8});
  }
  request.put(IFLA_MTU, std::uint32_t{9});
  // clang-format off
  CHECK(bytes_of(request) == bytes_of({
      16 + 4 + 12 + 8 + 8, 0, 0, 0,  RTM_NEWLINK, 0, 0, 0,  0, 0, 0, 0,  0, 0, 0, 0,
      24, 0, IFLA_AF_SPEC, 0x80,
      12, 0, 10, 0x80,
      8, 0, 1, 0,         7, 0, 0, 0,
      8, 0, 2, 0,         8, 0, 0, 0,
      8, 0, IFLA_MTU, 0,  9, 0, 0, 0}));
  // clang-format on
}

TEST_CASE("what does not fit into a request is refused, not cut off") {
  Request request{RTM_NEWLINK, 0};
  const std::vector<std::byte> large(std::size_t{1} << 16U);
  CHECK_THROWS_AS(request.put(IFLA_IFALIAS, large), std::bad_alloc);
  CHECK(nlmsg_hdr(request.get())->nlmsg_len == NLMSG_HDRLEN);
}

TEST_CASE("a received message is whole again, however long it is") {
  const std::size_t size = GENERATE(0U, 5U, 4096U, 100'000U);
  CAPTURE(size);
  std::vector<std::byte> payload(size, std::byte{7});
  auto message = Request::received(RTM_NEWROUTE, payload);
  const auto* header = nlmsg_hdr(message.get());
  CHECK(header->nlmsg_type == RTM_NEWROUTE);
  CHECK(header->nlmsg_len >= NLMSG_HDRLEN + size);
  CHECK(header->nlmsg_len < NLMSG_HDRLEN + size + NLMSG_ALIGNTO);
  CHECK(std::ranges::equal(std::span{static_cast<const std::byte*>(nlmsg_data(header)), size}, payload));
}

TEST_CASE("attributes are found by their type, whatever flags it carries") {
  const auto bytes = bytes_of({8, 0, 4, 0x80, 1, 0, 0, 0, 8, 0, 5, 0x40, 2, 0, 0, 0, 8, 0, 6, 0, 3, 0, 0, 0});
  const Attributes attributes{bytes};
  REQUIRE(attributes.all().size() == 3);
  CHECK(attributes.value<std::uint32_t>(4) == 1);
  CHECK(attributes.value<std::uint32_t>(5) == 2);
  CHECK(attributes.value<std::uint32_t>(6) == 3);
  CHECK_FALSE(attributes.find(7));
  CHECK_FALSE(attributes.value<std::uint32_t>(7));
  CHECK(attributes.find(4)->data() == bytes.data() + 4);
}

TEST_CASE("an attribute that is shorter than its value is as if absent, and one that is longer gives its first bytes") {
  const auto bytes = bytes_of({7, 0, 1, 0, 1, 2, 3, 0, 12, 0, 2, 0, 1, 0, 0, 0, 9, 9, 9, 9, 4, 0, 3, 0});
  const Attributes attributes{bytes};
  CHECK_FALSE(attributes.value<std::uint32_t>(1));
  CHECK(attributes.value<std::uint16_t>(1) == 0x0201);
  CHECK(attributes.value<std::uint32_t>(2) == 1);
  CHECK(attributes.find(3)->empty());
  CHECK_FALSE(attributes.value<std::uint8_t>(3));
}

TEST_CASE("a text ends at the first zero byte or where the attribute does, and is empty where there is no attribute") {
  const auto bytes = bytes_of({8, 0, 1, 0, 'a', 'b', 0, 'c', 6, 0, 2, 0, 'd', 'e', 0, 0, 5, 0, 3, 0, 0, 0, 0, 0, 4, 0, 4, 0});
  const Attributes attributes{bytes};
  CHECK(attributes.text(1) == "ab");
  CHECK(attributes.text(2) == "de");
  CHECK(attributes.text(3).empty());
  CHECK(attributes.text(4).empty());
  CHECK(attributes.text(5).empty());
}

TEST_CASE("nests are read like messages, and an absent one is empty") {
  const auto bytes = bytes_of({16, 0, 26, 0x80, 12, 0, 10, 0x80, 8, 0, 1, 0, 7, 0, 0, 0});
  const Attributes attributes{bytes};
  CHECK(attributes.nested(26).nested(10).value<std::uint32_t>(1) == 7);
  CHECK(attributes.nested(25).all().empty());
  CHECK(attributes.nested(25).nested(10).all().empty());
}

TEST_CASE("a nest does not reach beyond its attribute") {
  // The inner length is that of the whole message, and would take in the neighbour.
  const auto bytes = bytes_of({8, 0, 1, 0x80, 16, 0, 2, 0, 8, 0, 3, 0, 7, 0, 0, 0});
  const Attributes attributes{bytes};
  CHECK(attributes.nested(1).all().empty());
  CHECK(attributes.value<std::uint32_t>(3) == 7);
}

TEST_CASE("the last attribute may lack its padding") {
  const auto bytes = bytes_of({8, 0, 1, 0, 7, 0, 0, 0, 6, 0, 2, 0, 'd', 'e'});
  CHECK(Attributes{bytes}.text(2) == "de");
}

TEST_CASE("what follows a malformed attribute is left out") {
  const int length = GENERATE(0, 1, 2, 3, 17, 255);
  CAPTURE(length);
  const auto bytes = bytes_of({8, 0, 1, 0, 7, 0, 0, 0, length, 0, 2, 0, 8, 0, 0, 0, 8, 0, 3, 0, 9, 0, 0, 0});
  const Attributes attributes{bytes};
  REQUIRE(attributes.all().size() == 1);
  CHECK(attributes.value<std::uint32_t>(1) == 7);
}

TEST_CASE("fewer bytes than the header of an attribute are no attribute") {
  const auto bytes = bytes_of({4, 0, 1});
  for (std::size_t size = 0; size <= bytes.size(); ++size) {
    CHECK(Attributes{std::span{bytes}.first(size)}.all().empty());
  }
}
