// Attention by blocks of 64 keys with an online softmax.
//
// Scores: the 16 lanes are 16 keys, which lie side by side in a tile, and the chain of kernels.h
// runs over the dimensions of the head. Values: the lanes are dimensions and the chain runs over
// the keys. Neither needs a sum across lanes. Four queries pass together, so that what is loaded
// and widened serves four; queries are numbered through the group and on to the next token, so a
// group of any size fills the tiles. A chunk of tiles takes turns on each block of keys and values,
// which stays in the second-level cache meanwhile; `out` holds the unnormalised result all along.
//
// A token that is generated meets each key once, and the hardware's prefetcher does not follow rows
// and tiles well enough: every load also asks for the same place of the next block. One core of an
// EPYC Genoa (2026), keys and values in RAM, 10^9 operations a second without and with it: F16 with
// 8 queries 68 → 94, with 4 of 64 dimensions 52 → 84, with one 16 → 24, where memory is the limit;
// into the first-level cache it is as if there were none. Tiles of 8 queries widen half as much,
// yet are slower by 5 %.
#include <cstring>
#include <limits>

#include "kernels/avx512/avx512.h"
#include "kernels/avx512/kv_element.h"
#include "kernels/avx512/lanes.h"

namespace sluice::kernels::avx512 {
namespace {

constexpr size_t kQueryTile = 4;
constexpr size_t kQueryChunk = 32;
constexpr size_t kBlockTiles = kAttentionBlock / kKeyTile;
/// Registers of dimensions that are summed together; of scaled values no more than share a scale.
template <class Kv>
constexpr size_t kValueVectors = Kv::kScaled ? kKvBlock / kLanes : 4;

/// A query on its way through the keys.
struct Query {
  const float* q;    ///< [key_dim]
  float* out;        ///< [value_dim]
  size_t key_count;  ///< it sees the keys before this one
  float max;         ///< m of kernels.h
  float sum;         ///< l of kernels.h
};

/// The keys of the block at first_key that a query sees.
inline size_t keys_seen(const Query& query, size_t first_key) {
  const size_t seen = query.key_count > first_key ? query.key_count - first_key : 0;
  return seen < kAttentionBlock ? seen : kAttentionBlock;
}

/// A tile's scores in one block of keys, and then its probabilities.
struct alignas(64) BlockScores {
  float p[kQueryTile][kAttentionBlock];
};

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
template <size_t kBytes>
inline void prefetch(const void* place) {
  for (size_t byte = 0; byte < kBytes; byte += 64)
    _mm_prefetch(static_cast<const char*>(place) + byte, _MM_HINT_T1);
}

/// Loads kVectors registers that follow each other in memory.
template <class Kv, size_t kVectors>
inline void load(const typename Kv::Element* from, size_t ahead, __m512 (&to)[kVectors]) {
  prefetch<kVectors * kLanes * sizeof(*from)>(from + ahead);
#pragma GCC unroll 4
  for (size_t v = 0; v < kVectors; ++v) to[v] = Kv::load(from + v * kLanes);
}

/// The scales of a tile's 16 positions for a block of dimensions.
inline __m512 load_scales(const Block<KvQ8_0>& block, size_t tile, size_t d) {
  const int8_t* scales = block.tile(tile) + scales_offset(block.row_elements, d / kKvBlock);
  prefetch<kKeyTile * sizeof(uint16_t)>(scales + block.ahead);
  return _mm512_cvtph_ps(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(scales)));
}

/// From +0, the chains over the dimensions first … end − 1 with the keys of kTiles tiles.
template <class Kv, size_t kQueries, size_t kTiles>
inline void sum_products(const Query* queries, const Block<Kv>& keys, size_t tile, size_t first,
                         size_t end, __m512 (&acc)[kQueries][kTiles]) {
#pragma GCC unroll 4
  for (size_t q = 0; q < kQueries; ++q)
#pragma GCC unroll 4
    for (size_t k = 0; k < kTiles; ++k) acc[q][k] = _mm512_setzero_ps();
  for (size_t d = first; d < end; ++d) {
    __m512 key[kTiles][1];
#pragma GCC unroll 4
    for (size_t k = 0; k < kTiles; ++k)
      load<Kv>(keys.tile(tile + k) + d * kKeyTile, keys.ahead, key[k]);
#pragma GCC unroll 4
    for (size_t q = 0; q < kQueries; ++q) {
      const __m512 x = _mm512_set1_ps(queries[q].q[d]);
#pragma GCC unroll 4
      for (size_t k = 0; k < kTiles; ++k) acc[q][k] = _mm512_fmadd_ps(x, key[k][0], acc[q][k]);
    }
  }
}

/// The dots of kernels.h with the keys of kTiles tiles. Not inlined, like add_values: in one huge
/// function g++ spills the registers of both loops (36 → 48 · 10^9 multiply-adds per second).
template <class Kv, size_t kQueries, size_t kTiles>
[[gnu::noinline]] void score_tiles(const Query* queries, size_t key_dim, const Block<Kv>& keys,
                                   size_t tile, BlockScores& scores) {
  constexpr size_t kSpan = Kv::kScaled ? kKvBlock : SIZE_MAX;
  for (size_t first = 0; first < key_dim; first += kSpan) {
    __m512 acc[kQueries][kTiles];
    const size_t left = key_dim - first;
    sum_products(queries, keys, tile, first, first + (left < kSpan ? left : kSpan), acc);
#pragma GCC unroll 4
    for (size_t k = 0; k < kTiles; ++k) {
      __m512 scale;
      if constexpr (Kv::kScaled) scale = load_scales(keys, tile + k, first);
#pragma GCC unroll 4
      for (size_t q = 0; q < kQueries; ++q) {
        float* p = scores.p[q] + (tile + k) * kKeyTile;
        if constexpr (Kv::kScaled) {
          const __m512 before = first == 0 ? _mm512_setzero_ps() : _mm512_load_ps(p);
          acc[q][k] = _mm512_fmadd_ps(scale, acc[q][k], before);
        }
        _mm512_store_ps(p, acc[q][k]);
      }
    }
  }
}

/// The keys first … last − 1 of a block, by their place in it.
struct KeyRange {
  size_t first;
  size_t last;
};

/// Turns the dots with the keys of the range into probabilities against the new maximum; returns
/// the factor that corrects what was summed before.
inline float update_softmax(Query& query, float scale, KeyRange range, float* p) {
  const size_t count = range.last;
  for (size_t k = 0; k < range.first; ++k) p[k] = -std::numeric_limits<float>::infinity();
  __m512 maxima = _mm512_set1_ps(query.max);
  for (size_t k = 0; k < count; k += kKeyTile) {
    const __m512 score = _mm512_mul_ps(_mm512_load_ps(p + k), _mm512_set1_ps(scale));
    maxima = _mm512_mask_max_ps(maxima, lanes_left(k, count), score, maxima);
    _mm512_store_ps(p + k, score);
  }
  const float max = max_lane(maxima);
  __m512 sums = _mm512_setzero_ps();
  for (size_t k = 0; k < count; k += kKeyTile) {
    const __m512 e = exp_lanes(_mm512_sub_ps(_mm512_load_ps(p + k), _mm512_set1_ps(max)));
    sums = _mm512_mask_add_ps(sums, lanes_left(k, count), sums, e);
    _mm512_store_ps(p + k, e);
  }
  const float correction = _mm512_cvtss_f32(exp_lanes(_mm512_set1_ps(query.max - max)));
  query.sum = __builtin_fmaf(query.sum, correction, fold_lanes(sums));
  query.max = max;
  return correction;
}

/// Some dimensions of the outputs of a tile of queries: kVectors registers from d on.
template <size_t kQueries, size_t kVectors>
struct Outputs {
  __m512 o[kQueries][kVectors];
  __mmask16 lanes[kVectors];

