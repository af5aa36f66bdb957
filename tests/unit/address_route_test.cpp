#include <linux/if_addr.h>
#include <linux/rtnetlink.h>

#include "cni/state.hpp"
#include "netlink/message.hpp"
#include "netlink/objects.hpp"
#include "netlink/route.hpp"
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
  return {.prefix = IpPrefix::parse(text).value(), .peer = {}, .broadcast = {}, .scope = scope, .flags = flags, .label = {}, .metric = {}};
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

TEST_CASE("an address is permanent also where it is not known beyond the link, but for those that IPv6 makes by itself") {
  CHECK(cni::is_permanent(of_interface("192.0.2.2/24", IFA_F_PERMANENT)));
  CHECK(cni::is_permanent(of_interface("169.254.0.1/16", IFA_F_PERMANENT, RT_SCOPE_LINK)));
  CHECK(cni::is_permanent(of_interface("10.0.0.1/32", IFA_F_PERMANENT, RT_SCOPE_HOST)));
  CHECK_FALSE(cni::is_permanent(of_interface("192.0.2.2/24", 0)));
  CHECK_FALSE(cni::is_permanent(of_interface("fe80::1/64", IFA_F_PERMANENT, RT_SCOPE_LINK)));
}

TEST_CASE("a route that says more than a Route can hold is not plain, and neither are bytes that are cut off") {
  const auto is_plain = [](const rtmsg& header, int attribute, std::uint32_t value) {
    netlink::Request request{RTM_NEWROUTE, 0};
    request.append(header);
    request.put(attribute, value);
    const auto* message = nlmsg_hdr(request.get());
    const auto* start = reinterpret_cast<const std::byte*>(message) + NLMSG_HDRLEN;
    return netlink::is_plain_route({start, message->nlmsg_len - NLMSG_HDRLEN});
  };
  rtmsg header{};
  header.rtm_family = AF_INET;
  header.rtm_type = RTN_UNICAST;
  CHECK(is_plain(header, RTA_GATEWAY, 1));
  CHECK(is_plain(header, RTA_PREF, 0));
  CHECK_FALSE(is_plain(header, RTA_PREF, 1));
  CHECK_FALSE(is_plain(header, RTA_MULTIPATH, 1));
  CHECK_FALSE(is_plain(header, RTA_NH_ID, 1));
  header.rtm_tos = 0x10;
  CHECK_FALSE(is_plain(header, RTA_GATEWAY, 1));
  header.rtm_tos = 0;
  header.rtm_type = RTN_LOCAL;
  CHECK_FALSE(is_plain(header, RTA_GATEWAY, 1));
  CHECK_FALSE(netlink::is_plain_route({}));
}
