#include "engine/logits_base.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "engine/logits_base_writer.h"
#include "testing/byte_surgery.h"
#include "testing/temp_folder.h"

namespace sluice {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

std::string words(std::initializer_list<int32_t> numbers) {
  std::string bytes;
  for (const int32_t number : numbers) bytes += bytes_of(number);
  return bytes;
}

std::string row(float scale, float lowest, std::initializer_list<uint16_t> codes) {
  std::string bytes = bytes_of(scale) + bytes_of(lowest);
  for (const uint16_t code : codes) bytes += bytes_of(code);
  return bytes;
}

/// Two chunks of five tokens, a vocabulary of three; positions 2 and 3 are scored.
std::string small_base() {
  return "_logits_" + words({5, 3, 2}) +     //
         words({0, 1, 2, 1, 0}) +            //
         words({2, 2, 1, 1, 0}) +            //
         row(0.5f, -2.0f, {0, 4, 1, 99}) +   // the fourth code is padding
         row(0.0f, -1.25f, {0, 0, 0, 0}) +   //
         row(0.25f, -3.0f, {12, 0, 8, 0}) +  //
         row(1.0f, -60.0f, {60, 0, 59, 0});
}

Result<LogitsBaseReader> parse(const std::string& bytes) {
  return LogitsBaseReader::parse(as_byte_span(bytes), "base");
}

std::vector<double> log_probabilities(LogitsBaseReader& reader, uint32_t chunk, uint32_t index) {
  const auto row = reader.row(chunk, index);
  EXPECT_TRUE(row.ok()) << row.error().message;
  std::vector<double> values;
  for (size_t i = 0; i < row->codes.size(); ++i) values.push_back(row->log_probability(i));
  return values;
}

void expect_small_base(LogitsBaseReader& reader) {
  EXPECT_EQ(reader.shape().context_tokens, 5u);
  EXPECT_EQ(reader.shape().vocabulary_size, 3u);
  EXPECT_EQ(reader.shape().chunk_count, 2u);
  EXPECT_EQ(reader.shape().first_scored(), 2u);
  EXPECT_EQ(reader.shape().scored_count(), 2u);
  EXPECT_THAT(*reader.tokens(0), ElementsAre(0, 1, 2, 1, 0));
  EXPECT_THAT(*reader.tokens(1), ElementsAre(2, 2, 1, 1, 0));
  EXPECT_THAT(log_probabilities(reader, 0, 0), ElementsAre(-2.0, 0.0, -1.5));
  EXPECT_THAT(log_probabilities(reader, 0, 1), ElementsAre(-1.25, -1.25, -1.25));
  EXPECT_THAT(log_probabilities(reader, 1, 0), ElementsAre(0.0, -3.0, -1.0));
  EXPECT_THAT(log_probabilities(reader, 1, 1), ElementsAre(0.0, -60.0, -1.0));
}

TEST(LogitsBase, IsReadFromMemoryAndFromAFile) {
  const std::string bytes = small_base();
  auto memory = parse(bytes);
  ASSERT_TRUE(memory.ok()) << memory.error().message;
  expect_small_base(*memory);
  const TempFolder folder;
  auto file = LogitsBaseReader::open(folder.write("base", bytes));
  ASSERT_TRUE(file.ok()) << file.error().message;
  expect_small_base(*file);
}

TEST(LogitsBase, EveryOtherLengthIsRefused) {
  const std::string bytes = small_base();
  for (size_t length = 0; length < bytes.size(); ++length)
    EXPECT_FALSE(parse(bytes.substr(0, length)).ok()) << length;
  EXPECT_THAT(parse(bytes.substr(0, 100)).error().message,
              HasSubstr("base: 100 bytes are fewer than 2 chunks of 5 tokens with a vocabulary of "
                        "3 take; is it cut short?"));
  EXPECT_THAT(parse(bytes + "x").error().message, HasSubstr("bytes are more than 2 chunks"));
  EXPECT_THAT(parse("").error().message, HasSubstr("not a file of logits"));
}

TEST(LogitsBase, CountsThatNoFileHasAreRefused) {
  constexpr int32_t kMost = std::numeric_limits<int32_t>::max();
  const std::string behind = small_base().substr(20);
  EXPECT_THAT(parse("_logitz_" + words({5, 3, 2}) + behind).error().message,
              HasSubstr("not a file of logits"));
  for (const auto& counts : {words({2, 3, 2}), words({-5, 3, 2}), words({5, 0, 2}),
                             words({5, 3, 0}), words({5, 3, -1}), words({kMost, 3, 2})})
    EXPECT_THAT(parse("_logits_" + counts + behind).error().message, HasSubstr("not possible"));
  for (const auto& counts : {words({5, kMost, kMost}), words({1 << 24, kMost, kMost})})
    EXPECT_THAT(parse("_logits_" + counts + behind).error().message, HasSubstr("cut short"));
}

TEST(LogitsBase, TokensBeyondTheVocabularyAreRefused) {
  for (const int32_t token : {-1, 3}) {
    const std::string bytes = patched_after(small_base(), "_logits_", 12 + 7 * 4, bytes_of(token));
    EXPECT_EQ(parse(bytes).error().message,
              fmt::format("base: chunk 1: token {} of a vocabulary of 3", token));
  }
}

TEST(LogitsBase, RowsThatAreNoProbabilitiesAreRefused) {
  constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  constexpr size_t kFirstRow = 12 + 10 * 4;
  for (const auto& [scale, lowest] : {std::pair(kNan, -2.0f),
                                      {-0.5f, -2.0f},
                                      {kInfinity, -2.0f},
                                      {0.5f, kNan},
                                      {0.5f, -kInfinity},
                                      {0.0f, 0.5f}}) {
    const std::string bytes =
        patched_after(small_base(), "_logits_", kFirstRow, bytes_of(scale) + bytes_of(lowest));
    auto reader = parse(bytes);
    ASSERT_TRUE(reader.ok());
    const auto refused = reader->row(0, 0);
    ASSERT_FALSE(refused.ok()) << scale << " " << lowest;
    EXPECT_THAT(refused.error().message, HasSubstr("base: chunk 0, position 2: log-prob"));
    EXPECT_TRUE(reader->row(0, 1).ok());
  }
}

/// A row of three logits whose top is far above one of them.
TEST(LogitsBaseWriter, WritesTheFormat) {
  const TempFolder folder;
  const std::string path = folder.path() + "/new";
  auto writer =
      LogitsBaseWriter::create(path, {.context_tokens = 4, .vocabulary_size = 3, .chunk_count = 1});
  ASSERT_TRUE(writer.ok()) << writer.error().message;
  ASSERT_TRUE(writer->add_tokens(std::vector<text::TokenId>{2, 1, 0, 1}).ok());
  ASSERT_TRUE(writer->add_row(std::vector<float>{1.0f, -7.0f, -40.0f}, 1.5).ok());
  EXPECT_FALSE(LogitsBaseReader::open(path).ok()) << "not before it is complete";
  ASSERT_TRUE(writer->commit().ok());
  // 16 below the top is code 0, at ln p = 1 − 16 − 1.5; halfway is 32767.5, to the even number.
  EXPECT_EQ(*os::read_text_file(path, 100),
            "_logits_" + words({4, 3, 1, 2, 1, 0, 1}) +
                row(16.0f / 65535.0f, -16.5f, {65535, 32768, 0, 0}));
}

TEST(LogitsBaseWriter, EqualLogitsHaveNoScale) {
  const TempFolder folder;
  const std::string path = folder.path() + "/new";
  auto writer =
      LogitsBaseWriter::create(path, {.context_tokens = 3, .vocabulary_size = 2, .chunk_count = 1});
  ASSERT_TRUE(writer->add_tokens(std::vector<text::TokenId>{0, 0, 0}).ok());
  ASSERT_TRUE(writer->add_row(std::vector<float>{5.0f, 5.0f}, 5 + std::log(2.0)).ok());
  ASSERT_TRUE(writer->commit().ok());
  auto reader = LogitsBaseReader::open(path);
  ASSERT_TRUE(reader.ok()) << reader.error().message;
  const double log_half = static_cast<float>(-std::log(2.0));
  EXPECT_THAT(log_probabilities(*reader, 0, 0), ElementsAre(log_half, log_half));
}

TEST(LogitsBaseWriter, ReplacesItsOwnKindOnly) {
  const TempFolder folder;
  const ChunkShape shape{.context_tokens = 5, .vocabulary_size = 3, .chunk_count = 1};
  const std::string other = folder.write("model.gguf", "GGUF and more");
  const auto refused = LogitsBaseWriter::create(other, shape);
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.error().kind, ErrorKind::usage);
  EXPECT_THAT(refused.error().message, HasSubstr("no file of logits and stays as it is"));
  EXPECT_EQ(*os::read_text_file(other, 100), "GGUF and more");
  const std::string own = folder.write("base", small_base());
  EXPECT_TRUE(LogitsBaseWriter::create(own, shape).ok());
  EXPECT_EQ(*os::read_text_file(own, 1000), small_base()) << "until the new one is complete";
}

}  // namespace
}  // namespace sluice
