#include "quant/encode.h"

namespace sluice {

EncodeFn encoder(Dtype dtype) {
  switch (dtype) {
    case Dtype::f32:
      return encode_f32;
    case Dtype::f16:
      return encode_f16;
    case Dtype::bf16:
      return encode_bf16;
    case Dtype::q4_0:
      return encode_q4_0;
    case Dtype::q8_0:
      return encode_q8_0;
    case Dtype::q4_k:
      return encode_q4_k;
    case Dtype::q5_k:
      return encode_q5_k;
    case Dtype::q6_k:
      return encode_q6_k;
    default:
      return nullptr;
  }
}

}  // namespace sluice
