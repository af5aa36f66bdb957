#include "netlink/neighbour.hpp"

#include <linux/neighbour.h>
#include <linux/rtnetlink.h>

#include <algorithm>
#include <array>
#include <map>
#include <utility>

#include "netlink/message.hpp"

namespace netlink {

namespace {

/// Says whose settings they are, counts its users, or is drawn by chance around NDTPA_BASE_REACHABLE_TIME.
bool is_no_setting(int type) {
  static constexpr std::array kTypes{NDTPA_IFINDEX, NDTPA_REFCNT, NDTPA_REACHABLE_TIME, NDTPA_PAD};
  return std::ranges::find(kTypes, type) != kTypes.end();
}

}  // namespace

std::optional<NeighbourSettings> parse_neighbour_settings(std::span<const std::byte> payload) {
  ndtmsg header{};
  if (payload.size() < sizeof header) {
    return std::nullopt;
  }
  std::memcpy(&header, payload.data(), sizeof header);
  const Attributes attributes{payload.subspan(sizeof header)};
  if ((header.ndtm_family != AF_INET && header.ndtm_family != AF_INET6) || !attributes.find(NDTA_PARMS)) {
    return std::nullopt;
  }
  NeighbourSettings settings{.family = static_cast<Family>(header.ndtm_family), .index = {}, .values = {}};
  const auto parameters = attributes.nested(NDTA_PARMS);
  settings.index = parameters.value<std::int32_t>(NDTPA_IFINDEX);
  for (const auto& parameter : parameters.all()) {
    if (!is_no_setting(parameter.type)) {
      settings.values.push_back(static_cast<std::byte>(parameter.type));
      settings.values.insert(settings.values.end(), parameter.bytes.begin(), parameter.bytes.end());
    }
  }
  return settings;
}

std::vector<Family> changed_neighbour_tables(Socket& socket, int index) {
  std::vector<NeighbourSettings> found;
  const auto make_request = [] {
    Request request{RTM_GETNEIGHTBL, NLM_F_DUMP};
    request.append(ndtmsg{});
    return request;
  };
  socket.dump(
      make_request, "list the settings of the neighbour tables",
      [&](int type, std::span<const std::byte> payload) {
        auto settings = type == RTM_NEWNEIGHTBL ? parse_neighbour_settings(payload) : std::nullopt;
        if (settings && settings->index.value_or(index) == index) {
          found.push_back(std::move(*settings));
        }
      },
      [&] { found.clear(); });
  std::vector<Family> changed;
  for (const auto& own : found) {
    const bool is_changed = own.index && std::ranges::none_of(found, [&](const NeighbourSettings& other) {
                              return !other.index && other.family == own.family && other.values == own.values;
                            });
    if (is_changed) {
      changed.push_back(own.family);
    }
  }
  return changed;
}

}  // namespace netlink
