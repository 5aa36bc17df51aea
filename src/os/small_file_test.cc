#include "os/small_file.h"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <cstdlib>
#include <filesystem>
#include <string>
#include <thread>
#include <vector>

#include "os/file.h"
#include "testing/temp_folder.h"

namespace sluice::os {
namespace {

namespace fs = std::filesystem;

size_t file_count(const std::string& folder) {
  return static_cast<size_t>(
      std::distance(fs::directory_iterator(folder), fs::directory_iterator()));
}

TEST(SmallFile, IsMadeAndReplacedAsAWhole) {
  const TempFolder folder;
  const std::string path = folder.path() + "/count";
  for (int i = 0; i < 3; ++i) {
    const Status status = update_file(path, 100, [&](const std::string& present) {
      EXPECT_EQ(present, std::string(static_cast<size_t>(i), 'x'));
      return Result<std::string>(present + "x");
    });
    ASSERT_TRUE(status.ok()) << status.error().message;
  }
  EXPECT_EQ(*read_text_file(path, 100), "xxx");
  EXPECT_EQ(file_count(folder.path()), 1u) << "nothing else is left behind";
}

TEST(SmallFile, AnErrorLeavesTheFileAsItWas) {
  const TempFolder folder;
  const std::string path = folder.write("file", "as it was");
  const auto refuse = [](const std::string&) {
    return Result<std::string>(make_error(ErrorKind::corrupt, "not ours"));
  };
  EXPECT_EQ(update_file(path, 100, refuse).error().message, "not ours");
  const auto replace = [](const std::string&) { return Result<std::string>("new"); };
  const Status too_large = update_file(path, 5, replace);
  ASSERT_FALSE(too_large.ok());
  EXPECT_NE(too_large.error().message.find(path), std::string::npos);
  EXPECT_EQ(*read_text_file(path, 100), "as it was");
  EXPECT_FALSE(update_file(folder.path() + "/none/file", 100, replace).ok());
  EXPECT_EQ(file_count(folder.path()), 1u);
}

/// Renaming works on a device or a pipe too, which would be gone.
TEST(SmallFile, WhatIsNoRegularFileStays) {
  const TempFolder folder;
  const std::string pipe = folder.path() + "/pipe";
  ASSERT_EQ(mkfifo(pipe.c_str(), 0600), 0);
  const auto replace = [](const std::string&) { return Result<std::string>("new"); };
  for (const std::string& path : {pipe, folder.path()}) {
    const Status status = update_file(path, 100, replace);
    ASSERT_FALSE(status.ok());
    EXPECT_EQ(status.error().message, path + " is no regular file and stays as it is");
  }
  EXPECT_TRUE(fs::is_fifo(pipe));
  EXPECT_EQ(file_count(folder.path()), 1u);
}

TEST(SmallFile, UpdatesAtTheSameTimeAreNotLost) {
  const TempFolder folder;
  const std::string path = folder.path() + "/count";
  constexpr int kThreads = 4, kUpdates = 25;
  std::vector<std::thread> threads;
  for (int i = 0; i < kThreads; ++i)
    threads.emplace_back([&] {
      for (int k = 0; k < kUpdates; ++k) {
        const Status status = update_file(path, 1000, [](const std::string& present) {
          return Result<std::string>(present + "x");
        });
        EXPECT_TRUE(status.ok());
      }
    });
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(read_text_file(path, 1000)->size(), size_t{kThreads * kUpdates});
}

TEST(SmallFile, FoldersAreMadeAsFarAsNeeded) {
  const TempFolder folder;
  const std::string path = folder.path() + "/a/b/c/file";
  EXPECT_FALSE(may_create(path));
  ASSERT_TRUE(make_folder_of(path).ok());
  ASSERT_TRUE(make_folder_of(path).ok()) << "again";
  EXPECT_TRUE(may_create(path));
  const std::string file = folder.write("file", "not a folder");
  const Status inside_a_file = make_folder_of(file + "/x/y");
  ASSERT_FALSE(inside_a_file.ok());
  EXPECT_NE(inside_a_file.error().message.find(file + "/x"), std::string::npos);
}

TEST(SmallFile, OnePathForOneFile) {
  const TempFolder folder;
  const std::string path = folder.write("models/m.gguf", "");
  fs::create_symlink(path, folder.path() + "/link");
  EXPECT_EQ(absolute_path(folder.path() + "/models/../models/./m.gguf"), absolute_path(path));
  EXPECT_EQ(absolute_path(folder.path() + "/link"), absolute_path(path));
  EXPECT_EQ(absolute_path("no such file"), fs::current_path().string() + "/no such file");
}

TEST(SmallFile, CacheFolderOfTheUser) {
  setenv("XDG_CACHE_HOME", "/some/cache", 1);
  EXPECT_EQ(user_cache_folder(), "/some/cache");
  setenv("XDG_CACHE_HOME", "relative/is/wrong", 1);
  setenv("HOME", "/some/where", 1);
  EXPECT_EQ(user_cache_folder(), "/some/where/.cache");
  unsetenv("XDG_CACHE_HOME");
  unsetenv("HOME");
  EXPECT_FALSE(user_cache_folder().has_value());
}

}  // namespace
}  // namespace sluice::os
