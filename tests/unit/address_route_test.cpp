#include <linux/if_addr.h>
#include <linux/rtnetlink.h>

#include "cni/state.hpp"
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

netlink::InterfaceAddress of_interface(std::string_view text, std::uint32_t flags, std::uint8_t scope = RT_SCOPE_UNIVERSE) {
  return {.prefix = IpPrefix::parse(text).value(), .peer = {}, .broadcast = {}, .scope = scope, .flags = flags, .label = {}};
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

TEST_CASE("permanent global addresses mean that the host uses the device; dynamic, link-local and narrower ones do not") {
  CHECK(cni::is_permanent_global(of_interface("192.0.2.2/24", IFA_F_PERMANENT)));
  CHECK(cni::is_permanent_global(of_interface("2001:db8::2/64", IFA_F_PERMANENT | IFA_F_TENTATIVE)));
  CHECK_FALSE(cni::is_permanent_global(of_interface("192.0.2.2/24", 0)));
  CHECK_FALSE(cni::is_permanent_global(of_interface("2001:db8::2/64", IFA_F_MANAGETEMPADDR)));
  CHECK_FALSE(cni::is_permanent_global(of_interface("fe80::1/64", IFA_F_PERMANENT, RT_SCOPE_LINK)));
  CHECK_FALSE(cni::is_permanent_global(of_interface("fe80::1/64", IFA_F_PERMANENT)));
  CHECK_FALSE(cni::is_permanent_global(of_interface("169.254.0.1/16", IFA_F_PERMANENT)));
  CHECK_FALSE(cni::is_permanent_global(of_interface("10.0.0.1/32", IFA_F_PERMANENT, RT_SCOPE_HOST)));
}
