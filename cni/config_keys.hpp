#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "cni/error.hpp"
#include "cni/json.hpp"

namespace cni {

/// Value::member, but an empty string counts as absent too: `"mac": ""` is a common way to say no MAC.
[[nodiscard]] std::optional<Value> given(const Value& object, std::string_view key);

/// Throws Error `code` for the first member of `object` that is none of `known`.
void refuse_unknown_members(const Value& object, std::span<const std::string_view> known, Code code);

/// Throws Error 2 when `key` is given: this release does not do what it asks for, and `reason` says so.
void refuse_given(const Value& object, std::string_view key, std::string_view reason);

/// Looks at every key at the top level of a configuration. Throws Error 2 for one that is unknown, or asks for what this release does not
/// do. Gives a note for each that is accepted without meaning.
[[nodiscard]] std::vector<std::string> judge_keys(const Value& config);

}  // namespace cni
