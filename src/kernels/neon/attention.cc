// Attention by blocks of 64 keys with an online softmax.
//
// Both halves of attention are the same small product: scalars of a query (its components, then its
// probabilities) times rows of 16 lanes (16 keys at one component, then 16 components of one
// value), added up in ascending order. Four queries share each load. A run of 16 queries passes
// over a block of keys before the next block comes, so that keys and values stream from memory once
// per run; meanwhile a query's o rests in the output, as the definition has it.
#include "kernels/neon/kv_element.h"
#include "kernels/neon/lanes.h"
#include "kernels/neon/neon.h"

namespace sluice::kernels::neon {
namespace {

constexpr size_t kQueryTile = 4;
constexpr size_t kQueryRun = 4 * kQueryTile;
constexpr size_t kBlockTiles = kAttentionBlock / kKeyTile;

/// The tiles of one block of keys, or of values.
template <class Kv>
struct Block {
  const typename Kv::Element* tiles;
  size_t row_elements;  ///< key_dim or value_stride

  Block(const void* all_tiles, size_t row, size_t block) : row_elements(row) {
    tiles = static_cast<const typename Kv::Element*>(all_tiles) +
            block * kBlockTiles * tile_elements<Kv>(row);
  }

  const typename Kv::Element* tile(size_t index) const {
    return tiles + index * tile_elements<Kv>(row_elements);
  }
};

/// Registers of a query's 16 lanes: keys, or dimensions of a value.
using Sums = float32x4_t[kQuarters];

/// sums[n][·] = fma(factors[n][k], rows[k · stride + ·], sums[n][·]) for ascending k.
template <size_t N, class Kv>
inline void add_products(const float* const* factors, const typename Kv::Element* rows,
                         size_t stride, size_t count, Sums* sums) {
  for (size_t k = 0; k < count; ++k) {
    float32x4_t row[kQuarters];
    Kv::load(rows + k * stride, row);
#pragma GCC unroll 4
    for (size_t n = 0; n < N; ++n) {
      const float32x4_t factor = vld1q_dup_f32(factors[n] + k);
#pragma GCC unroll 4
      for (size_t i = 0; i < kQuarters; ++i) sums[n][i] = vfmaq_f32(sums[n][i], factor, row[i]);
    }
  }
}

/// The scales of a tile's 16 positions for the block of dimension d.
struct Scales {
  Sums quarters;

  Scales(const Block<KvQ8_0>& block, size_t tile, size_t d) {
    const int8_t* scales = block.tile(tile) + scales_offset(block.row_elements, d / kKvBlock);
    KvF16::load(reinterpret_cast<const uint16_t*>(scales), quarters);
  }

