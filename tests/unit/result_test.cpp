#include "cni/result.hpp"

#include <filesystem>
#include <fstream>
#include <iterator>

#include "cni/error.hpp"
#include "support/catch.hpp"

using Catch::Matchers::StartsWith;
using cni::parse_result;
using cni::print_result;
using cni::Result;
using cni::Version;

namespace {

const std::filesystem::path kResults = std::filesystem::path{TEST_DATA_DIR} / "results";

std::string read_file(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  REQUIRE(file.is_open());
  return {std::istreambuf_iterator<char>(file), {}};
}

std::string golden(Version version, std::string_view name) {
  return read_file(kResults / (std::string{cni::text(version)} + '-' + std::string{name} + ".json"));
}

cni::ResultIp ip(std::string_view address, std::string_view gateway, std::optional<std::size_t> interface) {
  return {interface, netlink::IpPrefix::parse(address).value(), netlink::IpAddress::parse(gateway)};
}

cni::ResultRoute route(std::string_view destination, std::string_view gateway) {
  return {.destination = netlink::IpPrefix::parse(destination).value(),
          .gateway = netlink::IpAddress::parse(gateway),
          .mtu = {},
          .advmss = {},
          .priority = {},
          .table = {},
          .scope = {}};
}

cni::ResultInterface pod_interface() {
  return {.name = "net1",
          .mac = "02:00:00:00:00:05",
          .sandbox = "/var/run/netns/pod",
          .mtu = 9000,
          .socket_path = "/run/fabric/net1.sock",
          .pci_id = "0000:3b:00.2"};
}

Result everything() {
  Result result;
  result.interfaces = {{.name = "host1", .mac = "02:00:00:00:00:01", .sandbox = {}, .mtu = 0, .socket_path = {}, .pci_id = {}},
                       pod_interface()};
  result.ips = {ip("10.77.0.5/24", "10.77.0.1", 1), ip("fd77::5/64", "fd77::1", 1), ip("10.77.0.6/32", "", 0), ip("fd77::6/128", "", {})};
  result.routes = {route("0.0.0.0/0", "10.77.0.1"), route("10.78.0.0/16", ""), route("fd78::/48", "fd77::1")};
  result.routes[1].mtu = 9000;
  result.routes[1].advmss = 8960;
  result.routes[1].priority = 100;
  result.routes[1].table = 1000;
  result.routes[1].scope = 253;
  result.routes[2].table = 0;
  result.routes[2].scope = 0;
  result.dns = {.nameservers = {"10.77.0.53", "fd77::53"},
                .domain = "fabric.example",
                .search = {"fabric.example", "example"},
                .options = {"ndots:2"}};
  return result;
}

Result parse(std::string_view text, Version fallback = Version::v1_1_0) {
  return parse_result(text, fallback, "prevResult");
}

/// `members` in a result of version 1.1.0.
Result parse_members(const std::string& members) {
  return parse(R"({"cniVersion": "1.1.0", )" + members + "}");
}

cni::Error refusal_of(std::string_view text) {
  try {
    static_cast<void>(parse(text));
  } catch (const cni::Error& error) {
    return error;
  }
  return {0, "accepted"};
}

cni::Error refusal_of_members(const std::string& members) {
  return refusal_of(R"({"cniVersion": "1.1.0", )" + members + "}");
}

}  // namespace

TEST_CASE("a result with everything is printed in each version as that version has it") {
  const auto version =
      GENERATE(Version::v0_1_0, Version::v0_2_0, Version::v0_3_0, Version::v0_3_1, Version::v0_4_0, Version::v1_0_0, Version::v1_1_0);
  CHECK(print_result(everything(), version) == golden(version, "everything"));
}

TEST_CASE("a result without addresses is printed in each version that can say it") {
  const auto version = GENERATE(Version::v0_3_0, Version::v0_3_1, Version::v0_4_0, Version::v1_0_0, Version::v1_1_0);
  Result result;
  result.interfaces = {pod_interface()};
  CHECK(print_result(result, version) == golden(version, "layer-2"));
}

