#include "cni/json.hpp"

#include "cni/error.hpp"
#include "support/catch.hpp"

using cni::Json;
using cni::parse_json;
using cni::Value;

namespace {

std::string refusal_of(std::string_view text) {
  try {
    static_cast<void>(parse_json(text));
  } catch (const cni::Error& error) {
    CHECK(error.code() == 6);
    return error.what();
  }
  return {};
}

std::string nested(std::size_t depth) {
  return std::string(depth, '[') + std::string(depth, ']');
}

}  // namespace

TEST_CASE("a member is found exactly first, then whatever its case") {
  const auto json = parse_json(R"({"MTU": 1, "mtu": 2, "PciBusId": 3, "straße": 4})");
  CHECK(*cni::find_member(json, "mtu") == 2);
  CHECK(*cni::find_member(json, "MTU") == 1);
  CHECK(*cni::find_member(json, "Mtu") == 1);
  CHECK(*cni::find_member(json, "pciBusID") == 3);
  CHECK(*cni::find_member(json, "STRAßE") == 4);
  CHECK(cni::find_member(json, "mt") == nullptr);
  CHECK(cni::find_member(json, "") == nullptr);
}

TEST_CASE("what is no object has no members") {
  CHECK(cni::find_member(parse_json("[1]"), "a") == nullptr);
  CHECK(cni::find_member(Json{}, "a") == nullptr);
}

TEST_CASE("nesting is accepted to 64 levels and refused beyond") {
  CHECK(parse_json(nested(64)).is_array());
  CHECK(refusal_of(nested(65)) == "it is nested deeper than 64 levels");
  CHECK(refusal_of(nested(100000)) == "it is nested deeper than 64 levels");
  CHECK(refusal_of(std::string(100000, '[')) == "it is nested deeper than 64 levels");
  std::string objects;
  for (int at = 0; at < 100000; ++at) {
    objects += "{\"a\":";
  }
  CHECK(refusal_of(objects) == "it is nested deeper than 64 levels");
}

TEST_CASE("siblings do not count as nesting, and many of them take no quadratic time") {
  std::string text = "[";
  for (int at = 0; at < 300000; ++at) {
    text += "{},";
  }
  CHECK(parse_json(text + "{}]").size() == 300001);
}

TEST_CASE("a key that is there twice in one object is refused") {
  CHECK(refusal_of(R"({"mtu": 1, "a": {"mtu": 2}, "mtu": 3})") == "key 'mtu' is there twice in one object");
  CHECK(refusal_of(R"({"a": [{"b": 1, "\u0062": 2}]})") == "key 'b' is there twice in one object");
  CHECK(parse_json(R"([{"a": {"a": 1}}, {"a": 1}])").size() == 2);
}

TEST_CASE("text that is no JSON is refused with where and why") {
  CHECK_THAT(refusal_of(""), containing("line 1, column 1") && containing("unexpected end of input"));
  CHECK_THAT(refusal_of("{\n  \"a\": x}"), containing("line 2, column 8") && containing("invalid literal"));
  CHECK_THAT(refusal_of("{\"a\": 1e400}"), containing("number overflow"));
  CHECK_THAT(refusal_of("\"\xff\""), containing("ill-formed UTF-8"));
  CHECK_THAT(refusal_of("{} {}"), containing("expected end of input"));
  for (const auto* const text : {"{", "[1,]", "{\"a\":1,}", "NaN", "'a'", "{a:1}", "// no\n{}", "\"\\ud800\"", "01", "\x01"}) {
    INFO(text);
    CHECK_FALSE(refusal_of(text).empty());
  }
}

TEST_CASE("a refusal quotes no more than a little of a long text") {
  CHECK(refusal_of('"' + std::string(1U << 20U, 'x')).size() < 200);
  const auto key = '"' + std::string(1U << 20U, 'k') + "\":1";
  CHECK(refusal_of('{' + key + ',' + key + '}').size() < 250);
}

TEST_CASE("a value of the wrong kind is refused with its place, what it is and what was wanted") {
  const auto json = parse_json(R"({"list": [1, {"n": "x"}], "f": 1.0, "b": 1})");
  const Value value{json, "prevResult"};
  const auto list = value.required("list");
  CHECK_THROWS_WITH(list.text(), R"(prevResult: 'list' is [1,{"n":"x"}], a string was wanted)");
  CHECK_THROWS_WITH(list.elements().at(1).required("n").number(0, 9), R"(prevResult: 'list[1].n' is "x", a number from 0 to 9 was wanted)");
  CHECK_THROWS_WITH(list.elements().at(0).member("n"), "prevResult: 'list[0]' is 1, an object was wanted");
  CHECK_THROWS_WITH(list.elements().at(0).elements(), "prevResult: 'list[0]' is 1, a list was wanted");
  CHECK_THROWS_WITH(list.elements().at(1).required("m"), "prevResult: 'list[1].m' is missing");
  CHECK_THROWS_WITH(value.required("f").number(0, 9), "prevResult: 'f' is 1.0, a number from 0 to 9 was wanted");
  CHECK_THROWS_WITH(value.required("b").boolean(), "prevResult: 'b' is 1, true or false was wanted");
  CHECK_THROWS_WITH(value.text(), containing("prevResult is {"));
}

TEST_CASE("a value of no named document is refused by its place alone") {
  const auto json = parse_json(R"({"mtu": -1})");
  CHECK_THROWS_WITH((Value{json, ""}.required("mtu").number(68, 65535)), "'mtu' is -1, a number from 68 to 65535 was wanted");
}

TEST_CASE("numbers are accepted up to both limits and not beyond") {
  const auto json = parse_json("[67, 68, 65535, 65536, 18446744073709551615, 18446744073709551616, -1, true]");
  const auto elements = Value{json, ""}.elements();
  CHECK_THROWS_AS(elements.at(0).number(68, 65535), cni::Error);
  CHECK(elements.at(1).number(68, 65535) == 68);
  CHECK(elements.at(2).number(68, 65535) == 65535);
  CHECK_THROWS_AS(elements.at(3).number(68, 65535), cni::Error);
  CHECK(elements.at(4).number(0, UINT64_MAX) == UINT64_MAX);
  CHECK_THROWS_AS(elements.at(5).number(0, UINT64_MAX), cni::Error);
  CHECK_THROWS_AS(elements.at(6).number(0, UINT64_MAX), cni::Error);
  CHECK_THROWS_AS(elements.at(7).number(0, UINT64_MAX), cni::Error);
}

TEST_CASE("null counts as absent") {
  const auto json = parse_json(R"({"a": null, "b": true})");
  const Value value{json, ""};
  CHECK_FALSE(value.member("a"));
  CHECK_THROWS_WITH(value.required("a"), "'a' is missing");
  CHECK(value.required("B").boolean());
}
