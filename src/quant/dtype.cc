#include "quant/dtype.h"

#include <fmt/format.h>

#include <string>

#include "base/check.h"
#include "quant/decode.h"

namespace sluice {
namespace {

using A = ActivationFormat;

// Block sizes: the format's definition in the ecosystem's GGUF type list. Id order.
constexpr DtypeInfo kTable[] = {
    {Dtype::f32, "F32", 1, 4, A::f32, decode_f32},
    {Dtype::f16, "F16", 1, 2, A::f32, decode_f16},
    {Dtype::q4_0, "Q4_0", 32, 18, A::q8_32, decode_q4_0},
    {Dtype::q4_1, "Q4_1", 32, 20, A::q8_32, decode_q4_1},
    {Dtype::q5_0, "Q5_0", 32, 22, A::q8_32, decode_q5_0},
    {Dtype::q5_1, "Q5_1", 32, 24, A::q8_32, decode_q5_1},
    {Dtype::q8_0, "Q8_0", 32, 34, A::q8_32, decode_q8_0},
    {Dtype::q2_k, "Q2_K", 256, 84, A::q8_256, decode_q2_k},
    {Dtype::q3_k, "Q3_K", 256, 110, A::q8_256, decode_q3_k},
    {Dtype::q4_k, "Q4_K", 256, 144, A::q8_256, decode_q4_k},
    {Dtype::q5_k, "Q5_K", 256, 176, A::q8_256, decode_q5_k},
    {Dtype::q6_k, "Q6_K", 256, 210, A::q8_256, decode_q6_k},
    {Dtype::iq2_xxs, "IQ2_XXS", 256, 66, A::q8_256, decode_iq2_xxs},
    {Dtype::iq2_xs, "IQ2_XS", 256, 74, A::q8_256, decode_iq2_xs},
    {Dtype::iq3_xxs, "IQ3_XXS", 256, 98, A::q8_256, decode_iq3_xxs},
    {Dtype::iq1_s, "IQ1_S", 256, 50, A::q8_256, decode_iq1_s},
    {Dtype::iq4_nl, "IQ4_NL", 32, 18, A::q8_32, decode_iq4_nl},
    {Dtype::iq3_s, "IQ3_S", 256, 110, A::q8_256, decode_iq3_s},
    {Dtype::iq2_s, "IQ2_S", 256, 82, A::q8_256, decode_iq2_s},
    {Dtype::iq4_xs, "IQ4_XS", 256, 136, A::q8_256, decode_iq4_xs},
    {Dtype::i8, "I8", 1, 1, A::f32, nullptr},
    {Dtype::i16, "I16", 1, 2, A::f32, nullptr},
    {Dtype::i32, "I32", 1, 4, A::f32, nullptr},
    {Dtype::i64, "I64", 1, 8, A::f32, nullptr},
    {Dtype::f64, "F64", 1, 8, A::f32, nullptr},
    {Dtype::iq1_m, "IQ1_M", 256, 56, A::q8_256, decode_iq1_m},
    {Dtype::bf16, "BF16", 1, 2, A::f32, decode_bf16},
    {Dtype::tq1_0, "TQ1_0", 256, 54, A::q8_256, decode_tq1_0},
    {Dtype::tq2_0, "TQ2_0", 256, 66, A::q8_256, decode_tq2_0},
    {Dtype::mxfp4, "MXFP4", 32, 17, A::q8_32, decode_mxfp4},
    {Dtype::nvfp4, "NVFP4", 64, 36, A::q8_32, decode_nvfp4},
    {Dtype::q1_0, "Q1_0", 128, 18, A::q8_32, decode_q1_0},
    {Dtype::q2_0, "Q2_0", 64, 18, A::q8_32, decode_q2_0},
};

}  // namespace

const DtypeInfo* find_dtype(uint32_t id) {
  for (const DtypeInfo& info : kTable)
    if (static_cast<uint32_t>(info.dtype) == id) return &info;
  return nullptr;
}

const DtypeInfo& dtype_info(Dtype dtype) {
  const DtypeInfo* info = find_dtype(static_cast<uint32_t>(dtype));
  CHECK(info != nullptr);
  return *info;
}

uint64_t dtype_bytes(Dtype dtype, uint64_t elements) {
  const DtypeInfo& info = dtype_info(dtype);
  CHECK(elements % info.block_elements == 0);
  return elements / info.block_elements * info.block_bytes;
}

std::string_view supported_dtypes() {
  static const std::string names = [] {
    std::string list;
    for (const DtypeInfo& info : kTable)
      if (info.decode != nullptr) list += fmt::format("{}{}", list.empty() ? "" : ", ", info.name);
    return list;
  }();
  return names;
}

}  // namespace sluice