TEST_CASE("a result without addresses is code 1 in 0.1.0 and 0.2.0") {
  Result result;
  result.interfaces = {pod_interface()};
  for (const auto version : {Version::v0_1_0, Version::v0_2_0}) {
    CHECK_THROWS_WITH(print_result(result, version), containing(std::string{cni::text(version)}));
    try {
      static_cast<void>(print_result(result, version));
    } catch (const cni::Error& error) {
      CHECK(error.code() == 1);
      CHECK_THAT(error.details(), containing("ipam"));
    }
  }
}

TEST_CASE("every golden result comes out as it went in") {
  int files = 0;
  for (const auto version :
       {Version::v0_1_0, Version::v0_2_0, Version::v0_3_0, Version::v0_3_1, Version::v0_4_0, Version::v1_0_0, Version::v1_1_0}) {
    for (const auto* const name : {"everything", "layer-2"}) {
      if (std::string_view{name} == "layer-2" && version < Version::v0_3_0) {
        continue;
      }
      const auto text = golden(version, name);
      CHECK(print_result(parse(text, Version::v0_4_0), version) == text);
      ++files;
    }
  }
  CHECK(files == 12);
}

TEST_CASE("what host-local printed comes out as it went in, but for its empty dns") {
  const auto version = GENERATE(Version::v0_1_0, Version::v0_2_0, Version::v0_3_0, Version::v0_3_1, Version::v0_4_0, Version::v1_0_0);
  const auto printed = golden(version, "host-local");
  const std::string empty_dns = ",\n    \"dns\": {}\n}";
  REQUIRE(printed.ends_with(empty_dns));
  CHECK(print_result(parse(printed), version) == printed.substr(0, printed.size() - empty_dns.size()) + "\n}\n");
}

TEST_CASE("what host-local printed means the same in every version") {
  const auto newest = parse(golden(Version::v1_0_0, "host-local"));
  REQUIRE(newest.ips.size() == 2);
  CHECK(newest.ips[0] == ip("10.77.0.2/24", "10.77.0.1", {}));
  CHECK(newest.routes[1] == route("10.78.0.0/16", "10.77.0.9"));
  for (const auto version : {Version::v0_1_0, Version::v0_2_0, Version::v0_3_0, Version::v0_3_1, Version::v0_4_0}) {
    CHECK(parse(golden(version, "host-local")) == newest);
  }
}

TEST_CASE("a result that is printed in 1.1.0 and read again is the same") {
  CHECK(parse(print_result(everything(), Version::v1_1_0)) == everything());
  CHECK(parse(print_result(Result{}, Version::v1_1_0)) == Result{});
}

TEST_CASE("an empty result is no more than its version") {
  CHECK(print_result(Result{}, Version::v1_1_0) == "{\n    \"cniVersion\": \"1.1.0\"\n}\n");
}

TEST_CASE("the mtu of an interface stays in 1.0.0, where Multus reads it, and the PCI address does not") {
  const auto text = print_result(everything(), Version::v1_0_0);
  CHECK_THAT(text, containing("\"mtu\": 9000") && !containing("pciID") && !containing("socketPath") && !containing("advmss"));
  CHECK_THAT(print_result(everything(), Version::v0_4_0), !containing("mtu"));
}

TEST_CASE("0.2.0 says the first address of each family, and the routes of the families that it says") {
  Result result;
  result.ips = {ip("10.0.0.1/24", "", {}), ip("10.0.0.2/24", "10.0.0.254", {})};
  result.routes = {route("10.1.0.0/16", ""), route("fd00::/64", "")};
  const auto again = parse(print_result(result, Version::v0_2_0));
  CHECK(again.ips == std::vector{result.ips[0]});
  CHECK(again.routes == std::vector{result.routes[0]});
}

