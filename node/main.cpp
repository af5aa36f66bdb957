#include <fcntl.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <exception>
#include <map>
#include <string>
#include <string_view>

#include "cni/plugin.hpp"
#include "cni/rdma_look.hpp"
#include "netlink/error.hpp"

namespace {

/// A descriptor 0, 1 or 2 that the caller left closed would be taken by the first file we open. Read-only, so that an answer which nobody
/// gets is seen in the result of write.
void open_standard_descriptors() {
  for (int number = STDIN_FILENO; number <= STDERR_FILENO; ++number) {
    if (::fcntl(number, F_GETFD) < 0) {
      (void)::open("/dev/null", O_RDONLY | O_CLOEXEC);  // takes the lowest free number
    }
  }
}

std::map<std::string, std::string> variables() {
  std::map<std::string, std::string> all;
  for (char** entry = environ; *entry != nullptr; ++entry) {
    const std::string_view variable{*entry};
    const auto separator = variable.find('=');
    if (separator != std::string_view::npos) {
      all.emplace(variable.substr(0, separator), variable.substr(separator + 1));
    }
  }
  return all;
}

std::string read_input() {
  std::string input;
  std::array<char, 4096> buffer{};
  while (input.size() <= cni::kMaximumInput) {
    const auto count = ::read(STDIN_FILENO, buffer.data(), buffer.size());
    if (count < 0 && errno == EINTR) {
      continue;
    }
    if (count < 0) {
      netlink::throw_errno("read");
    }
    if (count == 0) {
      break;
    }
    input.append(buffer.data(), static_cast<std::size_t>(count));
  }
  return input;
}

bool write_all(int fd, std::string_view text) {
  while (!text.empty()) {
    const auto written = ::write(fd, text.data(), text.size());
    if (written < 0 && errno != EINTR) {
      return false;
    }
    text.remove_prefix(written < 0 ? 0 : static_cast<std::size_t>(written));
  }
  return true;
}

int run_plugin() {
  cni::Log log;
  const auto outcome = cni::run({.variables = variables(), .read_input = read_input}, log);
  if (!write_all(STDOUT_FILENO, outcome.text)) {
    if (outcome.undo) {
      outcome.undo();
    }
    return EXIT_FAILURE;
  }
  return outcome.status;
}

}  // namespace

int main(int argc, char** argv) {
  // A reader that has gone away is seen in the result of write.
  std::signal(SIGPIPE, SIG_IGN);  // NOLINT(cert-err33-c): it cannot fail for this signal
  // A caller that ignores it hands that on, and then no child could be waited for.
  std::signal(SIGCHLD, SIG_DFL);  // NOLINT(cert-err33-c)
  open_standard_descriptors();
  try {
    if (argc > 2 && std::string_view{argv[1]} == cni::kLookArgument) {
      const auto outcome = cni::look_from_inside({argv + 2, argv + argc});
      return write_all(STDOUT_FILENO, outcome.text) ? outcome.status : EXIT_FAILURE;
    }
    const char* command = std::getenv("CNI_COMMAND");  // NOLINT(concurrency-mt-unsafe): the process has one thread
    if (argc > 1 || command == nullptr || *command == '\0') {
      write_all(STDERR_FILENO, cni::about());
      return argc > 1 ? EXIT_FAILURE : EXIT_SUCCESS;
    }
    return run_plugin();
  } catch (const std::exception& error) {
    write_all(STDOUT_FILENO, R"({"cniVersion": "1.1.0", "code": 999, "msg": "internal error"})"
                             "\n");
    write_all(STDERR_FILENO, std::string{error.what()} + '\n');
    return EXIT_FAILURE;
  }
}
