// Calls the candidates in turn on NICs of their own, and prints what they cost: bench FABRIC-NIC DIRECTORY-OF-DEBIAN'S-PLUGINS
// `run` makes the place for it: the NICs rail0 to rail3, the namespace /run/netns/pod, and the programs /run/minimal and /run/empty.
// Everything runs at real-time priority where that is allowed, so that other programs of the machine count for little.
#include <fcntl.h>
#include <linux/ethtool.h>
#include <linux/sockios.h>
#include <net/if.h>
#include <sched.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/utsname.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <functional>
#include <iterator>
#include <random>
#include <span>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "call.hpp"

namespace {

constexpr std::size_t kRounds = 30;
constexpr std::size_t kStarts = 200;
// What the kernel still has to do after a call is not to slow down the next one.
constexpr std::chrono::milliseconds kPause{15};
constexpr int kHostMtu = 1500;
constexpr int kPodMtu = 9000;

// --- The candidates -----

/// What a verb comes to, after `previous` was answered.
using Program = std::function<Command(const std::string& verb, const std::string& previous)>;

struct Candidate {
  std::string name;
  std::string nic;
  std::vector<Program> chain;
  int pod_mtu = kPodMtu;
  bool watched = false;
  std::vector<Cost> adds = {};
  std::vector<Cost> dels = {};
  MoveSize add_size = {};
  MoveSize del_size = {};
};

Program plugin(const std::string& directory, const std::string& type, const std::string& keys) {
  return [=](const std::string& verb, const std::string& previous) {
    return Command{.words = {directory + "/" + type},
                   .environment = {"CNI_COMMAND=" + verb, "CNI_CONTAINERID=0123456789abcdef", "CNI_NETNS=/run/netns/pod", "CNI_IFNAME=net1",
                                   "CNI_PATH=" + directory, "CNI_ARGS=IgnoreUnknown=true;K8S_POD_NAMESPACE=default;K8S_POD_NAME=pod"},
                   .input = R"({"cniVersion": "1.0.0", "name": "fabric", "type": ")" + type + "\"" + keys +
                            (previous.empty() ? "" : R"(, "prevResult": )" + previous) + "}"};
  };
}

Program minimal(const std::string& nic) {
  return [=](const std::string& verb, const std::string&) {
    const std::string pod = "/run/netns/pod";
    const std::string host = "/proc/self/ns/net";
    return verb == "ADD" ? Command{{"/run/minimal", host, nic, pod, "net1", std::to_string(kPodMtu)}, {}, {}}
                         : Command{{"/run/minimal", pod, "net1", host, nic, std::to_string(kHostMtu)}, {}, {}};
  };
}

void add(Cost& sum, const Cost& cost) {
  sum.wall += cost.wall;
  sum.moving += cost.moving;
  sum.held += cost.held;
  sum.processor += cost.processor;
  sum.peak_memory = std::max(sum.peak_memory, cost.peak_memory);
  sum.output = cost.output;
}

/// What a socket sees, in the namespace in which it was opened.
class Namespace {
 public:
  explicit Namespace(const char* path) {
    const int origin = check(::open("/proc/self/ns/net", O_RDONLY | O_CLOEXEC), "/proc/self/ns/net");
    const int destination = check(::open(path, O_RDONLY | O_CLOEXEC), path);
    check(::setns(destination, CLONE_NEWNET), path);
    socket_ = check(::socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0), "socket");
    check(::setns(origin, CLONE_NEWNET), "setns");
    ::close(origin);
    ::close(destination);
  }

  void require(const std::string& nic, int mtu) const {
    auto request = interface(nic);
    check(::ioctl(socket_, SIOCGIFMTU, &request), nic);
    if (request.ifr_mtu != mtu) {
      throw std::runtime_error(nic + " has MTU " + std::to_string(request.ifr_mtu) + " instead of " + std::to_string(mtu));
    }
  }

  void set_up(const std::string& nic) const {
    auto request = interface(nic);
    check(::ioctl(socket_, SIOCGIFFLAGS, &request), nic);
    request.ifr_flags = static_cast<short>(request.ifr_flags | IFF_UP);
    check(::ioctl(socket_, SIOCSIFFLAGS, &request), nic);
    // Asked for its link state, the kernel does at once what it would do when it is next asked for anything else.
    ethtool_value link{.cmd = ETHTOOL_GLINK, .data = 0};
    request.ifr_data = reinterpret_cast<char*>(&link);
    check(::ioctl(socket_, SIOCETHTOOL, &request), nic);
  }

 private:
  static ifreq interface(const std::string& name) {
    ifreq request{};
    name.copy(request.ifr_name, IFNAMSIZ - 1);
    return request;
  }

  int socket_ = -1;
};

