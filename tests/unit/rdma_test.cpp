#include "netlink/rdma.hpp"

#include <rdma/rdma_netlink.h>
#include <sys/sysmacros.h>

#include <cstring>

#include "netlink/message.hpp"
#include "support/catch.hpp"
#include "unit/device_tree.hpp"
#include "unit/recorded.hpp"

using netlink::BusAddress;
using netlink::function_of_uverbs;
using netlink::parse_rdma_char_device;
using netlink::parse_rdma_device;
using netlink::parse_rdma_mode;
using netlink::parse_rdma_port;
using netlink::rdma_names_anywhere;
using netlink::rdma_names_in_host;
using netlink::rdma_names_on_node;
using netlink::RdmaCharDevice;
using netlink::RdmaDevice;
using netlink::RdmaMode;
using netlink::RdmaPort;
using netlink::Request;

namespace {

using Bytes = std::vector<std::byte>;
using Names = std::vector<std::string>;

const BusAddress kPf{"pci", "0000:3b:00.0"};
const BusAddress kVf{"pci", "0000:3b:00.2"};
const BusAddress kSubfunction{"auxiliary", "mlx5_core.sf.4"};

/// What follows the netlink header.
Bytes payload_of(Request& request) {
  const auto* const header = nlmsg_hdr(request.get());
  const auto bytes = std::as_bytes(std::span{static_cast<const char*>(nlmsg_data(header)), header->nlmsg_len - sizeof *header});
  return {bytes.begin(), bytes.end()};
}

template <typename Value>
void put(Request& request, int attribute, Value value) {
  request.put(attribute, std::as_bytes(std::span{&value, 1}));
}

/// As the kernel answers: huge_encode_dev, as include/linux/kdev_t.h has it.
Bytes char_device(std::uint32_t major, std::uint32_t minor, const std::string& name) {
  Request request{0, 0};
  put(request, RDMA_NLDEV_ATTR_CHARDEV, std::uint64_t{(minor & 0xffU) | (major << 8U) | ((minor & ~0xffU) << 12U)});
  put(request, RDMA_NLDEV_ATTR_CHARDEV_ABI, std::uint64_t{1});
  request.put(RDMA_NLDEV_ATTR_CHARDEV_NAME, name);
  return payload_of(request);
}

Bytes mode(std::uint8_t number) {
  Request request{0, 0};
  put(request, RDMA_NLDEV_SYS_ATTR_NETNS_MODE, number);
  return payload_of(request);
}

template <typename Parse>
void expect_nothing_until(const Bytes& bytes, std::size_t enough, const Parse& parse) {
  for (std::size_t size = 0; size <= bytes.size(); ++size) {
    CAPTURE(size);
    CHECK(parse(Bytes{bytes.begin(), bytes.begin() + static_cast<std::ptrdiff_t>(size)}).has_value() == (size >= enough));
  }
}

}  // namespace

TEST_CASE("an RDMA device is read from what the kernel said") {
  CHECK(parse_rdma_device(recorded("rdma-device")) ==
        RdmaDevice{.index = 1, .name = "mlx5_2", .ports = 1, .node_guid = 0xf80d8efffe532a0a, .protocol = "roce"});
}

TEST_CASE("an RDMA device needs its index and its name, and may lack all else") {
  // Index and name: 8 and 12 bytes, of which the last is padding.
  expect_nothing_until(recorded("rdma-device"), 19, parse_rdma_device);
  Request request{0, 0};
  request.put(RDMA_NLDEV_ATTR_DEV_NAME, "rail0");
  CHECK_FALSE(parse_rdma_device(payload_of(request)));
  request.put(RDMA_NLDEV_ATTR_DEV_INDEX, 0U);
  CHECK(parse_rdma_device(payload_of(request)) == RdmaDevice{.index = 0, .name = "rail0", .ports = 0, .node_guid = 0, .protocol = ""});
}

TEST_CASE("a port is read from what the kernel said") {
  CHECK(parse_rdma_port(recorded("rdma-port")) == RdmaPort{.number = 1, .state = 4, .netdev_index = 3, .netdev_name = "eth1"});
}

