#include "os/file.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstring>
#include <fstream>
#include <iterator>
#include <vector>

#include "base/random.h"
#include "base/units.h"
#include "os/arena.h"
#include "testing/temp_folder.h"

namespace sluice::os {
namespace {

using ::testing::HasSubstr;

constexpr uint64_t kAlignment = 4096;

// Some 5 MB that exist on most Linux machines; sysfs refuses O_DIRECT.
constexpr const char* kRefusesDirect = "/sys/kernel/btf/vmlinux";

std::vector<std::byte> random_bytes(size_t count, uint64_t seed) {
  Random random(seed);
  std::vector<std::byte> bytes(count);
  for (std::byte& b : bytes) b = static_cast<std::byte>(random.next());
  return bytes;
}

class FileTest : public ::testing::TestWithParam<DirectMode> {
 protected:
  /// Reads and compares with the file's contents, cut at its end.
  void expect_read(const File& file, uint64_t offset, size_t bytes) {
    ASSERT_LE(bytes, buffer_.bytes());
    std::memset(buffer_.begin(), 0xee, bytes);
    const auto count = file.read_at(offset, buffer_.begin(), bytes, 0);
    ASSERT_TRUE(count.ok()) << count.error().message;
    const size_t left = offset < contents_.size() ? contents_.size() - offset : 0;
    ASSERT_EQ(*count, std::min(bytes, left));
    if (*count == 0) return;
    ASSERT_EQ(std::memcmp(buffer_.begin(), contents_.data() + offset, *count), 0) << offset;
  }

