// STATUS is quick, changes nothing, and says with code 50 why the plugin could not serve an ADD.

#include "support/catch.hpp"
#include "support/plugin.hpp"
#include "support/sandbox.hpp"

using namespace support;

namespace {

Call status_call(const Json& keys = Json::object()) {
  Json network = config({{"cniVersion", "1.1.0"}});
  network.merge_patch(keys);
  return {"STATUS", {{"CNI_PATH", "/run/plugins:/usr/lib/cni"}}, network.dump(), {}, plugin_binary()};
}

}  // namespace

TEST_CASE_METHOD(NicAndPod, "STATUS succeeds, prints nothing and changes nothing") {
  const Snapshot before = snapshot("nic0");
  Call asked = status_call();
  asked.wrapper = strace({"-f"});
  const Answer ready = call(asked);
  expect_success(ready);
  CHECK(ready.out == "");
  expect_home(before);
  REQUIRE_FALSE(trace("read(").empty());
  for (const char* word : {"O_WRONLY", "O_RDWR", "O_CREAT", "RTM_NEWLINK", "RTM_SETLINK", "RTM_NEWADDR", "mkdir", "rename", "unlink"}) {
    INFO(word);
    std::string seen;
    for (const std::string& line : trace(word)) {
      if (line.find("\"/dev/null\"") == std::string::npos) {
        seen += line + "\n";
      }
    }
    CHECK(seen == "");
  }
}

TEST_CASE_METHOD(NicAndPod, "STATUS is code 50 when the IPAM plugin is not there") {
  expect_error(call(status_call({{"ipam", {{"type", "not-there"}}}})), 50, {"not-there"});
}

TEST_CASE_METHOD(NicAndPod, "STATUS is code 50 when the data directory cannot be written") {
  SECTION("a read-only file system") {
    sh("mount -t tmpfs -o ro tmpfs /var/lib/cni");
  }
  SECTION("a file is in its place") {
    sh("touch " + kDataDirectory);
  }
  expect_error(call(status_call()), 50, {kDataDirectory});
}

TEST_CASE_METHOD(NicAndPod, "STATUS asks the IPAM plugin too and passes its error on") {
  write_plugin("asked",
               R"([ $CNI_COMMAND = STATUS ] && [ ! -e /run/full ] || { echo '{"code": 51, "msg": "the pool is empty"}'; exit 1; })");
  expect_success(call(status_call({{"ipam", {{"type", "asked"}}}})));
  sh("touch /run/full");
  expect_error(call(status_call({{"ipam", {{"type", "asked"}}}})), 51, {"asked", "the pool is empty"});
}

TEST_CASE_METHOD(NicAndPod, "STATUS needs neither container nor namespace, and looks at no device") {
  expect_success(call(status_call({{"device", "not-there"}})));
}
