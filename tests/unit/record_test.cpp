#include "cni/record.hpp"

#include <fcntl.h>
#include <linux/if_addr.h>
#include <sys/stat.h>

#include <filesystem>

#include "cni/json.hpp"
#include "netlink/error.hpp"
#include "netlink/files.hpp"
#include "support/catch.hpp"
#include "support/temp_dir.hpp"
#include "unit/thrown.hpp"

using cni::IpamRequest;
using cni::Json;
using cni::parse_record;
using cni::print_record;
using cni::Record;
using cni::RecordStore;
using netlink::HardwareAddress;
using netlink::IpAddress;
using netlink::IpPrefix;

namespace {

netlink::InterfaceAddress full_address() {
  return {.prefix = IpPrefix::parse("192.0.2.2/24").value(),
          .peer = IpAddress::parse("192.0.2.3"),
          .broadcast = IpAddress::parse("192.0.2.255"),
          .scope = 253,
          .flags = IFA_F_PERMANENT | IFA_F_NOPREFIXROUTE,
          .label = "ens3f0:1",
          .metric = 77};
}

netlink::Route full_route() {
  return {.destination = IpPrefix::parse("2001:db8:1::/48").value(),
          .gateway = IpAddress::parse("2001:db8::1"),
          .source = IpAddress::parse("2001:db8::2"),
          .table = 4'000'000'000,
          .priority = 50,
          .scope = 200,
          .protocol = 16,
          .on_link = true,
          .mtu = 1400,
          .advmss = 1340};
}

netlink::VfSettings full_vf_settings() {
  return {.mac = HardwareAddress::parse("02:00:00:00:00:07"),
          .vlan = netlink::VfVlan{.id = 4094, .qos = 7, .protocol = netlink::kProtocol8021ad},
          .rates = netlink::VfRates{.minimum = 10, .maximum = 4'000'000'000},
          .spoof_check = true,
          .trust = false,
          .link_state = netlink::VfLinkState::disable,
          .node_guid = 0x0011223344556677,
          .port_guid = 0xfedcba9876543210};
}

cni::State full_state() {
  cni::State state;
  state.index = 4;
  state.name = "ens3f0";
  state.altnames = {"enp59s0f0", "rail0"};
  state.alias = "the \"left\" rail, größer";
  state.mtu = 1500;
  state.mac = HardwareAddress::parse("80:00:02:08:fe:80:00:00:00:00:00:00:00:02:c9:03:00:11:22:33").value();
  state.up = true;
  state.promisc = true;
  state.allmulti = true;
  state.arp = true;
  state.multicast = false;
  state.tx_queue_length = 1000;
  state.sysctls = {.ipv4 = {0, 1},
                   .ipv6 = {1, -1, 2147483647},
                   .others = {{"net/ipv4/conf/IFNAME/arp_ignore", "1"}, {"net/ipv6/conf/IFNAME/stable_secret", "2001:db8::1"}}};
  state.xdp = {{2, 11}, {1, 4'000'000'000}};
  state.addresses = {full_address()};
  state.routes = {full_route()};
  state.vf = full_vf_settings();
  state.rdma = {{.index = 3, .name = "mlx5_0", .side = cni::Side::host, .is_infiniband = false},
                {.index = 4'000'000'000, .name = "mlx5_1", .side = cni::Side::host, .is_infiniband = true}};
  return state;
}

/// A record in which every field has a value of its own.
Record full_record() {
  Record record;
  record.owner = {.network = "rail-0",
                  .container_id = "c0ffee",
                  .interface_name = "net1",
                  .pod = "default/job-0",
                  .net_ns_path = "/var/run/netns/pod",
                  .net_ns_cookie = 18'000'000'000'000'000'000U,
                  .since = "2026-01-02T03:04:05Z"};
  record.home_cookie = 17;
  record.device.parent = netlink::BusAddress{"pci", "0000:3b:00.2"};
  record.device.permanent_address = HardwareAddress::parse("b8:ce:f6:00:00:01").value();
  record.device.host_index = 4;
  record.device.pod_index = 77;
  record.device.home_index = 78;
  record.device.kind = "veth";
  record.incarnation = {.boot_id = "11111111-2222", .device_inode = 18'000'000'000'000'000'001U, .driver_inode = 19};
  record.before = full_state();
  record.asked_vf = full_vf_settings();
  record.asked_vf.trust = true;
  record.rdma = {.use = cni::RdmaUse::moved,
                 .is_required = true,
                 .is_mtu_required = false,
                 .devices = {{.index = 3, .name = "rail0", .side = cni::Side::pod, .is_infiniband = false}}};
  record.userspace_driver = "vfio-pci";
  record.bound_driver = "mlx5_core";
  record.device_info_file = "/run/k8s.cni.cncf.io/devinfo/cni/x";
  record.ipam = IpamRequest{.type = "host-local",
                            .container_id = "c0ffee-2",
                            .interface_name = "net2",
                            .net_ns_path = "/var/run/netns/other",
                            .args = "K8S_POD_NAME=job-0;A=1",
                            .path = "/opt/cni/bin:/usr/lib/cni",
                            .input = "{\"cniVersion\": \"1.0.0\",\n\t\"name\": \"rail-0\"}"};
  record.completed = true;
  record.result = "{\n    \"cniVersion\": \"1.1.0\"\n}\n";
  return record;
}

/// A device without a parent, of which little is known, and which IPAM has nothing to do with.
Record least_record() {
  Record record;
  record.owner = {
      .network = "n", .container_id = "c", .interface_name = "i", .pod = {}, .net_ns_path = {}, .net_ns_cookie = 1, .since = {}};
  record.device.host_index = 7;
  record.device.pod_index = 7;
  return record;
}

void check_same(const IpamRequest& one, const IpamRequest& other) {
  CHECK(one.type == other.type);
  CHECK(one.container_id == other.container_id);
  CHECK(one.interface_name == other.interface_name);
  CHECK(one.net_ns_path == other.net_ns_path);
  CHECK(one.args == other.args);
  CHECK(one.path == other.path);
  CHECK(one.input == other.input);
}

void check_same(const cni::Owner& one, const cni::Owner& other) {
  CHECK(one.is_same_attachment(other));
  CHECK(one.pod == other.pod);
  CHECK(one.net_ns_path == other.net_ns_path);
  CHECK(one.net_ns_cookie == other.net_ns_cookie);
  CHECK(one.since == other.since);
}

void check_same(const netlink::InterfaceAddress& one, const netlink::InterfaceAddress& other) {
  CHECK(one.prefix == other.prefix);
  CHECK(one.peer == other.peer);
  CHECK(one.broadcast == other.broadcast);
  CHECK(one.scope == other.scope);
  CHECK(one.flags == other.flags);
  CHECK(one.metric == other.metric);
  CHECK(one.label == other.label);
}

void check_same(const cni::State& one, const cni::State& other) {
  CHECK(one.side == other.side);
  CHECK(one.index == other.index);
  CHECK(one.name == other.name);
  CHECK(one.altnames == other.altnames);
  CHECK(one.alias == other.alias);
  CHECK(one.mtu == other.mtu);
  CHECK(one.mac == other.mac);
  CHECK(one.up == other.up);
  CHECK(one.promisc == other.promisc);
  CHECK(one.allmulti == other.allmulti);
  CHECK(one.arp == other.arp);
  CHECK(one.multicast == other.multicast);
  CHECK(one.tx_queue_length == other.tx_queue_length);
  CHECK(one.sysctls == other.sysctls);
  CHECK(one.xdp == other.xdp);
  CHECK(one.routes == other.routes);
  CHECK(one.vf == other.vf);
  CHECK(one.rdma == other.rdma);
  REQUIRE(one.addresses.size() == other.addresses.size());
  for (std::size_t at = 0; at < one.addresses.size(); ++at) {
    check_same(one.addresses[at], other.addresses[at]);
  }
}

void check_same(const Record& one, const Record& other) {
  check_same(one.owner, other.owner);
  CHECK(one.home_cookie == other.home_cookie);
  CHECK(one.device == other.device);
  CHECK(one.incarnation == other.incarnation);
  check_same(one.before, other.before);
  CHECK(one.asked_vf == other.asked_vf);
  CHECK(one.rdma == other.rdma);
  CHECK(one.userspace_driver == other.userspace_driver);
  CHECK(one.bound_driver == other.bound_driver);
  CHECK(one.device_info_file == other.device_info_file);
  CHECK(one.completed == other.completed);
  CHECK(one.result == other.result);
  REQUIRE(one.ipam.has_value() == other.ipam.has_value());
  if (one.ipam) {
    check_same(*one.ipam, *other.ipam);
  }
}

int code_of(const std::string& text) {
  return thrown([&] { static_cast<void>(parse_record(text)); }).code();
}

/// Every place in the record but those of the sysctls, which may have any name.
std::vector<Json::json_pointer> places_in(const Json& json, const Json::json_pointer& base = Json::json_pointer{""}) {
  std::vector<Json::json_pointer> places;
  if (!json.is_structured() || base.to_string() == "/before/sysctls/others") {
    return places;
  }
  for (const auto& [key, value] : json.items()) {
    const auto place = json.is_array() ? base / std::stoul(key) : base / key;
    places.push_back(place);
    const auto inside = places_in(value, place);
    places.insert(places.end(), inside.begin(), inside.end());
  }
  return places;
}

std::vector<Json> of_another_type(const Json& value) {
  if (value.is_string()) {
    return {7, true, Json::array({"x"})};
  }
  if (value.is_boolean()) {
    return {1, "true", nullptr};
  }
  if (value.is_number()) {
    return {"7", true, 1.5, Json::array({7})};
  }
  return {"x", 7, true};
}

mode_t mode_of(const std::filesystem::path& path) {
  struct stat status{};
  REQUIRE(::stat(path.c_str(), &status) == 0);
  return status.st_mode & 07777U;
}

const RecordStore::Unreadable* unreadable(const std::optional<RecordStore::Found>& found) {
  return found ? std::get_if<RecordStore::Unreadable>(&*found) : nullptr;
}

/// A store in a directory of its own.
struct StoreFixture {
  support::TempDir directory;
  RecordStore store{directory.path() / "data"};

  [[nodiscard]] std::filesystem::path file(const std::string& name) const { return directory.path() / "data/devices" / name; }
};

constexpr auto kKey = "pci-0000:3b:00.2-b8:ce:f6:00:00:01";

}  // namespace

TEST_CASE("all that a record says is read back") {
  check_same(parse_record(print_record(full_record())), full_record());
}

TEST_CASE("what a record does not say is read back as not said") {
  const auto record = parse_record(print_record(least_record()));
  check_same(record, least_record());
  CHECK_FALSE(record.device.parent);
  CHECK_FALSE(record.before.mtu);
  CHECK_FALSE(record.ipam);
  CHECK_FALSE(record.before.vf);
  CHECK(record.asked_vf.is_empty());
  CHECK(record.has_netdev());
}

TEST_CASE("a route and an address that lack everything optional are read back") {
  auto record = full_record();
  record.before.routes = {netlink::Route{}};
  record.before.addresses = {{.prefix = IpPrefix::parse("2001:db8::2/64").value(),
                              .peer = {},
                              .broadcast = {},
                              .scope = 0,
                              .flags = 0,
                              .label = {},
                              .metric = {}}};
  check_same(parse_record(print_record(record)), record);
}

TEST_CASE("a record that breaks off anywhere is error 6") {
  const auto text = print_record(full_record());
  REQUIRE(text.ends_with("}\n"));
  for (std::size_t size = 0; size + 1 < text.size(); ++size) {
    CAPTURE(size);
    CHECK(code_of(text.substr(0, size)) == 6);
  }
}

TEST_CASE("a record that lacks anything is error 6, and the key is named") {
  const auto json = Json::parse(print_record(full_record()));
  for (const auto& place : places_in(json)) {
    if (json.at(place.parent_pointer()).is_array()) {
      continue;
    }
    CAPTURE(place.to_string());
    auto incomplete = json;
    incomplete.at(place.parent_pointer()).erase(place.back());
    const auto error = thrown([&] { static_cast<void>(parse_record(incomplete.dump())); });
    CHECK(error.code() == 6);
    CHECK(std::string{error.what()}.find("'" + place.back() + "'") != std::string::npos);
  }
}

TEST_CASE("a record in which anything has the wrong type is error 6") {
  const auto json = Json::parse(print_record(full_record()));
  for (const auto& place : places_in(json)) {
    const bool may_be_null =
        place.back() == "spoofCheck" || place.back() == "trust" || place.back() == "arp" || place.back() == "multicast";
    for (const auto& wrong : of_another_type(json.at(place))) {
      if (may_be_null && wrong.is_null()) {
        continue;
      }
      CAPTURE(place.to_string(), wrong.dump());
      auto changed = json;
      changed.at(place) = wrong;
      CHECK(code_of(changed.dump()) == 6);
    }
  }
}

TEST_CASE("a number that its field cannot hold is error 6") {
  const auto json = Json::parse(print_record(full_record()));
  const auto with = [&](const char* place, const Json& value) {
    auto changed = json;
    changed.at(Json::json_pointer{place}) = value;
    return code_of(changed.dump());
  };
  CHECK(with("/before/mtu", -1) == 6);
  CHECK(with("/before/mtu", 4'294'967'296) == 6);
  CHECK(with("/before/mtu", 4'294'967'295) == 0);
  CHECK(with("/before/index", 2'147'483'648) == 6);
  CHECK(with("/before/addresses/0/scope", 256) == 6);
  CHECK(with("/before/xdp/0/mode", 256) == 6);
  CHECK(with("/owner/netnsCookie", -1) == 6);
  CHECK(with("/format", 4'294'967'297) == 6);
}

TEST_CASE("a record of a format that is not known is error 6 that names it and those that are") {
  auto json = Json::parse(print_record(full_record()));
  json["format"] = GENERATE(4, 0, -1);
  const auto error = thrown([&] { static_cast<void>(parse_record(json.dump())); });
  CHECK(error.code() == 6);
  CHECK(std::string{error.what()} == "the record has format " + json["format"].dump() + ", and this release knows the formats 1 to 3");
}

TEST_CASE("a GUID in a record that is none is error 6 that quotes it") {
  auto json = Json::parse(print_record(full_record()));
  CHECK(json["before"]["vf"]["nodeGuid"] == "00:11:22:33:44:55:66:77");
  json["before"]["vf"]["nodeGuid"] = "00:11:22:33:44:55:66";
  const auto error = thrown([&] { static_cast<void>(parse_record(json.dump())); });
  CHECK(error.code() == 6);
  CHECK(std::string{error.what()} == "'00:11:22:33:44:55:66' is no GUID");
}

/// The full record as a release wrote it that did not know these places.
std::string written_before(int format, const std::vector<std::string>& places) {
  auto json = Json::parse(print_record(full_record()));
  json["format"] = format;
  for (const auto& place : places) {
    const Json::json_pointer pointer{place};
    json.at(pointer.parent_pointer()).erase(pointer.back());
  }
  return json.dump();
}

TEST_CASE("a record of the format before says nothing of RDMA devices and GUIDs") {
  auto record = full_record();
  record.before.rdma.clear();
  record.rdma = {};
  record.bound_driver.clear();
  for (auto* const settings : {&*record.before.vf, &record.asked_vf}) {
    settings->node_guid.reset();
    settings->port_guid.reset();
  }
  check_same(parse_record(written_before(2, {"/before/rdma", "/rdma", "/rdmaOnly", "/boundDriver", "/before/vf/nodeGuid",
                                             "/before/vf/portGuid", "/askedVf/nodeGuid", "/askedVf/portGuid"})),
             record);
}

TEST_CASE("every use of RDMA devices is read as it was written") {
  auto record = full_record();
  record.rdma.use = GENERATE(cni::RdmaUse::none, cni::RdmaUse::left, cni::RdmaUse::moved, cni::RdmaUse::shared);
  CHECK(parse_record(print_record(record)).rdma == record.rdma);
}

TEST_CASE("a record of the first format says nothing of VFs, ARP and multicast either") {
  auto record = full_record();
  record.before.rdma.clear();
  record.rdma = {};
  record.before.vf.reset();
  record.before.arp.reset();
  record.before.multicast.reset();
  record.asked_vf = {};
  record.userspace_driver.clear();
  record.bound_driver.clear();
  record.device_info_file.clear();
  check_same(parse_record(written_before(1, {"/before/vf", "/before/arp", "/before/multicast", "/askedVf", "/userspaceDriver",
                                             "/deviceInfoFile", "/before/rdma", "/rdma", "/rdmaOnly", "/boundDriver"})),
             record);
}

TEST_CASE("what a record says beyond its format is passed over") {
  auto json = Json::parse(print_record(full_record()));
  for (const auto* const place : {"", "/owner", "/device", "/incarnation", "/before", "/ipam", "/before/routes/0", "/before/addresses/0"}) {
    json.at(Json::json_pointer{place})["more"] = "x";
  }
  check_same(parse_record(json.dump()), full_record());
}

TEST_CASE("what is no record is error 6") {
  const std::string text = GENERATE("", " ", "null", "[]", "{}", "7", "not JSON", R"({"format": 1})", R"({"format": 1, "format": 1})");
  CAPTURE(text);
  CHECK(code_of(text) == 6);
  CHECK(code_of(std::string(100, '\0')) == 6);
}

TEST_CASE("an address in a record that is none is error 6 that quotes it") {
  const auto* const place = GENERATE("/before/mac", "/device/permanentMac", "/before/addresses/0/prefix", "/before/addresses/0/peer",
                                     "/before/addresses/0/broadcast", "/before/routes/0/destination", "/before/routes/0/gateway");
  CAPTURE(place);
  auto json = Json::parse(print_record(full_record()));
  json.at(Json::json_pointer{place}) = "02:zz";
  const auto error = thrown([&] { static_cast<void>(parse_record(json.dump())); });
  CHECK(error.code() == 6);
  CHECK(std::string{error.what()}.find("'02:zz'") != std::string::npos);
}

TEST_CASE("sysctls in a record that are no numbers with a space between them are error 6 that quotes them") {
  auto json = Json::parse(print_record(full_record()));
  auto& place = json.at(Json::json_pointer{GENERATE("/before/sysctls/ipv4", "/before/sysctls/ipv6")});
  for (const std::string text : {" ", "1 ", " 1", "1  2", "1,2", "0x1", "+1", "1.5", "2147483648", "-", "1 x", "1\n2", "1 2 3-"}) {
    CAPTURE(text);
    place = text;
    const auto error = thrown([&] { static_cast<void>(parse_record(json.dump())); });
    CHECK(error.code() == 6);
    CHECK(std::string{error.what()}.find('\'' + text + '\'') != std::string::npos);
  }
}

TEST_CASE("a text that JSON cannot hold is refused, and not changed on the way") {
  for (const auto& place : {&cni::State::name, &cni::State::alias}) {
    auto record = full_record();
    record.before.*place = "\xe9th0";
    CHECK(thrown([&] { static_cast<void>(print_record(record)); }).code() == 100);
  }
  auto record = full_record();
  record.ipam->args = "K=\xe9";
  CHECK(thrown([&] { static_cast<void>(print_record(record)); }).code() == 100);
  CHECK(thrown([&] { static_cast<void>(cni::print_ipam_request(*record.ipam)); }).code() == 100);
}

TEST_CASE("an owner is named with pod, container, interface and network, and without a pod where the runtime sent none") {
  auto owner = full_record().owner;
  CHECK(owner.text() == "pod 'default/job-0', container 'c0ffee', interface 'net1' of network 'rail-0', since 2026-01-02T03:04:05Z");
  owner.pod.clear();
  CHECK(owner.text() == "container 'c0ffee', interface 'net1' of network 'rail-0', since 2026-01-02T03:04:05Z");
}

TEST_CASE("an attachment is network, container and interface, whatever else an owner says") {
  const auto owner = full_record().owner;
  auto other = owner;
  other.pod = "x";
  other.net_ns_cookie = 1;
  CHECK(owner.is_same_attachment(other));
  for (auto member : {&cni::Owner::network, &cni::Owner::container_id, &cni::Owner::interface_name}) {
    auto different = owner;
    different.*member = "x";
    CHECK_FALSE(owner.is_same_attachment(different));
  }
}

TEST_CASE_METHOD(StoreFixture, "a record is found under its device's key, and gone when it is removed, also for the second time") {
  CHECK_FALSE(store.find(kKey));
  store.write(full_record());
  const auto found = store.find(kKey);
  REQUIRE(found);
  check_same(std::get<Record>(*found), full_record());
  CHECK_FALSE(store.find("pci-0000:3b:00.2"));
  store.remove(full_record().device);
  CHECK_FALSE(store.find(kKey));
  store.remove(full_record().device);
}

TEST_CASE_METHOD(StoreFixture, "records are for root alone, whatever the umask") {
  const auto mask = ::umask(0);
  store.write(full_record());
  store.write_owed(full_record().owner, *full_record().ipam);
  ::umask(mask);
  const auto data = directory.path() / "data";
  CHECK(mode_of(data) == 0700);
  int files = 0;
  for (const auto& entry : std::filesystem::recursive_directory_iterator{data}) {
    CAPTURE(entry.path().string());
    CHECK(mode_of(entry.path()) == (entry.is_directory() ? 0700 : 0600));
    files += entry.is_directory() ? 0 : 1;
  }
  CHECK(files == 2);
}

TEST_CASE_METHOD(StoreFixture, "a record is replaced as a whole: who has the old one open reads it to its end") {
  store.write(full_record());
  const auto path = file(std::string{kKey} + ".json");
  const netlink::UniqueFd open{::open(path.c_str(), O_RDONLY | O_CLOEXEC)};
  auto shorter = full_record();
  shorter.result.clear();
  store.write(shorter);
  const auto old = netlink::read_file("/proc/self/fd/" + std::to_string(open.get()));
  REQUIRE(old);
  check_same(parse_record(*old), full_record());
  check_same(std::get<Record>(store.find(kKey).value()), shorter);
  CHECK(netlink::directory_entries(file("")) == std::vector<std::string>{std::string{kKey} + ".json"});
}

TEST_CASE_METHOD(StoreFixture, "what a process left when it died while writing is no record, and in nobody's way") {
  store.write(full_record());
  std::filesystem::rename(file(std::string{kKey} + ".json"), file(std::string{kKey} + ".json.new"));
  CHECK_FALSE(store.find(kKey));
  CHECK(store.all().empty());
  store.write(full_record());
  CHECK(store.all().size() == 1);
}

TEST_CASE_METHOD(StoreFixture, "a link in place of the file to be written is not followed") {
  store.write(least_record());
  const auto victim = directory.write("victim", "untouched");
  std::filesystem::create_symlink(victim, file(std::string{kKey} + ".json.new"));
  CHECK_THROWS_AS(store.write(full_record()), netlink::Error);
  CHECK(netlink::read_file(victim) == "untouched");
}

TEST_CASE_METHOD(StoreFixture, "all records are given, or those that contain a text") {
  CHECK(store.all().empty());
  store.write(full_record());
  store.write(least_record());
  directory.write("data/devices/notes.txt", "c0ffee");
  CHECK(store.all().size() == 2);
  const auto found = store.all("c0ffee");
  REQUIRE(found.size() == 1);
  check_same(std::get<Record>(found[0]), full_record());
  CHECK(store.all("no such text").empty());
  CHECK(store.keys() == std::vector<std::string>{"netdev-7", kKey});
}

TEST_CASE_METHOD(StoreFixture, "the records of an attachment are those alone that it owns") {
  const auto owner = full_record().owner;
  CHECK(store.of_attachment(owner).empty());
  store.write(full_record());
  auto other = least_record();
  other.owner = owner;
  other.owner.interface_name = "net9";
  store.write(other);
  directory.write("data/devices/netdev-8.json", "unreadable, and names " + owner.container_id);
  const auto found = store.of_attachment(owner);
  REQUIRE(found.size() == 1);
  check_same(found.front(), full_record());
  other.owner = owner;
  store.write(other);
  CHECK(store.of_attachment(owner).size() == 2);
}

TEST_CASE_METHOD(StoreFixture, "a truncated record is unreadable, with the reason, and does not hide the others") {
  store.write(full_record());
  store.write(least_record());
  std::filesystem::resize_file(file(std::string{kKey} + ".json"), GENERATE(0, 1, 300));
  const auto found = store.find(kKey);
  REQUIRE(unreadable(found) != nullptr);
  CHECK(unreadable(found)->key == kKey);
  CHECK_FALSE(unreadable(found)->reason.empty());
  const auto all = store.all();
  REQUIRE(all.size() == 2);
  CHECK(std::holds_alternative<Record>(all[0]));  // netdev-7
  CHECK(std::holds_alternative<RecordStore::Unreadable>(all[1]));
}

TEST_CASE_METHOD(StoreFixture, "a record under the key of another device is unreadable") {
  store.write(full_record());
  std::filesystem::copy(file(std::string{kKey} + ".json"), file("pci-0000:3b:00.7.json"));
  const auto found = store.find("pci-0000:3b:00.7");
  REQUIRE(unreadable(found) != nullptr);
  CHECK(unreadable(found)->reason == "it speaks of pci 0000:3b:00.2 (b8:ce:f6:00:00:01)");
}

TEST_CASE_METHOD(StoreFixture, "an unreadable record is set aside with what is in it, and so is the next one") {
  for (const auto* const content : {"first", "second"}) {
    store.write(least_record());
    directory.write("data/devices/netdev-7.json", content);
    const auto aside = store.set_aside("netdev-7");
    CHECK(netlink::read_file(aside) == content);
    CHECK_FALSE(store.find("netdev-7"));
    CHECK(store.all().empty());
  }
  CHECK(netlink::directory_entries(file("")).size() == 2);
  CHECK_THROWS_AS(store.set_aside("netdev-7"), netlink::Error);
}

TEST_CASE_METHOD(StoreFixture, "a netdev that is one of several is on record for its siblings, one that is alone is not") {
  const netlink::BusAddress parent{"pci", "0000:3b:00.2"};
  CHECK_FALSE(store.has_sibling_records(parent));
  auto alone = full_record();
  alone.device.permanent_address = {};
  store.write(alone);
  CHECK_FALSE(store.has_sibling_records(parent));
  store.write(full_record());
  CHECK(store.has_sibling_records(parent));
  CHECK_FALSE(store.has_sibling_records({"pci", "0000:3b:00.1"}));
}

TEST_CASE_METHOD(StoreFixture, "what IPAM is owed is kept for its attachment until it is removed") {
  const auto owner = full_record().owner;
  CHECK_FALSE(store.owed(owner));
  store.write_owed(owner, *full_record().ipam);
  const auto owed = store.owed(owner);
  REQUIRE(owed);
  check_same(*owed, *full_record().ipam);
  CHECK(store.all().empty());
  store.remove_owed(owner);
  CHECK_FALSE(store.owed(owner));
  store.remove_owed(owner);
}

TEST_CASE_METHOD(StoreFixture, "two attachments whose names run together to the same text have a debt each") {
  cni::Owner one{
      .network = "rail", .container_id = "0-c", .interface_name = "net1", .pod = {}, .net_ns_path = {}, .net_ns_cookie = 0, .since = {}};
  auto other = one;
  other.network = "rail-0";
  other.container_id = "c";
  auto third = one;
  third.container_id = "0";
  third.interface_name = "c-net1";
  store.write_owed(one, *full_record().ipam);
  CHECK_FALSE(store.owed(other));
  CHECK_FALSE(store.owed(third));
}

TEST_CASE_METHOD(StoreFixture, "a debt that cannot be read is error 6, and not the same as none") {
  const auto owner = full_record().owner;
  store.write_owed(owner, *full_record().ipam);
  for (const auto& entry : std::filesystem::recursive_directory_iterator{directory.path() / "data/owed"}) {
    if (entry.is_regular_file()) {
      std::filesystem::resize_file(entry.path(), 10);
    }
  }
  CHECK(thrown([&] { static_cast<void>(store.owed(owner)); }).code() == 6);
}

TEST_CASE_METHOD(StoreFixture, "debts are taken up in turn, and a cancelled one is gone") {
  CHECK_FALSE(store.oldest_debt());
  auto owner = full_record().owner;
  auto request = *full_record().ipam;
  for (const auto* const network : {"second", "first", "third"}) {
    owner.network = network;
    request.container_id = network;
    store.write_owed(owner, request);
  }
  const auto now = std::filesystem::file_time_type::clock::now();
  const auto file_of = [&](const std::string& network) { return directory.path() / "data/owed" / network / "c0ffee:net1.json"; };
  std::filesystem::last_write_time(file_of("first"), now - std::chrono::hours{3});
  std::filesystem::last_write_time(file_of("second"), now - std::chrono::hours{2});
  std::filesystem::last_write_time(file_of("third"), now - std::chrono::hours{1});

  for (const auto* const network : {"first", "second", "third", "first"}) {
    const auto debt = store.oldest_debt();
    REQUIRE(debt);
    CHECK(store.take_up(*debt).container_id == network);
  }
  store.cancel(file_of("second"));
  store.cancel(file_of("second"));
  CHECK(store.oldest_debt() == file_of("third"));
}

TEST_CASE_METHOD(StoreFixture, "a debt that cannot be read is error 6, and behind the others then") {
  auto owner = full_record().owner;
  store.write_owed(owner, *full_record().ipam);
  const auto broken = store.oldest_debt().value();
  owner.container_id = "other";
  store.write_owed(owner, *full_record().ipam);
  std::filesystem::resize_file(broken, 10);
  std::filesystem::last_write_time(broken, std::filesystem::file_time_type::clock::now() - std::chrono::hours{1});
  REQUIRE(store.oldest_debt() == broken);
  CHECK(thrown([&] { static_cast<void>(store.take_up(broken)); }).code() == 6);
  CHECK(store.oldest_debt() != broken);
}

TEST_CASE_METHOD(StoreFixture, "the debt of a network that is called like a file is found, and what a dying process left is none") {
  auto owner = full_record().owner;
  owner.network = "rail.json";
  store.write_owed(owner, *full_record().ipam);
  const auto debt = store.oldest_debt();
  REQUIRE(debt);
  check_same(store.take_up(*debt), *full_record().ipam);
  std::filesystem::rename(*debt, *debt + ".new");
  CHECK_FALSE(store.oldest_debt());
}

TEST_CASE("a data directory that cannot be written is an error that names it") {
  const support::TempDir directory;
  RecordStore store{directory.write("file", "") / "data"};
  CHECK_FALSE(store.find(kKey));
  CHECK(store.all().empty());
  try {
    store.write(full_record());
    FAIL("nothing was thrown");
  } catch (const netlink::Error& error) {
    CHECK(std::string{error.what()}.find((directory.path() / "file/data").string()) != std::string::npos);
  }
}
