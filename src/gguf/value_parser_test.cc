#include "gguf/value_parser.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>

#include "gguf/gguf_writer.h"
#include "gguf/header_parser.h"
#include "testing/byte_surgery.h"

namespace sluice::gguf {
namespace {

using ::testing::HasSubstr;

Result<Value> parse(ValueType type, const std::string& bytes) {
  HeadReader reader(as_byte_span(bytes), bytes.size());
  auto value = parse_value(reader, static_cast<uint32_t>(type));
  if (!value.ok()) return value;
  if (!reader.ok()) return make_error(ErrorKind::corrupt, "past the end");
  EXPECT_EQ(reader.position(), bytes.size());
  return value;
}

std::string array_head(ValueType type, uint64_t count) {
  return bytes_of(static_cast<uint32_t>(type)) + bytes_of(count);
}

std::string text(std::string_view content) {
  return bytes_of(uint64_t{content.size()}) + std::string(content);
}

TEST(ValueParser, WidensScalars) {
  EXPECT_EQ(*parse(ValueType::u8, "\xff"), Value(uint64_t{255}));
  EXPECT_EQ(*parse(ValueType::i8, "\xff"), Value(int64_t{-1}));
  EXPECT_EQ(*parse(ValueType::u16, "\xfe\xff"), Value(uint64_t{65534}));
  EXPECT_EQ(*parse(ValueType::i16, "\xfe\xff"), Value(int64_t{-2}));
  EXPECT_EQ(*parse(ValueType::u32, "\xfd\xff\xff\xff"), Value(uint64_t{4294967293}));
  EXPECT_EQ(*parse(ValueType::i32, "\xfd\xff\xff\xff"), Value(int64_t{-3}));
  EXPECT_EQ(*parse(ValueType::u64, std::string(8, '\xff')), Value(~uint64_t{0}));
  EXPECT_EQ(*parse(ValueType::i64, std::string(8, '\xff')), Value(int64_t{-1}));
  EXPECT_EQ(*parse(ValueType::f32, bytes_of(0.1f)), Value(double{0.1f}));
  EXPECT_EQ(*parse(ValueType::f64, bytes_of(0.1)), Value(0.1));
  EXPECT_EQ(*parse(ValueType::boolean, "\x01"), Value(true));
  EXPECT_EQ(*parse(ValueType::boolean, std::string(1, '\0')), Value(false));
  EXPECT_EQ(*parse(ValueType::text, text("f\xc3\xbcr \n\"")), Value(std::string("für \n\"")));
  EXPECT_EQ(*parse(ValueType::text, text("")), Value(std::string()));
}

TEST(ValueParser, RefusesBooleansThatAreNone) {
  const auto scalar = parse(ValueType::boolean, "\x02");
  ASSERT_FALSE(scalar.ok());
  EXPECT_THAT(scalar.error().message, HasSubstr("a boolean holds 2"));
  EXPECT_FALSE(parse(ValueType::array, array_head(ValueType::boolean, 2) + "\x01\xff").ok());
}

TEST(ValueParser, ReadsArraysOfEveryType) {
  const auto u16s = array_head(ValueType::u16, 3) + std::string("\x01\x00\x02\x00\xff\xff", 6);
  EXPECT_EQ(*parse(ValueType::array, u16s), Value(std::vector<uint64_t>{1, 2, 65535}));
  EXPECT_EQ(*parse(ValueType::array, array_head(ValueType::i8, 2) + "\x7f\x80"),
            Value(std::vector<int64_t>{127, -128}));
  EXPECT_EQ(*parse(ValueType::array, array_head(ValueType::f32, 1) + bytes_of(-1.5f)),
            Value(std::vector<double>{-1.5}));
  EXPECT_EQ(*parse(ValueType::array, array_head(ValueType::boolean, 3) + std::string("\1\0\1", 3)),
            Value(std::vector<bool>{true, false, true}));
  EXPECT_EQ(*parse(ValueType::array, array_head(ValueType::text, 2) + text("a") + text("")),
            Value(std::vector<std::string>{"a", ""}));
  EXPECT_EQ(*parse(ValueType::array,
                   array_head(ValueType::i64, 1) + bytes_of(std::numeric_limits<int64_t>::min())),
            Value(std::vector<int64_t>{std::numeric_limits<int64_t>::min()}));
}

TEST(ValueParser, KeepsTheTypeOfEmptyArrays) {
  EXPECT_EQ(*parse(ValueType::array, array_head(ValueType::u8, 0)), Value(std::vector<uint64_t>{}));
  EXPECT_EQ(*parse(ValueType::array, array_head(ValueType::text, 0)),
            Value(std::vector<std::string>{}));
}

TEST(ValueParser, BoundsCountsByTheBytesLeft) {
  for (const auto type : {ValueType::u8, ValueType::u64, ValueType::boolean, ValueType::text,
                          ValueType::array, ValueType::f32})
    for (const uint64_t count : {uint64_t{17}, uint64_t{1} << 61, ~uint64_t{0}}) {
      const auto value = parse(ValueType::array, array_head(type, count) + std::string(16, '\0'));
      ASSERT_FALSE(value.ok());
      EXPECT_EQ(value.error().message, "past the end");
    }
  EXPECT_FALSE(parse(ValueType::text, bytes_of(~uint64_t{0}) + "abc").ok());
}

/// Arrays in arrays, `depth` of them around one array of two texts.
std::string nested(int depth) {
  std::string bytes;
  for (int i = 0; i < depth; ++i) bytes += array_head(ValueType::array, 1);
  return bytes + array_head(ValueType::text, 2) + text("x") + text("yz");
}

TEST(ValueParser, StepsOverNestedArrays) {
  for (int depth = 1; depth < 8; ++depth)
    EXPECT_EQ(*parse(ValueType::array, nested(depth)), Value(NestedArray{})) << depth;
  const auto mixed = array_head(ValueType::array, 3) + array_head(ValueType::u32, 2) +
                     std::string(8, '\7') + array_head(ValueType::text, 0) +
                     array_head(ValueType::f64, 1) + std::string(8, '\7');
  EXPECT_EQ(*parse(ValueType::array, mixed), Value(NestedArray{}));
}

TEST(ValueParser, LimitsNesting) {
  const auto deep = parse(ValueType::array, nested(100'000));
  ASSERT_FALSE(deep.ok());
  EXPECT_THAT(deep.error().message, HasSubstr("nested more than 8 deep"));
  const auto unknown = parse(
      ValueType::array, array_head(ValueType::array, 1) + bytes_of(77u) + bytes_of(uint64_t{1}));
  ASSERT_FALSE(unknown.ok());
  EXPECT_THAT(unknown.error().message, HasSubstr("unknown value type 77"));
}

}  // namespace
}  // namespace sluice::gguf
