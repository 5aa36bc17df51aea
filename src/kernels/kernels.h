// The kernel table: every inner loop of the CPU, as plain function pointers on plain pointers.
//
// One table per instruction set (ISA). A table is filled from the bottom up: the scalar reference
// first, then each better ISA overwrites what it does faster. Whoever computes looks a function up
// once per layer-sized call. All variants give the same bytes: the comments below define every
// result, kernels/ref/ is that definition in code, and tests/kernel_check compares each variant
// with it over odd shapes. Lanes of a vector are rows (or tokens, or dimensions), never pieces of
// one float sum, except where a definition says "16 lanes".
//
// Sums over 16 lanes (called sum16 below): lane i adds the elements i, i+16, i+32, … in that order,
// starting from 0 (missing elements count as +0); then lane i += lane i+8 for i < 8, i += i+4 for
// i < 4, i += i+2 for i < 2, and lane 0 + lane 1 is the sum.
//
// Tables are immutable after selection; kernels keep no state and may run on any thread. Pointers
// need only the natural alignment of their element type, except that activation rows start on
// 64-byte boundaries.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "quant/activation.h"
#include "quant/dtype.h"

namespace sluice::kernels {

enum class Isa { ref, avx2, avx512, neon, i8mm };

/// Weights times activations: out[t][r] = dot(weight row r, activation row t).
///
/// Quantised formats: one float accumulator per (r, t), from +0, blocks in ascending order. Per
/// block, with a = the activation's scale and integer sums exact in int32:
///   Q8_0  acc = fma(d·a, Σ q·x, acc)
///   Q4_0  acc = fma(d·a, Σ (q−8)·x, acc)        Q5_0  the same with q−16
///   Q4_1, Q5_1  acc = fma(d·a, Σ q·x, acc), then acc = fma(m·a, Σ x, acc)
///   IQ4_NL, MXFP4  as Q8_0, q being the value of the code (MXFP4: twice, beside half of 2^e)
///   Q1_0, Q2_0, NVFP4  as Q8_0 for each 32 columns of the block (NVFP4: 16 with their own d_s),
///                      ascending, with the a of those columns
///   Q6_K  acc = fma(d·a, Σ_s scale_s Σ q·x, acc), q in −32…31, 16 sub-blocks of 16
///   Q3_K  the same with q in −4…3
///   IQ4_XS  the same with q among kIq4Values, 8 sub-blocks of 32
///   Q4_K, Q5_K  acc = fma(d·a, Σ_s scale_s Σ q·x, acc), then
///               acc = fma(−(dmin·a), Σ_s min_s Σ x, acc), 8 sub-blocks of 32
///   Q2_K  the same with 16 sub-blocks of 16
///   TQ1_0, TQ2_0  acc = fma(d·a, Σ q·x, acc)
///   IQ1, IQ2, IQ3  acc = fma((d·step)·a, Σ_s (2·scale_s + 1) Σ q·x, acc), 8 or 16 sub-blocks; step
///               and q are stated in quant/code_book_blocks.h
/// Float formats: sum16 of w[i]·x[i] where each lane step is lane = fma(w, x, lane), the weight
/// widened to float first.
struct MatmulArgs {
  const std::byte* weights;  ///< [row_count][row_bytes], the first row to compute
  size_t row_bytes;
  size_t row_count;
  size_t cols;                   ///< elements per row, a multiple of the format's block
  const std::byte* activations;  ///< rows of activation_layout(format, cols)
  size_t activation_stride;      ///< bytes between rows, a multiple of 64
  const int32_t* token_rows;     ///< [token_count] activation row of token t; null: row t
  size_t token_count;
  float* out;         ///< out[t · out_stride + r]
  size_t out_stride;  ///< in floats
};
using MatmulFn = void (*)(const MatmulArgs&);

/// Attention of several queries over the keys and values of one KV head.
///
/// Token t (position p = first_position + t) sees keys first_key … p. Per query q, with s_j =
/// dot(q, k_j) · scale, keys are taken in ascending blocks of kAttentionBlock that begin at key 0,
/// running m = −∞, l = 0, o[d] = 0, or with a sink m = the sink, l = 1:
///   m' = max(m, s_j of the block); c = exp_f32(m − m'); p_j = exp_f32(s_j − m')
///   l = fma(l, c, sum16 of p_j); o[d] = o[d]·c, then o[d] = fma(w_j[d], v_j[d], o[d]) for j
///   ascending
///   m = m'
/// and at the end out[d] = o[d] / l. Other keys take no part (in sum16 they count as +0).
///
///   f16, f32  dot: chain over d ascending of acc = fma(q[d], k_j[d], acc) from +0; w_j[d] = p_j
///   q8_0      k and v are the int8 codes, with one scale a_j, b_j for each kKvBlock dimensions of
///             a position. dot: acc = fma(a_j, such a chain over the block, acc) from +0, blocks
///             ascending; w_j[d] = p_j · b_j
inline constexpr size_t kAttentionBlock = 64;
inline constexpr size_t kKeyTile = 16;  ///< keys and values are stored in tiles of 16 positions
inline constexpr size_t kKvBlock = 32;  ///< dimensions that share a scale; the last may be fewer
enum class KvType : uint8_t { f16, f32, q8_0 };
inline constexpr size_t kKvTypeCount = 3;

/// Bytes of a tile of keys (row_elements = key_dim) or of values (value_stride). A tile of q8_0
/// ends with the scales of its positions: binary16 [block][kKeyTile].
constexpr size_t kv_tile_bytes(KvType type, size_t row_elements) {
  if (type == KvType::f32) return kKeyTile * row_elements * 4;
  if (type == KvType::f16) return kKeyTile * row_elements * 2;
  return kKeyTile * (row_elements + (row_elements + kKvBlock - 1) / kKvBlock * 2);
}

struct AttentionArgs {
  const float* queries;  ///< query (t, j) at queries + t·query_stride + j·key_dim, j < group_size
  size_t query_stride;   ///< in floats
  size_t token_count;
  size_t group_size;  ///< query heads that share this KV head
  size_t first_position;
  size_t first_key = 0;          ///< < kAttentionBlock and ≤ first_position
  const float* sinks = nullptr;  ///< [group_size]: a score each without a value; null: none
  const void* keys;    ///< [tile]: [key_dim][kKeyTile]; tile = position / kKeyTile, rest finite
  const void* values;  ///< [tile]: [kKeyTile][value_stride]; the last tile may end with the token
  /// Keys and values may lie in a ring: block b of positions is then block (first_block + b) modulo
  /// ring_blocks of the memory. REQUIRES: first_block < ring_blocks.
  size_t first_block = 0;
  size_t ring_blocks = SIZE_MAX;
  size_t key_dim;
  size_t value_dim;
  size_t value_stride;  ///< round_up(value_dim, 16) elements; the padding is zero
  float scale;
  float* out;         ///< (t, j) at out + t·out_stride + j·value_dim
  size_t out_stride;  ///< in floats

