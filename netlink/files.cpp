#include "netlink/files.hpp"

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <filesystem>
#include <memory>
#include <string_view>
#include <system_error>
#include <utility>

#include "netlink/error.hpp"
#include "netlink/unique_fd.hpp"

namespace netlink {

namespace {

std::optional<std::string> read_open_file(const UniqueFd& fd, std::size_t limit) {
  if (!fd.is_open()) {
    return std::nullopt;
  }
  std::string content;
  std::array<char, 4096> buffer{};
  while (content.size() < limit) {
    const auto count = ::read(fd.get(), buffer.data(), std::min(buffer.size(), limit - content.size()));
    if (count < 0 && errno == EINTR) {
      continue;
    }
    if (count < 0) {
      return std::nullopt;
    }
    content.append(buffer.data(), static_cast<std::size_t>(count));
    // On the file systems we read from, a short read is the end; asking again would double the work for a small file.
    if (static_cast<std::size_t>(count) < buffer.size()) {
      break;
    }
  }
  return content;
}

/// Nothing is where the path leads; everything else is a failure of the moment.
bool is_not_there(int error) {
  return error == ENOENT || error == ENOTDIR || error == ENAMETOOLONG;
}

std::optional<std::string> first_line(std::optional<std::string> content) {
  if (content) {
    content->resize(std::min(content->find('\n'), content->size()));
  }
  return content;
}

}  // namespace

std::optional<std::string> read_file(const std::string& path, std::size_t limit) {
  return read_open_file(UniqueFd{::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK)}, limit);
}

std::optional<std::string> read_file_if_there(const std::string& path) {
  const UniqueFd fd{::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK)};
  if (!fd.is_open() && is_not_there(errno)) {
    return std::nullopt;
  }
  auto content = read_open_file(fd, kLargestFile);
  if (!content && errno == EISDIR) {
    return "";
  }
  if (!content) {
    throw_errno("read " + path);
  }
  return content;
}

std::optional<std::string> read_line(const std::string& path) {
  return first_line(read_file(path));
}

std::map<std::string, std::string> read_lines(const std::string& directory, const std::vector<std::string>& names) {
  std::map<std::string, std::string> lines;
  if (names.empty()) {
    return lines;
  }
  const auto open = [&](int start, const std::string& path, int flags) {
    UniqueFd fd{::openat(start, path.c_str(), flags | O_CLOEXEC)};
    if (!fd.is_open() && !is_not_there(errno)) {
      throw_errno("open " + (start == AT_FDCWD ? path : directory + '/' + path));
    }
    return fd;
  };
  // Relative to the directory, each file is found at once instead of by its whole path.
  const auto parent = open(AT_FDCWD, directory, O_PATH | O_DIRECTORY);
  if (!parent.is_open()) {
    return lines;
  }
  for (const auto& name : names) {
    const auto file = open(parent.get(), name, O_RDONLY | O_NONBLOCK);
    if (auto line = first_line(read_open_file(file, std::string::npos))) {
      lines.emplace(name, std::move(*line));
    }
  }
  return lines;
}

std::vector<std::string> directory_entries(const std::string& path) {
  std::vector<std::string> names;
  struct Close {
    void operator()(DIR* directory) const { ::closedir(directory); }
  };
  const std::unique_ptr<DIR, Close> directory{::opendir(path.c_str())};
  if (!directory && is_not_there(errno)) {
    return names;
  }
  errno = 0;
  while (const auto* entry = directory ? ::readdir(directory.get()) : nullptr) {  // NOLINT(concurrency-mt-unsafe): the stream is ours alone
    const std::string_view name{entry->d_name};
    if (name != "." && name != "..") {
      names.emplace_back(name);
    }
    errno = 0;
  }
  if (!directory || errno != 0) {
    throw_errno("list " + path);
  }
  std::ranges::sort(names);
  return names;
}

std::optional<std::string> link_target_name(const std::string& path) {
  std::error_code error;
  const auto target = std::filesystem::read_symlink(path, error);
  if (error) {
    return std::nullopt;
  }
  return target.filename().string();
}

std::optional<std::uint64_t> inode(const std::string& path) {
  struct stat status{};
  if (::stat(path.c_str(), &status) != 0) {
    return std::nullopt;
  }
  return status.st_ino;
}

void write_all(int fd, std::string_view content, const std::string& path) {
  while (!content.empty()) {
    const auto written = ::write(fd, content.data(), content.size());
    if (written < 0 && errno != EINTR) {
      throw_errno("write " + path);
    }
    content.remove_prefix(written < 0 ? 0 : static_cast<std::size_t>(written));
  }
}

void write_existing_file(const std::string& path, const std::string& content) {
  const UniqueFd fd{::open(path.c_str(), O_WRONLY | O_CLOEXEC)};
  if (!fd.is_open() || ::write(fd.get(), content.data(), content.size()) < 0) {
    throw_errno("write '" + content + "' to " + path);
  }
}

}  // namespace netlink
