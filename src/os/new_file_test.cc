#include "os/new_file.h"

#include <gtest/gtest.h>

#include <filesystem>

#include "os/file.h"
#include "testing/byte_surgery.h"
#include "testing/temp_folder.h"

namespace sluice::os {
namespace {

size_t file_count(const TempFolder& folder) {
  return static_cast<size_t>(std::distance(std::filesystem::directory_iterator(folder.path()), {}));
}

TEST(NewFile, HasItsNameWhenItIsComplete) {
  const TempFolder folder;
  const std::string path = folder.write("file", "before");
  auto file = NewFile::create(path);
  ASSERT_TRUE(file.ok()) << file.error().message;
  ASSERT_TRUE(file->write(as_byte_span("one ")).ok());
  NewFile moved = std::move(*file);
  ASSERT_TRUE(moved.write(as_byte_span("two")).ok());
  EXPECT_EQ(*read_text_file(path, 100), "before");
  ASSERT_TRUE(moved.commit().ok());
  EXPECT_EQ(*read_text_file(path, 100), "one two");
  EXPECT_EQ(file_count(folder), 1u);
}

TEST(NewFile, LeavesNothingWhenItIsGivenUp) {
  const TempFolder folder;
  const std::string path = folder.path() + "/file";
  {
    auto file = NewFile::create(path);
    ASSERT_TRUE(file.ok());
    ASSERT_TRUE(file->write(as_byte_span("half of it")).ok());
    EXPECT_EQ(file_count(folder), 1u);
  }
  EXPECT_EQ(file_count(folder), 0u);
}

TEST(NewFile, NeedsAFolderAndNoDevice) {
  const TempFolder folder;
  const auto nowhere = NewFile::create(folder.path() + "/none/file");
  ASSERT_FALSE(nowhere.ok());
  EXPECT_NE(nowhere.error().message.find("none/file: cannot write beside it"), std::string::npos);
  const auto device = NewFile::create("/dev/null");
  ASSERT_FALSE(device.ok());
  EXPECT_EQ(device.error().message, "/dev/null is no regular file and stays as it is");
}

}  // namespace
}  // namespace sluice::os
