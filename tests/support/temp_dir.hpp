#pragma once

#include <fcntl.h>
#include <sys/stat.h>

#include <cstdlib>
#include <filesystem>
#include <stdexcept>
#include <string>
#include <string_view>

#include "netlink/unique_fd.hpp"

namespace support {

/// A directory of its own, removed with all that is in it.
class TempDir {
 public:
  TempDir() {
    std::string pattern = (std::filesystem::temp_directory_path() / "fabric-nic-test-").string() + std::string(6, 'X');
    if (::mkdtemp(pattern.data()) == nullptr) {
      throw std::runtime_error("cannot make the directory '" + pattern + "'");
    }
    path_ = pattern;
  }
  TempDir(const TempDir&) = delete;
  TempDir& operator=(const TempDir&) = delete;
  ~TempDir() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }

  [[nodiscard]] const std::filesystem::path& path() const { return path_; }

  /// Writes a file of exactly this mode, whatever the umask; returns its path.
  std::filesystem::path write(const std::string& name, std::string_view text, mode_t mode = 0644) const {
    const std::filesystem::path file = path_ / name;
    const netlink::UniqueFd fd{::open(file.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, mode)};
    if (!fd.is_open() || ::fchmod(fd.get(), mode) != 0 || ::write(fd.get(), text.data(), text.size()) != std::ssize(text)) {
      throw std::runtime_error("cannot write '" + file.string() + "'");
    }
    return file;
  }

 private:
  std::filesystem::path path_;
};

}  // namespace support
