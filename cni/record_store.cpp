#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <string>
#include <system_error>
#include <utility>

#include "cni/error.hpp"
#include "cni/record.hpp"
#include "netlink/error.hpp"
#include "netlink/files.hpp"
#include "netlink/unique_fd.hpp"

namespace cni {

namespace {

constexpr std::string_view kSuffix = ".json";
constexpr mode_t kDirectoryMode = 0700;
constexpr mode_t kFileMode = 0600;

enum class Durability { process, machine };

void sync(int fd, const std::string& path) {
  if (::fsync(fd) != 0) {
    netlink::throw_errno("bring " + path + " to the disk");
  }
}

/// For root alone, each of them, whatever the umask of the runtime is.
void make_directories(const std::string& path) {
  std::error_code error;
  const auto umask = ::umask(0777 & ~kDirectoryMode);
  std::filesystem::create_directories(path, error);
  ::umask(umask);
  if (error) {
    throw netlink::Error("make directory " + path, error.value());
  }
}

netlink::UniqueFd open_new(const std::string& path) {
  const auto open = [&] {
    return netlink::UniqueFd{::open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, kFileMode)};
  };
  auto fd = open();
  if (!fd.is_open() && errno == ENOENT) {
    make_directories(std::filesystem::path{path}.parent_path().string());
    fd = open();
  }
  if (!fd.is_open()) {
    netlink::throw_errno("write " + path);
  }
  return fd;
}

/// `<path>.new`, then rename: a reader sees the old content or the new, whatever dies when.
void replace_file(const std::string& path, std::string_view content, Durability durability) {
  const auto temporary = path + ".new";
  const auto fd = open_new(temporary);
  try {
    netlink::write_all(fd.get(), content, temporary);
    if (durability == Durability::machine) {
      sync(fd.get(), temporary);
    }
    if (::rename(temporary.c_str(), path.c_str()) != 0) {
      netlink::throw_errno("rename " + temporary);
    }
  } catch (const netlink::Error&) {
    ::unlink(temporary.c_str());
    throw;
  }
  if (durability == Durability::machine) {
    const auto directory = std::filesystem::path{path}.parent_path().string();
    const netlink::UniqueFd parent{::open(directory.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC)};
    sync(parent.get(), directory);
  }
}

void remove_file(const std::string& path) {
  if (::unlink(path.c_str()) != 0 && errno != ENOENT && errno != ENOTDIR && errno != ENAMETOOLONG) {
    netlink::throw_errno("remove " + path);
  }
}

}  // namespace

RecordStore::Found RecordStore::parse(const std::string& key, std::string content) const {
  if (!last_record_ || content != last_content_) {
    try {
      last_record_ = parse_record(content);
      last_content_ = std::move(content);
    } catch (const Error& error) {
      return Unreadable{key, error.what()};
    }
  }
  if (last_record_->device.key() != key) {
    return Unreadable{key, "it speaks of " + last_record_->device.text()};
  }
  return *last_record_;
}

std::string RecordStore::record_path(const std::string& key) const {
  return fmt::format("{}/devices/{}{}", data_dir_, key, kSuffix);
}

std::string RecordStore::owed_path(const Owner& owner) const {
  // No identifier and no interface name has a ':'; the network, which may be long, is a directory of its own.
  return fmt::format("{}/owed/{}/{}:{}{}", data_dir_, owner.network, owner.container_id, owner.interface_name, kSuffix);
}

std::optional<RecordStore::Found> RecordStore::find(const std::string& key) const {
  auto content = netlink::read_file_if_there(record_path(key));
  return content ? std::optional{parse(key, std::move(*content))} : std::nullopt;
}

std::vector<std::string> RecordStore::keys() const {
  std::vector<std::string> keys;
  for (const auto& name : netlink::directory_entries(data_dir_ + "/devices")) {
    if (name.ends_with(kSuffix)) {
      keys.push_back(name.substr(0, name.size() - kSuffix.size()));
    }
  }
  return keys;
}

std::vector<RecordStore::Found> RecordStore::all(std::string_view text) const {
  std::vector<Found> found;
  for (const auto& key : keys()) {
    auto content = netlink::read_file_if_there(record_path(key));
    // Looking for a text first spares the parsing of other pods' records.
    if (content && content->find(text) != std::string::npos) {
      found.push_back(parse(key, std::move(*content)));
    }
  }
  return found;
}

std::vector<Record> RecordStore::of_attachment(const Owner& owner) const {
  std::vector<Record> records;
  for (auto& found : all(owner.container_id)) {
    if (auto* record = std::get_if<Record>(&found); record != nullptr && record->owner.is_same_attachment(owner)) {
      records.push_back(std::move(*record));
    }
  }
  return records;
}

bool RecordStore::has_sibling_records(const netlink::BusAddress& parent) const {
  const auto prefix = netlink::DeviceId::on_bus(parent).key() + '-';
  return std::ranges::any_of(netlink::directory_entries(data_dir_ + "/devices"),
                             [&](const std::string& name) { return name.starts_with(prefix); });
}

void RecordStore::write(const Record& record) {
  replace_file(record_path(record.device.key()), print_record(record), Durability::process);
}

void RecordStore::remove(const netlink::DeviceId& device) {
  remove_file(record_path(device.key()));
}

std::string RecordStore::set_aside(const std::string& key) {
  const auto path = record_path(key);
  for (int number = 1;; ++number) {
    auto aside = fmt::format("{}.unreadable-{}", path, number);
    if (::link(path.c_str(), aside.c_str()) == 0) {
      remove_file(path);
      return aside;
    }
    if (errno != EEXIST) {
      netlink::throw_errno("set aside " + path);
    }
  }
}

std::optional<IpamRequest> RecordStore::owed(const Owner& owner) const {
  const auto content = netlink::read_file_if_there(owed_path(owner));
  if (!content) {
    return std::nullopt;
  }
  return parse_ipam_request(*content);
}

void RecordStore::write_owed(const Owner& owner, const IpamRequest& request) {
  replace_file(owed_path(owner), print_ipam_request(request), Durability::machine);
}

std::optional<std::string> RecordStore::oldest_debt() const {
  std::optional<std::string> oldest;
  std::filesystem::file_time_type oldest_time;
  std::error_code error;
  for (std::filesystem::recursive_directory_iterator entry{data_dir_ + "/owed", error}, end; !error && entry != end;
       entry.increment(error)) {
    std::error_code gone;
    const auto time = entry->last_write_time(gone);
    if (!gone && entry->is_regular_file(gone) && entry->path().extension() == kSuffix && (!oldest || time < oldest_time)) {
      oldest = entry->path();
      oldest_time = time;
    }
  }
  return oldest;
}

IpamRequest RecordStore::take_up(const std::string& debt) const {
  std::error_code error;
  std::filesystem::last_write_time(debt, std::filesystem::file_time_type::clock::now(), error);
  return parse_ipam_request(netlink::read_file(debt).value_or(""));
}

void RecordStore::cancel(const std::string& debt) {
  remove_file(debt);
}

void RecordStore::remove_owed(const Owner& owner) {
  remove_file(owed_path(owner));
}

}  // namespace cni
