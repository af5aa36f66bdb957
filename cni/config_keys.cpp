#include "cni/config_keys.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <iterator>
#include <utility>

namespace cni {

namespace {

constexpr std::size_t kLongestQuote = 80;  // code points of a foreign text in a message

bool is_false(const Value& value) {
  return !value.boolean();
}

bool is_empty_list(const Value& value) {
  return value.elements().empty();
}

enum class Fate {
  used,
  passed,   // for others to read
  ignored,  // accepted and noted
  refused,
};

struct Key {
  std::string_view name;
  Fate fate = Fate::used;
  const char* reason = nullptr;                      // why it is ignored or refused
  bool (*asks_for_nothing)(const Value&) = nullptr;  // such a value is not refused
};

constexpr const char* kNamedOtherwise = "'deviceID', 'device', 'hwaddr', 'kernelpath' or 'rdmaDevice' names the device";
constexpr const char* kDriverTells = "the driver that is bound to the device decides";
constexpr const char* kGuidOfThePod =
    "a GUID is one pod's: it comes as runtimeConfig.infinibandGUID, with the capability 'infinibandGUID', or as args.cni.guid";
constexpr const char* kUseSbr = "the plugin 'sbr' does this, chained after this one";
constexpr const char* kOfTheNode = "only the node's own file /etc/cni/fabric-nic.json may say this";

constexpr auto kKeys = std::to_array<Key>({
    {"deviceID"},
    {"pciBusID"},
    {"device"},
    {"hwaddr"},
    {"kernelpath"},
    {"mtu"},
    {"mac"},
    {"promisc"},
    {"allmulti"},
    {"txQLen"},
    {"sysctl"},
    {"vlan"},
    {"vlanQoS"},
    {"vlanProto"},
    {"spoofchk"},
    {"trust"},
    {"link_state"},
    {"min_tx_rate"},
    {"max_tx_rate"},
    {"pkey"},
    {"ibKubernetesEnabled"},
    {"ipam"},
    {"dns"},
    {"defaultRoute"},
    {"allowInUse"},
    {"rdma"},
    {"rdmaName"},
    {"rdmaDevice"},
    {"wait"},
    {"logLevel"},
    {"logFile"},
    {"args"},
    {"runtimeConfig"},
    {"cniVersion", Fate::passed},
    {"cniVersions", Fate::passed},
    {"name", Fate::passed},
    {"type", Fate::passed},
    {"plugins", Fate::passed},
    {"capabilities", Fate::passed},
    {"prevResult", Fate::passed},
    {"disableCheck", Fate::passed},
    {"disableGC", Fate::passed},
    {"loadOnlyInlinedPlugins", Fate::passed},
    {"resourceName", Fate::ignored, "Multus reads it from an annotation"},
    {"master", Fate::ignored, kNamedOtherwise},
    {"vfid", Fate::ignored, kNamedOtherwise},
    {"vfioPciMode", Fate::ignored, kDriverTells},
    {"dpdkMode", Fate::ignored, kDriverTells},
    {"rdmaIsolation", Fate::refused, "'rdma' takes its place"},
    {"infinibandGUID", Fate::refused, kGuidOfThePod},
    {"guid", Fate::refused, kGuidOfThePod},
    {"require", Fate::refused, "this release does not check facts", is_empty_list},
    {"path", Fate::refused, "this release does not probe the path"},
    {"sourceRouting", Fate::refused, "this release does not route by source", is_false},
    {"table", Fate::refused, kUseSbr},
    {"gateways", Fate::refused, kUseSbr},
    {"addSourceHints", Fate::refused, kUseSbr},
    {"ipMasq", Fate::refused, "this plugin does not masquerade", is_false},
    {"ips", Fate::refused, "addresses come from 'ipam', or as runtimeConfig.ips with the capability 'ips'"},
    {"dataDir", Fate::refused, kOfTheNode},
    {"logDir", Fate::refused, kOfTheNode},
    {"allowedSelectors", Fate::refused, kOfTheNode},
    {"allowedDevices", Fate::refused, kOfTheNode},
});

char lower(char letter) {
  return letter >= 'A' && letter <= 'Z' ? static_cast<char>(letter - 'A' + 'a') : letter;
}

const Key* find_key(std::string_view name) {
  const auto* const found =
      std::ranges::find_if(kKeys, [name](const Key& key) { return std::ranges::equal(key.name, name, {}, lower, lower); });
  return found == kKeys.end() ? nullptr : found;
}

std::string without_case_and_joints(std::string_view word) {
  std::string out;
  std::ranges::copy_if(word, std::back_inserter(out), [](char c) { return c != '_' && c != '-'; });
  std::ranges::transform(out, out.begin(), lower);
  return out;
}

/// How many letters must be added, dropped, replaced, or swapped with their neighbour to turn one word into the other.
std::size_t edit_distance(std::string_view one, std::string_view other) {
  std::vector<std::size_t> before_last;
  std::vector<std::size_t> last;
  while (last.size() <= other.size()) {
    last.push_back(last.size());
  }
  for (std::size_t i = 1; i <= one.size(); ++i) {
    std::vector<std::size_t> row(other.size() + 1, i);
    for (std::size_t j = 1; j <= other.size(); ++j) {
      row[j] = std::min({last[j] + 1, row[j - 1] + 1, last[j - 1] + (one[i - 1] == other[j - 1] ? 0U : 1U)});
      if (i > 1 && j > 1 && one[i - 1] == other[j - 2] && one[i - 2] == other[j - 1]) {
        row[j] = std::min(row[j], before_last[j - 2] + 1);
      }
    }
    before_last = std::exchange(last, std::move(row));
  }
  return last.back();
}

/// The one of `known` that differs from `key` in case, `_` and `-` only, or else by few letters: one in three, at most two.
std::optional<std::string_view> probably_meant(std::string_view key, std::span<const std::string_view> known) {
  constexpr std::size_t kMostEdits = 2;
  const auto word = without_case_and_joints(key);
  std::optional<std::string_view> best;
  std::size_t best_distance = kMostEdits + 1;
  for (const auto name : known) {
    const auto candidate = without_case_and_joints(name);
    if (word.size() > candidate.size() + kMostEdits) {
      continue;
    }
    const auto distance = edit_distance(word, candidate);
    if (distance < best_distance && distance <= candidate.size() / 3) {
      best = name;
      best_distance = distance;
    }
  }
  return best;
}

/// `'wait.carrier' is "5s"`, shortened.
std::string quote(const Value& value) {
  return fmt::format("'{:.{}}' is {:.{}}", value.path(), kLongestQuote, value.json().dump(-1, ' ', false, Json::error_handler_t::replace),
                     kLongestQuote);
}

[[noreturn]] void refuse_unknown(const Value& value, std::string_view key, std::span<const std::string_view> known, Code code) {
  const auto guess = probably_meant(key, known);
  throw Error(code, fmt::format("unknown key: {}{}", quote(value), guess ? fmt::format(", '{}' was probably meant", *guess) : ""),
              "correct the key or remove it; docs/configuration.md lists those there are");
}

[[noreturn]] void refuse(const Value& value, std::string_view reason) {
  throw Error(Code::unsupported_field, fmt::format("unsupported key: {}, but {}", quote(value), reason),
              "remove the key; docs/configuration.md lists what is done");
}

std::optional<std::string> judge(const Value& value, const Key& key) {
  if (key.fate == Fate::ignored) {
    return fmt::format("'{}' is ignored: {}", key.name, key.reason);
  }
  if (key.fate == Fate::refused && (key.asks_for_nothing == nullptr || !key.asks_for_nothing(value))) {
    refuse(value, key.reason);
  }
  return std::nullopt;
}

[[noreturn]] void refuse_unknown_at_top(const Value& value) {
  std::vector<std::string_view> names;
  std::ranges::transform(kKeys, std::back_inserter(names), &Key::name);
  refuse_unknown(value, value.path(), names, Code::unsupported_field);
}

}  // namespace

std::optional<Value> given(const Value& object, std::string_view key) {
  auto value = object.member(key);
  return value && value->json().is_string() && value->text().empty() ? std::nullopt : value;
}

void refuse_unknown_members(const Value& object, std::span<const std::string_view> known, Code code) {
  if (!object.json().is_object()) {
    object.refuse("an object");
  }
  for (const auto& [key, json] : object.json().items()) {
    if (std::ranges::none_of(known, [&key](std::string_view name) { return std::ranges::equal(key, name, {}, lower, lower); })) {
      const auto path = object.path().empty() ? key : fmt::format("{}.{}", object.path(), key);
      refuse_unknown(Value{json, "", path}, key, known, code);
    }
  }
}

void refuse_given(const Value& object, std::string_view key, std::string_view reason) {
  if (const auto value = given(object, key)) {
    refuse(*value, reason);
  }
}

std::vector<std::string> judge_keys(const Value& config) {
  std::vector<std::string> notes;
  for (const auto& [name, json] : config.json().items()) {
    if (name.find_first_of("./") != std::string::npos) {
      continue;
    }
    const auto* const key = find_key(name);
    if (key == nullptr) {
      refuse_unknown_at_top(Value{json, "", name});
    }
    if (&json != find_member(config.json(), key->name)) {
      notes.push_back(fmt::format("'{}' is ignored: the same key is there in another case", name));
      continue;
    }
    if (const auto value = given(config, key->name)) {
      if (auto note = judge(*value, *key)) {
        notes.push_back(*std::move(note));
      }
    }
  }
  return notes;
}

}  // namespace cni
