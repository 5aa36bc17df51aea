// F32, F16 and BF16 weights against float activations.
#include "base/half.h"
#include "kernels/ref/matmul.h"
#include "kernels/ref/ref.h"

namespace sluice::kernels::ref {
namespace {

float unchanged(float weight) {
  return weight;
}

}  // namespace

void matmul_f32(const MatmulArgs& args) {
  matmul_floats<float, unchanged>(args);
}
void matmul_f16(const MatmulArgs& args) {
  matmul_floats<uint16_t, f16_to_f32>(args);
}
void matmul_bf16(const MatmulArgs& args) {
  matmul_floats<uint16_t, bf16_to_f32>(args);
}

}  // namespace sluice::kernels::ref
