#include <gtest/gtest.h>

#include <algorithm>

#include "kernels/kernels.h"
#include "os/cpu.h"

namespace sluice::kernels {
namespace {

TEST(Select, NamesAreFoundAgain) {
  for (const Isa isa : {Isa::ref, Isa::avx2, Isa::avx512, Isa::neon, Isa::i8mm})
    EXPECT_EQ(isa_by_name(isa_name(isa)), isa);
  EXPECT_EQ(isa_name(Isa::avx512), "avx512");
  EXPECT_EQ(isa_by_name("sse9"), std::nullopt);
  EXPECT_EQ(isa_by_name(""), std::nullopt);
}

TEST(Select, ReferenceIsAlwaysThereAndFirst) {
  const std::vector<Isa> isas = usable_isas();
  ASSERT_FALSE(isas.empty());
  EXPECT_EQ(isas.front(), Isa::ref);
  EXPECT_TRUE(std::is_sorted(isas.begin(), isas.end()));
}

TEST(Select, OffersNothingTheProcessorLacks) {
  const os::CpuFeatures cpu = os::cpu_features();
  for (const Isa isa : usable_isas()) {
    const bool has_it = isa == Isa::avx2     ? cpu.avx2_fma_f16c
                        : isa == Isa::avx512 ? cpu.avx512
                        : isa == Isa::neon   ? cpu.neon_dot
                        : isa == Isa::i8mm   ? cpu.neon_i8mm
                                             : true;
    EXPECT_TRUE(has_it) << isa_name(isa);
  }
}

TEST(Select, EveryTableIsComplete) {
  for (const Isa isa : usable_isas()) {
    const KernelTable& table = kernel_table(isa);
    EXPECT_EQ(table.isa, isa);
    for (uint32_t id = 0; id < kDtypeIdCount; ++id) {
      const DtypeInfo* info = find_dtype(id);
      const bool decodes = info != nullptr && info->decode != nullptr;
      EXPECT_EQ(table.matvec[id] != nullptr, decodes) << "type " << id;
      EXPECT_EQ(table.matmul[id] != nullptr, decodes) << "type " << id;
    }
    for (size_t index = 0; index < kKvTypeCount; ++index) {
      EXPECT_NE(table.attention[index], nullptr);
      EXPECT_NE(table.store_key[index], nullptr);
      EXPECT_NE(table.store_value[index], nullptr);
    }
    EXPECT_NE(table.quantize_q8_256, nullptr);
    EXPECT_NE(table.quantize_q8_32, nullptr);
    EXPECT_NE(table.rms_norm, nullptr);
    EXPECT_NE(table.add, nullptr);
    EXPECT_NE(table.add_scaled, nullptr);
    EXPECT_NE(table.silu_multiply, nullptr);
    EXPECT_NE(table.gelu_multiply, nullptr);
    EXPECT_NE(table.softmax, nullptr);
    EXPECT_NE(table.soft_cap, nullptr);
    EXPECT_NE(table.rope_neox, nullptr);
    EXPECT_NE(table.rope_adjacent, nullptr);
    EXPECT_NE(table.convolve, nullptr);
    EXPECT_NE(table.relu_multiply, nullptr);
    EXPECT_NE(table.swiglu_clamped, nullptr);
    EXPECT_EQ(table.multiply_only != nullptr, isa != Isa::ref);
  }
}

TEST(SelectDeathTest, AnIsaThatCannotRunIsAMistake) {
  const std::vector<Isa> isas = usable_isas();
  for (const Isa isa : {Isa::avx512, Isa::i8mm}) {  // no machine has both
    if (std::find(isas.begin(), isas.end(), isa) != isas.end()) continue;
    EXPECT_DEATH(kernel_table(isa), "lacks the ISA");
  }
}

}  // namespace
}  // namespace sluice::kernels
