#include "experts/census_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>

#include "os/file.h"
#include "os/small_file.h"
#include "testing/temp_folder.h"

namespace sluice {
namespace {

using ::testing::HasSubstr;
namespace fs = std::filesystem;

UsageCensus new_census() {
  return UsageCensus(
      {.layer_count = 2, .expert_count = 4, .model_bytes = 99, .model_name = "m.gguf"}, 2);
}

void decode(UsageCensus& census, uint64_t token_count, uint32_t expert) {
  for (uint64_t i = 0; i < token_count; ++i) {
    census.on_decode_token();
    census.add({1, expert}, PickSource::decode);
  }
}

class CensusFileTest : public ::testing::Test {
 protected:
  CensusFileTest() {
    setenv("XDG_CACHE_HOME", (folder_.path() + "/cache").c_str(), 1);
    model_ = folder_.write("models/m.gguf", "a model");
  }
  ~CensusFileTest() override { unsetenv("XDG_CACHE_HOME"); }

  CensusFile file(const char* setting = "auto") const {
    return {*parse_census_setting(setting), model_};
  }
  /// What a new run knows of an expert of layer 1.
  uint32_t count_in_file(uint32_t expert, const char* setting = "auto") const {
    UsageCensus census = new_census();
    EXPECT_EQ(file(setting).load(census), std::nullopt);
    return census.count({1, expert});
  }

  TempFolder folder_;
  std::string model_;
};

TEST_F(CensusFileTest, LiesBesideTheModelAndGrows) {
  EXPECT_EQ(file().path(), model_ + ".census");
  for (const uint32_t total : {1024u, 2048u}) {
    UsageCensus census = new_census();
    EXPECT_EQ(file().load(census), std::nullopt);
    decode(census, 256, 3);
    EXPECT_EQ(file().save(census), std::nullopt);
    EXPECT_EQ(file().save(census), std::nullopt) << "a second time adds nothing";
    EXPECT_EQ(count_in_file(3), total);
  }
}

TEST_F(CensusFileTest, ShortRunsLeaveNothing) {
  UsageCensus census = new_census();
  decode(census, 255, 3);
  EXPECT_EQ(file().save(census), std::nullopt);
  EXPECT_FALSE(os::file_exists(model_ + ".census"));
}

TEST_F(CensusFileTest, RunsThatEndTogetherBothCount) {
  UsageCensus first = new_census(), second = new_census();
  decode(first, 300, 0);
  decode(second, 400, 2);
  EXPECT_EQ(file().save(first), std::nullopt);
  EXPECT_EQ(file().save(second), std::nullopt);
  EXPECT_EQ(count_in_file(0), 1200u);
  EXPECT_EQ(count_in_file(2), 1600u);
}

TEST_F(CensusFileTest, OffAndANameOfOnesOwn) {
  UsageCensus census = new_census();
  decode(census, 1000, 1);
  EXPECT_EQ(file("off").path(), "");
  EXPECT_EQ(file("off").save(census), std::nullopt);
  EXPECT_EQ(file("off").load(census), std::nullopt);
  EXPECT_FALSE(os::file_exists(model_ + ".census"));

  const std::string path = folder_.path() + "/else/where";
  UsageCensus small = new_census();
  decode(small, 1, 1);
  EXPECT_EQ(file(path.c_str()).save(small), std::nullopt);
  EXPECT_EQ(count_in_file(1, path.c_str()), 4u);
  EXPECT_EQ(parse_census_setting("").error().kind, ErrorKind::usage);
}

TEST_F(CensusFileTest, AFolderThatCannotBeWrittenSendsItToTheCache) {
  // As root every folder can be written; one that is not there cannot.
  model_ = folder_.path() + "/gone/m.gguf";
  const std::string path = file().path();
  EXPECT_EQ(fs::path(path).parent_path(), folder_.path() + "/cache/sluice");
  EXPECT_EQ(fs::path(path).extension(), ".census");
  EXPECT_EQ(fs::path(path).filename().string().size(), 16u + 7);
  UsageCensus census = new_census();
  decode(census, 256, 3);
  EXPECT_EQ(file().save(census), std::nullopt);
  EXPECT_EQ(count_in_file(3), 1024u);
  const std::string cached = path;
  model_ = folder_.path() + "/gone/n.gguf";
  EXPECT_NE(file().path(), cached) << "each model has its own";
}

TEST_F(CensusFileTest, DamagedAndForeignFilesAreIgnoredWithALine) {
  const std::string path = model_ + ".census";
  UsageCensus census = new_census();
  decode(census, 300, 3);
  EXPECT_EQ(file().save(census), std::nullopt);
  std::string bytes = *os::read_text_file(path, 1000);
  bytes[45] = 'x';
  folder_.write("models/m.gguf.census", bytes);
  UsageCensus next = new_census();
  EXPECT_EQ(file().load(next), path + " is ignored: a damaged census: its checksum is wrong");
  EXPECT_TRUE(next.most_used().empty());
  decode(next, 300, 0);
  EXPECT_EQ(file().save(next), std::nullopt) << "a damaged census is replaced";
  EXPECT_EQ(count_in_file(0), 1200u);
  EXPECT_EQ(count_in_file(3), 0u);
}

TEST_F(CensusFileTest, WhatIsNoCensusIsNeverOverwritten) {
  UsageCensus census = new_census();
  decode(census, 300, 3);
  EXPECT_THAT(file(model_.c_str()).load(census).value(), HasSubstr("not a census"));
  EXPECT_THAT(file(model_.c_str()).save(census).value(), HasSubstr("stays as it is"));
  EXPECT_EQ(*os::read_text_file(model_, 1000), "a model");
  EXPECT_EQ(file().save(census), std::nullopt) << "and nothing was lost by it";
  EXPECT_EQ(count_in_file(3), 1200u);
}

}  // namespace
}  // namespace sluice
