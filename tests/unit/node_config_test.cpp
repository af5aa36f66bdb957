#include "cni/node_config.hpp"

#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>

#include "cni/error.hpp"
#include "support/catch.hpp"
#include "support/temp_dir.hpp"

using cni::NodeConfig;
using cni::parse_node_config;
using cni::read_node_config;

namespace {

struct Refusal {
  int code = 0;
  std::string message;
};

template <typename Action>
Refusal refusal_of(const Action& action) {
  try {
    action();
  } catch (const cni::Error& error) {
    return {error.code(), error.what()};
  }
  return {};
}

Refusal refusal_of_text(const std::string& text) {
  return refusal_of([&] { static_cast<void>(parse_node_config(text)); });
}

Refusal refusal_of_file(const std::filesystem::path& path) {
  return refusal_of([&] { static_cast<void>(read_node_config(path)); });
}

}  // namespace

TEST_CASE("an absent node file gives the defaults") {
  const support::TempDir directory;
  const auto file = directory.write("file", "");
  const auto config = read_node_config(directory.path() / "absent");
  CHECK(config == NodeConfig{});
  CHECK(config.data_dir == "/var/lib/cni/fabric-nic");
  CHECK(config.log_dir == "/var/log");
  CHECK_FALSE(config.allowed_selectors);
  CHECK_FALSE(config.allowed_devices);
  CHECK(config.allow_in_use);
  CHECK(read_node_config(file / "below-a-file") == NodeConfig{});
}

TEST_CASE("the keys of the node file are read") {
  const auto config = parse_node_config(R"({"dataDir": "/data", "logDir": "/logs", "allowedSelectors": ["deviceID", "device"],
      "allowedDevices": ["0000:3b:*", "ens?f0"], "allowInUse": false})");
  CHECK(config.data_dir == "/data");
  CHECK(config.log_dir == "/logs");
  CHECK(config.allowed_selectors == std::vector<std::string>{"deviceID", "device"});
  CHECK(config.allowed_devices == std::vector<std::string>{"0000:3b:*", "ens?f0"});
  CHECK_FALSE(config.allow_in_use);
  CHECK(parse_node_config("{}") == NodeConfig{});
  CHECK(parse_node_config(R"({"DATADIR": "/data", "logDir": null})").data_dir == "/data");
}

TEST_CASE("an empty list allows nothing, which is not the same as no list") {
  const auto config = parse_node_config(R"({"allowedSelectors": [], "allowedDevices": []})");
  REQUIRE(config.allowed_selectors);
  CHECK(config.allowed_selectors->empty());
  REQUIRE(config.allowed_devices);
  CHECK(config.allowed_devices->empty());
}

TEST_CASE("an unknown key of the node file is error 7 and names the key probably meant") {
  const auto seen = refusal_of_text(R"({"datadir": "/data", "allowedDevice": ["x"]})");
  CHECK(seen.code == 7);
  CHECK(seen.message == R"(unknown key: 'allowedDevice' is ["x"], 'allowedDevices' was probably meant)");
}

TEST_CASE("a wrong value in the node file is error 7 and names the key") {
  for (const auto& [key, value] : std::vector<std::pair<std::string, std::string>>{{"dataDir", R"("relative")"},
                                                                                   {"dataDir", R"("")"},
                                                                                   {"dataDir", R"("/")"},
                                                                                   {"dataDir", R"("/a/../b")"},
                                                                                   {"dataDir", R"("/a\u0000b")"},
                                                                                   {"dataDir", "5"},
                                                                                   {"logDir", R"("/a/..")"},
                                                                                   {"logDir", "[]"},
                                                                                   {"allowedSelectors", R"("device")"},
                                                                                   {"allowedSelectors", R"({"device": true})"},
                                                                                   {"allowedDevices", R"("*")"},
                                                                                   {"allowInUse", R"("false")"},
                                                                                   {"allowInUse", "0"}}) {
    const auto seen = refusal_of_text("{\"" + key + "\": " + value + "}");
    INFO(key << " " << value << "\n" << seen.message);
    CHECK(seen.code == 7);
    CHECK(seen.message.starts_with("'" + key + "' is"));
  }
  CHECK(refusal_of_text(R"({"allowedSelectors": ["device", "pciBusID"]})").message.starts_with("'allowedSelectors[1]' is \"pciBusID\""));
  CHECK(refusal_of_text(R"({"allowedDevices": [""]})").message.starts_with("'allowedDevices[0]' is"));
  CHECK(refusal_of_text(R"({"allowedDevices": ["a/b"]})").message.starts_with("'allowedDevices[0]' is"));
  CHECK(refusal_of_text("[]").code == 7);
}

TEST_CASE("a node file that others can have written is error 5") {
  const support::TempDir directory;
  CHECK(refusal_of_file(directory.path()).code == 5);
  CHECK(refusal_of_file(directory.path()).message.contains("not a regular file"));

  std::filesystem::create_symlink("/etc/passwd", directory.path() / "link");
  CHECK(refusal_of_file(directory.path() / "link").code == 5);
  CHECK(refusal_of_file(directory.path() / "link").message.contains("symbolic link"));

  const auto pipe = directory.path() / "pipe";
  REQUIRE(::mkfifo(pipe.c_str(), 0600) == 0);
  CHECK(refusal_of_file(pipe).message.contains("not a regular file"));

  for (const mode_t mode : {0664U, 0646U, 0666U}) {
    const auto seen = refusal_of_file(directory.write("shared", "{}", mode));
    CHECK(seen.code == 5);
    CHECK(seen.message.contains("others than root may write it"));
  }
}

TEST_CASE("a node file above 64 KiB is error 5") {
  const support::TempDir directory;
  const auto seen = refusal_of_file(directory.write("large", std::string((std::size_t{64} << 10U) + 1, ' ')));
  CHECK(seen.code == 5);
  CHECK(seen.message.contains("65537 bytes"));
}

TEST_CASE("a node file counts when root owns it, and is error 5 when anybody else does") {
  const support::TempDir directory;
  const auto file = directory.write("file", R"({"allowInUse": false})", 0600);
  if (::geteuid() == 0) {
    CHECK_FALSE(read_node_config(file).allow_in_use);
    REQUIRE(::chown(file.c_str(), 65534, 65534) == 0);
  }
  const auto seen = refusal_of_file(file);
  CHECK(seen.code == 5);
  CHECK(seen.message.contains("not to root"));
}

TEST_CASE("a node file whose content is wrong is error 7 and named") {
  const auto seen = refusal_of_file("/etc/passwd");  // root's, and no JSON
  CHECK(seen.code == 7);
  CHECK(seen.message.starts_with("/etc/passwd: "));
}
