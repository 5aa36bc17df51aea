#include "gguf/value_lookup.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace sluice::gguf {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

const ValueMap kValues = {
    {"u", uint64_t{42}},
    {"i", int64_t{42}},
    {"minus", int64_t{-1}},
    {"f", 0.5},
    {"b", true},
    {"t", std::string("text")},
    {"us", std::vector<uint64_t>{1, 2}},
    {"is", std::vector<int64_t>{3, 4}},
    {"minuses", std::vector<int64_t>{3, -4}},
    {"fs", std::vector<double>{0.5, 1.5}},
    {"bs", std::vector<bool>{true, false, true}},
    {"ts", std::vector<std::string>{"a", "b"}},
    {"none", std::vector<std::string>{}},
    {"nested", NestedArray{}},
    {"exact", uint64_t{1} << 53},
    {"inexact", (uint64_t{1} << 53) + 1},
    {"far below", -(int64_t{1} << 53) - 1},
};

TEST(ValueLookup, MissingKeysAreNoErrors) {
  EXPECT_EQ(*find_uint(kValues, "?"), std::nullopt);
  EXPECT_EQ(*find_float(kValues, "?"), std::nullopt);
  EXPECT_EQ(*find_bool(kValues, "?"), std::nullopt);
  EXPECT_EQ(*find_text(kValues, "?"), std::nullopt);
  EXPECT_TRUE(find_uints(kValues, "?")->empty());
  EXPECT_TRUE(find_floats(kValues, "?")->empty());
  EXPECT_EQ(*find_texts(kValues, "?"), nullptr);
}

TEST(ValueLookup, FindsScalars) {
  EXPECT_EQ(*find_uint(kValues, "u"), 42u);
  EXPECT_EQ(*find_uint(kValues, "i"), 42u);
  EXPECT_EQ(*find_float(kValues, "f"), 0.5);
  EXPECT_EQ(*find_float(kValues, "u"), 42.0);
  EXPECT_EQ(*find_float(kValues, "minus"), -1.0);
  EXPECT_EQ(*find_float(kValues, "exact"), 0x1p53);
  EXPECT_EQ(*find_bool(kValues, "b"), true);
  EXPECT_EQ(*find_text(kValues, "t"), "text");
}

TEST(ValueLookup, FindsArraysAndTakesScalarsForArraysOfOne) {
  using Uints = std::vector<uint64_t>;
  using Floats = std::vector<double>;
  EXPECT_EQ(*find_uints(kValues, "us"), (Uints{1, 2}));
  EXPECT_EQ(*find_uints(kValues, "is"), (Uints{3, 4}));
  EXPECT_EQ(*find_uints(kValues, "bs"), (Uints{1, 0, 1}));
  EXPECT_EQ(*find_uints(kValues, "u"), (Uints{42}));
  EXPECT_EQ(*find_uints(kValues, "b"), (Uints{1}));
  EXPECT_EQ(*find_floats(kValues, "fs"), (Floats{0.5, 1.5}));
  EXPECT_EQ(*find_floats(kValues, "minuses"), (Floats{3, -4}));
  EXPECT_EQ(*find_floats(kValues, "f"), (Floats{0.5}));
  ASSERT_NE(*find_texts(kValues, "ts"), nullptr);
  EXPECT_EQ(**find_texts(kValues, "ts"), (std::vector<std::string>{"a", "b"}));
  EXPECT_TRUE((*find_texts(kValues, "none"))->empty());
}

template <typename T>
void expect_error(const Result<T>& result, const ::testing::Matcher<std::string>& message) {
  ASSERT_FALSE(result.ok());
  EXPECT_EQ(result.error().kind, ErrorKind::corrupt);
  EXPECT_THAT(result.error().message, message);
}

TEST(ValueLookup, NamesKeyAndBothTypes) {
  expect_error(find_uint(kValues, "t"),
               AllOf(HasSubstr("key 't' is a text"), HasSubstr("should be an unsigned integer")));
  expect_error(find_text(kValues, "ts"),
               AllOf(HasSubstr("is an array of texts"), HasSubstr("should be a text")));
  for (const char* key : {"f", "b", "us", "nested"})
    expect_error(find_uint(kValues, key), HasSubstr("an unsigned integer"));
  for (const char* key : {"b", "t", "fs"})
    expect_error(find_float(kValues, key), HasSubstr("a number"));
  for (const char* key : {"u", "i", "t", "bs"})
    expect_error(find_bool(kValues, key), HasSubstr("a boolean"));
  for (const char* key : {"f", "fs", "t", "ts", "none", "nested"})
    expect_error(find_uints(kValues, key), HasSubstr("one or more unsigned integers"));
  for (const char* key : {"b", "bs", "ts", "nested"})
    expect_error(find_floats(kValues, key), HasSubstr("one or more numbers"));
  for (const char* key : {"t", "us", "nested"})
    expect_error(find_texts(kValues, key), HasSubstr("an array of texts"));
}

TEST(ValueLookup, RefusesNumbersThatDoNotFit) {
  expect_error(find_uint(kValues, "minus"), HasSubstr("key 'minus': -1 is out of range"));
  expect_error(find_uints(kValues, "minuses"), HasSubstr("-4 is out of range"));
  expect_error(find_float(kValues, "inexact"), HasSubstr("9007199254740993 is out of range"));
  expect_error(find_float(kValues, "far below"), HasSubstr("out of range"));
}

}  // namespace
}  // namespace sluice::gguf