TEST_CASE("a port needs its number, and says nothing of a netdev in another namespace") {
  expect_nothing_until(recorded("rdma-port"), 28, parse_rdma_port);
  Request request{0, 0};
  request.put(RDMA_NLDEV_ATTR_PORT_INDEX, 2U);
  put(request, RDMA_NLDEV_ATTR_PORT_STATE, std::uint8_t{1});
  CHECK(parse_rdma_port(payload_of(request)) == RdmaPort{.number = 2, .state = 1, .netdev_index = {}, .netdev_name = ""});
}

TEST_CASE("a char device is read from what the kernel said") {
  CHECK(parse_rdma_char_device(recorded("rdma-char-device")) == RdmaCharDevice{.name = "uverbs0", .major = 231, .minor = 192});
  expect_nothing_until(recorded("rdma-char-device"), 44, parse_rdma_char_device);
}

TEST_CASE("the numbers of a char device are the kernel's, and the C library's, up to the largest") {
  for (const std::uint32_t major : {1U, 231U, 255U, 256U, 511U, 4095U}) {
    for (const std::uint32_t minor : {0U, 64U, 192U, 255U, 256U, 1023U, 65535U, 65536U, 1048575U}) {
      CAPTURE(major, minor);
      const auto bytes = char_device(major, minor, "uverbs700");
      CHECK(parse_rdma_char_device(bytes) == RdmaCharDevice{.name = "uverbs700", .major = major, .minor = minor});
      // What stat says of the file, in the same encoding.
      std::uint64_t number = 0;
      std::memcpy(&number, bytes.data() + sizeof(nlattr), sizeof number);
      CHECK(number == ::makedev(major, minor));
    }
  }
  CHECK_FALSE(parse_rdma_char_device(char_device(231, 192, "")));
}

TEST_CASE("the mode is one of the two that are known") {
  CHECK(parse_rdma_mode(recorded("rdma-mode")) == RdmaMode::shared);
  CHECK(parse_rdma_mode(mode(0)) == RdmaMode::exclusive);
  CHECK(parse_rdma_mode(mode(1)) == RdmaMode::shared);
  CHECK_FALSE(parse_rdma_mode(mode(2)));
  expect_nothing_until(recorded("rdma-mode"), 5, parse_rdma_mode);
}

TEST_CASE("without RDMA in the kernel no socket is opened, and nothing has an RDMA device") {
  const DeviceTree tree;
  tree.add(kPf, "pci0000:3a");
  CHECK_FALSE(netlink::open_rdma_socket(netlink::NetNs::current(), tree.roots()));
  CHECK(rdma_names_in_host(kPf, tree.roots()).empty());
  CHECK(rdma_names_on_node(tree.roots()).empty());
  CHECK(rdma_names_anywhere(kPf, tree.roots()).empty());
}

TEST_CASE("each function has its own RDMA devices, wherever they are") {
  const DeviceTree tree;
  const auto pf = tree.add(kPf, "pci0000:3a");
  tree.add_virtual_function(kPf, 0, kVf);
  tree.add_rdma(pf, "mlx5_1");
  tree.add_uverbs(pf, "uverbs1", "mlx5_1");
  tree.add_rdma(pf, "mlx5_0");
  tree.add_uverbs(pf, "uverbs0", "mlx5_0");
  CHECK(rdma_names_in_host(kPf, tree.roots()) == Names{"mlx5_0", "mlx5_1"});
  CHECK(rdma_names_in_host(kVf, tree.roots()).empty());
  CHECK(rdma_names_anywhere(kVf, tree.roots()).empty());

  // In a pod, under a name that the host has, too.
  tree.add_uverbs("pci0000:3a/" + kVf.address, "uverbs12", "mlx5_0");
  CHECK(rdma_names_in_host(kVf, tree.roots()).empty());
  CHECK(rdma_names_anywhere(kVf, tree.roots()).size() == 1);
  CHECK(function_of_uverbs("uverbs0", tree.roots()) == kPf);
  CHECK(function_of_uverbs("uverbs12", tree.roots()) == kVf);
  CHECK(rdma_names_on_node(tree.roots()) == Names{"mlx5_0", "mlx5_0", "mlx5_1"});
  CHECK_FALSE(function_of_uverbs("uverbs2", tree.roots()));
}

