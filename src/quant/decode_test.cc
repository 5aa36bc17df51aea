#include "quant/decode.h"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include "base/half.h"
#include "quant/blocks.h"
#include "quant/dtype.h"

namespace sluice {
namespace {

struct ForeignFormat {
  Dtype dtype;
  const char* file_stem;
};
constexpr ForeignFormat kForeignFormats[] = {
    {Dtype::f16, "f16"},       {Dtype::bf16, "bf16"},       {Dtype::q4_0, "q4_0"},
    {Dtype::q5_0, "q5_0"},     {Dtype::q8_0, "q8_0"},       {Dtype::q2_k, "q2_K"},
    {Dtype::q3_k, "q3_K"},     {Dtype::q4_k, "q4_K"},       {Dtype::q5_k, "q5_K"},
    {Dtype::q6_k, "q6_K"},     {Dtype::iq4_xs, "iq4_xs"},   {Dtype::tq1_0, "tq1_0"},
    {Dtype::tq2_0, "tq2_0"},   {Dtype::q4_1, "q4_1"},       {Dtype::q5_1, "q5_1"},
    {Dtype::iq4_nl, "iq4_nl"}, {Dtype::mxfp4, "mxfp4"},     {Dtype::nvfp4, "nvfp4"},
    {Dtype::q1_0, "q1_0"},     {Dtype::q2_0, "q2_0"},       {Dtype::iq2_xxs, "iq2_xxs"},
    {Dtype::iq2_xs, "iq2_xs"}, {Dtype::iq3_xxs, "iq3_xxs"}, {Dtype::iq1_s, "iq1_s"},
    {Dtype::iq3_s, "iq3_s"},   {Dtype::iq2_s, "iq2_s"},     {Dtype::iq1_m, "iq1_m"},
};

std::vector<char> read_file(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
}

/// Decodes a file of foreign blocks and compares with the foreign floats, as bits.
void expect_foreign_floats(const std::string& folder, const ForeignFormat& format) {
  SCOPED_TRACE(format.file_stem);
  const std::vector<char> blocks = read_file(folder + "/" + format.file_stem + ".blocks");
  const std::vector<char> floats = read_file(folder + "/" + format.file_stem + ".f32");
  const DtypeInfo& info = dtype_info(format.dtype);
  const size_t block_count = blocks.size() / info.block_bytes;
  const size_t element_count = block_count * info.block_elements;
  ASSERT_GT(block_count, 0u) << "no blocks in " << folder;
  ASSERT_EQ(floats.size(), element_count * sizeof(float));
  std::vector<float> decoded(element_count);
  info.decode(reinterpret_cast<const std::byte*>(blocks.data()), block_count, decoded.data());
  size_t wrong_count = 0;
  for (size_t i = 0; i < element_count; ++i) {
    uint32_t expected;
    std::memcpy(&expected, floats.data() + i * sizeof(float), sizeof(float));
    if (std::bit_cast<uint32_t>(decoded[i]) == expected) continue;
    if (++wrong_count == 1)
      ADD_FAILURE() << "element " << i << ": " << decoded[i] << ", not "
                    << std::bit_cast<float>(expected);
  }
  EXPECT_EQ(wrong_count, 0u);
}

TEST(Decode, GivesTheBitsOfForeignFloats) {
  for (const ForeignFormat& format : kForeignFormats)
    expect_foreign_floats(SLUICE_SOURCE_DIR "/tests/data/quants", format);
}

TEST(Decode, GivesTheBitsOfAllForeignFloats) {
  const char* cases = std::getenv("SLUICE_CASES");
  if (cases == nullptr) GTEST_SKIP() << "SLUICE_CASES names no folder of bulk data";
  for (const ForeignFormat& format : kForeignFormats)
    expect_foreign_floats(std::string(cases) + "/quants", format);
}

TEST(Decode, EveryByteOfABlockMatters) {
  for (const ForeignFormat& format : kForeignFormats) {
    const DtypeInfo& info = dtype_info(format.dtype);
    SCOPED_TRACE(info.name);
    std::vector<std::byte> block(info.block_bytes, std::byte{0x36});
    std::vector<float> before(info.block_elements), after(info.block_elements);
    info.decode(block.data(), 1, before.data());
    for (size_t i = 0; i < block.size(); ++i) {
      block[i] ^= std::byte{0x11};
      info.decode(block.data(), 1, after.data());
      EXPECT_NE(before, after) << "byte " << i;
      block[i] ^= std::byte{0x11};
    }
  }
}

TEST(Decode, SubnormalScalesKeepTheirValue) {
  BlockQ8_0 q8 = {};
  q8.d = 0x0001;  // 2^-24, the smallest half
  q8.qs[0] = -128;
  q8.qs[31] = 127;
  float out[kSuperBlock];
  decode_q8_0(reinterpret_cast<const std::byte*>(&q8), 1, out);
  EXPECT_EQ(out[0], -0x1p-17f);
  EXPECT_EQ(out[31], 127 * 0x1p-24f);
  EXPECT_EQ(out[1], 0.0f);

  BlockQ6_K q6 = {};  // all bits zero: q = −32
  q6.d = 0x8001;
  q6.scales[0] = -128;
  q6.scales[15] = 127;
  decode_q6_k(reinterpret_cast<const std::byte*>(&q6), 1, out);
  EXPECT_EQ(out[0], -128 * 32 * 0x1p-24f);
  EXPECT_EQ(out[255], 127 * 32 * 0x1p-24f);
  EXPECT_EQ(out[16], 0.0f);
}

TEST(Decode, ExtremesOfQ4K) {
  BlockQ4_K block;
  std::memset(&block, 0xff, sizeof(block));  // every scale and min 63, every q 15
  block.d = 0x7bff;
  block.dmin = 0x7bff;
  float out[kSuperBlock];
  decode_q4_k(reinterpret_cast<const std::byte*>(&block), 1, out);
  for (const float value : out) EXPECT_EQ(value, 65504.0f * 63 * 14);
}

TEST(Decode, NonFiniteScalesGiveNonFiniteWeights) {
  BlockQ4_0 block = {};
  block.d = 0x7c00;
  block.qs[0] = 0x89;  // q = 1 and 0
  float out[kSmallBlock];
  decode_q4_0(reinterpret_cast<const std::byte*>(&block), 1, out);
  EXPECT_TRUE(std::isinf(out[0]));
  EXPECT_TRUE(std::isnan(out[16]));
}

TEST(Decode, KScalesSurvivePacking) {
  for (uint8_t seed = 0; seed < 64; ++seed) {
    KScales scales;
    for (size_t s = 0; s < kKSubBlocks; ++s) {
      scales.scale[s] = static_cast<uint8_t>((seed + 23 * s) % 64);
      scales.min[s] = static_cast<uint8_t>((5 * seed + 41 * s) % 64);
    }
    uint8_t packed[12];
    pack_k_scales(scales, packed);
    const KScales unpacked = unpack_k_scales(packed);
    for (size_t s = 0; s < kKSubBlocks; ++s) {
      EXPECT_EQ(unpacked.scale[s], scales.scale[s]);
      EXPECT_EQ(unpacked.min[s], scales.min[s]);
    }
  }
}

}  // namespace
}  // namespace sluice
