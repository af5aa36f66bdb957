#include "cni/log.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <regex>

#include "cni/json.hpp"
#include "netlink/files.hpp"
#include "support/catch.hpp"
#include "support/temp_dir.hpp"

using cni::Json;
using cni::Log;
using cni::LogLevel;

namespace {

/// Sends what a block writes to stderr into a file.
class StderrCapture {
 public:
  StderrCapture() : saved_(::dup(STDERR_FILENO)), file_(directory_.write("stderr", "")) {
    const netlink::UniqueFd target{::open(file_.c_str(), O_WRONLY | O_APPEND | O_CLOEXEC)};
    ::dup2(target.get(), STDERR_FILENO);
  }
  StderrCapture(const StderrCapture&) = delete;
  StderrCapture& operator=(const StderrCapture&) = delete;
  ~StderrCapture() { ::dup2(saved_.get(), STDERR_FILENO); }

  [[nodiscard]] std::string text() const { return netlink::read_file(file_).value(); }

 private:
  support::TempDir directory_;
  netlink::UniqueFd saved_;
  std::filesystem::path file_;
};

std::vector<Json> lines(const std::string& text) {
  std::vector<Json> out;
  for (std::size_t begin = 0; begin < text.size();) {
    const auto end = text.find('\n', begin);
    REQUIRE(end != std::string::npos);
    out.push_back(Json::parse(text.substr(begin, end - begin)));
    begin = end + 1;
  }
  return out;
}

std::vector<Json> lines_of(const std::filesystem::path& file) {
  return lines(netlink::read_file(file).value());
}

/// What goes to stderr when `path` is opened as the log file, and then a line is written.
std::vector<Json> stderr_after_opening(const std::string& path, const std::string& directory) {
  const StderrCapture capture;
  Log log;
  log.open_file(path, directory);
  log.info("the line");
  return lines(capture.text());
}

void check_refused(const std::string& path, const std::string& directory, const std::string& reason) {
  const auto seen = stderr_after_opening(path, directory);
  CAPTURE(path);
  REQUIRE(seen.size() == 2);
  CHECK(seen[0]["level"] == "warning");
  CHECK(seen[0]["logFile"] == path);
  INFO(seen[0].dump());
  CHECK(seen[0]["reason"].get<std::string>().contains(reason));
  CHECK(seen[1]["msg"] == "the line");
}

}  // namespace

TEST_CASE("the words of logLevel are sriov-cni's") {
  CHECK(cni::parse_log_level("panic") == LogLevel::error);
  CHECK(cni::parse_log_level("error") == LogLevel::error);
  CHECK(cni::parse_log_level("warning") == LogLevel::warning);
  CHECK(cni::parse_log_level("info") == LogLevel::info);
  CHECK(cni::parse_log_level("debug") == LogLevel::debug);
  for (const auto* word : {"", "warn", "INFO", "trace", "verbose"}) {
    CHECK_FALSE(cni::parse_log_level(word));
  }
}