TEST_CASE("the RDMA device of a subfunction is not the PF's") {
  const DeviceTree tree;
  const auto pf = tree.add(kPf, "pci0000:3a");
  const auto subfunction = tree.add(kSubfunction, pf);
  tree.add_rdma(subfunction, "mlx5_4");
  tree.add_uverbs(subfunction, "uverbs4", "mlx5_4");
  CHECK(function_of_uverbs("uverbs4", tree.roots()) == kSubfunction);
  CHECK(rdma_names_in_host(kSubfunction, tree.roots()) == Names{"mlx5_4"});
  CHECK(rdma_names_anywhere(kSubfunction, tree.roots()).size() == 1);
  CHECK(rdma_names_in_host(kPf, tree.roots()).empty());
  CHECK(rdma_names_anywhere(kPf, tree.roots()).empty());
  CHECK(rdma_names_anywhere({"auxiliary", "mlx5_core.sf.5"}, tree.roots()).empty());
}

TEST_CASE("an RDMA device below a part of a function is the function's") {
  const DeviceTree tree;
  const auto pf = tree.add(kPf, "pci0000:3a");
  const auto subfunction = tree.add(kSubfunction, pf);
  const auto part = tree.add({"auxiliary", "mlx5_core.rdma.0"}, pf);
  tree.add_rdma(part, "mlx5_0");
  tree.add_uverbs(part, "uverbs0", "mlx5_0");
  const auto part_of_subfunction = tree.add({"auxiliary", "mlx5_core.rdma.5"}, subfunction);
  tree.add_rdma(part_of_subfunction, "mlx5_5");
  tree.add_uverbs(part_of_subfunction, "uverbs5", "mlx5_5");
  CHECK(function_of_uverbs("uverbs0", tree.roots()) == kPf);
  CHECK(function_of_uverbs("uverbs5", tree.roots()) == kSubfunction);
  CHECK(rdma_names_in_host(kPf, tree.roots()) == Names{"mlx5_0"});
  CHECK(rdma_names_in_host(kSubfunction, tree.roots()) == Names{"mlx5_5"});
}

TEST_CASE("what is between an RDMA device and its function and on no bus does not count") {
  const DeviceTree tree;
  const auto netdev = tree.add_class_device(tree.add(kPf, "pci0000:3a"), "net", "ens1f0");
  tree.add_rdma(netdev, "siw0");
  tree.add_uverbs(netdev, "uverbs0", "siw0");
  CHECK(function_of_uverbs("uverbs0", tree.roots()) == kPf);
  CHECK(rdma_names_in_host(kPf, tree.roots()) == Names{"siw0"});
}

TEST_CASE("without char devices an RDMA device is found where the host has it") {
  const DeviceTree tree;
  tree.add_rdma(tree.add(kPf, "pci0000:3a"), "mlx5_0");
  CHECK(rdma_names_in_host(kPf, tree.roots()) == Names{"mlx5_0"});
  CHECK(rdma_names_anywhere(kPf, tree.roots()).size() == 1);
  CHECK(rdma_names_on_node(tree.roots()).empty());
}

TEST_CASE("a software RDMA device is no function's") {
  const DeviceTree tree;
  tree.add(kPf, "pci0000:3a");
  tree.add_rdma("virtual", "rxe0");
  tree.add_uverbs("virtual", "uverbs0", "rxe0");
  CHECK_FALSE(function_of_uverbs("uverbs0", tree.roots()));
  CHECK(rdma_names_anywhere(kPf, tree.roots()).empty());
  CHECK(rdma_names_on_node(tree.roots()) == Names{"rxe0"});
}
