#include "netlink/address_types.hpp"

#include <set>

#include "support/catch.hpp"

using netlink::Family;
using netlink::HardwareAddress;
using netlink::IpAddress;
using netlink::IpPrefix;

namespace {

constexpr std::string_view kInfiniband = "80:00:02:08:fe:80:00:00:00:00:00:00:00:02:c9:03:00:11:22:33";

std::optional<std::string> text_of_hardware(std::string_view text) {
  const auto address = HardwareAddress::parse(text);
  return address ? std::optional{address->text()} : std::nullopt;
}

std::optional<std::string> text_of_address(std::string_view text) {
  const auto address = IpAddress::parse(text);
  return address ? std::optional{address->text()} : std::nullopt;
}

std::optional<std::string> text_of_prefix(std::string_view text) {
  const auto prefix = IpPrefix::parse(text);
  return prefix ? std::optional{prefix->text()} : std::nullopt;
}

std::vector<int> numbers(std::span<const std::byte> bytes) {
  std::vector<int> out;
  for (const auto byte : bytes) {
    out.push_back(std::to_integer<int>(byte));
  }
  return out;
}

}  // namespace

TEST_CASE("a random MAC is unicast, locally administered, and another one each time") {
  std::set<HardwareAddress> seen;
  for (int count = 0; count < 1000; ++count) {
    const auto address = HardwareAddress::random();
    REQUIRE(address.bytes().size() == 6);
    CHECK_FALSE(address.is_multicast());
    CHECK((address.bytes().front() & std::byte{0x02}) == std::byte{0x02});
    seen.insert(address);
  }
  CHECK(seen.size() > 990);
}

TEST_CASE("a hardware address is read in either case and with either separator") {
  CHECK(text_of_hardware("02:ab:CD:ef:00:ff") == "02:ab:cd:ef:00:ff");
  CHECK(text_of_hardware("02-AB-cd-EF-00-ff") == "02:ab:cd:ef:00:ff");
  CHECK(text_of_hardware(kInfiniband) == kInfiniband);
  CHECK(numbers(HardwareAddress::parse("02:ab:CD:ef:00:ff")->bytes()) == std::vector{0x02, 0xab, 0xcd, 0xef, 0x00, 0xff});
}

TEST_CASE("what is no hardware address of 6 or 20 bytes is not read as one") {
  const auto* const text =
      GENERATE("", ":", "0", "02", "02:", "02:ab:cd:ef:00", "02:ab:cd:ef:00:ff:", "02:ab:cd:ef:00:ff:01", ":02:ab:cd:ef:00:ff",
               "02:ab:cd:ef:00:f", "2:ab:cd:ef:00:ff", "02:ab-cd:ef:00:ff", "02:ab:cd:ef:00:fg", "02:ab:cd:ef:00:-1", "02:ab:cd:ef:00:+1",
               "02:ab:cd:ef:00: 1", "02:ab:cd:ef:0x:01", "02 ab cd ef 00 ff", "02abcdef00ff", "02::ab:cd:ef:00:ff", "02:ab:cd:ef:00:fff");
  INFO(text);
  CHECK_FALSE(HardwareAddress::parse(text));
}

TEST_CASE("a hardware address with a zero byte in the text is not read") {
  CHECK_FALSE(HardwareAddress::parse(std::string_view("02:ab:cd:ef:00:f\0", 17)));
  CHECK_FALSE(HardwareAddress::parse(std::string_view("02:ab:cd:ef:00:ff\0", 18)));
}

TEST_CASE("a hardware address knows whether it is zero, a group address, or none at all") {
  CHECK(HardwareAddress::parse("00:00:00:00:00:00")->is_zero());
  CHECK_FALSE(HardwareAddress::parse("00:00:00:00:00:01")->is_zero());
  CHECK(HardwareAddress::parse("01:00:5e:00:00:01")->is_multicast());
  CHECK(HardwareAddress::parse("ff:ff:ff:ff:ff:ff")->is_multicast());
  CHECK_FALSE(HardwareAddress::parse("02:01:01:01:01:01")->is_multicast());
  CHECK(HardwareAddress{}.is_empty());
  CHECK_FALSE(HardwareAddress{}.is_multicast());
  CHECK(HardwareAddress{}.text().empty());
}

TEST_CASE("hardware addresses are equal when their bytes are, whatever their spelling") {
  CHECK(HardwareAddress::parse("02-AB-CD-EF-00-FF") == HardwareAddress::parse("02:ab:cd:ef:00:ff"));
  CHECK(HardwareAddress::parse("02:ab:cd:ef:00:fe") != HardwareAddress::parse("02:ab:cd:ef:00:ff"));
}

TEST_CASE("an address is read into its family and bytes") {
  const auto v4 = IpAddress::parse("10.0.200.5");
  REQUIRE(v4);
  CHECK(v4->family() == Family::v4);
  CHECK(numbers(v4->bytes()) == std::vector{10, 0, 200, 5});
  const auto v6 = IpAddress::parse("FD00::1:0");
  REQUIRE(v6);
  CHECK(v6->family() == Family::v6);
  CHECK(numbers(v6->bytes()) == std::vector{0xfd, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0});
  CHECK(v6->text() == "fd00::1:0");
  CHECK(text_of_address("::ffff:10.0.0.1") == "::ffff:10.0.0.1");
  CHECK(text_of_address("::") == "::");
}

