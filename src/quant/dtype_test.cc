#include "quant/dtype.h"

#include <gtest/gtest.h>

namespace sluice {
namespace {

TEST(Dtype, RowsOfTheTable) {
  EXPECT_EQ(find_dtype(12), &dtype_info(Dtype::q4_k));
  EXPECT_EQ(dtype_info(Dtype::q4_k).name, "Q4_K");
  EXPECT_EQ(find_dtype(4), nullptr) << "a retired id";
  EXPECT_EQ(find_dtype(43), nullptr);
  EXPECT_EQ(find_dtype(0xffffffffu), nullptr);
}

TEST(Dtype, BytesOfValues) {
  EXPECT_EQ(dtype_bytes(Dtype::q4_k, 2048), 8u * 144);
  EXPECT_EQ(dtype_bytes(Dtype::q8_0, 2048), 64u * 34);
  EXPECT_EQ(dtype_bytes(Dtype::f32, 3), 12u);
  EXPECT_EQ(dtype_bytes(Dtype::q6_k, uint64_t{1} << 40), (uint64_t{1} << 32) * 210);
}

TEST(DtypeDeathTest, PartOfABlockIsAMistake) {
  EXPECT_DEATH(dtype_bytes(Dtype::q4_0, 33), "check failed");
}

TEST(Dtype, ListsWhatItCanDecode) {
  EXPECT_EQ(
      supported_dtypes(),
      "F32, F16, Q4_0, Q4_1, Q5_0, Q5_1, Q8_0, Q2_K, Q3_K, Q4_K, Q5_K, Q6_K, IQ2_XXS, IQ2_XS, "
      "IQ3_XXS, IQ1_S, IQ4_NL, IQ3_S, IQ2_S, IQ4_XS, IQ1_M, BF16, TQ1_0, TQ2_0, MXFP4, NVFP4, "
      "Q1_0, Q2_0");
}

}  // namespace
}  // namespace sluice