TEST_CASE("a result is read in its own version, not in the fallback") {
  const auto* const old = R"({"cniVersion": "0.2.0", "ip4": {"ip": "10.0.0.1/24"}, "ips": [{"address": "10.9.9.9/24"}]})";
  CHECK(parse(old, Version::v1_1_0).ips == std::vector{ip("10.0.0.1/24", "", {})});
  const auto* const current = R"({"cniVersion": "1.0.0", "ip4": {"ip": "10.0.0.1/24"}, "ips": [{"address": "10.9.9.9/24"}]})";
  CHECK(parse(current, Version::v0_2_0).ips == std::vector{ip("10.9.9.9/24", "", {})});
}

TEST_CASE("a result without a version is read in the fallback") {
  const auto* const version = GENERATE("", R"("cniVersion": "",)", R"("cniVersion": null,)");
  const auto text = '{' + std::string{version} + R"("ip4": {"ip": "10.0.0.1/24"}, "ips": [{"address": "10.9.9.9/24"}]})";
  CHECK(parse(text, Version::v0_2_0).ips == std::vector{ip("10.0.0.1/24", "", {})});
  CHECK(parse(text, Version::v0_3_1).ips == std::vector{ip("10.9.9.9/24", "", {})});
}

TEST_CASE("the newer fields of routes and interfaces are accepted in older versions") {
  const auto result = parse(R"({"cniVersion": "0.4.0", "interfaces": [{"name": "a", "mtu": 9000, "pciID": "0000:3b:00.2"}],
                                "routes": [{"dst": "10.1.0.0/16", "mtu": 1400, "scope": 0}]})");
  CHECK(result.interfaces.at(0).mtu == 9000);
  CHECK(result.interfaces.at(0).pci_id == "0000:3b:00.2");
  CHECK(result.routes.at(0).mtu == 1400U);
  CHECK(result.routes.at(0).scope == std::uint8_t{0});
}

TEST_CASE("unknown keys are ignored, keys match in any case, null and empty count as absent") {
  const auto result = parse(R"({"CNIversion": "1.0.0", "IPs": [{"Address": "10.0.0.1/24", "gateway": "", "interface": null, "x": [1]}],
                                "Routes": null, "dns": null, "interfaces": null, "code": 7, "vendor": {"a": {}}})");
  CHECK(result.ips == std::vector{ip("10.0.0.1/24", "", {})});
  CHECK(result.routes.empty());
}

TEST_CASE("a route's mtu, advmss and priority of 0 count as absent, its table and scope of 0 do not") {
  const auto result = parse_members(R"("routes": [{"dst": "10.0.0.0/8", "mtu": 0, "advmss": 0, "priority": 0, "table": 0, "scope": 0}])");
  auto expected = route("10.0.0.0/8", "");
  expected.table = 0;
  expected.scope = 0;
  CHECK(result.routes == std::vector{expected});
}

TEST_CASE("numbers are accepted up to the limits of their fields") {
  const auto result = parse_members(R"("routes": [{"dst": "::/0", "table": 4294967295, "scope": 255}])");
  CHECK(result.routes.at(0).table == 4294967295U);
  CHECK(result.routes.at(0).scope == std::uint8_t{255});
}

TEST_CASE("text that is no JSON is code 6 and the message names the source") {
  const auto text = GENERATE(std::string{}, std::string{"{"}, std::string{"not json"}, std::string{R"({"ips": 1e400})"},
                             std::string{"{\"ips\": \"\xff\"}"}, std::string{R"({"ips": [], "ips": []})"}, std::string(100000, '['),
                             R"({"ips": )" + std::string(100000, '[') + std::string(100000, ']') + '}');
  const auto error = refusal_of(text);
  CHECK(error.code() == 6);
  CHECK_THAT(error.what(), StartsWith("prevResult is not valid JSON: "));
  CHECK(std::string{error.what()}.size() < 300);
}

TEST_CASE("JSON that is no object is code 7") {
  const auto* const text = GENERATE("null", "[]", "1", "\"x\"", "true");
  const auto error = refusal_of(text);
  CHECK(error.code() == 7);
  CHECK(error.what() == "prevResult is " + std::string{text} + ", an object was wanted");
}

