#include "cni/guid.hpp"

#include "cni/config.hpp"
#include "support/catch.hpp"
#include "unit/mac.hpp"
#include "unit/thrown.hpp"

using cni::Guid;
using cni::guid_of;
using cni::guid_text;
using cni::parse_guid;

namespace {

constexpr Guid kGuid = 0x0211223344556677;
constexpr std::string_view kText = "02:11:22:33:44:55:66:77";

cni::AttachConfig attach(const std::string& members) {
  return cni::read_attach_config(
      cni::read_network_config(R"({"cniVersion": "1.0.0", "name": "rail0", "type": "fabric-nic", )" + members + "}"), "");
}

cni::Error refusal(const std::string& members) {
  return thrown([&] { static_cast<void>(attach(members)); });
}

std::string by_runtime(const std::string& guid) {
  return R"("runtimeConfig": {"infinibandGUID": )" + guid + "}";
}

std::string by_pod(const std::string& guid) {
  return R"("args": {"cni": {"guid": )" + guid + "}}";
}

}  // namespace

TEST_CASE("a GUID is eight bytes, the first one the most significant, with colons or hyphens between them") {
  CHECK(parse_guid(kText) == kGuid);
  CHECK(parse_guid("FE-DC-BA-98-76-54-32-10") == 0xfedcba9876543210U);
  CHECK(parse_guid("00:00:00:00:00:00:00:00") == 0U);
  CHECK(guid_text(kGuid) == kText);
  CHECK(guid_text(0) == "00:00:00:00:00:00:00:00");
  for (const auto* const text :
       {"", "02", "02:11:22:33:44:55:66", "02:11:22:33:44:55:66:77:88", "02:11:22:33:44:55:66:7", "02:11:22:33:44:55:66:7g",
        "02:11:22:33:44:55:66-77", "02:11:22:33:44:55:66:77 ", "0211223344556677", "0211.2233.4455.6677", "-2:11:22:33:44:55:66:77",
        "+2:11:22:33:44:55:66:77", " 2:11:22:33:44:55:66:77", "0x:11:22:33:44:55:66:77", "02.11.22.33.44.55.66.77"}) {
    CAPTURE(text);
    CHECK_FALSE(parse_guid(text));
  }
}

TEST_CASE("an InfiniBand address ends in the GUID of its port, and no other address has one") {
  const auto address = mac("80:00:02:08:fe:80:00:00:00:00:00:00:02:11:22:33:44:55:66:77");
  CHECK(guid_of(address) == kGuid);
  CHECK_FALSE(guid_of(mac("02:00:00:00:00:01")));
  CHECK_FALSE(guid_of({}));
  CHECK(cni::differ_at_most_in_guid(address, mac("80:00:02:08:fe:80:00:00:00:00:00:00:00:00:00:00:00:00:00:01")));
  CHECK_FALSE(cni::differ_at_most_in_guid(address, mac("80:00:02:09:fe:80:00:00:00:00:00:00:02:11:22:33:44:55:66:77")));
  CHECK_FALSE(cni::differ_at_most_in_guid(mac("02:00:00:00:00:01"), mac("02:00:00:00:00:01")));
}

TEST_CASE("a pod's GUID comes from runtimeConfig or args.cni, and says the same in both") {
  CHECK_FALSE(attach(R"("mtu": 0)").vf.guid);
  CHECK(attach(by_runtime(R"("02:11:22:33:44:55:66:77")")).vf.guid == kGuid);
  CHECK(attach(by_pod(R"("02-11-22-33-44-55-66-77")")).vf.guid == kGuid);
  CHECK_FALSE(attach(by_runtime(R"("")")).vf.guid);
  CHECK(attach(by_runtime(R"("")") + ", " + by_pod(R"("02:11:22:33:44:55:66:77")")).vf.guid == kGuid);
  CHECK(attach(by_runtime(R"("02:11:22:33:44:55:66:77")") + ", " + by_pod(R"("02-11-22-33-44-55-66-77")")).vf.guid == kGuid);
  const auto two = refusal(by_runtime(R"("02:11:22:33:44:55:66:77")") + ", " + by_pod(R"("02:11:22:33:44:55:66:78")"));
  CHECK(two.code() == 7);
  CHECK(std::string{two.what()} ==
        "'runtimeConfig.infinibandGUID' is 02:11:22:33:44:55:66:77 and 'args.cni.guid' is 02:11:22:33:44:55:66:78, one GUID was wanted");
}

