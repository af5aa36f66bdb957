#pragma once

#include <string_view>

#include "netlink/address_types.hpp"

/// A MAC that is known to be one.
inline netlink::HardwareAddress mac(std::string_view text) {
  return netlink::HardwareAddress::parse(text).value();
}
