#include "netlink/files.hpp"

#include <sys/stat.h>

#include <filesystem>

#include "netlink/error.hpp"
#include "support/catch.hpp"
#include "support/temp_dir.hpp"

using netlink::directory_entries;
using netlink::inode;
using netlink::link_target_name;
using netlink::read_file;
using netlink::read_line;
using netlink::read_lines;
using netlink::write_existing_file;

TEST_CASE("a file is read whole, up to the limit") {
  const support::TempDir directory;
  const std::string content(std::size_t{10'000}, 'x');
  const auto file = directory.write("file", content);
  CHECK(read_file(file) == content);
  CHECK(read_file(file, 10'000) == content);
  CHECK(read_file(file, 4'097) == content.substr(0, 4'097));
  CHECK(read_file(file, 0) == "");
  CHECK(read_file(directory.write("empty", "")) == "");
}

TEST_CASE("what cannot be read is not the same as empty") {
  const support::TempDir directory;
  CHECK_FALSE(read_file(directory.path() / "absent"));
  CHECK_FALSE(read_file(directory.path()));
  CHECK_FALSE(read_line(directory.path() / "absent"));
}

TEST_CASE("a FIFO that nobody writes to does not hold up who reads it") {
  const support::TempDir directory;
  const auto pipe = directory.path() / "pipe";
  REQUIRE(::mkfifo(pipe.c_str(), 0600) == 0);
  CHECK(read_file(pipe) == "");
}

TEST_CASE("a line is read without its end") {
  const support::TempDir directory;
  CHECK(read_line(directory.write("one", "vfio-pci\n")) == "vfio-pci");
  CHECK(read_line(directory.write("two", "first\nsecond\n")) == "first");
  CHECK(read_line(directory.write("unended", "first")) == "first");
  CHECK(read_line(directory.write("blank", "\nsecond")) == "");
}

TEST_CASE("the first lines of those named files in a directory are read that can be read") {
  const support::TempDir directory;
  directory.write("a", "1\n2\n");
  directory.write("b", "");
  directory.write("unwanted", "3\n");
  std::filesystem::create_directory(directory.path() / "c");
  std::filesystem::create_symlink("nowhere", directory.path() / "d");
  const auto lines = read_lines(directory.path(), {"a", "b", "c", "d", "e"});
  CHECK(lines == std::map<std::string, std::string>{{"a", "1"}, {"b", ""}});
  CHECK(read_lines(directory.path() / "absent", {"a"}).empty());
  CHECK(read_lines(directory.path(), {}).empty());
}

TEST_CASE("the entries of a directory are sorted, and none where there is no directory") {
  const support::TempDir directory;
  for (const auto* const name : {"b", ".hidden", "a", "c"}) {
    directory.write(name, "");
  }
  CHECK(directory_entries(directory.path()) == std::vector<std::string>{".hidden", "a", "b", "c"});
  CHECK(directory_entries(directory.path() / "absent").empty());
  CHECK(directory_entries(directory.path() / "a").empty());
}

TEST_CASE("the name that a link leads to is read without following it") {
  const support::TempDir directory;
  std::filesystem::create_symlink("../nowhere/mlx5_core", directory.path() / "driver");
  CHECK(link_target_name(directory.path() / "driver") == "mlx5_core");
  CHECK_FALSE(link_target_name(directory.write("file", "")));
  CHECK_FALSE(link_target_name(directory.path() / "absent"));
}

TEST_CASE("an inode is that of what a path leads to") {
  const support::TempDir directory;
  const auto file = directory.write("file", "");
  std::filesystem::create_symlink(file, directory.path() / "link");
  CHECK(inode(file));
  CHECK(inode(directory.path() / "link") == inode(file));
  CHECK(inode(directory.write("other", "")) != inode(file));
  std::filesystem::remove(file);
  CHECK_FALSE(inode(directory.path() / "link"));
}

TEST_CASE("a file is written when it exists, and not made") {
  const support::TempDir directory;
  const auto file = directory.write("file", "0");
  write_existing_file(file, "1");
  CHECK(read_file(file) == "1");
  CHECK_THROWS_AS(write_existing_file(directory.path() / "absent", "1"), netlink::Error);
  CHECK(directory_entries(directory.path()).size() == 1);
}

TEST_CASE("a file that refuses to be written is an error that names it and the value") {
  try {
    write_existing_file("/dev/full", "1500");
    FAIL("nothing was thrown");
  } catch (const netlink::Error& error) {
    CHECK(error.error_number() == ENOSPC);
    CHECK(std::string{error.what()}.starts_with("write '1500' to /dev/full: "));
  }
}