  TempFolder folder_;
  const std::vector<std::byte> contents_ = random_bytes(300'001, 7);
  const std::string path_ = folder_.write("weights.bin", contents_);
  Arena buffer_ = *Arena::allocate(kMiB, "a test");
};

TEST_P(FileTest, ReadsAlignedWindowsLikeTheFile) {
  const auto file = File::open(path_, GetParam());
  ASSERT_TRUE(file.ok()) << file.error().message;
  EXPECT_EQ(file->bytes(), contents_.size());
  EXPECT_EQ(file->path(), path_);
  const uint64_t alignment = file->alignment();
  Random random(11);
  for (int i = 0; i < 300; ++i) {
    const uint64_t begin = round_down(random.below(contents_.size()), alignment);
    const uint64_t bytes = alignment * (1 + random.below(20));
    ASSERT_NO_FATAL_FAILURE(expect_read(*file, begin, bytes));
  }
  expect_read(*file, round_up(contents_.size(), alignment), alignment);  // Past the end: nothing.
}

TEST_P(FileTest, EndOfFileIsAnErrorOnlyInsideTheWantedBytes) {
  const auto file = File::open(path_, GetParam());
  ASSERT_TRUE(file.ok());
  const uint64_t begin = round_down(contents_.size(), kAlignment);
  const size_t left = contents_.size() - begin;
  const auto enough = file->read_at(begin, buffer_.begin(), kAlignment, left);
  ASSERT_TRUE(enough.ok()) << enough.error().message;
  EXPECT_EQ(*enough, left);

  const auto short_by_one = file->read_at(begin, buffer_.begin(), kAlignment, left + 1);
  ASSERT_FALSE(short_by_one.ok());
  EXPECT_EQ(short_by_one.error().kind, ErrorKind::corrupt);
  EXPECT_THAT(short_by_one.error().message, HasSubstr(path_));
  EXPECT_THAT(short_by_one.error().message, HasSubstr(std::to_string(begin)));
  EXPECT_THAT(short_by_one.error().message, HasSubstr("ends at 300001"));
}

TEST_P(FileTest, NoticesThatTheFileShrank) {
  const auto file = File::open(path_, GetParam());
  ASSERT_TRUE(file.ok());
  ASSERT_EQ(truncate(path_.c_str(), 2 * kAlignment), 0);
  const auto read = file->read_at(kAlignment, buffer_.begin(), 4 * kAlignment, 4 * kAlignment);
  ASSERT_FALSE(read.ok());
  EXPECT_THAT(read.error().message, HasSubstr("ends at 8192"));
}

TEST_P(FileTest, MovedFileKeepsReading) {
  auto opened = File::open(path_, GetParam());
  ASSERT_TRUE(opened.ok());
  File file = std::move(*opened);
  expect_read(file, 0, kAlignment);
  auto other = File::open(folder_.write("other.bin", "something else"), GetParam());
  ASSERT_TRUE(other.ok());
  *other = std::move(file);
  expect_read(*other, kAlignment, kAlignment);
  EXPECT_EQ(file.native_handle(), -1);  // NOLINT(bugprone-use-after-move)
}

TEST_P(FileTest, EmptyFileOpens) {
  const auto file = File::open(folder_.write("empty", ""), GetParam());
  ASSERT_TRUE(file.ok()) << file.error().message;
  EXPECT_EQ(file->bytes(), 0u);
  EXPECT_FALSE(file->read_at(0, buffer_.begin(), kAlignment, 1).ok());
}

INSTANTIATE_TEST_SUITE_P(Modes, FileTest,
                         ::testing::Values(DirectMode::off, DirectMode::auto_detect),
                         [](const auto& mode) {
                           return mode.param == DirectMode::off ? "Buffered" : "AutoDetect";
                         });

TEST(File, DirectReadsGoThroughOnADisk) {
  const TempFolder folder(".");  // /tmp may be memory; the build folder is on a disk.
  const auto contents = random_bytes(9000, 3);
  const auto file = File::open(folder.write("f", contents), DirectMode::auto_detect);
  ASSERT_TRUE(file.ok());
  if (!file->is_direct()) GTEST_SKIP() << "the file system here refuses direct reads";
  EXPECT_TRUE(file->alignment() >= 512 && file->alignment() <= 65536) << file->alignment();
  EXPECT_NE(fcntl(file->native_handle(), F_GETFL) & O_DIRECT, 0);
  const Arena buffer = *Arena::allocate(4 * kAlignment, "a test");
  const auto count = file->read_at(0, buffer.begin(), 3 * kAlignment, contents.size());
  ASSERT_TRUE(count.ok()) << count.error().message;
  EXPECT_EQ(std::memcmp(buffer.begin(), contents.data(), contents.size()), 0);
}

TEST(File, FallsBackWhereDirectReadsAreRefused) {
  if (access(kRefusesDirect, R_OK) != 0) GTEST_SKIP() << kRefusesDirect << " is not there";
  const auto file = File::open(kRefusesDirect, DirectMode::auto_detect);
  ASSERT_TRUE(file.ok()) << file.error().message;
  EXPECT_FALSE(file->is_direct());
  EXPECT_EQ(file->alignment(), kAlignment);
  std::ifstream stream(kRefusesDirect, std::ios::binary);
  std::vector<char> expected(64 * kKiB);
  stream.read(expected.data(), static_cast<std::streamsize>(expected.size()));
  std::vector<char> read(expected.size());
  const auto count =
      file->read_at(0, reinterpret_cast<std::byte*>(read.data()), read.size(), read.size());
  ASSERT_TRUE(count.ok()) << count.error().message;
  EXPECT_EQ(read, expected);

  const auto insisted = File::open(kRefusesDirect, DirectMode::on);
  ASSERT_FALSE(insisted.ok());
  EXPECT_EQ(insisted.error().kind, ErrorKind::unsupported);
  EXPECT_THAT(insisted.error().message, HasSubstr(kRefusesDirect));
}

TEST(File, WorksOnMemoryFileSystems) {
  if (access("/dev/shm", W_OK) != 0) GTEST_SKIP() << "/dev/shm is not writable";
  const TempFolder folder("/dev/shm");
  const auto contents = random_bytes(5000, 5);
  const auto file = File::open(folder.write("f", contents), DirectMode::auto_detect);
  ASSERT_TRUE(file.ok()) << file.error().message;
  const Arena buffer = *Arena::allocate(2 * kAlignment, "a test");
  ASSERT_TRUE(file->read_at(0, buffer.begin(), 2 * kAlignment, contents.size()).ok());
  EXPECT_EQ(std::memcmp(buffer.begin(), contents.data(), contents.size()), 0);
}

TEST(File, RefusesWhatIsNoRegularFile) {
  const TempFolder folder;
  const std::string pipe = folder.path() + "/pipe";
  ASSERT_EQ(mkfifo(pipe.c_str(), 0600), 0);
  const std::string missing = folder.path() + "/missing";
  for (const std::string& path : {folder.path(), pipe, missing, std::string("/dev/null")}) {
    const auto file = File::open(path, DirectMode::auto_detect);
    ASSERT_FALSE(file.ok()) << path;
    EXPECT_EQ(file.error().kind, ErrorKind::io);
    EXPECT_THAT(file.error().message, HasSubstr(path));
  }
}

TEST(ReadTextFile, ReadsWholeFilesUpToALimit) {
  const TempFolder folder;
  std::string text(40'000, 'x');
  text[20'000] = '\0';
  const std::string path = folder.write("prompt.txt", text);
  EXPECT_EQ(*read_text_file(path, 40'000), text);
  EXPECT_EQ(*read_text_file(folder.write("empty", ""), 0), "");
  const auto refused = read_text_file(path, 39'999);
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.error().kind, ErrorKind::usage);
  EXPECT_THAT(refused.error().message, HasSubstr(path));
}

TEST(ReadTextFile, ReadsFilesWithoutALength) {
  const auto text = read_text_file("/proc/self/status", kMiB);
  ASSERT_TRUE(text.ok());
  EXPECT_THAT(*text, HasSubstr("VmRSS:"));
}

TEST(ReadTextFile, NamesWhatItCannotRead) {
  const TempFolder folder;
  for (const std::string& path : {folder.path(), folder.path() + "/missing"}) {
    const auto text = read_text_file(path, 100);
    ASSERT_FALSE(text.ok());
    EXPECT_EQ(text.error().kind, ErrorKind::io);
    EXPECT_THAT(text.error().message, HasSubstr(path));
  }
}

}  // namespace
}  // namespace sluice::os
