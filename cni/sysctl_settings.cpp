#include "cni/sysctl_settings.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <iterator>
#include <map>
#include <regex>
#include <set>
#include <string>
#include <system_error>
#include <utility>

#include "cni/error.hpp"
#include "netlink/files.hpp"

namespace cni {

namespace {

constexpr std::size_t kLongestKey = 255;  // std::regex needs stack for each letter

/// As sysctl(8) has it: the first separator decides, and a key with dots writes a dot within a name as a slash.
std::string path_of(std::string key) {
  if (const auto first = key.find_first_of("./"); first != std::string::npos && key[first] == '.') {
    std::ranges::transform(key, key.begin(), [](char c) { return c == '.' ? '/' : c == '/' ? '.' : c; });
  }
  return key;
}

bool is_below_net(const std::string& path) {
  const auto framed = '/' + path + '/';
  return path.starts_with("net/") && path.size() <= kLongestKey && framed.find("//") == std::string::npos &&
         framed.find("/./") == std::string::npos && framed.find("/../") == std::string::npos &&
         std::ranges::none_of(path, [](unsigned char c) { return c <= ' ' || c == 0x7f; });
}

std::string read_value(const Value& value) {
  if (value.json().is_number_integer()) {
    return value.json().dump();
  }
  const bool is_usable = value.json().is_string() && !value.text().empty() && value.text().find('\0') == std::string::npos;
  if (!is_usable) {
    value.refuse("a text such as \"1\", or a whole number");
  }
  return value.text();
}

std::string_view trimmed(std::string_view line) {
  constexpr std::string_view kBlank = " \t\r";
  const auto begin = std::min(line.find_first_not_of(kBlank), line.size());
  return line.substr(begin, line.find_last_not_of(kBlank) + 1 - begin);
}

std::vector<std::regex> parse_allowlist(std::string_view content, const std::string& path) {
  std::vector<std::regex> patterns;
  for (std::size_t number = 1; !content.empty(); ++number) {
    const auto end = std::min(content.find('\n'), content.size());
    const auto line = trimmed(content.substr(0, end));
    content.remove_prefix(std::min(end + 1, content.size()));
    if (line.empty() || line.front() == '#') {
      continue;
    }
    try {
      patterns.emplace_back(std::string{line}, std::regex::ECMAScript);
    } catch (const std::regex_error& error) {
      throw Error(Code::io_failure, fmt::format("line {} of {} is '{:.80}', a regular expression was wanted", number, path, line),
                  error.what());
    }
  }
  return patterns;
}

}  // namespace

std::vector<SysctlSetting> read_sysctls(const Value& object) {
  if (!object.json().is_object()) {
    object.refuse("an object");
  }
  std::vector<SysctlSetting> settings;
  std::map<std::string, std::string> keys;  // by path
  for (const auto& [key, json] : object.json().items()) {
    SysctlSetting setting{.key = key, .path = path_of(key), .value = read_value({json, "", fmt::format("{}.{}", object.path(), key)})};
    if (!is_below_net(setting.path)) {
      throw Error(Code::invalid_configuration,
                  fmt::format("'{}' has the key '{:.80}', one such as 'net.ipv4.conf.IFNAME.arp_ignore' was wanted", object.path(), key),
                  "a pod's network namespace has the sysctls below net/ only");
    }
    if (const auto [twin, is_first] = keys.emplace(setting.path, key); !is_first) {
      throw Error(Code::invalid_configuration,
                  fmt::format("'{}' has '{}' and '{}', which are one sysctl: one of them was wanted", object.path(), twin->second, key));
    }
    settings.push_back(std::move(setting));
  }
  return settings;
}

void merge_sysctls(std::vector<SysctlSetting>& settings, std::vector<SysctlSetting> stronger) {
  std::set<std::string> paths;
  std::ranges::transform(stronger, std::inserter(paths, paths.end()), &SysctlSetting::path);
  std::erase_if(settings, [&](const SysctlSetting& weaker) { return paths.contains(weaker.path); });
  std::ranges::move(stronger, std::back_inserter(settings));
}

void check_sysctl_allowlist(const std::vector<SysctlSetting>& sysctls, const std::string& allowlist_path) {
  std::error_code error;
  if (sysctls.empty() || (!std::filesystem::exists(allowlist_path, error) && !error)) {
    return;
  }
  const auto content = netlink::read_file(allowlist_path);
  if (!content) {
    throw Error(Code::io_failure, fmt::format("{} cannot be read, a file of regular expressions was wanted", allowlist_path));
  }
  const auto patterns = parse_allowlist(*content, allowlist_path);
  for (const auto& sysctl : sysctls) {
    if (std::ranges::none_of(patterns, [&sysctl](const std::regex& pattern) { return std::regex_search(sysctl.key, pattern); })) {
      throw Error(Code::unsupported_field,
                  fmt::format("'sysctl' has '{}' with value '{:.80}', which this node does not allow", sysctl.key, sysctl.value),
                  fmt::format("{} lists what is allowed", allowlist_path));
    }
  }
}

}  // namespace cni
