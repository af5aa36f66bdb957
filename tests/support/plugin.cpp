#include "support/plugin.hpp"

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "support/catch.hpp"

namespace support {
namespace {

std::string describe(const Answer& answer, const std::source_location& where) {
  return std::string("called at ") + where.file_name() + ":" + std::to_string(where.line()) + "\nstatus " + std::to_string(answer.status) +
         "\nstdout: " + answer.out + "\nstderr: " + answer.err;
}

std::vector<std::string> files_in(const std::filesystem::path& directory, const std::string& extension) {
  std::vector<std::string> result;
  if (std::filesystem::is_directory(directory)) {
    for (const auto& entry : std::filesystem::recursive_directory_iterator(directory)) {
      if (entry.is_regular_file() && (extension.empty() || entry.path().extension() == extension)) {
        result.push_back(entry.path());
      }
    }
  }
  std::ranges::sort(result);
  return result;
}

}  // namespace

std::string plugin_binary() {
  const char* other = std::getenv("FABRIC_NIC");
  return other != nullptr ? other : FABRIC_NIC_BINARY;
}

Program program(const Call& call) {
  Program result;
  result.arguments = call.wrapper;
  result.arguments.push_back(call.binary);
  result.environment.insert(call.variables.begin(), call.variables.end());
  if (!call.command.empty()) {
    result.environment["CNI_COMMAND"] = call.command;
  }
  result.input = call.input;
  return result;
}

Answer answer(Ending ending) {
  Answer result{std::move(ending), nullptr};
  if (!result.out.empty()) {
    result.json = Json::parse(result.out, nullptr, false);
  }
  return result;
}

Json config(const Json& keys) {
  Json result{{"cniVersion", "1.0.0"}, {"name", "rail"}, {"type", "fabric-nic"}, {"device", "nic0"}};
  result.merge_patch(keys);
  return result;
}

Call Attachment::to_call(const std::string& command) const {
  Call result{command,
              {{"CNI_CONTAINERID", container}, {"CNI_NETNS", net_ns}, {"CNI_IFNAME", interface}, {"CNI_PATH", path}},
              network.dump(),
              wrapper,
              binary};
  if (!args.empty()) {
    result.variables["CNI_ARGS"] = args;
  }
  return result;
}

Answer Attachment::check(const Json& result) const {
  Attachment checked = *this;
  checked.network["prevResult"] = result;
  return call(checked.to_call("CHECK"));
}

Attachment Attachment::under(std::vector<std::string> words) const {
  Attachment result = *this;
  result.wrapper = std::move(words);
  return result;
}

Json expect_success(const Answer& answer, std::source_location where) {
  INFO(describe(answer, where));
  REQUIRE(answer.status == 0);
  REQUIRE_FALSE(answer.json.is_discarded());
  return answer.json;
}

std::string expect_error(const Answer& answer, std::optional<int> code, std::initializer_list<std::string_view> words,
                         std::source_location where) {
  INFO(describe(answer, where));
  REQUIRE(answer.status == 1);
  REQUIRE(answer.json.is_object());
  CHECK(answer.json.contains("cniVersion"));
  REQUIRE(answer.json.contains("code"));
  REQUIRE(answer.json.contains("msg"));
  if (code) {
    CHECK(answer.json["code"] == *code);
  }
  const std::string text = answer.json["msg"].get<std::string>() + "\n" + answer.json.value("details", "");
  CHECK(missing_words(text, words) == "");
  return text;
}

std::string missing_words(std::string_view text, std::initializer_list<std::string_view> words) {
  std::string result;
  for (const std::string_view word : words) {
    if (text.find(word) == std::string_view::npos) {
      result += std::string(result.empty() ? "" : ", ") + std::string(word);
    }
  }
  return result;
}

void write_plugin(const std::string& name, const std::string& script) {
  std::filesystem::create_directories("/run/plugins");
  const std::string path = "/run/plugins/" + name;
  std::ofstream(path) << "#!/bin/bash\n" << script << "\n";
  std::filesystem::permissions(path, std::filesystem::perms::owner_all);
}

std::vector<std::string> record_files() {
  return files_in(kDataDirectory + "/devices", ".json");
}

void expect_no_traces(std::source_location where) {
  INFO("called at " << where.file_name() << ":" << where.line());
  CHECK(files_in(kDataDirectory + "/devices", "").empty());
  CHECK(files_in(kDataDirectory + "/owed", "").empty());
}

void expect_home(const Snapshot& before, std::source_location where) {
  INFO("called at " << where.file_name() << ":" << where.line());
  REQUIRE(has_link("nic0"));
  CHECK(changes(before, snapshot("nic0")) == "");
  expect_no_traces(where);
}

std::vector<std::string> strace(const std::vector<std::string>& options) {
  std::vector<std::string> result{"strace", "-E", "ASAN_OPTIONS=detect_leaks=0", "-v", "-s", "4096", "-o", "/run/trace"};
  result.insert(result.end(), options.begin(), options.end());
  return result;
}

std::vector<std::string> trace(const std::string& word) {
  std::vector<std::string> result;
  std::ifstream file("/run/trace");
  for (std::string line; std::getline(file, line);) {
    if (line.find(word) != std::string::npos) {
      result.push_back(line);
    }
  }
  return result;
}

bool sets_attribute(const std::string& line, const std::string& attribute) {
  static const std::map<std::string, std::string> kBytes{
      // length, then type
      {"IFLA_ADDRESS", R"(\x0a\x00\x01\x00)"},   {"IFLA_MTU", R"(\x08\x00\x04\x00)"}, {"IFLA_TXQLEN", R"(\x08\x00\x0d\x00)"},
      {"IFLA_NET_NS_FD", R"(\x08\x00\x1c\x00)"}, {"IFLA_VFINFO_LIST", R"(\x16\x80)"},  // of any length, nested
  };
  const auto has = [&line](const std::string& text) { return line.find(text) != std::string::npos; };
  return (has("nlmsg_type=RTM_NEWLINK") && has("nla_type=" + attribute + "}")) || (has("nlmsg_type=0x10 ") && has(kBytes.at(attribute)));
}

bool is_move(const std::string& line) {
  return sets_attribute(line, "IFLA_NET_NS_FD");
}

std::vector<std::string> traced_moves() {
  std::vector<std::string> result = trace();
  std::erase_if(result, [](const std::string& line) { return !is_move(line); });
  return result;
}

std::vector<std::string> inject(const std::string& calls, const std::string& injection, int number) {
  return strace({"-e", "trace=" + calls, "-e", "inject=" + calls + ":" + injection + ":when=" + std::to_string(number)});
}

bool was_injected() {
  return !trace("(INJECTED)").empty() || !trace("(DELAYED)").empty() || !trace("+++ killed by").empty();
}

}  // namespace support
