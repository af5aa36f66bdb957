#include "cni/error.hpp"

#include "cni/json.hpp"
#include "support/catch.hpp"

using cni::Code;
using cni::Error;

TEST_CASE("an error is printed as the specification's object, in its order") {
  CHECK(cni::print_error(Error(Code::try_again_later, "device 'ens1' is taken", "try again"), "1.0.0") == R"({
    "cniVersion": "1.0.0",
    "code": 11,
    "msg": "device 'ens1' is taken",
    "details": "try again"
}
)");
}

TEST_CASE("details and version are left out of an error that has none") {
  CHECK(cni::print_error(Error(Code::decode_failure, "x"), "") == "{\n    \"code\": 6,\n    \"msg\": \"x\"\n}\n");
}

TEST_CASE("an IPAM plugin's own code passes through an error") {
  CHECK(Error(1234, "x").code() == 1234);
  CHECK(cni::parse_json(cni::print_error(Error(1234, "x"), "1.1.0")).at("code") == 1234);
}

TEST_CASE("the codes are the specification's") {
  CHECK(Error(Code::incompatible_version, "").code() == 1);
  CHECK(Error(Code::invalid_configuration, "").code() == 7);
  CHECK(Error(Code::plugin_not_available, "").code() == 50);
  CHECK(Error(Code::device_cannot_be_taken, "").code() == 100);
  CHECK(Error(Code::internal, "").code() == 999);
}

TEST_CASE("an error that quotes bytes which are no UTF-8 is still printed as JSON") {
  const auto json = cni::parse_json(cni::print_error(Error(Code::internal, "a\xff\xfe\"\n", std::string("b\0c\xc3", 4)), "\x80"));
  CHECK(json.at("msg") == "a\uFFFD\uFFFD\"\n");
  CHECK(json.at("details") == std::string("b\0c\uFFFD", 6));
  CHECK(json.at("cniVersion") == "\uFFFD");
}
