// Attention by blocks of 64 keys with an online softmax.
//
// Scores: the 16 lanes are 16 keys, which lie side by side in a tile, and the chain of kernels.h
// runs over the dimensions of the head. Values: the lanes are dimensions and the chain runs over
// the keys. Neither needs a sum across lanes. Four queries pass together, so that what is loaded
// (and widened from binary16) serves four; queries are numbered through the group and on to the
// next token, so a group of any size fills the tiles. A chunk of tiles takes turns on each block of
// keys and values, which stays in the second-level cache meanwhile; `out` holds the unnormalised
// result all along.
#include <cstring>
#include <limits>

#include "kernels/avx512/avx512.h"
#include "kernels/avx512/kv_element.h"
#include "kernels/avx512/lanes.h"

namespace sluice::kernels::avx512 {
namespace {

constexpr size_t kQueryTile = 4;
constexpr size_t kQueryChunk = 32;
constexpr size_t kValueVectors = 4;  ///< registers of dimensions that are summed together
constexpr size_t kBlockTiles = kAttentionBlock / kKeyTile;

/// A query on its way through the keys.
struct Query {
  const float* q;    ///< [head_dim]
  float* out;        ///< [head_dim]
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

/// Scores of kTiles tiles of the block that begins at `keys`, from `tile` on. Not inlined, like
/// add_values: in one huge function g++ spills the registers of both loops (36 → 48 · 10^9
/// multiply-adds per second).
template <class Kv, size_t kQueries, size_t kTiles>
[[gnu::noinline]] void score_tiles(const AttentionArgs& args, const Query* queries,
                                   const typename Kv::Element* keys, size_t tile,
                                   BlockScores& scores) {
  const size_t tile_elements = args.head_dim * kKeyTile;
  keys += tile * tile_elements;
  __m512 acc[kQueries][kTiles];
  for (size_t q = 0; q < kQueries; ++q)
    for (size_t k = 0; k < kTiles; ++k) acc[q][k] = _mm512_setzero_ps();
  for (size_t d = 0; d < args.head_dim; ++d) {
    __m512 key[kTiles];
    for (size_t k = 0; k < kTiles; ++k) key[k] = Kv::load(keys + k * tile_elements + d * kKeyTile);
    for (size_t q = 0; q < kQueries; ++q) {
      const __m512 x = _mm512_set1_ps(queries[q].q[d]);
      for (size_t k = 0; k < kTiles; ++k) acc[q][k] = _mm512_fmadd_ps(x, key[k], acc[q][k]);
    }
  }
  const __m512 scale = _mm512_set1_ps(args.scale);
  for (size_t q = 0; q < kQueries; ++q)
    for (size_t k = 0; k < kTiles; ++k)
      _mm512_store_ps(scores.p[q] + (tile + k) * kKeyTile, _mm512_mul_ps(acc[q][k], scale));
}

/// Turns the scores of `count` keys into probabilities against the new maximum; returns the factor
/// that corrects what was summed before.
inline float update_softmax(Query& query, size_t count, float* p) {
  __m512 maxima = _mm512_set1_ps(query.max);
  for (size_t k = 0; k < count; k += kKeyTile)
    maxima = _mm512_mask_max_ps(maxima, lanes_left(k, count), _mm512_load_ps(p + k), maxima);
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

/// The keys first … last − 1 of a block, by their place in it.
struct KeyRange {
  size_t first;
  size_t last;
};

/// o = o · correction, then o = fma(p_j, v_j, o) for the keys of the range, for the dimensions of
/// kVectors registers from d on.
template <class Kv, size_t kQueries, size_t kVectors>
[[gnu::noinline]] void add_values(const AttentionArgs& args, const typename Kv::Element* values,
                                  size_t d, KeyRange keys, const BlockScores& scores,
                                  size_t first_query, const float* corrections,
                                  const Query* queries) {
  __mmask16 lanes[kVectors];
  for (size_t v = 0; v < kVectors; ++v) lanes[v] = lanes_left(d + v * kLanes, args.head_dim);
  __m512 o[kQueries][kVectors];
  for (size_t q = 0; q < kQueries; ++q)
    for (size_t v = 0; v < kVectors; ++v)
      o[q][v] = _mm512_mul_ps(_mm512_maskz_loadu_ps(lanes[v], queries[q].out + d + v * kLanes),
                              _mm512_set1_ps(corrections[q]));
  for (size_t j = keys.first; j < keys.last; ++j) {
    __m512 value[kVectors];
    for (size_t v = 0; v < kVectors; ++v)
      value[v] = Kv::load(values + j * args.value_stride + d + v * kLanes);
    for (size_t q = 0; q < kQueries; ++q) {
      const __m512 p = _mm512_set1_ps(scores.p[first_query + q][j]);
      for (size_t v = 0; v < kVectors; ++v) o[q][v] = _mm512_fmadd_ps(p, value[v], o[q][v]);
    }
  }
  for (size_t q = 0; q < kQueries; ++q)
    for (size_t v = 0; v < kVectors; ++v)
      _mm512_mask_storeu_ps(queries[q].out + d + v * kLanes, lanes[v], o[q][v]);
}

/// The same for all dimensions.
template <class Kv, size_t kQueries>
void add_values(const AttentionArgs& args, const typename Kv::Element* values, KeyRange keys,
                const BlockScores& scores, size_t first_query, const float* corrections,
                const Query* queries) {
  size_t d = 0;
  for (; d + (kValueVectors - 1) * kLanes < args.head_dim; d += kValueVectors * kLanes)
    add_values<Kv, kQueries, kValueVectors>(args, values, d, keys, scores, first_query, corrections,
                                            queries);
  for (; d < args.head_dim; d += kLanes)
    add_values<Kv, kQueries, 1>(args, values, d, keys, scores, first_query, corrections, queries);
}

/// One block of keys for kQueries queries, of which the last sees most. Where a tile reaches over
/// several tokens, the keys that not all of its queries see are added query by query.
template <class Kv, size_t kQueries>
void attend_block(const AttentionArgs& args, size_t first_key, Query* queries) {
  using Element = typename Kv::Element;
  const size_t count = keys_seen(queries[kQueries - 1], first_key);
  const Element* keys = static_cast<const Element*>(args.keys) + first_key * args.head_dim;
  BlockScores scores;
  if (count > kAttentionBlock - kKeyTile)
    score_tiles<Kv, kQueries, kBlockTiles>(args, queries, keys, 0, scores);
  else
    for (size_t tile = 0; tile * kKeyTile < count; ++tile)
      score_tiles<Kv, kQueries, 1>(args, queries, keys, tile, scores);
  float corrections[kQueries];
  for (size_t q = 0; q < kQueries; ++q) {
    const size_t seen = keys_seen(queries[q], first_key);
    corrections[q] = seen > 0 ? update_softmax(queries[q], seen, scores.p[q]) : 1.0f;
  }
  const Element* values = static_cast<const Element*>(args.values) + first_key * args.value_stride;
  const size_t shared = keys_seen(queries[0], first_key);
  add_values<Kv, kQueries>(args, values, {0, shared}, scores, 0, corrections, queries);
  const float unchanged = 1.0f;  // times 1 is exact
  for (size_t q = 1; q < kQueries; ++q)
    if (const size_t seen = keys_seen(queries[q], first_key); seen > shared)
      add_values<Kv, 1>(args, values, {shared, seen}, scores, q, &unchanged, queries + q);
}

template <class Kv>
void attend_block(const AttentionArgs& args, size_t first_key, Query* queries, size_t count) {
  switch (count) {
    case 1:
      return attend_block<Kv, 1>(args, first_key, queries);
    case 2:
      return attend_block<Kv, 2>(args, first_key, queries);
    case 3:
      return attend_block<Kv, 3>(args, first_key, queries);
    default:
      return attend_block<Kv, kQueryTile>(args, first_key, queries);
  }
}

void scale_output(const AttentionArgs& args, const Query& query) {
  const __m512 sum = _mm512_set1_ps(query.sum);
  for (size_t d = 0; d < args.head_dim; d += kLanes) {
    const __mmask16 lanes = lanes_left(d, args.head_dim);
    const __m512 o = _mm512_maskz_loadu_ps(lanes, query.out + d);
    _mm512_mask_storeu_ps(query.out + d, lanes, _mm512_div_ps(o, sum));
  }
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
      const size_t offset =
          token * args.token_stride + (first + i) % args.group_size * args.head_dim;
      queries[i] = {args.queries + offset, args.out + offset, args.first_position + token + 1,
                    -std::numeric_limits<float>::infinity(), 0.0f};
      std::memset(queries[i].out, 0, args.head_dim * sizeof(float));
    }
    const size_t key_count = queries[count - 1].key_count;
    for (size_t key = 0; key < key_count; key += kAttentionBlock) {
      for (size_t i = 0; i < count; i += kQueryTile) {
        const size_t tile = count - i < kQueryTile ? count - i : kQueryTile;
        if (queries[i + tile - 1].key_count > key) attend_block<Kv>(args, key, queries + i, tile);
      }
    }
    for (size_t i = 0; i < count; ++i) scale_output(args, queries[i]);
  }
}

}  // namespace

void attention_f16(const AttentionArgs& args) {
  attention<KvF16>(args);
}
void attention_f32(const AttentionArgs& args) {
  attention<KvF32>(args);
}

}  // namespace sluice::kernels::avx512
