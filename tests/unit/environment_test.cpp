#include "cni/environment.hpp"

#include "cni/error.hpp"
#include "support/catch.hpp"

using cni::Verb;
using Variables = std::map<std::string, std::string>;

namespace {

Variables add_variables() {
  return {{"CNI_COMMAND", "ADD"}, {"CNI_CONTAINERID", "c0ffee"},  {"CNI_NETNS", "/run/netns/pod"},
          {"CNI_IFNAME", "net1"}, {"CNI_ARGS", "K8S_POD_NAME=p"}, {"CNI_PATH", "/opt/cni/bin"}};
}

Variables with(const std::string& name, const std::string& value) {
  auto variables = add_variables();
  variables[name] = value;
  return variables;
}

std::string refusal_of(const Variables& variables) {
  try {
    static_cast<void>(cni::read_environment(variables));
  } catch (const cni::Error& error) {
    CHECK(error.code() == 4);
    return error.what();
  }
  return {};
}

}  // namespace

TEST_CASE("the variables of ADD are read") {
  const auto environment = cni::read_environment(add_variables());
  CHECK(environment.command == "ADD");
  CHECK(environment.verb == Verb::add);
  CHECK(environment.container_id == "c0ffee");
  CHECK(environment.net_ns == "/run/netns/pod");
  CHECK(environment.interface_name == "net1");
  CHECK(environment.args == "K8S_POD_NAME=p");
  CHECK(environment.path == "/opt/cni/bin");
}

TEST_CASE("what is missing is said together, in the order of the specification's library") {
  const std::map<std::string, std::string> missing{
      {"ADD", "CNI_CONTAINERID,CNI_NETNS,CNI_IFNAME,CNI_PATH"},
      {"CHECK", "CNI_CONTAINERID,CNI_NETNS,CNI_IFNAME,CNI_PATH"},
      {"DEL", "CNI_CONTAINERID,CNI_IFNAME,CNI_PATH"},
      {"GC", "CNI_PATH"},
      {"STATUS", "CNI_PATH"},
  };
  for (const auto& [command, names] : missing) {
    CHECK(refusal_of({{"CNI_COMMAND", command}}) == "required env variables [" + names + "] missing");
  }
}

TEST_CASE("an empty variable is a missing one") {
  CHECK(refusal_of({}) == "required env variables [CNI_COMMAND] missing");
  CHECK(refusal_of(with("CNI_COMMAND", "")) == "required env variables [CNI_COMMAND] missing");
  CHECK(refusal_of(with("CNI_NETNS", "")) == "required env variables [CNI_NETNS] missing");
  CHECK(refusal_of(with("CNI_CONTAINERID", "")) == "required env variables [CNI_CONTAINERID] missing");
}

TEST_CASE("each verb gets by with what it needs") {
  auto variables = with("CNI_COMMAND", "DEL");
  variables.erase("CNI_NETNS");
  variables.erase("CNI_ARGS");
  CHECK(cni::read_environment(variables).verb == Verb::del);
  CHECK(cni::read_environment({{"CNI_COMMAND", "VERSION"}}).verb == Verb::version);
  CHECK(cni::read_environment({{"CNI_COMMAND", "GC"}, {"CNI_PATH", "/bin"}}).verb == Verb::gc);
  CHECK(cni::read_environment({{"CNI_COMMAND", "STATUS"}, {"CNI_PATH", "/bin"}}).verb == Verb::status);
}

TEST_CASE("an unknown command is handed on, whatever else is missing") {
  for (const auto* command : {"add", "FROB", "ADD ", "VERSIONS"}) {
    const auto environment = cni::read_environment({{"CNI_COMMAND", command}});
    CHECK(environment.command == command);
    CHECK_FALSE(environment.verb);
  }
}

TEST_CASE("a malformed container id is refused before anything missing is") {
  auto variables = with("CNI_CONTAINERID", "../../etc/passwd");
  variables.erase("CNI_NETNS");
  const auto message = refusal_of(variables);
  CHECK(message.contains("CNI_CONTAINERID"));
  CHECK(message.contains("'../../etc/passwd'"));
}

TEST_CASE("a malformed interface name is refused before anything missing is") {
  auto variables = with("CNI_IFNAME", "pci-0000-27-00-2");
  variables.erase("CNI_PATH");
  const auto message = refusal_of(variables);
  CHECK(message.contains("CNI_IFNAME"));
  CHECK(message.contains("'pci-0000-27-00-2' (16 bytes)"));
}

TEST_CASE("a malformed container id comes before a malformed interface name") {
  auto variables = with("CNI_CONTAINERID", "/");
  variables["CNI_IFNAME"] = "/";
  CHECK(refusal_of(variables).contains("CNI_CONTAINERID"));
}

TEST_CASE("a long value is shortened in the message") {
  CHECK(refusal_of(with("CNI_CONTAINERID", std::string(std::size_t{1} << 20U, '/'))).size() < 300);
}

TEST_CASE("a verb that concerns no interface does not judge its variables") {
  CHECK(cni::read_environment({{"CNI_COMMAND", "GC"}, {"CNI_PATH", "/bin"}, {"CNI_CONTAINERID", "../"}}).verb == Verb::gc);
}

TEST_CASE("identifiers are letters, digits, dots, dashes and underscores after a letter or digit") {
  for (const auto* text : {"a", "0", "net-1.example_com", "Z9", "a..b"}) {
    CAPTURE(text);
    CHECK(cni::is_identifier(text));
  }
  for (const auto& text : {std::string{}, std::string{"-a"}, std::string{".a"}, std::string{"_a"}, std::string{"a/b"}, std::string{"../a"},
                           std::string{"a b"}, std::string{"a\n"}, std::string{"a\0b", 3}, std::string{"\xc3\xa4"}}) {
    CAPTURE(text);
    CHECK_FALSE(cni::is_identifier(text));
  }
}

TEST_CASE("interface names are what the kernel takes") {
  for (const auto* text : {"net1", "a", "fifteen-bytes-x", "...", "eth0.100", "b@r", "\xc3\xa4"}) {
    CAPTURE(text);
    CHECK(cni::is_interface_name(text));
  }
  // \xa0 ends the UTF-8 of an a with grave accent, and is a blank to the kernel.
  for (const auto* text : {"", ".", "..", "all", "default", "a/b", "a:b", "a b", "a\tb", "a\n", "a\v", "a\f", "a\r", "sixteen-bytes-xy",
                           "net%d", "\xc3\xa0"}) {
    CAPTURE(text);
    CHECK_FALSE(cni::is_interface_name(text));
  }
}

TEST_CASE("CNI_ARGS are pairs, and the last of repeated keys counts") {
  CHECK(cni::parse_cni_args("").empty());
  const auto args = cni::parse_cni_args("IgnoreUnknown=true;K8S_POD_NAME=a;MAC=;K8S_POD_NAME=b;X=y=z;IgnoreUnknown=1");
  CHECK(args == std::map<std::string, std::string>{{"IgnoreUnknown", "1"}, {"K8S_POD_NAME", "b"}, {"MAC", ""}, {"X", "y=z"}});
}

TEST_CASE("a part of CNI_ARGS without '=' is refused with what was seen") {
  for (const auto* text : {"A=b;nonsense", "nonsense", "A=b;;C=d"}) {
    try {
      static_cast<void>(cni::parse_cni_args(text));
      FAIL("accepted " << text);
    } catch (const cni::Error& error) {
      CHECK(error.code() == 4);
      CHECK(std::string{error.what()}.starts_with("CNI_ARGS must be"));
    }
  }
}
