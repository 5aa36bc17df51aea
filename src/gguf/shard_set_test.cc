#include "gguf/shard_set.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>

#include "gguf/gguf_writer.h"
#include "testing/byte_surgery.h"
#include "testing/temp_folder.h"

namespace sluice::gguf {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;

/// A model of 5 tensors in three files of 1, 2 and 2.
class ShardSetTest : public ::testing::Test {
 protected:
  ShardSetTest() : writer_({.shard_count = 3}) {
    writer_.set("general.architecture", "qwen3moe");
    writer_.set("general.name", "split");
    for (int i = 0; i < 5; ++i)
      writer_.add_tensor("tensor." + std::to_string(i), Dtype::f32, {8},
                         std::as_bytes(std::span(kWeights)));
    contents_ = writer_.encode();
    for (uint32_t i = 0; i < 3; ++i) {
      paths_.push_back(folder_.path() + "/m-0000" + std::to_string(i + 1) + "-of-00003.gguf");
      write(i, contents_[i]);
    }
  }

  void write(uint32_t shard, std::string_view bytes) const {
    folder_.write(fs::path(paths_[shard]).filename().string(), bytes);
  }

  /// Opening any of the shards gives the same error about the same one.
  void expect_error(uint32_t culprit, const std::string& message) const {
    for (const std::string& path : paths_) {
      if (!fs::exists(path)) continue;
      const auto file = GgufFile::open(path);
      ASSERT_FALSE(file.ok()) << path;
      EXPECT_THAT(file.error().message, HasSubstr(paths_[culprit] + ": "));
      EXPECT_THAT(file.error().message, HasSubstr(message));
      EXPECT_EQ(file.error().message.find('\n'), std::string::npos);
    }
  }

