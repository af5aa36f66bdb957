#include "cni/log.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <linux/openat2.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <system_error>

#include "cni/json.hpp"
#include "cni/timestamp.hpp"

namespace cni {

namespace {

constexpr std::array<std::string_view, 4> kWords{"error", "warning", "info", "debug"};

std::string_view relative_to(std::string_view path, std::string_view directory) {
  while (directory.ends_with('/')) {
    directory.remove_suffix(1);
  }
  if (!path.starts_with(directory) || !path.substr(directory.size()).starts_with('/')) {
    return {};
  }
  path.remove_prefix(std::min(path.find_first_not_of('/', directory.size()), path.size()));
  return path;
}

/// The opened file, or why there is none.
std::pair<netlink::UniqueFd, std::string> open_beneath(const std::string& path, const std::string& directory) {
  const std::string relative{relative_to(path, directory)};
  if (relative.empty() || relative.find('\0') != std::string::npos) {
    return {netlink::UniqueFd{}, fmt::format("it is not a file beneath {}", directory)};
  }
  const netlink::UniqueFd parent{::open(directory.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC)};
  if (!parent.is_open()) {
    return {netlink::UniqueFd{}, fmt::format("{}: {}", directory, std::generic_category().message(errno))};
  }
  open_how how{};
  how.flags = O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK;
  how.mode = S_IRUSR | S_IWUSR;
  how.resolve = RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS;
  netlink::UniqueFd file{static_cast<int>(::syscall(SYS_openat2, parent.get(), relative.c_str(), &how, sizeof how))};
  if (!file.is_open()) {
    return {netlink::UniqueFd{}, errno == ELOOP || errno == EXDEV ? fmt::format("a link or '..' leads out of {}", directory)
                                                                  : std::generic_category().message(errno)};
  }
  struct stat status{};
  if (::fstat(file.get(), &status) != 0 || !S_ISREG(status.st_mode)) {
    return {netlink::UniqueFd{}, "it is not a regular file"};
  }
  return {std::move(file), std::string{}};
}

}  // namespace

std::optional<LogLevel> parse_log_level(std::string_view word) {
  if (word == "panic") {
    return LogLevel::error;
  }
  const auto* const found = std::ranges::find(kWords, word);
  return found == kWords.end() ? std::nullopt : std::optional{static_cast<LogLevel>(found - kWords.begin())};
}

void Log::set_field(const std::string& name, const std::string& value) {
  const auto found = std::ranges::find(fields_, name, &Fields::value_type::first);
  if (found == fields_.end()) {
    fields_.emplace_back(name, value);
  } else {
    found->second = value;
  }
}

void Log::open_file(const std::string& path, const std::string& directory) {
  auto [file, problem] = open_beneath(path, directory);
  file_ = std::move(file);
  if (!file_.is_open()) {
    warning("the log file cannot be used, logging goes to stderr", {{"logFile", path}, {"reason", problem}});
  }
}

void Log::write(LogLevel level, std::string_view message, const Fields& fields) {
  if (level > level_) {
    return;
  }
  OrderedJson line;
  line["time"] = timestamp();
  line["level"] = kWords.at(static_cast<std::size_t>(level));
  line["msg"] = message;
  for (const auto& [name, value] : fields_) {
    line[name] = value;
  }
  for (const auto& [name, value] : fields) {
    line[name] = value;
  }
  const auto text = line.dump(-1, ' ', false, OrderedJson::error_handler_t::replace) + '\n';
  // A log that cannot be written must not fail what it tells about, and there is nowhere else to say so.
  static_cast<void>(!::write(file_.is_open() ? file_.get() : STDERR_FILENO, text.data(), text.size()));
}

}  // namespace cni
