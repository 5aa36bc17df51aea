// Attention by blocks of 64 keys with an online softmax.
//
// Both halves of attention are the same small product: scalars of a query (its components, then its
// probabilities) times rows of 16 lanes (16 keys at one component, then 16 components of one
// value), added up in ascending order. Four queries share each load. A run of 16 queries passes
// over a block of keys before the next block comes, so that keys and values stream from memory once
// per run; meanwhile a query's o rests in the output, as the definition has it. Every load also
// asks for the same place of the next block, since the hardware's prefetcher does not follow rows
// and tiles well enough.
#include "kernels/avx2/avx2.h"
#include "kernels/avx2/kv_element.h"
#include "kernels/avx2/lanes.h"

namespace sluice::kernels::avx2 {
namespace {

constexpr size_t kQueryTile = 4;
constexpr size_t kQueryRun = 4 * kQueryTile;
constexpr size_t kBlockTiles = kAttentionBlock / kKeyTile;

/// The tiles of one block of keys, or of values.
template <class Kv>
struct Block {
  const typename Kv::Element* tiles;
  size_t row_elements;  ///< key_dim or value_stride
  size_t tile_step;     ///< in elements, as all that follows
  size_t ahead;         ///< the way to the next block, which comes in meanwhile; 0: there is none

  Block(const void* all_tiles, size_t row, size_t block, bool is_last)
      : row_elements(row), tile_step(tile_elements<Kv>(row)) {
    tiles = static_cast<const typename Kv::Element*>(all_tiles) + block * kBlockTiles * tile_step;
    ahead = is_last ? 0 : kBlockTiles * tile_step;
  }

  const typename Kv::Element* tile(size_t index) const { return tiles + index * tile_step; }
};

/// Into the second-level cache; it may reach behind the memory.
inline void prefetch(const void* place) {
  _mm_prefetch(static_cast<const char*>(place), _MM_HINT_T1);
}

/// sums[n][·] = fma(factors[n][k], rows[k · stride + ·], sums[n][·]) for ascending k.
template <size_t N, class Kv>
inline void add_products(const float* const* factors, const typename Kv::Element* rows,
                         size_t stride, size_t count, size_t ahead, __m256 (*sums)[2]) {
  for (size_t k = 0; k < count; ++k) {
    const auto* row = rows + k * stride;
    const __m256 low = Kv::load(row);
    const __m256 high = Kv::load(row + kLanes);
    prefetch(row + ahead);
#pragma GCC unroll 4
    for (size_t n = 0; n < N; ++n) {
      const __m256 factor = _mm256_broadcast_ss(factors[n] + k);
      sums[n][0] = _mm256_fmadd_ps(factor, low, sums[n][0]);
      sums[n][1] = _mm256_fmadd_ps(factor, high, sums[n][1]);
    }
  }
}

/// The scales of a tile's 16 positions for the block of dimension d.
struct Scales {
  __m256 low, high;

  Scales(const Block<KvQ8_0>& block, size_t tile, size_t d) {
    const int8_t* scales = block.tile(tile) + scales_offset(block.row_elements, d / kKvBlock);
    low = _mm256_cvtph_ps(load16(scales));
    high = _mm256_cvtph_ps(load16(scales + kLanes * sizeof(uint16_t)));
    prefetch(scales + block.ahead);
  }

