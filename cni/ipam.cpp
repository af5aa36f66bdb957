#include "cni/ipam.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <string_view>
#include <utility>
#include <vector>

#include "cni/error.hpp"
#include "cni/json.hpp"
#include "netlink/error.hpp"

namespace cni {

namespace {

constexpr std::chrono::milliseconds kVersionTime{5000};
constexpr const char* kDhcpSocket = "/run/cni/dhcp.sock";

/// The variables we were called with, with those of the request in place of ours.
std::vector<std::string> environment_for(const IpamRequest& request, const std::string& command) {
  std::vector<std::string> variables{"CNI_COMMAND=" + command,           "CNI_CONTAINERID=" + request.container_id,
                                     "CNI_NETNS=" + request.net_ns_path, "CNI_IFNAME=" + request.interface_name,
                                     "CNI_ARGS=" + request.args,         "CNI_PATH=" + request.path};
  for (char** entry = environ; *entry != nullptr; ++entry) {
    const std::string_view variable{*entry};
    const auto name = variable.substr(0, variable.find('=') + 1);
    if (std::ranges::none_of(variables, [&](const std::string& ours) { return !name.empty() && ours.starts_with(name); })) {
      variables.emplace_back(variable);
    }
  }
  return variables;
}

std::string shortened(std::string_view text) {
  static constexpr std::size_t kShown = 300;
  return text.size() <= kShown ? std::string{text} : std::string{text.substr(0, kShown)} + "...";
}

/// The CNI error object on a plugin's stdout; nothing when it is something else.
std::optional<Error> parse_plugin_error(const std::string& type, const std::string& output) {
  try {
    const auto json = parse_json(output);
    const Value value{json, "the error of the IPAM plugin"};
    const auto code = static_cast<int>(value.required("code").number(0, 1'000'000));
    const auto message = value.required("msg").text();
    const auto details = value.member("details");
    return Error(code, fmt::format("IPAM plugin '{}': {}", type, message), details ? details->text() : "");
  } catch (const Error&) {
    return std::nullopt;
  }
}

/// Where the daemon of the dhcp plugin listens.
std::string dhcp_socket(const std::string& configuration) {
  const auto json = parse_json(configuration);
  const auto ipam = Value{json, "the configuration"}.member("ipam");
  const auto path = ipam ? ipam->member("daemonSocketPath") : std::nullopt;
  return path ? path->text() : kDhcpSocket;
}

}  // namespace

void Ipam::require_ready() {
  gave_nothing_ = true;
  (void)find_plugin();
  if (request_.type == "dhcp") {
    if (const auto socket = dhcp_socket(request_.input); ::access(socket.c_str(), F_OK) != 0) {
      throw Error(Code::try_again_later, fmt::format("IPAM plugin 'dhcp' has no daemon: its socket {} is missing", socket),
                  "Run `dhcp daemon` on the node, for example as a DaemonSet.");
    }
  }
  gave_nothing_ = false;
}

std::string Ipam::find_plugin() const {
  std::string_view rest = request_.path;
  while (!rest.empty()) {
    const auto directory = rest.substr(0, rest.find(':'));
    rest.remove_prefix(std::min(rest.size(), directory.size() + 1));
    auto candidate = fmt::format("{}/{}", directory, request_.type);
    struct stat status{};
    if (!directory.empty() && ::stat(candidate.c_str(), &status) == 0 && S_ISREG(status.st_mode)) {
      struct stat own{};
      if (::stat("/proc/self/exe", &own) == 0 && own.st_dev == status.st_dev && own.st_ino == status.st_ino) {
        throw Error(Code::invalid_configuration,
                    fmt::format("'ipam.type' is '{}', which is this very plugin and gives no addresses", request_.type),
                    "Name an IPAM plugin, such as 'host-local'.");
      }
      return candidate;
    }
  }
  throw Error(Code::invalid_configuration,
              fmt::format("IPAM plugin '{}' is in none of the directories of CNI_PATH '{}'", request_.type, request_.path),
              "Install the plugin there, or correct 'ipam.type'.");
}

std::string Ipam::supported_versions(const std::string& program) const {
  try {
    const auto ending = cni::run({.program = program,
                                  .arguments = {},
                                  .environment = environment_for(request_, "VERSION"),
                                  .input = R"({"cniVersion":"1.0.0"})",
                                  .time_limit = kVersionTime,
                                  .inherited_fd = std::nullopt});
    const auto json = parse_json(ending.output);
    std::vector<std::string> versions;
    for (const auto& version : Value{json, "the answer"}.required("supportedVersions").elements()) {
      versions.push_back(version.text());
    }
    return fmt::format("{}", fmt::join(versions, ", "));
  } catch (const std::exception&) {
    return "unknown";
  }
}

Ending Ipam::start(const std::string& program, const std::string& command, std::chrono::milliseconds time_limit) {
  try {
    return cni::run({.program = program,
                     .arguments = {},
                     .environment = environment_for(request_, command),
                     .input = request_.input,
                     .time_limit = time_limit,
                     .inherited_fd = inherited_lock_});
  } catch (const std::exception& error) {
    gave_nothing_ = true;
    throw Error(Code::io_failure, fmt::format("IPAM plugin '{}' cannot be started: {}", request_.type, error.what()));
  }
}

void Ipam::require_exit(const Ending& ending, const std::string& command, std::chrono::milliseconds time_limit) const {
  switch (ending.kind) {
    case Ending::Kind::timed_out:
      throw Error(Code::try_again_later,
                  fmt::format("IPAM plugin '{}' did not answer {} within {} ms and was killed", request_.type, command, time_limit.count()),
                  shortened(ending.errors));
    case Ending::Kind::printed_too_much:
      throw Error(Code::decode_failure,
                  fmt::format("IPAM plugin '{}' printed more on {} than any result can have, and was killed", request_.type, command));
    case Ending::Kind::killed:
      throw Error(Code::io_failure,
                  fmt::format("IPAM plugin '{}' was killed by signal {} during {}", request_.type, ending.status, command),
                  shortened(ending.errors));
    case Ending::Kind::exited:
      return;
  }
}

void Ipam::refuse(const Ending& ending, const std::string& program, const std::string& command) {
  auto error = parse_plugin_error(request_.type, ending.output);
  if (!error) {
    throw Error(
        Code::decode_failure,
        fmt::format("IPAM plugin '{}' failed on {} with exit status {} and printed no CNI error", request_.type, command, ending.status),
        shortened(ending.output + ending.errors));
  }
  if (error->code() == static_cast<int>(Code::incompatible_version)) {
    gave_nothing_ = true;
    throw Error(error->code(), fmt::format("{}; it supports the versions {}", error->what(), supported_versions(program)),
                "Set 'cniVersion' of the NetworkAttachmentDefinition to one of them, or install a newer plugin. " + error->details());
  }
  throw Error(std::move(*error));
}

std::string Ipam::run(const std::string& command, std::chrono::milliseconds time_limit) {
  require_ready();
  const auto program = find_plugin();
  auto ending = start(program, command, time_limit);
  if (!ending.errors.empty()) {
    log_.info("the IPAM plugin wrote to its stderr", {{"plugin", request_.type}, {"stderr", ending.errors}});
  }
  require_exit(ending, command, time_limit);
  if (ending.status != 0) {
    refuse(ending, program, command);
  }
  return std::move(ending.output);
}

Result Ipam::add(Version version, std::chrono::milliseconds time_limit) {
  return parse_result(run("ADD", time_limit), version, fmt::format("the result of IPAM plugin '{}'", request_.type));
}

void Ipam::del(std::chrono::milliseconds time_limit) {
  (void)run("DEL", time_limit);
}

void Ipam::check(std::chrono::milliseconds time_limit) {
  (void)run("CHECK", time_limit);
}

void Ipam::status(std::chrono::milliseconds time_limit) {
  (void)run("STATUS", time_limit);
}

}  // namespace cni