TEST_CASE("a result in a version that we do not speak is code 1 and lists those that we do") {
  const auto error = refusal_of(R"({"cniVersion": "9.9.9"})");
  CHECK(error.code() == 1);
  CHECK_THAT(error.what(), StartsWith("prevResult: ") && containing("'9.9.9'"));
  CHECK_THAT(error.details(), containing("0.1.0") && containing("1.1.0"));
  CHECK(refusal_of(R"({"cniVersion": "new"})").code() == 6);
  CHECK(refusal_of(R"({"cniVersion": 1.0})").code() == 7);
}

TEST_CASE("a wrong value in a result is code 7 and the message names its key, the value and what was wanted") {
  struct Case {
    std::string members;
    std::string message;
  };
  const auto wrong = GENERATE(values<Case>({
      {R"("ips": {})", "'ips' is {}, a list was wanted"},
      {R"("ips": ["10.0.0.1/24"])", "'ips[0]' is \"10.0.0.1/24\", an object was wanted"},
      {R"("ips": [null])", "'ips[0]' is null, an object was wanted"},
      {R"("ips": [{}])", "'ips[0].address' is missing"},
      {R"("ips": [{"address": 5}])", "'ips[0].address' is 5, a string was wanted"},
      {R"("ips": [{"address": "10.0.0.1"}])", "'ips[0].address' is \"10.0.0.1\", an address with its prefix length"},
      {R"("ips": [{"address": "10.0.0.1/33"}])", "'ips[0].address' is \"10.0.0.1/33\""},
      {R"("ips": [{"address": "10.0.0.1/24\u0000"}])", R"('ips[0].address' is "10.0.0.1/24\u0000")"},
      {R"("ips": [{"address": "10.0.0.1\u0000/24"}])", R"('ips[0].address' is "10.0.0.1\u0000/24")"},
      {R"("ips": [{"address": "10.0.0.1/24", "gateway": "x"}])", "'ips[0].gateway' is \"x\", an IPv4 address was wanted"},
      {R"("ips": [{"address": "10.0.0.1/24", "gateway": "fd00::1"}])", "'ips[0].gateway' is \"fd00::1\", an IPv4 address was wanted"},
      {R"("ips": [{"address": "fd00::5/64", "gateway": "10.0.0.1"}])", "'ips[0].gateway' is \"10.0.0.1\", an IPv6 address was wanted"},
      {R"("interfaces": [{"name": "a"}], "ips": [{"address": "10.0.0.1/24", "interface": 1}])",
       "'ips[0].interface' is 1, a number from 0 to 0 was wanted"},
      {R"("interfaces": [{"name": "a"}], "ips": [{"address": "10.0.0.1/24", "interface": -1}])", "'ips[0].interface' is -1, a number"},
      {R"("interfaces": [{"name": "a"}], "ips": [{"address": "10.0.0.1/24", "interface": 0.5}])", "'ips[0].interface' is 0.5, a number"},
      {R"("interfaces": [{"name": "a"}], "ips": [{"address": "10.0.0.1/24", "interface": 18446744073709551616}])", "'ips[0].interface'"},
      {R"("interfaces": [{"name": "a"}], "ips": [{"address": "10.0.0.1/24", "interface": "0"}])", "'ips[0].interface' is \"0\""},
      {R"("ips": [{"address": "10.0.0.1/24", "interface": 0}])", "'ips[0].interface' is 0, no index, as there are no interfaces"},
      {R"("interfaces": [{}])", "'interfaces[0].name' is missing"},
      {R"("interfaces": [{"name": "a", "mtu": -1}])", "'interfaces[0].mtu' is -1, a number from 0 to 4294967295 was wanted"},
      {R"("interfaces": [{"name": "a", "mtu": 4294967296}])", "'interfaces[0].mtu' is 4294967296"},
      {R"("interfaces": [{"name": "a", "mac": 2}])", "'interfaces[0].mac' is 2, a string was wanted"},
      {R"("interfaces": [{"name": "a", "pciID": []}])", "'interfaces[0].pciID' is [], a string was wanted"},
      {R"("routes": [{"gw": "10.0.0.1"}])", "'routes[0].dst' is missing"},
      {R"("routes": [{"dst": "default"}])", "'routes[0].dst' is \"default\""},
      {R"("routes": [{"dst": "10.0.0.0/8"}, {"dst": "10.0.0.0/8", "scope": 256}])",
       "'routes[1].scope' is 256, a number from 0 to 255 was wanted"},
      {R"("routes": [{"dst": "10.0.0.0/8", "table": -1}])", "'routes[0].table' is -1"},
      {R"("routes": [{"dst": "10.0.0.0/8", "priority": 4294967296}])", "'routes[0].priority' is 4294967296"},
      {R"("routes": [{"dst": "10.0.0.0/8", "mtu": "9000"}])", "'routes[0].mtu' is \"9000\""},
      {R"("routes": [{"dst": "10.0.0.0/8", "advmss": true}])", "'routes[0].advmss' is true"},
      {R"("routes": [{"dst": "10.0.0.0/8", "gw": "fd00::1"}])", "'routes[0].gw' is \"fd00::1\", an IPv4 address was wanted"},
      {R"("dns": [])", "'dns' is [], an object was wanted"},
      {R"("dns": {"nameservers": "10.0.0.1"})", "'dns.nameservers' is \"10.0.0.1\", a list was wanted"},
      {R"("dns": {"search": ["a", 1]})", "'dns.search[1]' is 1, a string was wanted"},
  }));
  INFO(wrong.members);
  const auto error = refusal_of_members(wrong.members);
  CHECK(error.code() == 7);
  CHECK_THAT(error.what(), StartsWith("prevResult: " + wrong.message));
}