  /// sums = fma(scale, sums, what `before` holds, or +0 where that is nothing yet)
  void apply(__m256* sums, const float* before, bool is_first) const {
    const __m256 zero = _mm256_setzero_ps();
    sums[0] = _mm256_fmadd_ps(low, sums[0], is_first ? zero : _mm256_load_ps(before));
    sums[1] = _mm256_fmadd_ps(high, sums[1], is_first ? zero : _mm256_load_ps(before + kLanes));
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
    __m256 sums[N][2];
#pragma GCC unroll 4
    for (size_t n = 0; n < N; ++n) {
      q[n] = queries[n].q + first;
      sums[n][0] = sums[n][1] = _mm256_setzero_ps();
    }
    const size_t left = key_dim - first;
    add_products<N, Kv>(q, keys.tile(tile) + first * kKeyTile, kKeyTile,
                        left < kSpan ? left : kSpan, keys.ahead, sums);
    if constexpr (Kv::kScaled) {
      const Scales scales(keys, tile, first);
#pragma GCC unroll 4
      for (size_t n = 0; n < N; ++n) scales.apply(sums[n], scores[n] + tile * kKeyTile, first == 0);
    }
#pragma GCC unroll 4
    for (size_t n = 0; n < N; ++n) {
      _mm256_store_ps(scores[n] + tile * kKeyTile, sums[n][0]);
      _mm256_store_ps(scores[n] + tile * kKeyTile + kLanes, sums[n][1]);
    }
  }
}

/// Turns dots into probabilities. Keys that the query does not see score −∞: they are never the
/// largest and add +0. A query that sees none of the block keeps its state: its correction is 1.
inline void advance_softmax(Query& query, size_t begin, float scale, float* scores) {
  for (size_t j = 0; j < begin; ++j) scores[j] = -__builtin_inff();
  for (size_t j = query.visible; j < kAttentionBlock; ++j) scores[j] = -__builtin_inff();
  const __m256 factor = _mm256_set1_ps(scale);
  __m256 max = _mm256_set1_ps(query.max);
  for (size_t j = 0; j < kAttentionBlock; j += kLanes) {
    const __m256 score = _mm256_mul_ps(_mm256_load_ps(scores + j), factor);
    _mm256_store_ps(scores + j, score);
    max = _mm256_max_ps(score, max);
  }
  const float new_max = max_lane(max);
  max = _mm256_set1_ps(new_max);
  __m256 sums[2] = {_mm256_setzero_ps(), _mm256_setzero_ps()};
  for (size_t j = 0; j < kAttentionBlock; j += 2 * kLanes) {
#pragma GCC unroll 2
    for (size_t half = 0; half < 2; ++half) {
      float* some = scores + j + half * kLanes;
      const __m256 p = exp_lanes(_mm256_sub_ps(_mm256_load_ps(some), max));
      _mm256_store_ps(some, p);
      sums[half] = _mm256_add_ps(sums[half], p);
    }
  }
  query.correction = _mm256_cvtss_f32(exp_lanes(_mm256_set1_ps(query.max - new_max)));
  query.sum = __builtin_fmaf(query.sum, query.correction, fold_lanes(sums[0], sums[1]));
  query.max = new_max;
}

/// w_j of kernels.h: probabilities times the scales of the block of dimension d.
template <size_t N>
inline void scale_probabilities(const Block<KvQ8_0>& values, size_t d, size_t count,
                                const Scores* p, Scores* weights) {
  for (size_t j = 0; j < count; j += kKeyTile) {
    const Scales scales(values, j / kKeyTile, d);
    for (size_t n = 0; n < N; ++n) {
      _mm256_store_ps(weights[n] + j, _mm256_mul_ps(_mm256_load_ps(p[n] + j), scales.low));
      _mm256_store_ps(weights[n] + j + kLanes,
                      _mm256_mul_ps(_mm256_load_ps(p[n] + j + kLanes), scales.high));
    }
  }
}

/// Adds the values first … last − 1 of a block, 16 dimensions of them from d on.
template <size_t N, class Kv>
inline void add_values(const Block<Kv>& values, size_t d, size_t first, size_t last,
                       const Scores* weights, __m256 (*o)[2]) {
  for (size_t j = first; j < last;) {
    const size_t left_of_tile = kKeyTile - j % kKeyTile;
    const size_t count = last - j < left_of_tile ? last - j : left_of_tile;
    const float* w[N];
#pragma GCC unroll 4
    for (size_t n = 0; n < N; ++n) w[n] = weights[n] + j;
    add_products<N, Kv>(w, values.tile(j / kKeyTile) + j % kKeyTile * values.row_elements + d,
                        values.row_elements, count, values.ahead, o);
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
  for (size_t d = 0; d < value_dim; d += 2 * kLanes) {
    if constexpr (Kv::kScaled)
      if (d % kKvBlock == 0) scale_probabilities<N>(values, d, queries[N - 1].visible, p, scaled);
    const size_t low = value_dim - d;
    const size_t high = low > kLanes ? low - kLanes : 0;
    __m256 o[N][2];
#pragma GCC unroll 4
    for (size_t n = 0; n < N; ++n) {
      const __m256 correction = _mm256_set1_ps(queries[n].correction);
      o[n][0] = _mm256_mul_ps(load_some(queries[n].out + d, low), correction);
      o[n][1] = _mm256_mul_ps(load_some(queries[n].out + d + kLanes, high), correction);
    }
    const size_t shared = queries[0].visible;
    add_values<N>(values, d, begin, shared, weights, o);
#pragma GCC unroll 4
    for (size_t n = 0; n < N; ++n) {
      add_values<1>(values, d, shared, queries[n].visible, weights + n, o + n);
      store_some(queries[n].out + d, o[n][0], low);
      store_some(queries[n].out + d + kLanes, o[n][1], high);
    }
  }
}

/// Passes N queries, in ascending order of their positions, over one block of keys.
template <size_t N, class Kv>
inline void attend_block(const AttentionArgs& args, size_t first_key, const Block<Kv>& keys,
                         const Block<Kv>& values, Query* queries) {
  for (size_t n = 0; n < N; ++n) {
    const size_t seen = queries[n].key_count;
    const size_t left = seen > first_key ? seen - first_key : 0;
    queries[n].visible = left < kAttentionBlock ? left : kAttentionBlock;
  }
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
inline void attend_block(const AttentionArgs& args, size_t first_key, const Block<Kv>& keys,
                         const Block<Kv>& values, Query* queries, size_t count) {
  static_assert(kQueryTile == 4);
  switch (count) {
    case 1:
      return attend_block<1>(args, first_key, keys, values, queries);
    case 2:
      return attend_block<2>(args, first_key, keys, values, queries);
    case 3:
      return attend_block<3>(args, first_key, keys, values, queries);
    default:
      return attend_block<4>(args, first_key, keys, values, queries);
  }
}

template <class Kv>
inline void attend_run(const AttentionArgs& args, Query* queries, size_t count) {
  const size_t key_count = queries[count - 1].key_count;
  for (size_t first = 0; first < key_count; first += kAttentionBlock) {
    const bool is_last = key_count - first <= kAttentionBlock;
    const size_t block = args.block_in_memory(first / kAttentionBlock);
    const Block<Kv> keys(args.keys, args.key_dim, block, is_last);
    const Block<Kv> values(args.values, args.value_stride, block, is_last);
    for (size_t n = 0; n < count; n += kQueryTile)
      attend_block(args, first, keys, values, queries + n, count - n);
  }
  for (size_t n = 0; n < count; ++n) {
    const __m256 sum = _mm256_set1_ps(queries[n].sum);
    float* out = queries[n].out;
    for (size_t d = 0; d < args.value_dim; d += kLanes) {
      const size_t left = args.value_dim - d;
      store_some(out + d, _mm256_div_ps(load_some(out + d, left), sum), left);
    }
  }
}

template <class Kv>
inline void attention(const AttentionArgs& args) {
  const size_t query_count = args.token_count * args.group_size;
  for (size_t first = 0; first < query_count; first += kQueryRun) {
    const size_t left = query_count - first;
    const size_t count = left < kQueryRun ? left : kQueryRun;
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

}  // namespace sluice::kernels::avx2
