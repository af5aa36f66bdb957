#pragma once

#include <netlink/addr.h>
#include <netlink/object.h>

#include <memory>
#include <optional>

#include "netlink/address_types.hpp"

/// Ownership for what libnl-route hands out, and the way between its addresses and ours. For address.cpp and route.cpp.
namespace netlink {

struct ObjectPut {
  template <typename Object>
  void operator()(Object* object) const {
    nl_object_put(reinterpret_cast<nl_object*>(object));
  }
};
template <typename Object>
using OwnedObject = std::unique_ptr<Object, ObjectPut>;

struct AddressPut {
  void operator()(nl_addr* address) const { nl_addr_put(address); }
};
using OwnedAddress = std::unique_ptr<nl_addr, AddressPut>;

[[nodiscard]] OwnedAddress make_address(const IpAddress& address, int prefix_length);
/// Nothing for a null or an address of another family; an empty one (a default route's destination) is all zeros.
[[nodiscard]] std::optional<IpPrefix> read_address(nl_addr* address, Family family);

}  // namespace netlink
