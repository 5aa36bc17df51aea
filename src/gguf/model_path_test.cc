#include "gguf/model_path.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>

#include "testing/temp_folder.h"

namespace sluice::gguf {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

TEST(ModelPath, TakesShardNamesApart) {
  EXPECT_EQ(parse_shard_name("a/b-00002-of-00003.gguf"), (ShardName{"a/b", 2, 3}));
  EXPECT_EQ(parse_shard_name("-00001-of-99999.gguf"), (ShardName{"", 1, 99999}));
  EXPECT_EQ(parse_shard_name("x-00001-of-00002-00001-of-00002.gguf"),
            (ShardName{"x-00001-of-00002", 1, 2}));
  for (const char* path :
       {"model.gguf", "m-00001-of-00003", "m-00001-of-00003.GGUF", "m-0001-of-0003.gguf",
        "m-00000-of-00003.gguf", "m-00004-of-00003.gguf", "m-00001-of-+0003.gguf",
        "m-00001 of 00003.gguf", "m00001-of-00003.gguf", "", ".gguf", "00001-of-00003.gguf"})
    EXPECT_EQ(parse_shard_name(path), std::nullopt) << path;
}

TEST(ModelPath, BuildsShardNames) {
  EXPECT_EQ((ShardName{"a/b", 2, 30}).path(), "a/b-00002-of-00030.gguf");
}

TEST(ModelPath, FindsTheOneModelOfAFolder) {
  const TempFolder folder;
  folder.write("README.md", "");
  folder.write("deeper/other.gguf", "");
  std::filesystem::create_directory(folder.path() + "/folder.gguf");
  const std::string model = folder.write("model.gguf", "");
  EXPECT_EQ(*find_model(folder.path()), model);
}

TEST(ModelPath, CountsASetAsOneModel) {
  const TempFolder folder;
  folder.write("m-00001-of-00002.gguf", "");
  folder.write("m-00002-of-00002.gguf", "");
  EXPECT_THAT(*find_model(folder.path()), HasSubstr("-of-00002.gguf"));
  folder.write("m-00001-of-00003.gguf", "");
  EXPECT_FALSE(find_model(folder.path()).ok());
}

TEST(ModelPath, ListsWhatItFound) {
  const TempFolder folder;
  const auto none = find_model(folder.path());
  ASSERT_FALSE(none.ok());
  EXPECT_EQ(none.error().kind, ErrorKind::usage);
  EXPECT_THAT(none.error().message, HasSubstr("no .gguf file"));

  folder.write("b.gguf", "");
  folder.write("a-00002-of-00002.gguf", "");
  const auto two = find_model(folder.path());
  ASSERT_FALSE(two.ok());
  EXPECT_EQ(two.error().kind, ErrorKind::usage);
  EXPECT_THAT(two.error().message, HasSubstr("2 models in here, name one: "
                                             "a-00001-of-00002.gguf, b.gguf"));

  for (char c = 'c'; c < 'p'; ++c) folder.write(std::string(1, c) + ".gguf", "");
  EXPECT_THAT(find_model(folder.path()).error().message,
              AllOf(HasSubstr("15 models"), HasSubstr("j.gguf, …"), Not(HasSubstr("k.gguf"))));
}

TEST(ModelPath, AMissingFolderIsAnIoError) {
  const auto missing = find_model("/no/such/folder");
  ASSERT_FALSE(missing.ok());
  EXPECT_EQ(missing.error().kind, ErrorKind::io);
  EXPECT_THAT(missing.error().message, HasSubstr("/no/such/folder"));
}

}  // namespace
}  // namespace sluice::gguf