/// One ADD and its DEL.
void attach_and_detach(Candidate& candidate, const Namespace& host, const Namespace& pod) {
  Cost cost;
  std::this_thread::sleep_for(kPause);
  for (const auto& program : candidate.chain) {
    add(cost, call(program("ADD", cost.output), candidate.watched ? &candidate.add_size : nullptr));
  }
  pod.require("net1", candidate.pod_mtu);
  candidate.adds.push_back(cost);
  const auto result = cost.output;
  cost = {};
  std::this_thread::sleep_for(kPause);
  for (auto program = candidate.chain.rbegin(); program != candidate.chain.rend(); ++program) {
    add(cost, call((*program)("DEL", result), candidate.watched ? &candidate.del_size : nullptr));
  }
  host.require(candidate.nic, kHostMtu);
  candidate.dels.push_back(cost);
  host.set_up(candidate.nic);  // host-device leaves it down
}

// --- The report ---------

using Reading = std::function<double(const Cost&)>;
const Reading kWall = [](const Cost& cost) { return cost.wall; };
const Reading kOutsideMove = [](const Cost& cost) { return cost.wall - cost.moving - cost.held; };
const Reading kProcessor = [](const Cost& cost) { return cost.processor; };

struct Spread {
  double middle = 0;
  std::string quartiles;
};

Spread spread(const std::vector<Cost>& costs, const Reading& reading) {
  std::vector<double> values;
  std::ranges::transform(costs, std::back_inserter(values), reading);
  std::ranges::sort(values);
  const auto last = values.size() - 1;
  std::array<char, 40> quartiles{};
  std::snprintf(quartiles.data(), quartiles.size(), "%.2f-%.2f", values[last / 4], values[last - last / 4]);
  return {(values[last / 2] + values[last - last / 2]) / 2, quartiles.data()};
}

bool print_limit(const char* what, double value, double most, const char* unit, const std::string& remark = {}) {
  const bool holds = value <= most;
  std::printf("  %-46s %6.2f   limit %g %s: %s%s\n", what, value, most, unit, holds ? "ok" : "EXCEEDED", remark.c_str());
  return holds;
}

/// What an empty program takes, to start and to end, is not the plugin's.
bool print_own_time(const char* verb, const std::vector<Cost>& plugin, const std::vector<Cost>& minimal, double empty) {
  const auto time = spread(plugin, kOutsideMove);
  std::array<char, 160> remark{};
  std::snprintf(remark.data(), remark.size(), "  (with an empty program's: %.2f, quartiles %s; the minimal program %.2f)", time.middle,
                time.quartiles.c_str(), spread(minimal, kOutsideMove).middle);
  return print_limit((std::string{"own time of "} + verb + ", ms").c_str(), time.middle - empty, 2, "ms", remark.data());
}

void print_comparison(const char* verb, std::span<const Candidate> candidates, std::vector<Cost> Candidate::* costs) {
  std::printf("\n%-4s %-24s %8s %17s %14s %18s\n", verb, "", "wall, ms", "quartiles", "processor, ms", "fabric-nic takes");
  const auto first = spread(candidates.front().*costs, kWall).middle;
  for (const auto& candidate : candidates) {
    const auto time = spread(candidate.*costs, kWall);
    std::printf("  %-26s %8.2f %17s %14.2f %11.2f times\n", candidate.name.c_str(), time.middle, time.quartiles.c_str(),
                spread(candidate.*costs, kProcessor).middle, first / time.middle);
  }
}

void print_place() {
  utsname system{};
  ::uname(&system);
  std::array<double, 3> load{};
  ::getloadavg(load.data(), 3);
  cpu_set_t processor;
  CPU_ZERO(&processor);
  CPU_SET(static_cast<std::size_t>(::sched_getcpu()), &processor);
  ::sched_setaffinity(0, sizeof processor, &processor);
  const sched_param priority{.sched_priority = 50};
  const bool is_real_time = ::sched_setscheduler(0, SCHED_FIFO, &priority) == 0;
  std::printf("Linux %s, %ld processors, load %.1f, at %s priority\n", system.release, ::sysconf(_SC_NPROCESSORS_ONLN), load[0],
              is_real_time ? "real-time" : "normal");
}