TEST_CASE("a line is one JSON object with time, level, message and fields") {
  const StderrCapture capture;
  Log log;
  log.set_field("containerId", "c0ffee");
  log.set_field("device", "nic0");
  log.set_field("device", "nic1");
  log.warning("moved", {{"took", "3 ms"}, {"containerId", "feed"}});
  log.info("again");
  const auto seen = lines(capture.text());
  REQUIRE(seen.size() == 2);
  CHECK(seen[0]["level"] == "warning");
  CHECK(seen[0]["msg"] == "moved");
  CHECK(seen[0]["device"] == "nic1");
  CHECK(seen[0]["took"] == "3 ms");
  CHECK(seen[0]["containerId"] == "feed");
  CHECK(std::regex_match(seen[0]["time"].get<std::string>(), std::regex{R"(20\d\d-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z)"}));
  CHECK(seen[1]["containerId"] == "c0ffee");
  CHECK_FALSE(seen[1].contains("took"));
  CHECK(capture.text().starts_with(R"({"time":")"));
}

TEST_CASE("lines below the level are not written") {
  const StderrCapture capture;
  Log log;
  log.debug("by default, no");
  log.set_level(LogLevel::error);
  log.warning("no");
  log.error("yes");
  log.set_level(LogLevel::debug);
  log.debug("yes too");
  const auto seen = lines(capture.text());
  REQUIRE(seen.size() == 2);
  CHECK(seen[0]["msg"] == "yes");
  CHECK(seen[1]["msg"] == "yes too");
}

TEST_CASE("text that is no UTF-8, and control characters, do not break a line") {
  const StderrCapture capture;
  Log log;
  log.info(std::string_view{"\xff\xfe\n\0\"", 5}, {{"field", "\x80"}});
  const auto seen = lines(capture.text());
  REQUIRE(seen.size() == 1);
  CHECK(seen[0]["msg"] == std::string_view{"\xef\xbf\xbd\xef\xbf\xbd\n\0\"", 9});
  CHECK(seen[0]["field"] == "\xef\xbf\xbd");
}

TEST_CASE("a log file is made for root alone, and appended to") {
  const support::TempDir directory;
  std::filesystem::create_directory(directory.path() / "deep");
  const auto file = directory.path() / "deep" / "nic.log";
  {
    const StderrCapture capture;
    for (const auto* message : {"one", "two"}) {
      Log log;
      log.open_file(file, directory.path().string() + "//");
      log.info(message);
    }
    CHECK(capture.text().empty());
  }
  const auto seen = lines_of(file);
  REQUIRE(seen.size() == 2);
  CHECK(seen[0]["msg"] == "one");
  CHECK(seen[1]["msg"] == "two");
  struct stat status{};
  REQUIRE(::stat(file.c_str(), &status) == 0);
  CHECK((status.st_mode & 07777U) == 0600U);
}

TEST_CASE("a log file outside of the directory is refused, and logging goes to stderr") {
  const support::TempDir directory;
  const support::TempDir elsewhere;
  const auto inside = directory.path().string();
  check_refused((elsewhere.path() / "x").string(), inside, "not a file beneath");
  check_refused("relative.log", inside, "not a file beneath");
  check_refused(inside, inside, "not a file beneath");
  check_refused(inside + "/", inside, "not a file beneath");
  check_refused(inside + "-neighbour/x", inside, "not a file beneath");
  check_refused("", inside, "not a file beneath");
  check_refused(inside + "/../" + elsewhere.path().filename().string() + "/x", inside, "leads out");
  check_refused(inside + "/no/such/directory", inside, "No such file");
  check_refused("/no/such/directory/x", "/no/such/directory", "No such file");
  CHECK(std::filesystem::is_empty(directory.path()));
  CHECK(std::filesystem::is_empty(elsewhere.path()));
}

TEST_CASE("a NUL byte does not shorten the path of a log file") {
  const support::TempDir directory;
  const auto path = directory.path().string() + std::string{"/x\0y", 4};
  check_refused(path, directory.path().string(), "not a file beneath");
  CHECK(std::filesystem::is_empty(directory.path()));
}

TEST_CASE("a log file is not reached through a link") {
  const support::TempDir directory;
  const support::TempDir elsewhere;
  const auto target = elsewhere.write("target", "");
  std::filesystem::create_symlink(target, directory.path() / "file");
  std::filesystem::create_directory_symlink(elsewhere.path(), directory.path() / "deep");
  std::filesystem::create_symlink("gone", directory.path() / "dangling");
  std::filesystem::create_directory(directory.path() / "real");
  std::filesystem::create_directory_symlink("real", directory.path() / "inner");
  for (const auto* name : {"/file", "/deep/target", "/dangling", "/inner/x"}) {
    check_refused(directory.path().string() + name, directory.path().string(), "a link");
  }
  CHECK(std::filesystem::file_size(target) == 0);
  CHECK_FALSE(std::filesystem::exists(directory.path() / "gone"));
  CHECK(std::filesystem::is_empty(directory.path() / "real"));
}

TEST_CASE("a log file that is a directory or a pipe is refused at once") {
  const support::TempDir directory;
  std::filesystem::create_directory(directory.path() / "directory");
  const auto pipe = directory.path() / "pipe";
  REQUIRE(::mkfifo(pipe.c_str(), 0600) == 0);
  check_refused((directory.path() / "directory").string(), directory.path().string(), "directory");
  check_refused(pipe.string(), directory.path().string(), "No such device");
  const netlink::UniqueFd reader{::open(pipe.c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC)};
  REQUIRE(reader.is_open());
  check_refused(pipe.string(), directory.path().string(), "not a regular file");
}

TEST_CASE("the log file is not inherited by a child") {
  const support::TempDir directory;
  const auto file = directory.path() / "x";
  Log log;
  log.open_file(file, directory.path());
  const auto command = "for fd in /proc/self/fd/*; do [ \"$(readlink $fd)\" != '" + file.string() + "' ] || exit 1; done";
  CHECK(std::system(command.c_str()) == 0);
}

TEST_CASE("a log that cannot be written fails nothing") {
  if (!std::filesystem::exists("/dev/full")) {
    FAIL("/dev/full is needed");
  }
  const StderrCapture restores;
  const netlink::UniqueFd full{::open("/dev/full", O_WRONLY | O_CLOEXEC)};
  REQUIRE(::dup2(full.get(), STDERR_FILENO) == STDERR_FILENO);
  Log log;
  CHECK_NOTHROW(log.error("lost"));
  ::close(STDERR_FILENO);
  CHECK_NOTHROW(log.error("lost too"));
}