TEST_CASE("an address of the wrong family in a result of 0.2.0 is refused") {
  const auto refusal = [](const std::string& members) {
    return std::string{refusal_of(R"({"cniVersion": "0.2.0", )" + members + "}").what()};
  };
  CHECK_THAT(refusal(R"("ip4": {"ip": "fd00::1/64"})"), containing("'ip4.ip'") && containing("an IPv4 address was wanted"));
  CHECK_THAT(refusal(R"("ip6": {"ip": "10.0.0.1/24"})"), containing("'ip6.ip'") && containing("an IPv6 address was wanted"));
  CHECK_THAT(refusal(R"("ip4": {"ip": "10.0.0.1/24", "routes": [{"dst": "fd00::/64"}]})"), containing("'ip4.routes[0].dst'"));
  CHECK_THAT(refusal(R"("ip4": {})"), containing("'ip4.ip' is missing"));
}

TEST_CASE("a wrong value of a megabyte is not quoted in full") {
  const auto error = refusal_of_members(R"("ips": [{"address": ")" + std::string(1U << 20U, 'x') + "\"}]");
  CHECK(error.code() == 7);
  CHECK(std::string{error.what()}.size() < 400);
}

TEST_CASE("a damaged result is refused with an error or means something that can be printed and read again") {
  const auto version = GENERATE(Version::v0_2_0, Version::v1_1_0);
  const auto whole = golden(version, "everything");
  int refused = 0;
  int accepted = 0;
  const auto attempt = [&](const std::string& text) {
    try {
      const auto result = parse(text);
      if (parse(print_result(result, Version::v1_1_0)) != result) {
        FAIL("reads differently the second time: " << text);
      }
      ++accepted;
    } catch (const cni::Error& error) {
      static_cast<void>(cni::print_error(error, "1.1.0"));
      ++refused;
    }
  };
  for (std::size_t at = 0; at + 2 < whole.size(); ++at) {
    attempt(whole.substr(0, at));
    for (const char damage : {'\0', '"', '9', '\xc3'}) {
      auto damaged = whole;
      damaged[at] = damage;
      attempt(damaged);
    }
  }
  CHECK(refused > 1000);
  CHECK(accepted > 200);
}