  /// Where block b lies in the memory, in blocks.
  size_t block_in_memory(size_t b) const {
    const size_t block = first_block + b;
    return block < ring_blocks ? block : block - ring_blocks;
  }
};
using AttentionFn = void (*)(const AttentionArgs&);

/// One head of linear attention whose state forgets and is corrected (gated delta net, KDA): a
/// matrix S[key_dim][value_dim] that maps keys to values. Tokens pass in order; per token, with
/// query q, key k, decay a [key_dim], value v and strength b, every column j for itself:
///   m = chain over i ascending of fma(k[i]·a[i], S[i][j], m) from +0
///   d = (v[j] − m)·b
///   S[i][j] = fma(a[i], S[i][j], k[i]·d)
///   out[j] = chain over i ascending of fma(q[i], S[i][j], out[j]) from +0, of the new S
/// The state lies in tiles of kDeltaTile columns, [tile][key_dim][kDeltaTile]: while all tokens of
/// a call pass, a few tiles stay in the innermost cache, and one token reads and writes memory in a
/// straight line. Columns of the last tile that do not exist hold anything.
inline constexpr size_t kDeltaTile = 16;
inline constexpr size_t kDeltaKeyMax = 256;

constexpr size_t delta_state_floats(size_t key_dim, size_t value_dim) {
  return (value_dim + kDeltaTile - 1) / kDeltaTile * kDeltaTile * key_dim;
}

struct DeltaArgs {
  float* state;      ///< delta_state_floats(key_dim, value_dim)
  size_t key_dim;    ///< ≤ kDeltaKeyMax
  size_t value_dim;  ///< the columns to compute
  size_t token_count;
  const float* queries;  ///< token t at queries + t · query_stride; strides are in floats
  const float* keys;     ///< likewise by query_stride
  size_t query_stride;
  const float* decays;  ///< at decays + t · decay_stride
  size_t decay_stride;
  const float* values;  ///< at values + t · value_stride
  size_t value_stride;
  const float* strengths;  ///< one number, at strengths + t · strength_stride
  size_t strength_stride;
  float* out;  ///< at out + t · out_stride
  size_t out_stride;
};
using DeltaFn = void (*)(const DeltaArgs&);

/// Of swiglu_clamped.
inline constexpr float kSwigluLimit = 7.0f;
inline constexpr float kSwigluAlpha = 1.702f;

/// The kernels of one ISA. Entries of type ids without a decoder are null.
struct KernelTable {
  Isa isa = Isa::ref;

  MatmulFn matvec[kDtypeIdCount] = {};  ///< for one or a few tokens; weights stream from RAM
  MatmulFn matmul[kDtypeIdCount] = {};  ///< for many tokens; weights are unpacked once
  AttentionFn attention[kKvTypeCount] = {};

  /// quant/activation.h has the definitions.
  void (*quantize_q8_256)(const float* x, size_t cols, const QuantizedRow& row) = nullptr;
  void (*quantize_q8_32)(const float* x, size_t cols, const QuantizedRow& row) = nullptr;

