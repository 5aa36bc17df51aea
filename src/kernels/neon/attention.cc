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

/// Registers of a query's 16 lanes: keys, or dimensions of a value.
using Sums = float32x4_t[kQuarters];

/// sums[n][·] = fma(factors[n][k], rows[k · stride + ·], sums[n][·]) for ascending k.
template <size_t N, class Kv>
inline void add_products(const float* const* factors, const typename Kv::Element* rows,
                         size_t stride, size_t count, Sums* sums) {
  for (size_t k = 0; k < count; ++k) {
    float32x4_t row[kQuarters];
#pragma GCC unroll 4
    for (size_t i = 0; i < kQuarters; ++i) row[i] = Kv::load(rows + k * stride + kLanes * i);
#pragma GCC unroll 4
    for (size_t n = 0; n < N; ++n) {
      const float32x4_t factor = vld1q_dup_f32(factors[n] + k);
#pragma GCC unroll 4
      for (size_t i = 0; i < kQuarters; ++i) sums[n][i] = vfmaq_f32(sums[n][i], factor, row[i]);
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
  for (size_t j = 0; j < range.count; j += kKeyTile) {
    const auto* tile =
        static_cast<const typename Kv::Element*>(args.keys) + (range.first + j) * args.head_dim;
    Sums sums[N] = {};
    add_products<N, Kv>(q, tile, kKeyTile, args.head_dim, sums);
#pragma GCC unroll 4
    for (size_t n = 0; n < N; ++n)
#pragma GCC unroll 4
      for (size_t i = 0; i < kQuarters; ++i)
        vst1q_f32(scores[n] + j + kLanes * i, vmulq_n_f32(sums[n][i], args.scale));
  }
}

/// Turns scores into probabilities. Keys that the query does not see score −∞: they are never the
/// largest and add +0. A query that sees none of the block keeps its state: its correction is 1.
inline void advance_softmax(Query& query, float* scores) {
  for (size_t j = query.visible; j < kAttentionBlock; ++j) scores[j] = -__builtin_inff();
  float32x4_t maxima = vdupq_n_f32(query.max);
  for (size_t j = 0; j < kAttentionBlock; j += kLanes)
    maxima = larger(vld1q_f32(scores + j), maxima);
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

/// o = o · correction, then the values by their probabilities. The queries of a tile see different
/// numbers of keys only at the end of their range: what all see comes first, then each one's rest.
template <size_t N, class Kv>
inline void add_values(const AttentionArgs& args, const Query* queries, KeyRange range,
                       const Scores* scores) {
  const size_t shared = queries[0].visible;
  const float* p[N];
  for (size_t n = 0; n < N; ++n) p[n] = scores[n];
  for (size_t d = 0; d < args.head_dim; d += kQuarters * kLanes) {
    const auto* values =
        static_cast<const typename Kv::Element*>(args.values) + range.first * args.value_stride;
    Sums o[N];
#pragma GCC unroll 4
    for (size_t n = 0; n < N; ++n)
#pragma GCC unroll 4
      for (size_t i = 0; i < kQuarters; ++i) {
        const size_t at = d + kLanes * i;
        o[n][i] = vmulq_n_f32(load_some(queries[n].out + at, left(at, args.head_dim)),
                              queries[n].correction);
      }
    add_products<N, Kv>(p, values + d, args.value_stride, shared, o);
#pragma GCC unroll 4
    for (size_t n = 0; n < N; ++n) {
      const float* rest = p[n] + shared;
      add_products<1, Kv>(&rest, values + shared * args.value_stride + d, args.value_stride,
                          queries[n].visible - shared, o + n);
#pragma GCC unroll 4
      for (size_t i = 0; i < kQuarters; ++i) {
        const size_t at = d + kLanes * i;
        store_some(queries[n].out + at, o[n][i], left(at, args.head_dim));
      }
    }
  }
}

/// Passes N queries, in ascending order of their positions, over one block of keys.
template <size_t N, class Kv>
inline void attend_block(const AttentionArgs& args, Query* queries, size_t first_key) {
  for (size_t n = 0; n < N; ++n) {
    const size_t seen = queries[n].key_count;
    const size_t remaining = left(first_key, seen);
    queries[n].visible = remaining < kAttentionBlock ? remaining : kAttentionBlock;
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
    const float32x4_t sum = vdupq_n_f32(queries[n].sum);
    float* out = queries[n].out;
    for (size_t d = 0; d < args.head_dim; d += kLanes) {
      const size_t dims_left = args.head_dim - d;
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

}  // namespace sluice::kernels::neon
