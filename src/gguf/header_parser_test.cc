#include "gguf/header_parser.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "gguf/format.h"
#include "gguf/gguf_writer.h"
#include "testing/byte_surgery.h"

namespace sluice::gguf {
namespace {

using ::testing::HasSubstr;

constexpr float kWeights[8] = {1, 2, 3, 4, 5, 6, 7, 8};

/// A file with a few keys and two tensors of 32 and 16 bytes; the names are marks for surgery.
std::string small_file(const WriterOptions& options = {}) {
  GgufWriter writer(options);
  writer.set("general.architecture", "qwen3moe");
  writer.set("key.a", uint32_t{7});
  writer.set("key.b", uint32_t{8});
  const auto bytes = std::as_bytes(std::span(kWeights));
  writer.add_tensor("first.weight", Dtype::f32, {4, 2}, bytes);
  writer.add_tensor("later.weight", Dtype::f32, {4}, bytes.first(16));
  return writer.encode().front();
}

Result<std::optional<ShardHeader>> parse(std::string_view bytes) {
  return parse_header(as_byte_span(bytes), bytes.size());
}

void expect_error(std::string_view bytes, ErrorKind kind,
                  const ::testing::Matcher<std::string>& message) {
  const auto header = parse(bytes);
  ASSERT_FALSE(header.ok());
  EXPECT_EQ(header.error().kind, kind);
  EXPECT_THAT(header.error().message, message);
}

/// Distances behind a tensor's name in the table, for a tensor of one or two dimensions.
constexpr size_t kDimensionCountAt = 0;
constexpr size_t kDimensionsAt = 4;
constexpr size_t kTypeAt2d = 4 + 2 * 8;
constexpr size_t kOffsetAt1d = 4 + 8 + 4;

TEST(HeaderParser, ReadsVersions2And3) {
  for (const uint32_t version : {2u, 3u}) {
    const auto header = parse(small_file({.version = version}));
    ASSERT_TRUE(header.ok()) << header.error().message;
    ASSERT_TRUE(header->has_value());
    const ShardHeader& found = **header;
    EXPECT_EQ(found.version, version);
    EXPECT_EQ(found.values.size(), 3u);
    EXPECT_EQ(std::get<uint64_t>(found.values.at("key.b")), 8u);
    ASSERT_EQ(found.tensors.size(), 2u);
    EXPECT_EQ(found.tensors[0].name, "first.weight");
    EXPECT_EQ(found.tensors[0].shape, (std::vector<uint64_t>{4, 2}));
    EXPECT_EQ(found.tensors[0].dtype, Dtype::f32);
    // 24 of preamble, keys of 20+4+8+8+8, 5+8+4+4 and again, tensors of 12+8+4+2·8+4+8 and 8 less.
    constexpr uint64_t kHeaderBytes = 24 + 48 + 21 + 21 + 52 + 44;
    EXPECT_EQ(found.data_begin, (kHeaderBytes + 31) / 32 * 32);
    EXPECT_EQ(found.tensors[0].extent, (FileExtent{0, found.data_begin, 32}));
    EXPECT_EQ(found.tensors[1].extent, (FileExtent{0, found.data_begin + 32, 16}));
  }
}

TEST(HeaderParser, ReadsAFileWithNothingInIt) {
  const auto header = parse(GgufWriter().encode().front());
  ASSERT_TRUE(header.ok() && header->has_value());
  EXPECT_TRUE((*header)->values.empty());
  EXPECT_TRUE((*header)->tensors.empty());
}

TEST(HeaderParser, RefusesOtherFormatsAndVersions) {
  const std::string file = small_file();
  expect_error("GGML" + file.substr(4), ErrorKind::unsupported, HasSubstr("'GGML'"));
  expect_error(std::string("\x00\x01\xff\x7f", 4), ErrorKind::unsupported,
               HasSubstr("'\\x00\\x01\\xff\\x7f'"));
  expect_error("version https://git-lfs.github.com/spec/v1\n", ErrorKind::unsupported,
               HasSubstr("git lfs pull"));
  for (const uint32_t version : {0u, 1u, 4u, 70001u})
    expect_error(patched_after(file, "GGUF", 0, bytes_of(version)), ErrorKind::unsupported,
                 HasSubstr("version " + std::to_string(version)));
  expect_error(patched_after(file, "GGUF", 0, bytes_of(uint32_t{3} << 24)), ErrorKind::unsupported,
               HasSubstr("big-endian"));
}

TEST(HeaderParser, AsksForMoreUntilTheHeaderIsThere) {
  const std::string file = small_file();
  const auto whole = parse(file);
  ASSERT_TRUE(whole.ok());
  const size_t header_bytes = 24 + 48 + 21 + 21 + 52 + 44;
  for (size_t head = 0; head <= file.size(); ++head) {
    const auto header = parse_header(as_byte_span(file).first(head), file.size());
    ASSERT_TRUE(header.ok()) << head << header.error().message;
    EXPECT_EQ(header->has_value(), head >= header_bytes) << head;
  }
}

TEST(HeaderParser, NamesWhatAFileBreaksOffIn) {
  const std::string file = small_file();
  for (size_t end = 0; end < file.size(); ++end) {
    const auto header = parse(std::string_view(file).substr(0, end));
    // The last tensor has 16 bytes, its padding may be missing.
    if (end + 16 >= file.size()) {
      EXPECT_TRUE(header.ok()) << end;
      continue;
    }
    ASSERT_FALSE(header.ok()) << end;
    EXPECT_EQ(header.error().kind, ErrorKind::corrupt) << end;
  }
  expect_error(file.substr(0, file.find("key.b") + 10), ErrorKind::corrupt, HasSubstr("'key.b'"));
  expect_error(file.substr(0, file.size() - 16 - 1), ErrorKind::corrupt,
               HasSubstr("tensor 'later.weight'"));
  expect_error(file.substr(0, file.size() - 32 - 1), ErrorKind::corrupt,
               HasSubstr("tensor 'first.weight'"));
  expect_error("", ErrorKind::corrupt, HasSubstr("0 bytes"));
}

TEST(HeaderParser, BoundsCountsBeforeAllocating) {
  const std::string file = small_file();
  for (const uint64_t count : {uint64_t{1000}, uint64_t{1} << 40, ~uint64_t{0}}) {
    expect_error(patched_after(file, "GGUF", 4, bytes_of(count)), ErrorKind::corrupt,
                 HasSubstr("claims more"));
    expect_error(patched_after(file, "GGUF", 12, bytes_of(count)), ErrorKind::corrupt,
                 HasSubstr("claims more"));
    expect_error(replaced(file, bytes_of(uint64_t{8}) + "qwen3moe", bytes_of(count) + "qwen3moe"),
                 ErrorKind::corrupt, HasSubstr("near 'general.architecture'"));
  }
  // In a file large enough for the count, the head at hand decides: no allocation, ask for more.
  const std::string many = patched_after(file, "GGUF", 4, bytes_of(uint64_t{1} << 40));
  const auto header = parse_header(as_byte_span(many), uint64_t{1} << 50);
  ASSERT_TRUE(header.ok());
  EXPECT_FALSE(header->has_value());
}

TEST(HeaderParser, RefusesDuplicateKeys) {
  expect_error(replaced(small_file(), "key.b", "key.a"), ErrorKind::corrupt,
               HasSubstr("key 'key.a' appears twice"));
}

TEST(HeaderParser, RefusesUnknownValueTypes) {
  for (const uint32_t type : {13u, 255u, ~0u})
    expect_error(patched_after(small_file(), "key.a", 0, bytes_of(type)), ErrorKind::corrupt,
                 HasSubstr("key 'key.a': unknown value type " + std::to_string(type)));
}

TEST(HeaderParser, TakesAnyBytesAsNames) {
  const std::string odd("\0\n\xff%", 5);  // as long as "key.b", with its terminator
  const auto header = parse(replaced(small_file(), "key.b", odd));
  ASSERT_TRUE(header.ok());
  EXPECT_EQ(std::get<uint64_t>((*header)->values.at(odd)), 8u);
  expect_error(patched_after(replaced(small_file(), "key.b", odd), odd, 0, bytes_of(99u)),
               ErrorKind::corrupt, HasSubstr("key '\\x00\\x0a\\xff%\\x00'"));
}

TEST(HeaderParser, ObeysTheAlignment) {
  for (const uint32_t alignment : {1u, 8u, 64u, 4096u}) {
    const auto header = parse(small_file({.alignment = alignment}));
    ASSERT_TRUE(header.ok()) << header.error().message;
    EXPECT_EQ((*header)->data_begin % alignment, 0u);
    EXPECT_EQ((*header)->tensors[1].extent.offset,
              (*header)->data_begin + std::max(alignment, 32u));
  }
  const std::string file = small_file({.alignment = 64});
  for (const uint32_t alignment : {0u, 3u, 48u, 1u << 25, ~0u})
    expect_error(patched_after(file, "general.alignment", 4, bytes_of(alignment)),
                 ErrorKind::corrupt, HasSubstr("general.alignment"));
  expect_error(patched_after(file, "general.alignment", 0, bytes_of(ValueType::f32)),
               ErrorKind::corrupt, HasSubstr("floating-point"));
}

TEST(HeaderParser, RefusesOffsetsOffTheAlignment) {
  expect_error(patched_after(small_file(), "later.weight", kOffsetAt1d, bytes_of(uint64_t{48})),
               ErrorKind::corrupt,
               HasSubstr("'later.weight': its offset 48 is not a multiple of the alignment 32"));
}

TEST(HeaderParser, ChecksRangesBySubtraction) {
  // Offset plus size wraps around to a small number: a sum would pass.
  for (const uint64_t offset : {uint64_t{64}, uint64_t{1} << 40, ~uint64_t{31}})
    expect_error(patched_after(small_file(), "later.weight", kOffsetAt1d, bytes_of(offset)),
                 ErrorKind::corrupt, HasSubstr("'later.weight': its 16 bytes"));
}

TEST(HeaderParser, RefusesOverlaps) {
  expect_error(patched_after(small_file(), "later.weight", kOffsetAt1d, bytes_of(uint64_t{0})),
               ErrorKind::corrupt, HasSubstr("overlap"));
  // Rows of the first tensor grown by two elements: it reaches into the later one by 16 bytes.
  expect_error(patched_after(small_file(), "first.weight", kDimensionsAt, bytes_of(uint64_t{6})),
               ErrorKind::corrupt,
               HasSubstr("'later.weight': its bytes overlap those of 'first.w"));
}

TEST(HeaderParser, AllowsGapsAndAnyOrder) {
  GgufWriter writer;
  const auto bytes = std::as_bytes(std::span(kWeights));
  writer.add_tensor("first.weight", Dtype::f32, {8}, bytes);
  writer.add_tensor("later.weight", Dtype::f32, {8}, bytes);
  std::string file = writer.encode().front() + std::string(64, '\0');
  file = patched_after(file, "first.weight", kOffsetAt1d, bytes_of(uint64_t{96}));
  file = patched_after(file, "later.weight", kOffsetAt1d, bytes_of(uint64_t{0}));
  const auto header = parse(file);
  ASSERT_TRUE(header.ok()) << header.error().message;
  EXPECT_EQ((*header)->tensors[0].extent.offset, (*header)->data_begin + 96);
}

TEST(HeaderParser, RefusesImpossibleShapes) {
  const std::string file = small_file();
  for (const uint32_t count : {0u, 5u, ~0u})
    expect_error(patched_after(file, "first.weight", kDimensionCountAt, bytes_of(count)),
                 ErrorKind::corrupt,
                 HasSubstr("'first.weight': " + std::to_string(count) + " dimensions"));
  for (const size_t dimension : {0u, 1u})
    expect_error(
        patched_after(file, "first.weight", kDimensionsAt + 8 * dimension, bytes_of(uint64_t{0})),
        ErrorKind::corrupt, HasSubstr("'first.weight': a dimension is 0"));
  expect_error(patched_after(file, "first.weight", kDimensionsAt + 8,
                             bytes_of(uint64_t{1} << 62)),  // · 4 = 2^64
               ErrorKind::corrupt, HasSubstr("'first.weight': its shape overflows"));
  expect_error(patched_after(file, "first.weight", kDimensionsAt + 8,
                             bytes_of(uint64_t{1} << 61)),  // · 4 fits, · 4 bytes does not
               ErrorKind::corrupt, HasSubstr("'first.weight': its size overflows"));
}

TEST(HeaderParser, RefusesRowsOfPartialBlocks) {
  const auto type = bytes_of(Dtype::q8_0);
  expect_error(patched_after(small_file(), "first.weight", kTypeAt2d, type), ErrorKind::corrupt,
               HasSubstr("'first.weight': its rows of 4 elements are not whole Q8_0 blocks of 32"));
  // 8 rows of 4 elements: a whole block in all, but not in a row.
  expect_error(patched_after(patched_after(small_file(), "first.weight", kTypeAt2d, type),
                             "first.weight", kDimensionsAt + 8, bytes_of(uint64_t{8})),
               ErrorKind::corrupt, HasSubstr("rows of 4"));
}

TEST(HeaderParser, RefusesUnknownTensorTypes) {
  for (const uint32_t id : {4u, 5u, 9u, 15u, 31u, 36u, 43u, 64u, 1000u, ~0u})
    expect_error(patched_after(small_file(), "first.weight", kTypeAt2d, bytes_of(id)),
                 ErrorKind::unsupported,
                 ::testing::AllOf(HasSubstr("'first.weight': type id " + std::to_string(id)),
                                  HasSubstr("0 to 42")));
  expect_error(patched_after(small_file(), "first.weight", kTypeAt2d, bytes_of(4u)),
               ErrorKind::unsupported, HasSubstr("MXFP4"));
  expect_error(patched_after(small_file(), "first.weight", kTypeAt2d, bytes_of(31u)),
               ErrorKind::unsupported, HasSubstr("retired"));
}

TEST(HeaderParser, KnowsTheBytesOfEveryType) {
  for (uint32_t id = 0; id < kDtypeIdCount; ++id) {
    const DtypeInfo* info = find_dtype(id);
    if (info == nullptr) continue;
    GgufWriter writer;
    const std::vector<std::byte> bytes(size_t{info->block_bytes} * 6);
    writer.add_tensor("t", info->dtype, {info->block_elements, 3, 2}, bytes);
    const std::string file = writer.encode().front();
    const auto header = parse(file);
    ASSERT_TRUE(header.ok()) << info->name << header.error().message;
    EXPECT_EQ((*header)->tensors[0].extent.bytes, bytes.size());
    EXPECT_FALSE(
        parse(std::string_view(file).substr(0, (*header)->data_begin + bytes.size() - 1)).ok());
  }
}

}  // namespace
}  // namespace sluice::gguf