TEST_CASE("what is no address is not read as one") {
  const auto* const text =
      GENERATE("", "10.0.0", "10.0.0.256", "10.0.0.1.2", "010.0.0.1", " 10.0.0.1", "10.0.0.1 ", "10.0.0.1/24", "0x0a.0.0.1", "167772161",
               "fd00:::1", "fd00::1::2", "fe80::1%eth0", "fd00::12345", "[fd00::1]", "host");
  INFO(text);
  CHECK_FALSE(IpAddress::parse(text));
}

TEST_CASE("an address with something behind a zero byte is not read") {
  CHECK_FALSE(IpAddress::parse(std::string_view("10.0.0.1\0x", 10)));
  CHECK_FALSE(IpAddress::parse(std::string_view("fd00::1\0", 8)));
  CHECK_FALSE(IpPrefix::parse(std::string_view("10.0.0.1\0x/24", 13)));
}

TEST_CASE("an address made of its bytes equals the one that was read") {
  for (const auto* const text : {"10.0.200.5", "0.0.0.0", "fd00::1:0", "::"}) {
    const auto address = IpAddress::parse(text);
    REQUIRE(address);
    CHECK(IpAddress{address->family(), address->bytes()} == *address);
  }
  CHECK(IpAddress::parse("0.0.0.0") != IpAddress::parse("::"));
}

TEST_CASE("an address does not read beyond the bytes that it is given") {
  const std::vector<std::byte> two{std::byte{10}, std::byte{1}};
  CHECK(IpAddress{Family::v4, two}.text() == "10.1.0.0");
  const std::vector<std::byte> twenty(20, std::byte{1});
  CHECK(IpAddress{Family::v4, twenty} == IpAddress::parse("1.1.1.1"));
}

TEST_CASE("an address knows whether it is unspecified or link-local") {
  CHECK(IpAddress::parse("0.0.0.0")->is_unspecified());
  CHECK(IpAddress::parse("::")->is_unspecified());
  CHECK_FALSE(IpAddress::parse("0.0.0.1")->is_unspecified());
  CHECK_FALSE(IpAddress::parse("::1")->is_unspecified());
  CHECK(IpAddress::parse("169.254.1.1")->is_link_local());
  CHECK_FALSE(IpAddress::parse("169.253.1.1")->is_link_local());
  CHECK(IpAddress::parse("fe80::1")->is_link_local());
  CHECK(IpAddress::parse("febf::1")->is_link_local());
  CHECK_FALSE(IpAddress::parse("fec0::1")->is_link_local());
  CHECK_FALSE(IpAddress::parse("fe00::1")->is_link_local());
}

TEST_CASE("a prefix keeps its host bits and its length up to the family's") {
  CHECK(text_of_prefix("10.0.0.5/24") == "10.0.0.5/24");
  CHECK(text_of_prefix("10.0.0.5/32") == "10.0.0.5/32");
  CHECK(text_of_prefix("0.0.0.0/0") == "0.0.0.0/0");
  CHECK(text_of_prefix("fd00::5/128") == "fd00::5/128");
}

TEST_CASE("what is no prefix is not read as one") {
  const auto* const text = GENERATE("", "/", "10.0.0.5", "10.0.0.5/", "/24", "10.0.0.5/33", "fd00::5/129", "10.0.0.5/256", "10.0.0.5/280",
                                    "10.0.0.5/-1", "10.0.0.5/+1", "10.0.0.5/ 1", "10.0.0.5/24/8", "10.0.0.5/255.255.255.0", "10.0.0.5/2x",
                                    "10.0.0.5//24", "10.0.0.5/99999999999999999999");
  INFO(text);
  CHECK_FALSE(IpPrefix::parse(text));
}

TEST_CASE("the network of a prefix has its host bits cleared, at every length") {
  const auto network = [](std::string_view text) { return IpPrefix::parse(text)->network().text(); };
  CHECK(network("10.1.2.255/24") == "10.1.2.0/24");
  CHECK(network("10.1.2.255/25") == "10.1.2.128/25");
  CHECK(network("10.1.2.255/31") == "10.1.2.254/31");
  CHECK(network("10.1.2.255/32") == "10.1.2.255/32");
  CHECK(network("255.255.255.255/1") == "128.0.0.0/1");
  CHECK(network("10.1.2.255/0") == "0.0.0.0/0");
  CHECK(network("fd00:1:2:3ff:ffff::1/56") == "fd00:1:2:300::/56");
  CHECK(network("ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff/127") == "ffff:ffff:ffff:ffff:ffff:ffff:ffff:fffe/127");
}

TEST_CASE("every prefix of length 0 is a default one, as the kernel ignores its host bits") {
  CHECK(IpPrefix::parse("0.0.0.0/0")->is_default());
  CHECK(IpPrefix::parse("::/0")->is_default());
  CHECK(IpPrefix::parse("2001:db8::1/0")->is_default());
  CHECK_FALSE(IpPrefix::parse("0.0.0.0/1")->is_default());
  CHECK_FALSE(IpPrefix::parse("0.0.0.0/32")->is_default());
}
