// Attention by blocks of 64 keys with an online softmax.
//
// Both halves of attention are the same small product: scalars of a query (its components, then its
// probabilities) times rows of 16 lanes (16 keys at one component, then 16 components of one
// value), added up in ascending order. Four queries share each load. A run of 16 queries passes
// over a block of keys before the next block comes, so that keys and values stream from memory once
// per run; meanwhile a query's o rests in the output, as the definition has it.
#include "kernels/avx2/avx2.h"
#include "kernels/avx2/kv_element.h"
#include "kernels/avx2/lanes.h"

namespace sluice::kernels::avx2 {
namespace {

constexpr size_t kQueryTile = 4;
constexpr size_t kQueryRun = 4 * kQueryTile;

/// sums[n][·] = fma(factors[n][k], rows[k · stride + ·], sums[n][·]) for ascending k.
template <size_t N, class Kv>
inline void add_products(const float* const* factors, const typename Kv::Element* rows,
                         size_t stride, size_t count, __m256 (*sums)[2]) {
  for (size_t k = 0; k < count; ++k) {
    const __m256 low = Kv::load(rows + k * stride);
    const __m256 high = Kv::load(rows + k * stride + kLanes);
#pragma GCC unroll 4
    for (size_t n = 0; n < N; ++n) {
      const __m256 factor = _mm256_broadcast_ss(factors[n] + k);
      sums[n][0] = _mm256_fmadd_ps(factor, low, sums[n][0]);
      sums[n][1] = _mm256_fmadd_ps(factor, high, sums[n][1]);
    }
  }
}

/// A query on its way through the keys.
struct Query {
  const float* q;    ///< [head_dim]
  float* out;        ///< [head_dim]
  size_t key_count;  ///< it sees the keys before this one,
  size_t visible;    ///< and of the block at hand so many
  float max;         ///< m, l and c of kernels.h
  float sum;
  float correction;
};

/// The keys [first, first + count) of one block.
struct KeyRange {
  size_t first;
  size_t count;
};

using Scores = float[kAttentionBlock];

template <size_t N, class Kv>
inline void score(const AttentionArgs& args, const Query* queries, KeyRange range, Scores* scores) {
  const float* q[N];
  for (size_t n = 0; n < N; ++n) q[n] = queries[n].q;
  const __m256 scale = _mm256_set1_ps(args.scale);
  for (size_t j = 0; j < range.count; j += kKeyTile) {
    const auto* tile =
        static_cast<const typename Kv::Element*>(args.keys) + (range.first + j) * args.head_dim;
    __m256 sums[N][2];
#pragma GCC unroll 4
    for (size_t n = 0; n < N; ++n) sums[n][0] = sums[n][1] = _mm256_setzero_ps();
    add_products<N, Kv>(q, tile, kKeyTile, args.head_dim, sums);
#pragma GCC unroll 4
    for (size_t n = 0; n < N; ++n) {
      _mm256_store_ps(scores[n] + j, _mm256_mul_ps(sums[n][0], scale));
      _mm256_store_ps(scores[n] + j + kLanes, _mm256_mul_ps(sums[n][1], scale));
    }
  }
}

/// Turns scores into probabilities. Keys that the query does not see score −∞: they are never the
/// largest and add +0. A query that sees none of the block keeps its state: its correction is 1.
inline void advance_softmax(Query& query, float* scores) {
  for (size_t j = query.visible; j < kAttentionBlock; ++j) scores[j] = -__builtin_inff();
  __m256 max = _mm256_set1_ps(query.max);
  for (size_t j = 0; j < kAttentionBlock; j += kLanes)
    max = _mm256_max_ps(_mm256_load_ps(scores + j), max);
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

/// o = o · correction, then the values by their probabilities. The queries of a tile see different
/// numbers of keys only at the end of their range: what all see comes first, then each one's rest.
template <size_t N, class Kv>
inline void add_values(const AttentionArgs& args, const Query* queries, KeyRange range,
                       const Scores* scores) {
  const size_t shared = queries[0].visible;
  const float* p[N];
  for (size_t n = 0; n < N; ++n) p[n] = scores[n];
  for (size_t d = 0; d < args.head_dim; d += 2 * kLanes) {
    const size_t low = args.head_dim - d;
    const size_t high = low > kLanes ? low - kLanes : 0;
    const auto* values =
        static_cast<const typename Kv::Element*>(args.values) + range.first * args.value_stride;
    __m256 o[N][2];
#pragma GCC unroll 4
    for (size_t n = 0; n < N; ++n) {
      const __m256 correction = _mm256_set1_ps(queries[n].correction);
      o[n][0] = _mm256_mul_ps(load_some(queries[n].out + d, low), correction);
      o[n][1] = _mm256_mul_ps(load_some(queries[n].out + d + kLanes, high), correction);
    }
    add_products<N, Kv>(p, values + d, args.value_stride, shared, o);
#pragma GCC unroll 4
    for (size_t n = 0; n < N; ++n) {
      const float* rest = p[n] + shared;
      add_products<1, Kv>(&rest, values + shared * args.value_stride + d, args.value_stride,
                          queries[n].visible - shared, o + n);
      store_some(queries[n].out + d, o[n][0], low);
      store_some(queries[n].out + d + kLanes, o[n][1], high);
    }
  }
}

/// Passes N queries, in ascending order of their positions, over one block of keys.
template <size_t N, class Kv>
inline void attend_block(const AttentionArgs& args, Query* queries, size_t first_key) {
  for (size_t n = 0; n < N; ++n) {
    const size_t seen = queries[n].key_count;
    const size_t left = seen > first_key ? seen - first_key : 0;
    queries[n].visible = left < kAttentionBlock ? left : kAttentionBlock;
  }
  const KeyRange range = {first_key, queries[N - 1].visible};
  alignas(64) Scores scores[N];
  score<N, Kv>(args, queries, range, scores);
  for (size_t n = 0; n < N; ++n) advance_softmax(queries[n], scores[n]);
  add_values<N, Kv>(args, queries, range, scores);
}

inline Query start_query(const AttentionArgs& args, size_t index) {
  const size_t t = index / args.group_size;
  const size_t offset = t * args.token_stride + index % args.group_size * args.head_dim;
  __builtin_memset(args.out + offset, 0, args.head_dim * sizeof(float));
  return {.q = args.queries + offset,
          .out = args.out + offset,
          .key_count = args.first_position + t + 1,
          .visible = 0,
          .max = -__builtin_inff(),
          .sum = 0.0f,
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
    const __m256 sum = _mm256_set1_ps(queries[n].sum);
    float* out = queries[n].out;
    for (size_t d = 0; d < args.head_dim; d += kLanes) {
      const size_t left = args.head_dim - d;
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

}  // namespace sluice::kernels::avx2