TEST_CASE("a GUID that is none, zero or all ones is error 7 that says what was wanted") {
  for (const auto* const guid : {R"("00:00:00:00:00:00:00:00")", R"("ff:ff:ff:ff:ff:ff:ff:ff")", R"("FF-FF-FF-FF-FF-FF-FF-FF")",
                                 R"("02:00:00:00:00:01")", R"("x")", "7", "true", "[]"}) {
    for (const auto& [members, key] :
         {std::pair{by_runtime(guid), "'runtimeConfig.infinibandGUID'"}, std::pair{by_pod(guid), "'args.cni.guid'"}}) {
      const auto error = refusal(members);
      INFO(members << "\n" << error.what());
      CHECK(error.code() == 7);
      CHECK(std::string{error.what()}.starts_with(key));
    }
  }
  CHECK(std::string{refusal(by_runtime(R"("00:00:00:00:00:00:00:00")")).what()} ==
        "'runtimeConfig.infinibandGUID' is \"00:00:00:00:00:00:00:00\", an InfiniBand GUID of 8 bytes such as \"02:11:22:33:44:55:66:77\", "
        "neither all zeros nor all ones, was wanted");
  // One that is wrong is an error also where the other one would do.
  CHECK(refusal(by_runtime(R"("02:11:22:33:44:55:66:77")") + ", " + by_pod(R"("x")")).code() == 7);
}

TEST_CASE("a partition key is read and noted, because somebody else sets it") {
  const auto config = attach(R"("pkey": "0x8001")");
  CHECK(config.pkey == 0x8001);
  CHECK(config.notes ==
        std::vector<std::string>{"'pkey' 0x8001 is not set by this plugin: the subnet manager gives the port its partitions"});
  CHECK(attach(R"("pkey": 32769)").pkey == 0x8001);
  CHECK(attach(R"("pkey": "7")").pkey == 7);
  CHECK(attach(R"("pkey": "0XFFFF")").pkey == 0xffff);
  CHECK_FALSE(attach(R"("pkey": "")").pkey);
  for (const auto* const pkey : {"0", "-1", "65536", "32768", R"("0x8000")", R"("0x0")", R"("0x10000")", R"("0x")", R"("8001h")", R"("-1")",
                                 R"("0x-1")", "1.5", "true", "[1]"}) {
    const auto error = refusal(std::string{R"("pkey": )"} + pkey);
    INFO(pkey << "\n" << error.what());
    CHECK(error.code() == 7);
    CHECK(std::string{error.what()}.starts_with("'pkey' is "));
  }
}

TEST_CASE("where ib-kubernetes gives the GUIDs, ADD waits for its mark") {
  const std::string enabled = R"("ibKubernetesEnabled": true)";
  const auto error = refusal(enabled);
  CHECK(error.code() == 11);
  CHECK(std::string{error.what()} == "'ibKubernetesEnabled' is true, and 'args.cni' has no 'mellanox.infiniband.app' of \"configured\"");
  CHECK(refusal(enabled + R"(, "args": {"cni": {"mellanox.infiniband.app": "pending"}})").code() == 11);
  CHECK(attach(enabled + R"(, "args": {"cni": {"mellanox.infiniband.app": "configured"}})").ib_kubernetes_enabled);
  CHECK_FALSE(attach(R"("ibKubernetesEnabled": false)").ib_kubernetes_enabled);
  CHECK(refusal(R"("ibKubernetesEnabled": "true")").code() == 7);
}
