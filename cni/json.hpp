#pragma once

// Without JSON_NO_IO the library brings iostream into the static binary: 1 MB for nothing.
#define JSON_NO_IO 1
#include <nlohmann/json.hpp>

namespace cni {

using Json = nlohmann::json;
using OrderedJson = nlohmann::ordered_json;

}  // namespace cni
