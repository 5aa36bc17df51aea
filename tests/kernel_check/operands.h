// Weights and activations for the matmul checks: ordinary ones, and ones that drive every integer
// sum to its limit and every float to its edge.
#pragma once

#include "quant/dtype.h"
#include "tests/kernel_check/check.h"

namespace sluice::kernels::check {

/// `highest` and `lowest` set every q to its end of the range and every scale and min to its
/// largest; `subnormal` is random with the smallest scales; `broken` random with scales that are
/// now and then infinite or NaN.
enum class WeightKind { random, highest, lowest, zero, subnormal, broken };
inline constexpr WeightKind kWeightKinds[] = {WeightKind::random,    WeightKind::highest,
                                              WeightKind::lowest,    WeightKind::zero,
                                              WeightKind::subnormal, WeightKind::broken};
const char* name_of(WeightKind kind);

/// Fills rows of `block_count` blocks in all. REQUIRES: dtype has a reference kernel.
void fill_weights(Dtype dtype, WeightKind kind, size_t block_count, Random& random,
                  std::byte* blocks);

/// `highest`, `lowest`: every q 127, or −127; `alternating`: both; `subnormal`: tiny scales;
/// `broken`: non-finite values.
enum class ActivationKind { random, highest, lowest, alternating, zero, subnormal, broken };
inline constexpr ActivationKind kActivationKinds[] = {
    ActivationKind::random,      ActivationKind::highest, ActivationKind::lowest,
    ActivationKind::alternating, ActivationKind::zero,    ActivationKind::subnormal,
    ActivationKind::broken};
const char* name_of(ActivationKind kind);

/// One activation row of activation_layout(format, cols); its padding holds garbage: −1, or
/// NaN where it is read as float.
void fill_activation(ActivationFormat format, ActivationKind kind, size_t cols, Random& random,
                     std::byte* row);

}  // namespace sluice::kernels::check
