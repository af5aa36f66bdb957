#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

// Without JSON_NO_IO the library brings iostream into the static binary: 1 MB for nothing.
#define JSON_NO_IO 1
#include <nlohmann/json.hpp>

namespace cni {

using Json = nlohmann::json;
using OrderedJson = nlohmann::ordered_json;

/// The member of `object` called `key`: an exact match first, then one that differs in ASCII case only (Go's decoder does so, and users
/// have such keys). nullptr when there is none, or when `object` is no object.
[[nodiscard]] const Json* find_member(const Json& object, std::string_view key);

/// Reads JSON that nests at most 64 deep and has no key twice in an object. Throws Error 6; its message is short and goes on from a
/// sentence such as `prevResult is not valid JSON: `.
[[nodiscard]] Json parse_json(std::string_view text);

/// The text of an answer: four spaces of indentation and a newline at its end. Bytes that are not UTF-8 become U+FFFD: an error may quote
/// any.
[[nodiscard]] std::string print_json(const OrderedJson& json);

/// A value and the way to it, so that a refusal can say where it was: `prevResult: 'ips[0].interface' is -1, a number from 0 to 2 was
/// wanted`. The accessors throw that as Error 7. The Json must outlive it.
class Value {
 public:
  /// `document` (`prevResult`) begins every message; without one they begin with the path. It must outlive the value.
  Value(const Json& json, std::string_view document, std::string path = {}) : json_(&json), document_(document), path_(std::move(path)) {}

  /// find_member; nothing when it is absent, or null, which Go's decoder does not tell from absent. Throws when this is no object.
  [[nodiscard]] std::optional<Value> member(std::string_view key) const;
  [[nodiscard]] Value required(std::string_view key) const;
  [[nodiscard]] std::vector<Value> elements() const;
  [[nodiscard]] std::string text() const;
  [[nodiscard]] std::uint64_t number(std::uint64_t minimum, std::uint64_t maximum) const;
  [[nodiscard]] bool boolean() const;

  [[nodiscard]] const Json& json() const { return *json_; }
  [[nodiscard]] const std::string& path() const { return path_; }
  [[noreturn]] void refuse(std::string_view wanted) const;

 private:
  [[nodiscard]] std::string prefix() const;
  [[nodiscard]] std::string path_of(std::string_view key) const;

  const Json* json_;
  std::string_view document_;
  std::string path_;
};

}  // namespace cni
