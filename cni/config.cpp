#include "cni/config.hpp"

#include <fmt/format.h>

#include <utility>

#include "cni/config_keys.hpp"
#include "cni/error.hpp"
#include "cni/json.hpp"
#include "cni/text_keys.hpp"

// What every verb reads. All but the name and the version is read leniently: a wrong value is no reason to fail a DEL.

namespace cni {

namespace {

constexpr TextKey kLogFile{"logFile", [](std::string_view path) { return !path.empty(); }, "the path of a file"};

constexpr TextKey kRdma{"rdma", [](std::string_view word) { return parse_rdma_request(word).has_value(); }, ""};

Json parse_configuration(std::string_view text) {
  Json json;
  try {
    json = parse_json(text);
  } catch (const Error& error) {
    throw Error(error.code(), fmt::format("the configuration on stdin is not valid JSON: {}", error.what()), error.details());
  }
  if (!json.is_object()) {
    throw Error(Code::decode_failure, fmt::format("the configuration on stdin is of type {}, an object was wanted", json.type_name()));
  }
  return json;
}

const Json& member_or_null(const Json& object, std::string_view key) {
  static const Json null;
  const auto* const found = find_member(object, key);
  return found == nullptr ? null : *found;
}

std::optional<std::string> readable(const Json& object, const TextKey& key) {
  const auto& json = member_or_null(object, key.name);
  if (!json.is_string() || !key.accepts(json.get_ref<const std::string&>())) {
    return std::nullopt;
  }
  return json.get<std::string>();
}

Selectors readable_selectors(const Json& config) {
  Selectors selectors{.runtime_device_id = readable(member_or_null(config, "runtimeConfig"), kDeviceId),
                      .device_id = readable(config, kDeviceId),
                      .device = readable(config, kDevice),
                      .hwaddr = {},
                      .kernel_path = readable(config, kKernelPath),
                      .rdma_device = readable(config, kRdmaDevice)};
  if (!selectors.device_id) {
    selectors.device_id = readable(config, kPciBusId);
  }
  if (const auto hwaddr = readable(config, kHwaddr)) {
    selectors.hwaddr = parse_unicast(*hwaddr);
  }
  return selectors;
}

std::string read_cni_version(const Json& config) {
  const auto& json = member_or_null(config, "cniVersion");
  if (!json.is_null() && !json.is_string()) {
    throw Error(Code::decode_failure, fmt::format("'cniVersion' is {:.80}, a string such as \"1.1.0\" was wanted", json.dump()));
  }
  return json.is_null() ? std::string{} : json.get<std::string>();
}

std::string read_name(const Json& config) {
  const auto name = given(Value{config, ""}, "name");
  if (!name) {
    throw Error(Code::invalid_configuration, "missing network name: the configuration has no 'name'");
  }
  if (!is_identifier(name->text())) {
    name->refuse("a letter or digit, then letters, digits, '_', '.' and '-',");
  }
  return name->text();
}

LogLevel readable_log_level(const Json& config) {
  if (member_or_null(member_or_null(member_or_null(config, "args"), "cni"), "debug") == true) {
    return LogLevel::debug;
  }
  const auto& json = member_or_null(config, "logLevel");
  return json.is_string() ? parse_log_level(json.get_ref<const std::string&>()).value_or(LogLevel::info) : LogLevel::info;
}

}  // namespace

NetworkConfig read_network_config(std::string text) {
  const auto json = parse_configuration(text);
  NetworkConfig network{.cni_version = read_cni_version(json),
                        .name = read_name(json),
                        .ipam_type = readable(member_or_null(json, "ipam"), kIpamType).value_or(""),
                        .selectors = readable_selectors(json),
                        .prev_result = {},
                        .raw = {},
                        .log_file = readable(json, kLogFile),
                        .log_level = readable_log_level(json),
                        .rdma = parse_rdma_request(readable(json, kRdma).value_or("auto")).value()};
  if (const auto& prev_result = member_or_null(json, "prevResult"); prev_result.is_object()) {
    network.prev_result = prev_result.dump();
  }
  network.raw = std::move(text);
  return network;
}

}  // namespace cni
