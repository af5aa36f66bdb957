#include "netlink/objects.hpp"
#include "support/catch.hpp"

using netlink::Family;
using netlink::IpAddress;
using netlink::IpPrefix;
using netlink::make_address;
using netlink::OwnedAddress;
using netlink::read_address;

namespace {

OwnedAddress made(std::string_view text) {
  const auto prefix = IpPrefix::parse(text).value();
  return make_address(prefix.address, prefix.length);
}

}  // namespace

TEST_CASE("an address is the same after its way through libnl") {
  const auto* const text = GENERATE("10.0.0.5/24", "0.0.0.0/0", "10.0.0.5/32", "10.0.0.5/0", "fd00::5/64", "::/0", "fd00::5/128");
  const auto prefix = IpPrefix::parse(text).value();
  CHECK(read_address(made(text).get(), prefix.address.family()) == prefix);
}

TEST_CASE("no address and one of the other family are none") {
  CHECK_FALSE(read_address(nullptr, Family::v4));
  CHECK_FALSE(read_address(made("10.0.0.5/24").get(), Family::v6));
  CHECK_FALSE(read_address(made("fd00::5/64").get(), Family::v4));
}

TEST_CASE("an address without bytes, which is how libnl says default route, is all zeros") {
  const OwnedAddress empty{nl_addr_alloc(0)};
  REQUIRE(empty);
  CHECK(read_address(empty.get(), Family::v4) == IpPrefix::parse("0.0.0.0/0"));
  CHECK(read_address(empty.get(), Family::v6) == IpPrefix::parse("::/0"));
}
