#include "cni/json.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "cni/error.hpp"

namespace cni {

namespace {

constexpr std::size_t kMaximumDepth = 64;
constexpr std::size_t kMaximumQuote = 160;  // of a foreign text in a message

char lower(char letter) {
  return letter >= 'A' && letter <= 'Z' ? static_cast<char>(letter - 'A' + 'a') : letter;
}

bool equal_but_for_case(std::string_view one, std::string_view other) {
  return std::ranges::equal(one, other, {}, lower, lower);
}

std::string shortened(std::string text) {
  if (text.size() > kMaximumQuote) {
    text.resize(kMaximumQuote);
    text += "...";
  }
  return text;
}

/// Goes through a text before it becomes values. The library's own parser callback could do this too, but takes quadratic time on an array
/// of many objects.
class Inspection : public nlohmann::json_sax<Json> {
 public:
  bool null() override { return true; }
  bool boolean(bool /*value*/) override { return true; }
  bool number_integer(number_integer_t /*value*/) override { return true; }
  bool number_unsigned(number_unsigned_t /*value*/) override { return true; }
  bool number_float(number_float_t /*value*/, const string_t& /*text*/) override { return true; }
  bool string(string_t& /*value*/) override { return true; }
  bool binary(binary_t& /*value*/) override { return true; }
  bool start_object(std::size_t /*size*/) override { return enter(); }
  bool end_object() override { return leave(); }
  bool start_array(std::size_t /*size*/) override { return enter(); }
  bool end_array() override { return leave(); }

  bool key(string_t& key) override {
    if (!keys_.back().insert(key).second) {
      throw Error(Code::decode_failure, fmt::format("key '{}' is there twice in one object", shortened(key)));
    }
    return true;
  }

  bool parse_error(std::size_t /*position*/, const std::string& /*token*/, const Json::exception& error) override {
    std::string message = error.what();
    message.erase(0, message.find("] ") + 2);  // `[json.exception.parse_error.101] `
    throw Error(Code::decode_failure, shortened(message));
  }

 private:
  bool enter() {
    if (keys_.size() == kMaximumDepth) {
      throw Error(Code::decode_failure, fmt::format("it is nested deeper than {} levels", kMaximumDepth));
    }
    keys_.emplace_back();
    return true;
  }
  bool leave() {
    keys_.pop_back();
    return true;
  }

  std::vector<std::set<std::string>> keys_;  // of the objects (and arrays) around the current place
};

}  // namespace

const Json* find_member(const Json& object, std::string_view key) {
  if (!object.is_object()) {
    return nullptr;
  }
  const auto& members = object.get_ref<const Json::object_t&>();
  auto found = members.find(key);
  if (found == members.end()) {
    found = std::ranges::find_if(members, [key](const auto& member) { return equal_but_for_case(member.first, key); });
  }
  return found == members.end() ? nullptr : &found->second;
}

Json parse_json(std::string_view text) {
  Inspection inspection;
  Json::sax_parse(text, &inspection);
  return Json::parse(text);
}

std::string print_json(const OrderedJson& json) {
  return json.dump(4, ' ', false, OrderedJson::error_handler_t::replace) + '\n';
}

std::optional<Value> Value::member(std::string_view key) const {
  if (!json_->is_object()) {
    refuse("an object");
  }
  const auto* found = find_member(*json_, key);
  if (found == nullptr || found->is_null()) {
    return std::nullopt;
  }
  return Value{*found, document_, path_of(key)};
}

Value Value::required(std::string_view key) const {
  if (auto found = member(key)) {
    return *std::move(found);
  }
  throw Error(Code::invalid_configuration, prefix() + fmt::format("'{}' is missing", path_of(key)));
}

std::vector<Value> Value::elements() const {
  if (!json_->is_array()) {
    refuse("a list");
  }
  std::vector<Value> out;
  for (const auto& element : *json_) {
    out.emplace_back(element, document_, fmt::format("{}[{}]", path_, out.size()));
  }
  return out;
}

std::string Value::text() const {
  if (!json_->is_string()) {
    refuse("a string");
  }
  return json_->get<std::string>();
}

std::uint64_t Value::number(std::uint64_t minimum, std::uint64_t maximum) const {
  const auto value = json_->is_number_unsigned() ? std::optional{json_->get<std::uint64_t>()} : std::nullopt;
  if (!value || *value < minimum || *value > maximum) {
    refuse(fmt::format("a number from {} to {}", minimum, maximum));
  }
  return *value;
}

bool Value::boolean() const {
  if (!json_->is_boolean()) {
    refuse("true or false");
  }
  return json_->get<bool>();
}

void Value::refuse(std::string_view wanted) const {
  const auto seen = shortened(json_->dump(-1, ' ', false, Json::error_handler_t::replace));
  const auto name = path_.empty() ? std::string{document_} : prefix() + '\'' + path_ + '\'';
  throw Error(Code::invalid_configuration, fmt::format("{} is {}, {} was wanted", name, seen, wanted));
}

std::string Value::prefix() const {
  return document_.empty() ? std::string{} : fmt::format("{}: ", document_);
}

std::string Value::path_of(std::string_view key) const {
  return path_.empty() ? std::string{key} : fmt::format("{}.{}", path_, key);
}

}  // namespace cni