  /// sums = fma(scale, sums, what `before` holds, or +0 where that is nothing yet)
  void apply(float32x4_t* sums, const float* before, bool is_first) const {
    for (size_t i = 0; i < kQuarters; ++i) {
      const float32x4_t start = is_first ? vdupq_n_f32(0.0f) : vld1q_f32(before + kLanes * i);
      sums[i] = vfmaq_f32(start, quarters[i], sums[i]);
    }
  }
};

/// A query on its way through the keys.
struct Query {
  const float* q;    ///< [key_dim]
  float* out;        ///< [value_dim]
  size_t key_count;  ///< it sees the keys before this one,
  size_t visible;    ///< and of the block at hand so many
  float max;         ///< m, l and c of kernels.h
  float sum;
  float correction;
};

using Scores = float[kAttentionBlock];

/// The dots of kernels.h with a tile of keys.
template <size_t N, class Kv>
inline void score(const Query* queries, size_t key_dim, const Block<Kv>& keys, size_t tile,
                  Scores* scores) {
  constexpr size_t kSpan = Kv::kScaled ? kKvBlock : SIZE_MAX;
  for (size_t first = 0; first < key_dim; first += kSpan) {
    const float* q[N];
#pragma GCC unroll 4
    for (size_t n = 0; n < N; ++n) q[n] = queries[n].q + first;
    Sums sums[N] = {};
    const size_t remaining = left(first, key_dim);
    add_products<N, Kv>(q, keys.tile(tile) + first * kKeyTile, kKeyTile,
                        remaining < kSpan ? remaining : kSpan, sums);
    if constexpr (Kv::kScaled) {
      const Scales scales(keys, tile, first);
#pragma GCC unroll 4
      for (size_t n = 0; n < N; ++n) scales.apply(sums[n], scores[n] + tile * kKeyTile, first == 0);
    }
#pragma GCC unroll 4
    for (size_t n = 0; n < N; ++n)
#pragma GCC unroll 4
      for (size_t i = 0; i < kQuarters; ++i)
        vst1q_f32(scores[n] + tile * kKeyTile + kLanes * i, sums[n][i]);
  }
}

/// Turns dots into probabilities. Keys that the query does not see score −∞: they are never the
/// largest and add +0. A query that sees none of the block keeps its state: its correction is 1.
inline void advance_softmax(Query& query, size_t begin, float scale, float* scores) {
  for (size_t j = 0; j < begin; ++j) scores[j] = -__builtin_inff();
  for (size_t j = query.visible; j < kAttentionBlock; ++j) scores[j] = -__builtin_inff();
  float32x4_t maxima = vdupq_n_f32(query.max);
  for (size_t j = 0; j < kAttentionBlock; j += kLanes) {
    const float32x4_t some = vmulq_n_f32(vld1q_f32(scores + j), scale);
    vst1q_f32(scores + j, some);
    maxima = larger(some, maxima);
  }
  const float new_max = vmaxvq_f32(maxima);
  Sums sums = {};
  for (size_t j = 0; j < kAttentionBlock; j += kQuarters * kLanes) {
#pragma GCC unroll 4
    for (size_t i = 0; i < kQuarters; ++i) {
      float* some = scores + j + kLanes * i;
      const float32x4_t p = exp_lanes(vsubq_f32(vld1q_f32(some), vdupq_n_f32(new_max)));
      vst1q_f32(some, p);
      sums[i] = vaddq_f32(sums[i], p);
    }
  }
  query.correction = exp_lanes(vdupq_n_f32(query.max - new_max))[0];
  query.sum = __builtin_fmaf(query.sum, query.correction, fold_lanes(sums));
  query.max = new_max;
}

/// w_j of kernels.h: probabilities times the scales of the block of dimension d.
template <size_t N>
inline void scale_probabilities(const Block<KvQ8_0>& values, size_t d, size_t count,
                                const Scores* p, Scores* weights) {
  for (size_t j = 0; j < count; j += kKeyTile) {
    const Scales scales(values, j / kKeyTile, d);
    for (size_t n = 0; n < N; ++n)
      for (size_t i = 0; i < kQuarters; ++i) {
        const size_t at = j + kLanes * i;
        vst1q_f32(weights[n] + at, vmulq_f32(vld1q_f32(p[n] + at), scales.quarters[i]));
      }
  }
}

/// Adds the values first … last − 1 of a block, 16 dimensions of them from d on.
template <size_t N, class Kv>
inline void add_values(const Block<Kv>& values, size_t d, size_t first, size_t last,
                       const Scores* weights, Sums* o) {
  for (size_t j = first; j < last;) {
    const size_t left_of_tile = kKeyTile - j % kKeyTile;
    const size_t count = last - j < left_of_tile ? last - j : left_of_tile;
    const float* w[N];
#pragma GCC unroll 4
    for (size_t n = 0; n < N; ++n) w[n] = weights[n] + j;
    add_products<N, Kv>(w, values.tile(j / kKeyTile) + j % kKeyTile * values.row_elements + d,
                        values.row_elements, count, o);
    j += count;
  }
}

/// o = o · correction, then the values by their weights. The queries of a tile see different
/// numbers of keys only at the end of their range: what all see comes first, then each one's rest.
template <size_t N, class Kv>
inline void add_values(const Query* queries, size_t value_dim, const Block<Kv>& values,
                       size_t begin, const Scores* p) {
  alignas(64) Scores scaled[Kv::kScaled ? N : 1];
  const Scores* weights = Kv::kScaled ? scaled : p;
  for (size_t d = 0; d < value_dim; d += kQuarters * kLanes) {
    if constexpr (Kv::kScaled)
      if (d % kKvBlock == 0) scale_probabilities<N>(values, d, queries[N - 1].visible, p, scaled);
    Sums o[N];
#pragma GCC unroll 4
    for (size_t n = 0; n < N; ++n)
#pragma GCC unroll 4
      for (size_t i = 0; i < kQuarters; ++i) {
        const size_t at = d + kLanes * i;
        o[n][i] =
            vmulq_n_f32(load_some(queries[n].out + at, left(at, value_dim)), queries[n].correction);
      }
    const size_t shared = queries[0].visible;
    add_values<N>(values, d, begin, shared, weights, o);
#pragma GCC unroll 4
    for (size_t n = 0; n < N; ++n) {
      add_values<1>(values, d, shared, queries[n].visible, weights + n, o + n);
#pragma GCC unroll 4
      for (size_t i = 0; i < kQuarters; ++i) {
        const size_t at = d + kLanes * i;
        store_some(queries[n].out + at, o[n][i], left(at, value_dim));
      }
    }
  }
}

/// Passes N queries, in ascending order of their positions, over one block of keys.
template <size_t N, class Kv>
inline void attend_block(const AttentionArgs& args, Query* queries, size_t first_key) {
  for (size_t n = 0; n < N; ++n) {
    const size_t remaining = left(first_key, queries[n].key_count);
    queries[n].visible = remaining < kAttentionBlock ? remaining : kAttentionBlock;
  }
  const size_t block = args.block_in_memory(first_key / kAttentionBlock);
  const Block<Kv> keys(args.keys, args.key_dim, block);
  const Block<Kv> values(args.values, args.value_stride, block);
  alignas(64) Scores scores[N];
  for (size_t tile = 0; tile * kKeyTile < queries[N - 1].visible; ++tile)
    score<N>(queries, args.key_dim, keys, tile, scores);
  const size_t begin = first_key == 0 ? args.first_key : 0;
  for (size_t n = 0; n < N; ++n) advance_softmax(queries[n], begin, args.scale, scores[n]);
  add_values<N>(queries, args.value_dim, values, begin, scores);
}

inline Query start_query(const AttentionArgs& args, size_t index) {
  const size_t t = index / args.group_size;
  const size_t j = index % args.group_size;
  const bool has_sink = args.sinks != nullptr;
  float* out = args.out + t * args.out_stride + j * args.value_dim;
  __builtin_memset(out, 0, args.value_dim * sizeof(float));
  return {.q = args.queries + t * args.query_stride + j * args.key_dim,
          .out = out,
          .key_count = args.first_position + t + 1,
          .visible = 0,
          .max = has_sink ? args.sinks[j] : -__builtin_inff(),
          .sum = has_sink ? 1.0f : 0.0f,
          .correction = 0.0f};
}

template <class Kv>
inline void attend_run(const AttentionArgs& args, Query* queries, size_t count) {
  for (size_t first = 0; first < queries[count - 1].key_count; first += kAttentionBlock) {
    for (size_t n = 0; n < count; n += kQueryTile) {
      static_assert(kQueryTile == 4);
      switch (count - n) {
        case 1:
          attend_block<1, Kv>(args, queries + n, first);
          break;
        case 2:
          attend_block<2, Kv>(args, queries + n, first);
          break;
        case 3:
          attend_block<3, Kv>(args, queries + n, first);
          break;
        default:
          attend_block<4, Kv>(args, queries + n, first);
          break;
      }
    }
  }
  for (size_t n = 0; n < count; ++n) {
    const float32x4_t sum = vdupq_n_f32(queries[n].sum);
    float* out = queries[n].out;
    for (size_t d = 0; d < args.value_dim; d += kLanes) {
      const size_t dims_left = args.value_dim - d;
      store_some(out + d, vdivq_f32(load_some(out + d, dims_left), sum), dims_left);
    }
  }
}

template <class Kv>
inline void attention(const AttentionArgs& args) {
  const size_t query_count = args.token_count * args.group_size;
  for (size_t first = 0; first < query_count; first += kQueryRun) {
    const size_t remaining = query_count - first;
    const size_t count = remaining < kQueryRun ? remaining : kQueryRun;
    Query queries[kQueryRun];
    for (size_t n = 0; n < count; ++n) queries[n] = start_query(args, first + n);
    attend_run<Kv>(args, queries, count);
  }
}

}  // namespace

void attention_f16(const AttentionArgs& args) {
  attention<KvF16>(args);
}
void attention_f32(const AttentionArgs& args) {
  attention<KvF32>(args);
}
void attention_q8_0(const AttentionArgs& args) {
  attention<KvQ8_0>(args);
}

}  // namespace sluice::kernels::neon