  /// scale = 1 / sqrt(sum16(x·x by fma) / n + eps); out[i] = (x[i] · scale) · weight[i];
  /// out may be x.
  void (*rms_norm)(const float* x, const float* weight, float eps, size_t n, float* out) = nullptr;
  /// y[i] = y[i] + x[i]
  void (*add)(const float* x, size_t n, float* y) = nullptr;
  /// y[i] = fma(a, x[i], y[i])
  void (*add_scaled)(float a, const float* x, size_t n, float* y) = nullptr;
  /// out[i] = silu_f32(gate[i]) · up[i]; out may be gate or up.
  void (*silu_multiply)(const float* gate, const float* up, size_t n, float* out) = nullptr;
  /// out[i] = gelu_f32(gate[i]) · up[i]; out may be gate or up.
  void (*gelu_multiply)(const float* gate, const float* up, size_t n, float* out) = nullptr;
  /// out[i] = max(gate[i], 0) · up[i]; out may be gate or up.
  void (*relu_multiply)(const float* gate, const float* up, size_t n, float* out) = nullptr;
  /// The FFN of gpt-oss: with g = min(gate[i], kSwigluLimit) and u = up[i] clamped to ± it, out[i]
  /// = (g / (1 + exp_f32(−(kSwigluAlpha · g)))) · (u + 1); out may be gate or up.
  void (*swiglu_clamped)(const float* gate, const float* up, size_t n, float* out) = nullptr;
  /// A causal convolution of each channel for itself, at one token: out[i] = chain over k < width
  /// ascending of fma(taps[k·tap_stride + i], x[k·row_stride + i], acc) from +0. `x` are the rows
  /// of the last `width` tokens, the oldest first.
  void (*convolve)(const float* x, size_t row_stride, const float* taps, size_t tap_stride,
                   size_t width, size_t n, float* out) = nullptr;
  /// out[i] = g · u, with g = min(silu_f32(gate[i]), limit), u = up[i] clamped to ± limit (NaN
  /// stays NaN); out may be gate or up.
  void (*swiglu_limited)(const float* gate, const float* up, float limit, size_t n,
                         float* out) = nullptr;
  /// out[i] = sigmoid_f32(gate[i]) · up[i]; out may be gate or up.
  void (*sigmoid_multiply)(const float* gate, const float* up, size_t n, float* out) = nullptr;
  /// x[i] = x[i] · (length / max(sqrt(sum16(x·x by fma)), eps))
  void (*set_length)(float* x, float length, float eps, size_t n) = nullptr;
  /// x[i] = silu_f32(x[i])
  void (*silu)(float* x, size_t n) = nullptr;
  /// How much of a state is kept: x[i] = exp_f32(factor · softplus_f32(x[i] + bias[i])).
  void (*softplus_decay)(float* x, const float* bias, float factor, size_t n) = nullptr;
  /// The same within a bound: x[i] = exp_f32(bound · sigmoid_f32(factor · (x[i] + bias[i]))).
  void (*sigmoid_decay)(float* x, const float* bias, float factor, float bound, size_t n) = nullptr;
  DeltaFn delta_rule = nullptr;
  /// e_i = exp_f32(x[i] − max); x[i] = e_i / sum16(e).
  void (*softmax)(float* x, size_t n) = nullptr;
  /// x[i] = cap · tanh_f32(x[i] / cap)
  void (*soft_cap)(float cap, size_t n, float* x) = nullptr;
  /// Rotates pairs (x[i], x[i + pairs]), i < pairs, in place:
  /// x[i] = fma(a, cos, −(b·sin)), x[i + pairs] = fma(a, sin, b·cos), with a, b the old values.
  void (*rope_neox)(float* x, const float* cos, const float* sin, size_t pairs) = nullptr;
  /// The same of pairs (x[2i], x[2i + 1]).
  void (*rope_adjacent)(float* x, const float* cos, const float* sin, size_t pairs) = nullptr;
  /// Stores one position's key of one head in its tile: tile[d][position % kKeyTile] = key[d].
  void (*store_key[kKvTypeCount])(const float* key, size_t key_dim, size_t position,
                                  void* keys) = {};
  /// Stores one position's value: tile[position % kKeyTile][d], and zeros in the row's padding.
  /// Both stores round as f32_to_f16 does; for q8_0 each block is quantised as by quantize_q8_32,
  /// with zeros in place of the dimensions that the last one lacks.
  void (*store_value[kKvTypeCount])(const float* value, size_t value_dim, size_t position,
                                    size_t value_stride, void* values) = {};
  /// Multiplies and adds small integers, as fast as the ISA can, to no end; returns how many. The
  /// limit that benchmarks put beside the kernels. Null in the reference.
  uint64_t (*multiply_only)(uint64_t rounds) = nullptr;
};

/// "ref", "avx2", "avx512", "neon", "i8mm"
std::string_view isa_name(Isa isa);
std::optional<Isa> isa_by_name(std::string_view name);

/// The ISAs that this build contains and this machine (CPU and operating system) can run, worst
/// first; Isa::ref is always among them.
std::vector<Isa> usable_isas();

/// The table of an ISA. REQUIRES: isa is among usable_isas().
const KernelTable& kernel_table(Isa isa);

}  // namespace sluice::kernels