using Random = std::mt19937;

/// The first two are what the limits are about, watched; the others are compared with the third.
std::vector<Candidate> candidates(const Program& fabric_nic, const std::string& peers) {
  const auto host_device = [&](const char* nic) { return plugin(peers, "host-device", std::string{R"(, "device": ")"} + nic + '"'); };
  return {
      {.name = "fabric-nic", .nic = "rail0", .chain = {fabric_nic}, .watched = true},
      {.name = "minimal program", .nic = "rail1", .chain = {minimal("rail1")}, .watched = true},
      {.name = "fabric-nic", .nic = "rail0", .chain = {fabric_nic}},
      {.name = "minimal program", .nic = "rail1", .chain = {minimal("rail1")}},
      {.name = "host-device (sets no MTU)", .nic = "rail2", .chain = {host_device("rail2")}, .pod_mtu = kHostMtu},
      {.name = "host-device + tuning", .nic = "rail3", .chain = {host_device("rail3"), plugin(peers, "tuning", R"(, "mtu": 9000)")}},
  };
}

void measure(std::vector<Candidate>& all, Random& random) {
  const Namespace host{"/proc/self/ns/net"};
  const Namespace pod{"/run/netns/pod"};
  std::vector<Candidate*> order;
  std::ranges::transform(all, std::back_inserter(order), [](Candidate& candidate) { return &candidate; });
  for (std::size_t round = 0; round <= kRounds; ++round) {
    std::ranges::shuffle(order, random);
    for (auto* candidate : order) {
      attach_and_detach(*candidate, host, pod);
      if (round == 0) {  // makes directories and fills caches
        candidate->adds.clear();
        candidate->dels.clear();
      }
    }
  }
}

struct Start {
  double empty = 0;  ///< what an empty program costs
  double above = 0;  ///< what the program costs more
};

Start measure_start(const Command& program, Random& random) {
  const Command empty{{"/run/empty"}, {}, {}};
  std::array<std::vector<Cost>, 2> costs;
  for (std::size_t count = 0; count < kStarts; ++count) {
    const std::size_t first = random() % 2;
    for (const auto which : {first, 1 - first}) {
      costs[which].push_back(call(which == 0 ? empty : program));
    }
  }
  const auto start = spread(costs[0], kWall).middle;
  return {.empty = start, .above = spread(costs[1], kWall).middle - start};
}

bool report(const std::vector<Candidate>& all, const Start& start, const std::string& path) {
  struct stat binary{};
  check(::stat(path.c_str(), &binary), path);
  const auto& plugin = all[0];
  const auto& least = all[1];
  const auto peak = std::ranges::max(plugin.adds, {}, &Cost::peak_memory).peak_memory;
  std::printf(
      "Medians. An empty static program takes %.2f ms here, to start and to end: own time is what a call takes beyond that and beyond the\n"
      "request that moves the NIC.\n\n",
      start.empty);
  const std::array held{print_own_time("ADD", plugin.adds, least.adds, start.empty),
                        print_own_time("DEL", plugin.dels, least.dels, start.empty),
                        print_limit("VERSION, above an empty program, ms", start.above, 1, "ms"),
                        print_limit("peak memory of ADD, MiB", static_cast<double>(peak) / 1024, 8, "MiB"),
                        print_limit("binary, MiB", static_cast<double>(binary.st_size) / (1 << 20), 4, "MiB")};
  print_comparison("ADD", std::span{all}.subspan(2), &Candidate::adds);
  print_comparison("DEL", std::span{all}.subspan(2), &Candidate::dels);
  return std::ranges::all_of(held, std::identity{});
}

bool bench(const std::string& path, const std::string& peers) {
  print_place();
  const auto slash = path.rfind('/');
  const auto fabric_nic = plugin(path.substr(0, slash), path.substr(slash + 1), R"(, "device": "rail0", "mtu": 9000)");
  auto all = candidates(fabric_nic, peers);
  Random random{std::random_device{}()};
  measure(all, random);
  return report(all, measure_start(fabric_nic("VERSION", {}), random), path);
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 3) {
    std::fprintf(stderr, "usage: %s FABRIC-NIC DIRECTORY-OF-DEBIAN'S-PLUGINS\n", argv[0]);
    return EXIT_FAILURE;
  }
  try {
    return bench(argv[1], argv[2]) ? EXIT_SUCCESS : EXIT_FAILURE;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "bench: %s\n", error.what());
    return EXIT_FAILURE;
  }
}
