#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace netlink {

/// What lies in the files that are read here is far below.
inline constexpr std::size_t kLargestFile = std::size_t{16} << 20U;

/// The content of a file; nothing when there is none. Throws Error when it cannot be read just now.
[[nodiscard]] std::optional<std::string> read_file_if_there(const std::string& path);

/// The content of a file, at most `limit` bytes of it; nothing when it cannot be opened or read.
[[nodiscard]] std::optional<std::string> read_file(const std::string& path, std::size_t limit = kLargestFile);

/// The first line of a file, without its end; nothing when it cannot be read.
[[nodiscard]] std::optional<std::string> read_line(const std::string& path);

/// The names in a directory, without `.` and `..`, sorted; empty when there is no such directory. Throws Error when it cannot be read just
/// now.
[[nodiscard]] std::vector<std::string> directory_entries(const std::string& path);

/// The first lines of those of the named files in a directory that are there and have a value, by name: a sysctl that is not set cannot be
/// read. Throws Error when one cannot be opened just now.
[[nodiscard]] std::map<std::string, std::string> read_lines(const std::string& directory, const std::vector<std::string>& names);

/// The last component of where a symbolic link leads (`driver`, `physfn`, `subsystem` in sysfs); nothing when it is none.
[[nodiscard]] std::optional<std::string> link_target_name(const std::string& path);

/// The inode of what a path leads to, links followed; nothing when it leads nowhere.
[[nodiscard]] std::optional<std::uint64_t> inode(const std::string& path);

/// Writes all of `content` to an open file; `path` is for the message. Throws Error.
void write_all(int fd, std::string_view content, const std::string& path);

/// Writes all of `content` with one write, as sysctl files want it. Throws Error.
void write_existing_file(const std::string& path, const std::string& content);

}  // namespace netlink
