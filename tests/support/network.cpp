#include "support/network.hpp"

#include <linux/bpf.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdint>
#include <cstring>
#include <sstream>

#include "netlink/unique_fd.hpp"
#include "support/catch.hpp"
#include "support/process.hpp"

namespace support {
namespace {

std::string in(const std::string& net_ns) {
  return net_ns.empty() ? "" : "-n " + net_ns + " ";
}

std::string inside(const std::string& net_ns) {
  return net_ns.empty() ? "" : "ip netns exec " + net_ns + " ";
}

/// Without a shell, which would double the time; no word may have a blank in it.
Ending ip(const std::string& words) {
  Program program{.arguments = {"ip"}, .input = {}};
  std::istringstream stream(words);
  for (std::string word; stream >> word;) {
    program.arguments.push_back(word);
  }
  return run(program);
}

void add_link_attributes(Snapshot& snapshot, const Json& link) {
  for (const char* name : {"ifname", "ifalias", "mtu", "address", "txqlen", "xdp"}) {
    snapshot[name] = link.value(name, Json{}).dump();
  }
  std::vector<std::string> altnames = link.value("altnames", std::vector<std::string>{});
  std::ranges::sort(altnames);
  snapshot["altnames"] = Json(altnames).dump();
  for (const char* flag : {"UP", "PROMISC", "ALLMULTI", "MULTICAST", "NOARP"}) {
    snapshot[flag] = has_flag(link, flag) ? "on" : "off";
  }
}

void add_routes(Snapshot& snapshot, const std::string& interface, const std::string& net_ns) {
  for (const char* family : {"-4", "-6"}) {
    for (Json route : ip_json(in(net_ns) + family + " route show table all dev " + interface)) {
      if (route.value("protocol", "") != "kernel") {
        route.erase("flags");  // `linkdown` comes and goes with the peer
        snapshot["route " + route.dump()] = "there";
      }
    }
  }
}

void add_sysctls(Snapshot& snapshot, const std::string& interface, const std::string& net_ns) {
  std::string directories;
  for (const char* directory : {"ipv4/conf/", "ipv6/conf/", "ipv4/neigh/", "ipv6/neigh/"}) {
    directories += std::string(" ./") + directory + interface;
  }
  // -s because an unset stable_secret cannot be read.
  std::istringstream lines(sh(inside(net_ns) + "bash -c 'cd /proc/sys/net && grep -rs \"\"" + directories + " || true'"));
  for (std::string line; std::getline(lines, line);) {
    const auto colon = line.find(':');
    std::string name = line.substr(2, colon - 2);
    name.replace(name.find("/" + interface + "/"), interface.size() + 2, "/IFNAME/");
    snapshot[name] = line.substr(colon + 1);
  }
}

int bpf(int command, bpf_attr& attributes) {
  return static_cast<int>(::syscall(SYS_bpf, command, &attributes, sizeof attributes));
}

template <typename Pointer>
std::uint64_t address_of(Pointer pointer) {
  return reinterpret_cast<std::uint64_t>(pointer);
}

}  // namespace

Json ip_json(const std::string& command) {
  const Ending ending = ip("-j " + command);
  INFO("ip -j " << command << "\n" << ending.err);
  REQUIRE(ending.status == 0);
  return ending.out.empty() ? Json::array() : Json::parse(ending.out);
}

Json show_link(const std::string& interface, const std::string& net_ns) {
  const Json links = ip_json(in(net_ns) + "-d link show dev " + interface);
  REQUIRE(links.size() == 1);
  return links[0];
}

bool has_link(const std::string& interface, const std::string& net_ns) {
  return ip(in(net_ns) + "link show dev " + interface).status == 0;
}

std::vector<std::string> link_names(const std::string& net_ns) {
  std::vector<std::string> names;
  for (const Json& link : ip_json(in(net_ns) + "link show")) {
    if (link["ifname"] != "lo") {
      names.push_back(link["ifname"]);
    }
  }
  std::ranges::sort(names);
  return names;
}

std::vector<std::string> addresses(const std::string& interface, const std::string& net_ns) {
  std::vector<std::string> result;
  for (const Json& entry : ip_json(in(net_ns) + "addr show dev " + interface)) {
    for (const Json& address : entry["addr_info"]) {
      if (address["scope"] != "link") {
        result.push_back(address["local"].get<std::string>() + "/" + address["prefixlen"].dump());
      }
    }
  }
  std::ranges::sort(result);
  return result;
}

std::string sysctl(const std::string& path, const std::string& net_ns) {
  std::string value = sh(inside(net_ns) + "cat /proc/sys/" + path);
  while (value.ends_with('\n')) {
    value.pop_back();
  }
  return value;
}

bool has_flag(const Json& link, const std::string& flag) {
  const Json flags = link.at("flags");
  return std::ranges::find(flags, Json(flag)) != flags.end();
}

Snapshot snapshot(const std::string& interface, const std::string& net_ns) {
  Snapshot result;
  const Json shown = show_link(interface, net_ns);
  add_link_attributes(result, shown);
  const std::string name = shown["ifname"];
  for (const std::string& address : addresses(name, net_ns)) {
    result["address " + address] = "there";
  }
  add_routes(result, name, net_ns);
  add_sysctls(result, name, net_ns);
  return result;
}

std::string changes(const Snapshot& before, const Snapshot& after) {
  std::string result;
  Snapshot names = before;
  names.insert(after.begin(), after.end());
  for (const auto& [name, unused] : names) {
    const auto old_value = before.find(name);
    const auto new_value = after.find(name);
    const std::string from = old_value == before.end() ? "(absent)" : old_value->second;
    const std::string to = new_value == after.end() ? "(absent)" : new_value->second;
    if (from != to) {
      result += name + ": " + from + " -> " + to + "\n";
    }
  }
  return result;
}

void pin_xdp_program(const std::string& name) {
  sh("mkdir -p /run/bpf && (mountpoint -q /run/bpf || mount -t bpf bpf /run/bpf)");
  constexpr std::array<bpf_insn, 2> kPass{
      bpf_insn{.code = BPF_ALU64 | BPF_MOV | BPF_K, .dst_reg = 0, .src_reg = 0, .off = 0, .imm = XDP_PASS},
      bpf_insn{.code = BPF_JMP | BPF_EXIT, .dst_reg = 0, .src_reg = 0, .off = 0, .imm = 0}};
  bpf_attr load{};
  load.prog_type = BPF_PROG_TYPE_XDP;
  load.insns = address_of(kPass.data());
  load.insn_cnt = kPass.size();
  load.license = address_of("Apache-2.0");
  const netlink::UniqueFd program{bpf(BPF_PROG_LOAD, load)};
  INFO("bpf: " << std::strerror(errno));
  REQUIRE(program.is_open());
  const std::string path = "/run/bpf/" + name;
  bpf_attr pin{};
  pin.pathname = address_of(path.c_str());
  pin.bpf_fd = static_cast<std::uint32_t>(program.get());
  REQUIRE(bpf(BPF_OBJ_PIN, pin) == 0);
}

}  // namespace support
