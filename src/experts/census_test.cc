#include "experts/census.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>

#include "base/random.h"

namespace sluice {
namespace {

const CensusIdentity kModel{
    .layer_count = 3, .expert_count = 5, .model_bytes = 123456, .model_name = "m.gguf"};

std::vector<ExpertId> list(std::span<const ExpertId> experts) {
  return {experts.begin(), experts.end()};
}

using Experts = std::vector<ExpertId>;

TEST(UsageCensus, RanksLayersAndTheWholeModel) {
  UsageCensus census(kModel, 2);
  EXPECT_TRUE(census.most_used().empty());
  census.add({0, 4}, PickSource::decode);
  census.add({2, 1}, PickSource::decode, 3);
  census.add({2, 0}, PickSource::prompt, 12);
  census.add({2, 3}, PickSource::prompt);
  EXPECT_EQ(list(census.most_used(2)), (Experts{{2, 0}, {2, 1}, {2, 3}})) << "12, 12 and 1";
  EXPECT_EQ(list(census.most_used(0)), (Experts{{0, 4}}));
  EXPECT_TRUE(census.most_used(1).empty());
  EXPECT_EQ(list(census.most_used()), (Experts{{2, 0}, {2, 1}, {0, 4}, {2, 3}}));
  EXPECT_EQ(list(census.most_used(2)), (Experts{{2, 0}, {2, 1}, {2, 3}})) << "and again";
  EXPECT_EQ(census.count({2, 1}), 12u);
}

TEST(UsageCensus, OldUseFades) {
  UsageCensus census({.layer_count = 1, .expert_count = 4, .model_bytes = 1, .model_name = "m"}, 1);
  // One pick a token in one layer: the bound is 4 · 65536.
  census.add({0, 0}, PickSource::decode, 65536);
  EXPECT_EQ(census.count({0, 0}), 262144u) << "in full until the bound is passed";
  census.add({0, 1}, PickSource::decode, 1);
  EXPECT_EQ(census.count({0, 0}), 131072u);
  EXPECT_EQ(census.count({0, 1}), 2u);
  for (int token = 0; token < 3 * 32768; ++token) census.add({0, 2}, PickSource::decode);
  EXPECT_LE(census.count({0, 0}), 131072u / 4);
  EXPECT_EQ(census.most_used(0).front(), (ExpertId{0, 2})) << "the new topic leads";
}

TEST(UsageCensus, HugeCountsDoNotWrapAround) {
  UsageCensus census(kModel, 2);
  for (int i = 0; i < 100; ++i) census.add({1, 1}, PickSource::decode, UINT32_MAX);
  EXPECT_LE(census.count({1, 1}), 4u * 65536 * 3 * 2);
  EXPECT_GT(census.count({1, 1}), 65536u);
  std::vector<uint32_t> stored(15, UINT32_MAX);
  census.join(stored);
  uint64_t sum = 0;
  for (const uint32_t count : census.counts()) sum += count;
  EXPECT_LE(sum, 4u * 65536 * 3 * 2);
}

TEST(UsageCensus, JoinAddsOnlyWhatIsNew) {
  UsageCensus census(kModel, 2);
  std::vector<uint32_t> stored(15, 0);
  stored[7] = 10;  // layer 1, expert 2
  census.join(stored);
  EXPECT_EQ(census.count({1, 2}), 10u);
  census.add({1, 2}, PickSource::prompt, 5);
  stored[7] = 100;  // Another process has written meanwhile.
  census.join(stored);
  EXPECT_EQ(census.count({1, 2}), 105u);
  census.mark_stored();
  stored[7] = 105;
  census.join(stored);
  EXPECT_EQ(census.count({1, 2}), 105u) << "nothing counts twice";
}

std::vector<uint32_t> some_counts() {
  std::vector<uint32_t> counts(15);
  for (size_t i = 0; i < counts.size(); ++i) counts[i] = static_cast<uint32_t>(i * i);
  return counts;
}

/// The bytes that docs/census.md describes, put together by hand.
TEST(CensusFormat, IsAsDocumented) {
  const std::string bytes = write_census(kModel, some_counts());
  ASSERT_EQ(bytes.size(), 40u + 15 * 4 + 8);
  EXPECT_EQ(bytes.size(), census_bytes(kModel));
  EXPECT_EQ(bytes.substr(0, 8), "SLUICENS");
  const auto word = [&](size_t at) {
    uint32_t value = 0;
    std::memcpy(&value, bytes.data() + at, 4);
    return value;
  };
  EXPECT_EQ(word(8), 1u);
  EXPECT_EQ(word(12), 3u);
  EXPECT_EQ(word(16), 5u);
  EXPECT_EQ(word(20), 0u);
  EXPECT_EQ(word(24), 123456u);
  EXPECT_EQ(word(28), 0u);
  EXPECT_EQ(word(40 + 4 * 14), 196u);
}

TEST(CensusFormat, ComesBackAsItWas) {
  const auto counts = read_census(write_census(kModel, some_counts()), kModel);
  ASSERT_TRUE(counts.ok()) << counts.error().message;
  EXPECT_EQ(*counts, some_counts());
}

std::string reason(std::string_view bytes, const CensusIdentity& identity = kModel) {
  const auto counts = read_census(bytes, identity);
  return counts ? "" : counts.error().message;
}

TEST(CensusFormat, AnyDamageIsFound) {
  const std::string good = write_census(kModel, some_counts());
  for (size_t bit = 0; bit < good.size() * 8; ++bit) {
    std::string bytes = good;
    bytes[bit / 8] = static_cast<char>(bytes[bit / 8] ^ (1 << bit % 8));
    EXPECT_NE(reason(bytes), "") << "bit " << bit;
  }
  for (size_t length = 0; length < good.size(); ++length)
    EXPECT_NE(reason(good.substr(0, length)), "") << length << " bytes";
  EXPECT_NE(reason(good + '\0'), "");
}

TEST(CensusFormat, OtherModelsAndVersionsAreNamed) {
  const std::string good = write_census(kModel, some_counts());
  for (const auto& change : {+[](CensusIdentity& model) { model.layer_count = 5; },
                             +[](CensusIdentity& model) { model.expert_count = 4; },
                             +[](CensusIdentity& model) { ++model.model_bytes; },
                             +[](CensusIdentity& model) { model.model_name = "n.gguf"; }}) {
    CensusIdentity other = kModel;
    change(other);
    EXPECT_EQ(reason(good, other), "the census of another model");
  }
  EXPECT_EQ(reason("GGUF and more"), "not a census");
  std::string later = good;
  later[8] = 2;
  EXPECT_EQ(reason(later), "a census of version 2; this program knows 1");
}

}  // namespace
}  // namespace sluice