  static constexpr float kWeights[8] = {1, 2, 3, 4, 5, 6, 7, 8};
  const TempFolder folder_;
  GgufWriter writer_;
  std::vector<std::string> contents_;
  std::vector<std::string> paths_;
};

TEST_F(ShardSetTest, AnyShardOrTheFolderOpensTheSet) {
  std::vector<std::string> ways = paths_;
  ways.push_back(folder_.path());
  ways.push_back(folder_.path() + "/");
  for (const std::string& path : ways) {
    const auto file = GgufFile::open(path);
    ASSERT_TRUE(file.ok()) << file.error().message;
    ASSERT_EQ(file->paths().size(), 3u);
    for (uint32_t i = 0; i < 3; ++i) {
      EXPECT_TRUE(fs::equivalent(file->paths()[i], paths_[i]));
      EXPECT_EQ(file->file_bytes()[i], contents_[i].size());
    }
    EXPECT_EQ(*file->find_text("general.architecture"), "qwen3moe");
    ASSERT_EQ(file->tensors().size(), 5u);
    constexpr uint32_t kShardOf[5] = {0, 1, 1, 2, 2};
    for (size_t i = 0; i < 5; ++i) {
      EXPECT_EQ(file->tensors()[i].name, "tensor." + std::to_string(i));
      EXPECT_EQ(file->tensors()[i].extent.file, kShardOf[i]);
      EXPECT_EQ(file->find_tensor("tensor." + std::to_string(i)), &file->tensors()[i]);
    }
  }
}

TEST_F(ShardSetTest, TheKeysDecideTheOrderNotTheNames) {
  write(0, contents_[2]);
  write(1, contents_[0]);
  write(2, contents_[1]);
  const auto file = GgufFile::open(paths_[2]);
  ASSERT_TRUE(file.ok()) << file.error().message;
  EXPECT_EQ(file->paths(), (std::vector<std::string>{paths_[1], paths_[2], paths_[0]}));
  EXPECT_EQ(file->tensors()[4].name, "tensor.4");
  EXPECT_EQ(*file->find_text("general.architecture"), "qwen3moe");
}

TEST_F(ShardSetTest, NamesAMissingShard) {
  fs::remove(paths_[1]);
  expect_error(1, "one of the 3 files");
  EXPECT_EQ(GgufFile::open(paths_[0]).error().kind, ErrorKind::io);
}

TEST_F(ShardSetTest, NamesADamagedShard) {
  write(2, std::string_view(contents_[2]).substr(0, contents_[2].size() - 1));
  expect_error(2, "tensor 'tensor.4': its 32 bytes");
  write(2, std::string_view(contents_[2]).substr(0, 50));
  expect_error(2, "cut short");
  write(2, "");
  expect_error(2, "cut short");
}

TEST_F(ShardSetTest, ChecksRangesAgainstTheirOwnShard) {
  // The range would fit into the larger first shard.
  write(0, contents_[0] + std::string(100'000, '\0'));
  write(1, patched_after(contents_[1], "tensor.2", 4 + 8 + 4, bytes_of(uint64_t{4096})));
  expect_error(1, "tensor 'tensor.2': its 32 bytes at data offset 4096");
}

TEST_F(ShardSetTest, RefusesShardsThatDisagreeAboutTheSet) {
  write(1, patched_after(contents_[1], "split.count", 4, bytes_of(uint16_t{2})));
  const auto file = GgufFile::open(paths_[0]);
  ASSERT_FALSE(file.ok());
  EXPECT_THAT(file.error().message, HasSubstr(paths_[1] + ": does not belong to this set"));

  write(1, patched_after(contents_[1], "split.no", 4, bytes_of(uint16_t{3})));
  expect_error(1, "does not belong to this set");

  write(1, patched_after(contents_[1], "split.tensors.count", 4, bytes_of(int32_t{6})));
  expect_error(1, "disagree about the key 'split.tensors.count'");

  write(1, patched_after(contents_[1], "split.count", 0, bytes_of(ValueType::boolean)));
  EXPECT_FALSE(GgufFile::open(paths_[0]).ok());
}

TEST_F(ShardSetTest, RefusesTheSameShardTwice) {
  write(2, contents_[1]);
  expect_error(2, "is shard 2 of the set, but so is " + paths_[1]);
}

TEST_F(ShardSetTest, RefusesShardsOfOtherModels) {
  GgufWriter other({.shard_count = 3});
  other.add_tensor("tensor.0", Dtype::f32, {8}, std::as_bytes(std::span(kWeights)));
  const auto strangers = other.encode();  // the tensor lies in the last one
  write(2, strangers[2]);
  expect_error(2, "disagree about the key 'split.tensors.count'");

  // The same total: only the tensors themselves can tell.
  write(2, patched_after(strangers[2], "split.tensors.count", 4, bytes_of(int32_t{5})));
  expect_error(2, "tensor 'tensor.0' is there twice, first in " + paths_[0]);
  write(2, replaced(patched_after(strangers[2], "split.tensors.count", 4, bytes_of(int32_t{5})),
                    "tensor.0", "tensor.9"));
  expect_error(0, "the set should hold 5 tensors, but holds 4");
}

TEST_F(ShardSetTest, RefusesAWholeModelAmongShards) {
  GgufWriter whole;
  whole.set("general.architecture", "qwen3moe");
  write(1, whole.encode().front());
  const auto file = GgufFile::open(paths_[0]);
  ASSERT_FALSE(file.ok());
  EXPECT_THAT(file.error().message, HasSubstr(paths_[1] + ": does not belong to this set"));
}

TEST_F(ShardSetTest, RefusesAContradictedArchitecture) {
  GgufWriter writer({.shard_count = 1});
  writer.set("general.architecture", "mixtral");
  writer.set("split.no", uint16_t{1});
  writer.set("split.count", uint16_t{3});
  write(1, writer.encode().front());
  expect_error(1, "disagree about the key 'general.architecture'");
}

TEST_F(ShardSetTest, AShardUnderAnotherNameHasNoSiblings) {
  for (const char* name : {"renamed.gguf", "m-00001-of-00004.gguf"}) {
    const std::string path = folder_.path() + "/" + name;
    fs::copy_file(paths_[0], path);
    const auto file = GgufFile::open(path);
    ASSERT_FALSE(file.ok());
    EXPECT_THAT(file.error().message, HasSubstr(path + ": is one of 3 files"));
    EXPECT_THAT(file.error().message, HasSubstr("-of-00003.gguf"));
  }
}

TEST_F(ShardSetTest, SymbolicLinksAreOpenedButNeverFollowedByName) {
  // As download caches do: links with the right names to files with names of their own.
  const TempFolder cache;
  fs::create_directories(cache.path() + "/blobs");
  fs::create_directories(cache.path() + "/snapshot");
  std::string first_link;
  for (uint32_t i = 0; i < 3; ++i) {
    const std::string blob = cache.path() + "/blobs/" + std::to_string(1234 * (i + 1));
    fs::copy_file(paths_[i], blob);
    const std::string link = cache.path() + "/snapshot/" + fs::path(paths_[i]).filename().string();
    fs::create_symlink(blob, link);
    if (i == 0) first_link = link;
  }
  for (const std::string& path : {first_link, cache.path() + "/snapshot"}) {
    const auto file = GgufFile::open(path);
    ASSERT_TRUE(file.ok()) << file.error().message;
    EXPECT_EQ(file->paths().front(), first_link);
  }
  // A link of another name to a shard whose siblings are complete.
  fs::create_symlink(paths_[0], cache.path() + "/model.gguf");
  EXPECT_FALSE(GgufFile::open(cache.path() + "/model.gguf").ok());
}

TEST_F(ShardSetTest, SplitKeysOfASingleFileMayCountToOne) {
  GgufWriter writer;
  writer.set("split.no", uint16_t{0});
  writer.set("split.count", uint16_t{1});
  writer.set("split.tensors.count", int32_t{0});
  EXPECT_TRUE(GgufFile::open(folder_.write("one.gguf", writer.encode().front())).ok());
}

}  // namespace
}  // namespace sluice::gguf
