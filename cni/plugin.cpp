#include "cni/plugin.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <chrono>
#include <memory>
#include <utility>

#include "cni/error.hpp"
#include "cni/json.hpp"
#include "cni/verbs.hpp"
#include "netlink/error.hpp"

namespace cni {

namespace {

constexpr const char* kNodeFile = "/etc/cni/fabric-nic.json";
constexpr std::chrono::milliseconds kAddTime{90'000};
constexpr std::chrono::milliseconds kOtherTime{60'000};

/// What is known of a call so far, for the answer in case it fails.
struct Call {
  std::string cni_version{text(Version::v1_1_0)};
};

std::string bounded_input(const Invocation& invocation) {
  std::string input;
  try {
    input = invocation.read_input();
  } catch (const netlink::Error& error) {
    throw Error(Code::io_failure, fmt::format("the configuration cannot be read from stdin: {}", error.what()));
  }
  if (input.size() > kMaximumInput) {
    throw Error(Code::decode_failure, fmt::format("the configuration on stdin is larger than {} bytes", kMaximumInput),
                "A network configuration is a few KiB; prevResult is part of it.");
  }
  return input;
}

Outcome answer_version(const Invocation& invocation) {
  std::string asked;
  try {
    const auto json = parse_json(bounded_input(invocation));
    if (const auto version = Value{json, "the configuration"}.member("cniVersion")) {
      asked = version->text();
    }
  } catch (const Error&) {
    asked.clear();  // VERSION answers whatever stdin has
  }
  return {.text = print_versions(asked), .status = 0, .undo = {}};
}

void require_verb_in_version(const Environment& environment, const NetworkConfig& network) {
  if (environment.verb == Verb::check) {
    require_version(network.cni_version, Version::v0_4_0, "CHECK");
  } else if (environment.verb == Verb::gc || environment.verb == Verb::status) {
    require_version(network.cni_version, Version::v1_1_0, environment.command);
  }
}

Outcome dispatch(Context& context) {
  switch (context.environment.verb.value()) {
    case Verb::add:
      return add(context);
    case Verb::del:
      return del(context);
    case Verb::check:
      return check(context);
    case Verb::status:
      return status(context);
    case Verb::gc:
      // As the specification's library has it for a verb that a plugin does not have.
      context.log.info("GC is not done by this release");
      return {};
    case Verb::version:
      break;
  }
  throw Error(Code::invalid_environment, fmt::format("unknown CNI_COMMAND: {}", context.environment.command));
}

Outcome call(const Invocation& invocation, Log& log, Call& call) {
  auto environment = read_environment(invocation.variables);
  if (environment.verb == Verb::version) {
    return answer_version(invocation);
  }
  auto network = read_network_config(bounded_input(invocation));
  if (!network.cni_version.empty()) {
    call.cni_version = network.cni_version;
  }
  require_verb_in_version(environment, network);
  const auto version = parse_version(network.cni_version);
  if (!environment.verb) {
    throw Error(Code::invalid_environment, fmt::format("unknown CNI_COMMAND: {}", environment.command));
  }
  auto node = read_node_config(kNodeFile);
  log.set_level(network.log_level);
  if (network.log_file) {
    log.open_file(*network.log_file, node.log_dir);
  }
  log.set_field("command", environment.command);
  log.set_field("containerID", environment.container_id);
  log.set_field("interface", environment.interface_name);
  log.set_field("network", network.name);
  const auto time = environment.verb == Verb::add ? kAddTime : kOtherTime;
  const auto data_dir = node.data_dir;
  // Shared, because the undoing of an ADD may come after the verb has returned.
  const auto context = std::make_shared<Context>(Context{.environment = std::move(environment),
                                                         .network = std::move(network),
                                                         .version = version,
                                                         .node = std::move(node),
                                                         .roots = {},
                                                         .store = RecordStore{data_dir},
                                                         .log = log,
                                                         .deadline = Deadline{time}});
  auto outcome = dispatch(*context);
  if (outcome.undo) {
    outcome.undo = [context, undo = std::move(outcome.undo)] { undo(); };
  }
  return outcome;
}

Outcome answer_error(const Error& error, const std::string& cni_version, Log& log) {
  log.error(error.what(), {{"code", std::to_string(error.code())}, {"details", error.details()}});
  return {.text = print_error(error, cni_version), .status = 1, .undo = {}};
}

}  // namespace

Outcome run(const Invocation& invocation, Log& log) {
  const auto start = std::chrono::steady_clock::now();
  Call state;
  Outcome outcome;
  try {
    outcome = call(invocation, log, state);
  } catch (const Error& error) {
    outcome = answer_error(error, state.cni_version, log);
  } catch (const netlink::Error& error) {
    outcome = answer_error(Error(Code::io_failure, error.what(), error.kernel_sentence()), state.cni_version, log);
  } catch (const std::exception& error) {
    outcome = answer_error(Error(Code::internal, error.what()), state.cni_version, log);
  }
  const auto time = std::chrono::duration_cast<std::chrono::microseconds>(std::chrono::steady_clock::now() - start);
  log.info(outcome.status == 0 ? "done" : "failed", {{"ms", fmt::format("{:.1f}", static_cast<double>(time.count()) / 1000.0)}});
  return outcome;
}

std::string about() {
  return fmt::format(
      "fabric-nic is a CNI plugin: a container runtime runs it with CNI_COMMAND and a network configuration on stdin.\n"
      "CNI protocol versions supported: {}\n",
      fmt::join(kVersions, ", "));
}

netlink::NetNs open_pod_net_ns(const Context& context, const netlink::NetNs& host) {
  const auto& path = context.environment.net_ns;
  try {
    auto pod = netlink::NetNs::open(path);
    if (pod.is_same_as(host)) {
      throw Error(
          Code::invalid_net_ns, fmt::format("CNI_NETNS '{}' is the network namespace that the plugin itself runs in", path),
          "It has to be the pod's. CNI_NETNS_OVERRIDE does not help: this plugin moves a device, and there would be nowhere to move it.");
    }
    return pod;
  } catch (const netlink::Error& error) {
    throw Error(Code::invalid_net_ns, fmt::format("CNI_NETNS '{}' is no network namespace: {}", path, error.what()));
  }
}

Owner owner_of(const Context& context) {
  Owner owner{.network = context.network.name,
              .container_id = context.environment.container_id,
              .interface_name = context.environment.interface_name,
              .pod = {},
              .net_ns_path = context.environment.net_ns,
              .net_ns_cookie = 0,
              .since = {}};
  try {
    const auto args = parse_cni_args(context.environment.args);
    const auto name = args.find("K8S_POD_NAME");
    const auto space = args.find("K8S_POD_NAMESPACE");
    if (name != args.end() && space != args.end() && !name->second.empty()) {
      owner.pod = space->second + '/' + name->second;
    }
  } catch (const Error&) {
    owner.pod.clear();  // only for messages
  }
  return owner;
}

}  // namespace cni
