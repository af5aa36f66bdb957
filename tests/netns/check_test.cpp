// CHECK says what is not as ADD left it, names it, and says nothing when all is well.

#include "support/catch.hpp"
#include "support/plugin.hpp"
#include "support/sandbox.hpp"

using namespace support;

namespace {

class Attached : public NicAndPod {
 public:
  Attachment attachment{.network = config({{"mtu", 9000}, {"runtimeConfig", {{"ips", {"10.0.0.5/24", "fd00::5/64"}}}}})};
  Json result = expect_success(attachment.add());
};

}  // namespace

TEST_CASE_METHOD(Attached, "CHECK succeeds and prints nothing while all is as ADD left it") {
  const Snapshot before = snapshot("net1", "pod");
  const Answer checked = attachment.check(result);
  expect_success(checked);
  CHECK(checked.out == "");
  CHECK(changes(before, snapshot("net1", "pod")) == "");
}

TEST_CASE_METHOD(Attached, "CHECK names what differs") {
  const auto [change, words] = GENERATE(table<std::string, std::vector<std::string>>({
      {"ip -n pod link set net1 mtu 1400", {"MTU", "9000", "1400"}},
      {"ip -n pod link set net1 address 02:00:00:00:00:77", {"MAC", "02:00:00:00:00:77"}},
      {"ip -n pod link set net1 down", {"up"}},
      {"ip -n pod link set net1 down; ip -n pod link set net1 name other", {"net1"}},
      {"ip -n pod addr del 10.0.0.5/24 dev net1", {"10.0.0.5/24"}},
      {"ip -n pod addr del fd00::5/64 dev net1", {"fd00::5/64"}},
      {"ip -n pod addr del 10.0.0.5/24 dev net1; ip -n pod addr add 10.0.0.5/16 dev net1", {"10.0.0.5/24"}},
      {"ip -n pod link set net1 netns 1", {"pod"}},
      {"ip -n pod link del net1", {"pod"}},
      {"ip -n pod link set net1 netns 1; ip -n pod link add net1 type bridge; ip -n pod link set net1 up", {"pod"}},
  }));
  CAPTURE(change);
  sh(change);
  const std::string text = expect_error(attachment.check(result), std::nullopt, {});
  for (const std::string& word : words) {
    CHECK(missing_words(text, {word}) == "");
  }
}

TEST_CASE_METHOD(Attached, "CHECK goes by prevResult, because a plugin after us may have changed MTU and MAC") {
  sh("ip -n pod link set net1 mtu 1400 && ip -n pod link set net1 address 02:00:00:00:00:77");
  result["interfaces"][0]["mtu"] = 1400;
  result["interfaces"][0]["mac"] = "02:00:00:00:00:77";
  expect_success(attachment.check(result));
}

TEST_CASE_METHOD(Attached, "CHECK does not mind interfaces and addresses that a plugin after us added to prevResult") {
  sh("ip -n pod link add other type bridge && ip -n pod addr add 10.5.0.1/24 dev other");
  result["interfaces"].push_back({{"name", "other"}, {"sandbox", "/run/netns/pod"}});
  result["ips"].push_back({{"address", "10.5.0.1/24"}, {"interface", 1}});
  expect_success(attachment.check(result));
}

TEST_CASE_METHOD(Attached, "CHECK does not mind routes that a later plugin moved to another table") {
  sh("ip -n pod route flush dev net1 && ip -n pod route add 10.0.0.0/24 dev net1 table 100");
  expect_success(attachment.check(result));
}

TEST_CASE_METHOD(Attached, "CHECK without prevResult is a configuration error") {
  expect_error(call(attachment.to_call("CHECK")), 7, {"prevResult"});
}

TEST_CASE_METHOD(Attached, "CHECK of an attachment that never was fails") {
  Attachment other = attachment;
  other.container = "c2";
  expect_error(other.check(result), std::nullopt, {"c2"});
}

TEST_CASE_METHOD(Attached, "CHECK fails after DEL") {
  expect_success(attachment.del());
  expect_error(attachment.check(result), std::nullopt, {});
}

TEST_CASE_METHOD(NicAndPod, "CHECK asks the IPAM plugin too and passes its error on") {
  write_plugin("checked", R"(case $CNI_COMMAND in
    ADD) echo '{"cniVersion": "1.0.0", "ips": [{"address": "10.0.0.5/24"}]}';;
    CHECK) [ ! -e /run/lost ] || { echo '{"code": 66, "msg": "no such lease"}'; exit 1; };;
  esac)");
  const Attachment attachment{.network = config({{"ipam", {{"type", "checked"}}}})};
  const Json result = expect_success(attachment.add());
  expect_success(attachment.check(result));
  sh("touch /run/lost");
  expect_error(attachment.check(result), 66, {"checked", "no such lease"});
}
