// The storage formats of tensors: one table gives, for each GGUF type id, its name, the elements
// and bytes of one block, and how to decode it. Decoding defines what the bytes mean; every kernel
// is measured against it. A format, or a family of them, is one file (q4_k.cc, ternary.cc …); each
// has a row here. Immutable; any thread may read it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>

namespace sluice {

/// The numbers are the type ids of GGUF files. All ids in use are here, so that a file can be
/// listed and its ranges checked; those without a decoder are refused when a model is loaded.
enum class Dtype : uint32_t {
  f32 = 0,
  f16 = 1,
  q4_0 = 2,
  q4_1 = 3,
  q5_0 = 6,
  q5_1 = 7,
  q8_0 = 8,
  q2_k = 10,
  q3_k = 11,
  q4_k = 12,
  q5_k = 13,
  q6_k = 14,
  iq2_xxs = 16,
  iq2_xs = 17,
  iq3_xxs = 18,
  iq1_s = 19,
  iq4_nl = 20,
  iq3_s = 21,
  iq2_s = 22,
  iq4_xs = 23,
  i8 = 24,
  i16 = 25,
  i32 = 26,
  i64 = 27,
  f64 = 28,
  iq1_m = 29,
  bf16 = 30,
  tq1_0 = 34,
  tq2_0 = 35,
  mxfp4 = 39,
  nvfp4 = 40,
  q1_0 = 41,
  q2_0 = 42,
};

inline constexpr size_t kDtypeIdCount = 64;  ///< ids are below this; a table can be indexed by id

inline constexpr size_t kSmallBlock = 32;   ///< elements per block of Q4_0, Q8_0, MXFP4 …
inline constexpr size_t kSuperBlock = 256;  ///< elements per super-block of Q4_K, IQ2_S, TQ1_0 …

/// How the activations beside a weight format are stored; see quant/activation.h.
enum class ActivationFormat : uint8_t { f32, q8_32, q8_256 };

struct DtypeInfo {
  Dtype dtype;
  std::string_view name;  ///< as the ecosystem writes it: "Q4_K"
  uint32_t block_elements;
  uint32_t block_bytes;
  ActivationFormat activation;
  /// Decodes `block_count` blocks to block_count · block_elements floats; null: not implemented.
  void (*decode)(const std::byte* blocks, size_t block_count, float* out);
};

/// The row of a type id as found in a file; null when the id is unknown or retired.
const DtypeInfo* find_dtype(uint32_t id);

/// REQUIRES: dtype is one of the enumerators.
const DtypeInfo& dtype_info(Dtype dtype);

/// Bytes of `elements` values. REQUIRES: elements is a multiple of the block's elements.
uint64_t dtype_bytes(Dtype dtype, uint64_t elements);

/// "F32, F16, Q4_0, …": what this build can decode, for error messages.
std::string_view supported_dtypes();

}  // namespace sluice
