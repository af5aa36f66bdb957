#include "fabric/port.hpp"

#include <array>
#include <cstdint>
#include <exception>
#include <string>

#include "support/catch.hpp"

using fabric::Device;
using fabric::Gid;
using fabric::GidType;
using fabric::Port;
using fabric::PortState;

namespace {

constexpr std::array<std::uint8_t, 16> kMapped{0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, 10, 0, 0, 5};
constexpr std::array<std::uint8_t, 16> kLinkLocal{0xfe, 0x80, 0, 0, 0, 0, 0, 0, 2, 1, 2, 0xff, 0xfe, 3, 4, 5};
/// `::10.0.0.5`, which is no mapped address.
constexpr std::array<std::uint8_t, 16> kCompatible{0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 10, 0, 0, 5};

Gid gid(std::uint32_t index, GidType type, const std::array<std::uint8_t, 16>& bytes, int netdev_index) {
  Gid out;
  out.index = index;
  out.type = type;
  out.bytes = bytes;
  out.netdev_index = netdev_index;
  return out;
}

std::vector<Device> every_kind() {
  const Port roce{.number = 1,
                  .state = PortState::active,
                  .is_ethernet = true,
                  .active_mtu = 1024,
                  .max_mtu = 4096,
                  .gids = {gid(0, GidType::roce_v1, kLinkLocal, 7), gid(3, GidType::roce_v2, kMapped, 7),
                           gid(254, GidType::infiniband, kCompatible, 0)}};
  const Port infiniband{.number = 2, .state = PortState::init, .is_ethernet = false, .active_mtu = 4096, .max_mtu = 4096, .gids = {}};
  return {{.name = "mlx5_0", .problem = {}, .is_unusable = false, .ports = {roce, infiniband}},
          {.name = "rail \"1\"\n", .problem = "/dev/infiniband/uverbs1: No such file", .is_unusable = true, .ports = {}}};
}

/// The text of a device with one port with one GID, with `was` replaced by `is`.
std::string text_with(const std::string& was, const std::string& is) {
  std::string text =
      R"([{"name":"a","problem":"","unusable":false,"ports":[{"number":1,"state":"ACTIVE","ethernet":true,"activeMtu":1024,"maxMtu":4096,"gids":[)"
      R"({"index":0,"type":"RoCE v2","gid":"fe80::1","netdevIndex":4}]}]}])";
  const auto at = text.find(was);
  REQUIRE(at != std::string::npos);
  return text.replace(at, was.size(), is);
}

}  // namespace

TEST_CASE("what was told of RDMA devices is the same after it was printed and read") {
  const auto devices = every_kind();
  CHECK(fabric::parse(fabric::print(devices)) == devices);
  CHECK(fabric::parse(fabric::print({})).empty());
}

TEST_CASE("every state of a port and every type of GID has a name that is read again") {
  const auto state = GENERATE(PortState::unknown, PortState::down, PortState::init, PortState::armed, PortState::active);
  const auto type = GENERATE(GidType::infiniband, GidType::roce_v1, GidType::roce_v2);
  Port port;
  port.state = state;
  port.gids.push_back(gid(1, type, kMapped, 2));
  const std::vector<Device> devices{{.name = "a", .problem = {}, .is_unusable = false, .ports = {port}}};
  CHECK(fabric::parse(fabric::print(devices)) == devices);
}

TEST_CASE("the printed form is one line that a person can read") {
  const auto text = fabric::print(every_kind());
  CHECK_THAT(text, containing(R"("state":"ACTIVE","ethernet":true,"activeMtu":1024,"maxMtu":4096)"));
  CHECK_THAT(text, containing(R"({"index":3,"type":"RoCE v2","gid":"::ffff:10.0.0.5","netdevIndex":7})"));
  CHECK(text.find('\n') == text.size() - 1);
}

TEST_CASE("a name that is not UTF-8 can be printed") {
  CHECK(fabric::parse(fabric::print({{.name = "mlx\xff", .problem = {}, .is_unusable = false, .ports = {}}})).at(0).name ==
        "mlx\xef\xbf\xbd");
}

TEST_CASE("the text as it is meant is read") {
  const auto devices = fabric::parse(text_with("\"a\"", "\"b\""));
  REQUIRE(devices.size() == 1);
  CHECK(devices[0].name == "b");
  CHECK(devices[0].ports.at(0).gids.at(0).address().text() == "fe80::1");
}

TEST_CASE("anything else is refused") {
  const auto [was, is] = GENERATE(table<std::string, std::string>({
      {"\"a\"", "1"},
      {"\"a\"", "null"},
      {"\"problem\":\"\",", ""},
      {"\"problem\":\"\"", "\"problem\":\"\",\"more\":1"},
      {"\"problem\"", "\"Problem\""},
      {"\"unusable\":false", "\"unusable\":0"},
      {"\"number\":1", "\"number\":-1"},
      {"\"number\":1", "\"number\":1.0"},
      {"\"number\":1", "\"number\":true"},
      {"\"number\":1", "\"number\":\"1\""},
      {"\"number\":1", "\"number\":4294967296"},
      {"\"ACTIVE\"", "\"active\""},
      {"\"ACTIVE\"", "4"},
      {"\"ethernet\":true", "\"ethernet\":1"},
      {"\"activeMtu\":1024", "\"activeMtu\":null"},
      {"\"RoCE v2\"", "\"RoCE v3\""},
      {"fe80::1", "10.0.0.1"},
      {"fe80::1", "fe80::1/64"},
      {"fe80::1", ""},
      {"\"netdevIndex\":4", "\"netdevIndex\":2147483648"},
      {"\"netdevIndex\":4", "\"netdevIndex\":-4"},
      {"\"index\":0,", ""},
      {"[{\"index\"", "{\"gid\":{\"index\""},
      {"[{\"name\"", "{\"device\":{\"name\""},
      {"\"ports\":[{", "\"ports\":[7,{"},
  }));
  CAPTURE(was, is);
  CHECK_THROWS_AS(fabric::parse(text_with(was, is)), std::exception);
}

TEST_CASE("what is no JSON at all, or ends too early, is refused") {
  const auto whole = fabric::print(every_kind());
  for (std::size_t length = 0; length + 1 < whole.size(); ++length) {  // the last byte is the newline
    CHECK_THROWS_AS(fabric::parse(whole.substr(0, length)), std::exception);
  }
  for (const auto* text : {"{}", "null", "[[]]", "[null]", "\"mlx5_0\"", "[] []", "libibverbs: Warning"}) {
    CAPTURE(text);
    CHECK_THROWS_AS(fabric::parse(text), std::exception);
  }
}

TEST_CASE("a GID stands for the IPv4 address that it is a mapping of, and for itself otherwise") {
  CHECK(gid(0, GidType::roce_v2, kMapped, 1).address().text() == "10.0.0.5");
  CHECK(gid(0, GidType::roce_v2, kMapped, 1).address().family() == netlink::Family::v4);
  CHECK(gid(0, GidType::roce_v2, kLinkLocal, 1).address().text() == "fe80::201:2ff:fe03:405");
  CHECK(gid(0, GidType::roce_v2, kCompatible, 1).address().family() == netlink::Family::v6);
}
