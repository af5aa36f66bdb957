#include "cni/environment.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>

#include "cni/error.hpp"

namespace cni {

namespace {

constexpr std::size_t kLongestInterfaceName = 15;
constexpr std::size_t kLongestShownValue = 80;

constexpr std::array<std::pair<std::string_view, Verb>, 6> kVerbs{{{"ADD", Verb::add},
                                                                   {"DEL", Verb::del},
                                                                   {"CHECK", Verb::check},
                                                                   {"GC", Verb::gc},
                                                                   {"STATUS", Verb::status},
                                                                   {"VERSION", Verb::version}}};

std::optional<Verb> find_verb(std::string_view command) {
  const auto* const found = std::ranges::find(kVerbs, command, &std::pair<std::string_view, Verb>::first);
  return found == kVerbs.end() ? std::nullopt : std::optional{found->second};
}

bool is_letter_or_digit(char c) {
  return (c >= '0' && c <= '9') || (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z');
}

/// As the kernel counts it: byte 0xA0 too.
bool is_white_space(char c) {
  return c == ' ' || (c >= '\t' && c <= '\r') || c == '\xa0';
}

bool concerns_one_interface(std::optional<Verb> verb) {
  return verb == Verb::add || verb == Verb::del || verb == Verb::check;
}

void check_container_id(const std::string& id) {
  if (!id.empty() && !is_identifier(id)) {
    throw Error(Code::invalid_environment,
                fmt::format("CNI_CONTAINERID must be a letter or digit, then letters, digits, '_', '.' and '-', not '{:.{}}'", id,
                            kLongestShownValue));
  }
}

void check_interface_name(const std::string& name) {
  if (!name.empty() && !is_interface_name(name)) {
    throw Error(Code::invalid_environment, fmt::format("CNI_IFNAME must be 1 to 15 bytes without '/', ':', '%' or white space, and none of "
                                                       "'.', '..', 'all' and 'default', not '{:.{}}' ({} bytes)",
                                                       name, kLongestShownValue, name.size()));
  }
}

void check_nothing_is_missing(const Environment& environment) {
  const auto verb = environment.verb;
  const bool needs_net_ns = verb == Verb::add || verb == Verb::check;
  const bool needs_path = verb && verb != Verb::version;
  std::vector<std::string_view> missing;
  const auto require = [&missing](bool needed, const std::string& value, std::string_view name) {
    if (needed && value.empty()) {
      missing.push_back(name);
    }
  };
  require(true, environment.command, "CNI_COMMAND");
  require(concerns_one_interface(verb), environment.container_id, "CNI_CONTAINERID");
  require(needs_net_ns, environment.net_ns, "CNI_NETNS");
  require(concerns_one_interface(verb), environment.interface_name, "CNI_IFNAME");
  require(needs_path, environment.path, "CNI_PATH");
  if (!missing.empty()) {
    throw Error(Code::invalid_environment, fmt::format("required env variables [{}] missing", fmt::join(missing, ",")));
  }
}

}  // namespace

Environment read_environment(const std::map<std::string, std::string>& variables) {
  const auto get = [&variables](const std::string& name) {
    const auto found = variables.find(name);
    return found == variables.end() ? std::string{} : found->second;
  };
  Environment environment{.command = get("CNI_COMMAND"),
                          .verb = find_verb(get("CNI_COMMAND")),
                          .container_id = get("CNI_CONTAINERID"),
                          .net_ns = get("CNI_NETNS"),
                          .interface_name = get("CNI_IFNAME"),
                          .args = get("CNI_ARGS"),
                          .path = get("CNI_PATH")};
  if (concerns_one_interface(environment.verb)) {
    check_container_id(environment.container_id);
    check_interface_name(environment.interface_name);
  }
  check_nothing_is_missing(environment);
  return environment;
}

bool is_identifier(std::string_view text) {
  return !text.empty() && is_letter_or_digit(text.front()) &&
         std::ranges::all_of(text, [](char c) { return is_letter_or_digit(c) || c == '_' || c == '.' || c == '-'; });
}

bool is_interface_name(std::string_view text) {
  // `all` and `default` are directories among those of the interfaces in /proc/sys/net, so that the kernel takes no interface by that name.
  return !text.empty() && text.size() <= kLongestInterfaceName && text != "." && text != ".." && text != "all" && text != "default" &&
         std::ranges::none_of(text, [](char c) { return c == '/' || c == ':' || c == '%' || is_white_space(c); });
}

std::map<std::string, std::string> parse_cni_args(std::string_view text) {
  std::map<std::string, std::string> args;
  while (!text.empty()) {
    const auto end = std::min(text.find(';'), text.size());
    const auto part = text.substr(0, end);
    const auto equals = part.find('=');
    if (equals == std::string_view::npos) {
      throw Error(Code::invalid_environment,
                  fmt::format("CNI_ARGS must be KEY=VALUE pairs separated by ';', not '{:.{}}'", part, kLongestShownValue));
    }
    args.insert_or_assign(std::string{part.substr(0, equals)}, std::string{part.substr(equals + 1)});
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return args;
}

}  // namespace cni
