#include "gguf/gguf_writer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <limits>
#include <sstream>

#include "gguf/gguf_file.h"
#include "gguf/header_parser.h"
#include "testing/byte_surgery.h"
#include "testing/temp_folder.h"

namespace sluice::gguf {
namespace {

/// The format by hand: what a file with one key and one tensor looks like, byte by byte.
TEST(GgufWriter, WritesTheFormat) {
  GgufWriter writer;
  writer.set("k", int16_t{-2});
  const float weights[2] = {1.0f, -2.0f};
  writer.add_tensor("w", Dtype::f32, {2, 1}, std::as_bytes(std::span(weights)));
  std::string expected("GGUF\3\0\0\0", 8);
  expected += std::string("\1\0\0\0\0\0\0\0\1\0\0\0\0\0\0\0", 16);   // counts
  expected += std::string("\1\0\0\0\0\0\0\0k\3\0\0\0\xfe\xff", 15);  // key, type, value
  expected += std::string("\1\0\0\0\0\0\0\0w\2\0\0\0", 13);          // name, dimensions
  expected += std::string("\2\0\0\0\0\0\0\0\1\0\0\0\0\0\0\0", 16);   // 2 and 1
  expected += std::string("\0\0\0\0\0\0\0\0\0\0\0\0", 12);           // F32, offset
  expected += std::string(96 - 80, '\0');                            // to the alignment
  expected += std::string("\0\0\x80\x3f\0\0\0\xc0", 8) + std::string(24, '\0');
  EXPECT_EQ(writer.encode(), std::vector<std::string>{expected});
}

template <typename T>
void set_both(GgufWriter& writer, const std::string& key, std::vector<T> values) {
  writer.set<T>(key, values.front());
  writer.set_array(key + "s", values);
}

TEST(GgufWriter, RoundTripsEveryValueType) {
  GgufWriter writer;
  set_both<uint8_t>(writer, "u8", {255, 0});
  set_both<int8_t>(writer, "i8", {-128, 127});
  set_both<uint16_t>(writer, "u16", {65535, 1});
  set_both<int16_t>(writer, "i16", {-32768, 2});
  set_both<uint32_t>(writer, "u32", {4294967295u, 3});
  set_both<int32_t>(writer, "i32", {-2147483647 - 1, 4});
  set_both<uint64_t>(writer, "u64", {~uint64_t{0}, 5});
  set_both<int64_t>(writer, "i64", {std::numeric_limits<int64_t>::min(), 6});
  set_both<float>(writer, "f32", {0.1f, -0.0f});
  set_both<double>(writer, "f64", {0.1, 1e300});
  set_both<bool>(writer, "b", {true, false});
  set_both<std::string>(writer, "t", {"Grüße\n", ""});

  const std::string bytes = writer.encode().front();
  const auto header = parse_header(as_byte_span(bytes), bytes.size());
  ASSERT_TRUE(header.ok()) << header.error().message;
  const ValueMap& values = (*header)->values;
  EXPECT_EQ(values.size(), 24u);
  EXPECT_EQ(values.at("u8"), Value(uint64_t{255}));
  EXPECT_EQ(values.at("u8s"), Value(std::vector<uint64_t>{255, 0}));
  EXPECT_EQ(values.at("i8s"), Value(std::vector<int64_t>{-128, 127}));
  EXPECT_EQ(values.at("u16s"), Value(std::vector<uint64_t>{65535, 1}));
  EXPECT_EQ(values.at("i16"), Value(int64_t{-32768}));
  EXPECT_EQ(values.at("i16s"), Value(std::vector<int64_t>{-32768, 2}));
  EXPECT_EQ(values.at("u32s"), Value(std::vector<uint64_t>{4294967295u, 3}));
  EXPECT_EQ(values.at("i32s"), Value(std::vector<int64_t>{-2147483648, 4}));
  EXPECT_EQ(values.at("u64s"), Value(std::vector<uint64_t>{~uint64_t{0}, 5}));
  EXPECT_EQ(values.at("i64s"), Value(std::vector<int64_t>{std::numeric_limits<int64_t>::min(), 6}));
  EXPECT_EQ(values.at("f32"), Value(double{0.1f}));
  EXPECT_EQ(values.at("f32s"), Value(std::vector<double>{0.1f, -0.0}));
  EXPECT_EQ(values.at("f64s"), Value(std::vector<double>{0.1, 1e300}));
  EXPECT_EQ(values.at("b"), Value(true));
  EXPECT_EQ(values.at("bs"), Value(std::vector<bool>{true, false}));
  EXPECT_EQ(values.at("t"), Value(std::string("Grüße\n")));
  EXPECT_EQ(values.at("ts"), Value(std::vector<std::string>{"Grüße\n", ""}));
}

std::string read_all(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

/// 5 tensors of odd sizes, each byte telling tensor and place.
GgufWriter five_tensors(const WriterOptions& options) {
  GgufWriter writer(options);
  writer.set("general.architecture", "test");
  for (uint64_t i = 0; i < 5; ++i)
    writer.add_tensor(fmt::format("t{}", i), Dtype::i8, {7 + 30 * i},
                      [i](uint64_t offset, std::span<std::byte> piece) -> Status {
                        for (std::byte& b : piece) b = static_cast<std::byte>(i * 50 + offset++);
                        return {};
                      });
  return writer;
}

TEST(GgufWriter, PutsEveryTensorWhereTheReaderFindsIt) {
  for (const uint32_t shard_count : {1u, 2u, 3u, 5u, 7u})
    for (const uint32_t alignment : {1u, 32u, 4096u}) {
      const TempFolder folder;
      const WriterOptions options{.alignment = alignment, .shard_count = shard_count};
      const GgufWriter writer = five_tensors(options);
      ASSERT_TRUE(writer.write(folder.path() + "/m.gguf").ok());
      const auto file = GgufFile::open(folder.path());
      ASSERT_TRUE(file.ok()) << file.error().message;
      EXPECT_EQ(file->paths(), writer.shard_paths(folder.path() + "/m.gguf"));
      ASSERT_EQ(file->tensors().size(), 5u);
      for (uint64_t i = 0; i < 5; ++i) {
        const FileExtent extent = file->tensors()[i].extent;
        ASSERT_EQ(extent.bytes, 7 + 30 * i);
        EXPECT_EQ(extent.offset % alignment, 0u);
        const std::string bytes = read_all(file->paths()[extent.file]);
        for (uint64_t j = 0; j < extent.bytes; ++j)
          ASSERT_EQ(static_cast<uint8_t>(bytes[extent.offset + j]), (i * 50 + j) % 256);
      }
    }
}

TEST(GgufWriter, AsksItsSourcesPieceByPiece) {
  constexpr uint64_t kBytes = 9'000'001;
  uint64_t expected_offset = 0;
  size_t piece_max = 0;
  GgufWriter writer;
  writer.add_tensor("big", Dtype::i8, {kBytes}, [&](uint64_t offset, std::span<std::byte> piece) {
    EXPECT_EQ(offset, expected_offset);
    expected_offset += piece.size();
    piece_max = std::max(piece_max, piece.size());
    std::fill(piece.begin(), piece.end(), std::byte{1});
    return Status{};
  });
  std::ostringstream out;
  ASSERT_TRUE(writer.write_shard(0, out).ok());
  EXPECT_EQ(expected_offset, kBytes);
  EXPECT_LE(piece_max, 4u << 20);
}

TEST(GgufWriter, ReportsFailures) {
  GgufWriter writer;
  writer.add_tensor("t", Dtype::i8, {1}, [](uint64_t, std::span<std::byte>) -> Status {
    return make_error(ErrorKind::io, "the source is gone");
  });
  const TempFolder folder;
  const Status failed = writer.write(folder.path() + "/m.gguf");
  ASSERT_FALSE(failed.ok());
  EXPECT_THAT(failed.error().message, ::testing::HasSubstr("m.gguf: the source is gone"));
  EXPECT_FALSE(GgufWriter().write(folder.path() + "/no/such/folder/m.gguf").ok());
}

}  // namespace
}  // namespace sluice::gguf
