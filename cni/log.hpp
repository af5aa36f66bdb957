#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "netlink/unique_fd.hpp"

namespace cni {

enum class LogLevel { error, warning, info, debug };

/// Reads sriov-cni's words panic, error, warning, info, debug; nothing for any other word.
[[nodiscard]] std::optional<LogLevel> parse_log_level(std::string_view word);

/// One JSON object a line, on stderr or in a file. Nothing about logging ever fails a verb: what is wrong with the file is said on stderr.
class Log {
 public:
  using Fields = std::vector<std::pair<std::string, std::string>>;

  /// Fields that every line carries from now on (container id, interface, device); a later value replaces an earlier one.
  void set_field(const std::string& name, const std::string& value);
  void set_level(LogLevel level) { level_ = level; }
  /// Appends to `path`, which must lie beneath `directory`, be a regular file when it exists, and be reached through no symbolic link.
  void open_file(const std::string& path, const std::string& directory);

  void error(std::string_view message, const Fields& fields = {}) { write(LogLevel::error, message, fields); }
  void warning(std::string_view message, const Fields& fields = {}) { write(LogLevel::warning, message, fields); }
  void info(std::string_view message, const Fields& fields = {}) { write(LogLevel::info, message, fields); }
  void debug(std::string_view message, const Fields& fields = {}) { write(LogLevel::debug, message, fields); }

 private:
  void write(LogLevel level, std::string_view message, const Fields& fields);

  LogLevel level_ = LogLevel::info;
  Fields fields_;
  netlink::UniqueFd file_;
};

}  // namespace cni