  static_assert(kQueries <= 4 && kVectors <= 4, "loops are unrolled, or g++ keeps o in memory");

  Outputs(const Query* queries, const float* corrections, size_t d, size_t value_dim) {
#pragma GCC unroll 4
    for (size_t v = 0; v < kVectors; ++v) lanes[v] = lanes_left(d + v * kLanes, value_dim);
#pragma GCC unroll 4
    for (size_t q = 0; q < kQueries; ++q)
#pragma GCC unroll 4
      for (size_t v = 0; v < kVectors; ++v)
        o[q][v] = _mm512_mul_ps(_mm512_maskz_loadu_ps(lanes[v], queries[q].out + d + v * kLanes),
                                _mm512_set1_ps(corrections[q]));
  }
  void store(const Query* queries, size_t d) const {
#pragma GCC unroll 4
    for (size_t q = 0; q < kQueries; ++q)
#pragma GCC unroll 4
      for (size_t v = 0; v < kVectors; ++v)
        _mm512_mask_storeu_ps(queries[q].out + d + v * kLanes, lanes[v], o[q][v]);
  }
};

/// o = o · correction, then o = fma(w_j, v_j, o) for the keys of the range.
template <class Kv, size_t kQueries, size_t kVectors>
[[gnu::noinline]] void add_values(const Block<Kv>& values, size_t d, size_t value_dim,
                                  KeyRange range, const float (*weights)[kAttentionBlock],
                                  const float* corrections, const Query* queries) {
  Outputs<kQueries, kVectors> outputs(queries, corrections, d, value_dim);
  for (size_t j = range.first; j < range.last;) {
    const auto* row = values.tile(j / kKeyTile) + j % kKeyTile * values.row_elements + d;
    const size_t tile_end = (j / kKeyTile + 1) * kKeyTile;
    const size_t end = tile_end < range.last ? tile_end : range.last;
    for (; j < end; ++j, row += values.row_elements) {
      __m512 value[kVectors];
      load<Kv>(row, values.ahead, value);
#pragma GCC unroll 4
      for (size_t q = 0; q < kQueries; ++q) {
        const __m512 w = _mm512_set1_ps(weights[q][j]);
#pragma GCC unroll 4
        for (size_t v = 0; v < kVectors; ++v)
          outputs.o[q][v] = _mm512_fmadd_ps(w, value[v], outputs.o[q][v]);
      }
    }
  }
  outputs.store(queries, d);
}

/// w_j of kernels.h: probabilities times the scales of a block of dimensions.
template <size_t kQueries>
inline void scale_probabilities(const Block<KvQ8_0>& values, size_t d, size_t count,
                                const BlockScores& scores, BlockScores& weights) {
  for (size_t k = 0; k < count; k += kKeyTile) {
    const __m512 scales = load_scales(values, k / kKeyTile, d);
    for (size_t q = 0; q < kQueries; ++q)
      _mm512_store_ps(weights.p[q] + k, _mm512_mul_ps(_mm512_load_ps(scores.p[q] + k), scales));
  }
}

/// A block of values for kQueries queries. Where they belong to several tokens, the keys that not
/// all of them see are added query by query.
template <class Kv, size_t kQueries, size_t kVectors>
inline void add_values(const AttentionArgs& args, const Block<Kv>& values, size_t d, size_t begin,
                       const size_t* seen, const BlockScores& scores, const float* corrections,
                       const Query* queries) {
  BlockScores scaled;
  if constexpr (Kv::kScaled)
    scale_probabilities<kQueries>(values, d, seen[kQueries - 1], scores, scaled);
  const auto* weights = Kv::kScaled ? scaled.p : scores.p;
  add_values<Kv, kQueries, kVectors>(values, d, args.value_dim, {begin, seen[0]}, weights,
                                     corrections, queries);
  const float unchanged = 1.0f;  // times 1 is exact
  for (size_t q = 1; q < kQueries; ++q)
    if (seen[q] > seen[0])
      add_values<Kv, 1, kVectors>(values, d, args.value_dim, {seen[0], seen[q]}, weights + q,
                                  &unchanged, queries + q);
}

/// One block of keys for kQueries queries, of which the last sees most.
template <class Kv, size_t kQueries>
void attend_block(const AttentionArgs& args, size_t first_key, const Block<Kv>& keys,
                  const Block<Kv>& values, Query* queries) {
  size_t seen[kQueries];
  for (size_t q = 0; q < kQueries; ++q) seen[q] = keys_seen(queries[q], first_key);
  const size_t count = seen[kQueries - 1];
  BlockScores scores;
  if (count > kAttentionBlock - kKeyTile)
    score_tiles<Kv, kQueries, kBlockTiles>(queries, args.key_dim, keys, 0, scores);
  else
    for (size_t tile = 0; tile * kKeyTile < count; ++tile)
      score_tiles<Kv, kQueries, 1>(queries, args.key_dim, keys, tile, scores);
  const size_t begin = first_key == 0 ? args.first_key : 0;
  float corrections[kQueries];
  for (size_t q = 0; q < kQueries; ++q)
    corrections[q] =
        seen[q] > 0 ? update_softmax(queries[q], args.scale, {begin, seen[q]}, scores.p[q]) : 1.0f;
  constexpr size_t kVectors = kValueVectors<Kv>;
  size_t d = 0;
  for (; d + (kVectors - 1) * kLanes < args.value_dim; d += kVectors * kLanes)
    add_values<Kv, kQueries, kVectors>(args, values, d, begin, seen, scores, corrections, queries);
  for (; d < args.value_dim; d += kLanes)
    add_values<Kv, kQueries, 1>(args, values, d, begin, seen, scores, corrections, queries);
}

template <class Kv>
void attend_block(const AttentionArgs& args, size_t first_key, const Block<Kv>& keys,
                  const Block<Kv>& values, Query* queries, size_t count) {
  switch (count) {
    case 1:
      return attend_block<Kv, 1>(args, first_key, keys, values, queries);
    case 2:
      return attend_block<Kv, 2>(args, first_key, keys, values, queries);
    case 3:
      return attend_block<Kv, 3>(args, first_key, keys, values, queries);
    default:
      return attend_block<Kv, kQueryTile>(args, first_key, keys, values, queries);
  }
}

void scale_output(const AttentionArgs& args, const Query& query) {
  const __m512 sum = _mm512_set1_ps(query.sum);
  for (size_t d = 0; d < args.value_dim; d += kLanes) {
    const __mmask16 lanes = lanes_left(d, args.value_dim);
    const __m512 o = _mm512_maskz_loadu_ps(lanes, query.out + d);
    _mm512_mask_storeu_ps(query.out + d, lanes, _mm512_div_ps(o, sum));
  }
}

template <class Kv>
void attend_chunk(const AttentionArgs& args, Query* queries, size_t count) {
  const size_t key_count = queries[count - 1].key_count;
  for (size_t key = 0; key < key_count; key += kAttentionBlock) {
    const bool is_last = key_count - key <= kAttentionBlock;
    const size_t block = args.block_in_memory(key / kAttentionBlock);
    const Block<Kv> keys(args.keys, args.key_dim, block, is_last);
    const Block<Kv> values(args.values, args.value_stride, block, is_last);
    for (size_t i = 0; i < count; i += kQueryTile) {
      const size_t tile = count - i < kQueryTile ? count - i : kQueryTile;
      if (queries[i + tile - 1].key_count > key)
        attend_block(args, key, keys, values, queries + i, tile);
    }
  }
  for (size_t i = 0; i < count; ++i) scale_output(args, queries[i]);
}

template <class Kv>
void attention(const AttentionArgs& args) {
  const size_t query_count = args.token_count * args.group_size;
  for (size_t first = 0; first < query_count; first += kQueryChunk) {
    const size_t left = query_count - first;
    const size_t count = left < kQueryChunk ? left : kQueryChunk;
    Query queries[kQueryChunk];
    for (size_t i = 0; i < count; ++i) {
      const size_t token = (first + i) / args.group_size;
      const size_t head = (first + i) % args.group_size;
      const bool has_sink = args.sinks != nullptr;
      queries[i] = {args.queries + token * args.query_stride + head * args.key_dim,
                    args.out + token * args.out_stride + head * args.value_dim,
                    args.first_position + token + 1,
                    has_sink ? args.sinks[head] : -std::numeric_limits<float>::infinity(),
                    has_sink ? 1.0f : 0.0f};
      std::memset(queries[i].out, 0, args.value_dim * sizeof(float));
    }
    attend_chunk<Kv>(args, queries, count);
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

}  // namespace sluice::kernels::avx512
