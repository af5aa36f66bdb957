#include "netlink/neighbour.hpp"

#include <linux/neighbour.h>
#include <linux/rtnetlink.h>

#include "netlink/message.hpp"
#include "support/catch.hpp"
#include "unit/recorded.hpp"

using netlink::Family;
using netlink::NeighbourSettings;
using netlink::parse_neighbour_settings;

namespace {

NeighbourSettings settings(const std::string& name) {
  return parse_neighbour_settings(recorded(name)).value();
}

/// The payload of a message with this table and these settings.
std::vector<std::byte> built(std::uint8_t family, const std::vector<std::pair<int, std::uint32_t>>& values) {
  netlink::Request request{RTM_NEWNEIGHTBL, 0};
  ndtmsg header{};
  header.ndtm_family = family;
  request.append(header);
  {
    const auto nest = request.nest(NDTA_PARMS);
    for (const auto& [type, value] : values) {
      request.put(type, value);
    }
  }
  const auto* message = nlmsg_hdr(request.get());
  const auto* start = reinterpret_cast<const std::byte*>(message) + NLMSG_HDRLEN;
  return {start, start + (message->nlmsg_len - NLMSG_HDRLEN)};
}

}  // namespace

TEST_CASE("the settings of a table say whose they are") {
  CHECK(settings("arp-default").family == Family::v4);
  CHECK_FALSE(settings("arp-default").index);
  CHECK(settings("ndisc-nic0").family == Family::v6);
  CHECK(settings("ndisc-nic0").index == 10);
}

TEST_CASE("what the kernel chooses itself makes no difference, and a setting does") {
  CHECK(settings("ndisc-nic0").values == settings("ndisc-default").values);
  CHECK(settings("arp-nic0").values != settings("arp-default").values);
  CHECK_FALSE(settings("arp-default").values.empty());
  const auto values = [](const std::vector<std::pair<int, std::uint32_t>>& given) {
    return parse_neighbour_settings(built(AF_INET, given)).value().values;
  };
  const auto plain = values({{NDTPA_IFINDEX, 7}, {NDTPA_REFCNT, 1}, {NDTPA_QUEUE_LEN, 101}});
  CHECK(values({{NDTPA_IFINDEX, 8}, {NDTPA_REFCNT, 2}, {NDTPA_REACHABLE_TIME, 5}, {NDTPA_QUEUE_LEN, 101}}) == plain);
  CHECK(values({{NDTPA_IFINDEX, 7}, {NDTPA_REFCNT, 1}, {NDTPA_QUEUE_LEN, 102}}) != plain);
  CHECK(values({{NDTPA_IFINDEX, 7}, {NDTPA_REFCNT, 1}, {NDTPA_APP_PROBES, 101}}) != plain);
}

TEST_CASE("a table of another family, one without settings and a message that is cut off have none") {
  CHECK(parse_neighbour_settings(built(AF_INET6, {{NDTPA_QUEUE_LEN, 1}})));
  CHECK_FALSE(parse_neighbour_settings(built(AF_UNSPEC, {{NDTPA_QUEUE_LEN, 1}})));
  CHECK_FALSE(parse_neighbour_settings(built(AF_INET6, {})));
  CHECK_FALSE(parse_neighbour_settings({}));
  const auto whole = recorded("arp-nic0");
  for (std::size_t size = 0; size < whole.size(); ++size) {
    CAPTURE(size);
    const auto cut = parse_neighbour_settings(std::span{whole}.first(size));
    CHECK((!cut || cut->values.size() <= settings("arp-nic0").values.size()));
  }
}
