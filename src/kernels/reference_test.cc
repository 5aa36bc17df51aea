// The reference kernels define the bits; here it is checked that what they define is what is meant,
// by textbook formulas in double precision and by small cases worked out by hand. That the other
// ISAs give the same bits is tests/kernel_check.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <new>
#include <vector>

#include "base/half.h"
#include "base/random.h"
#include "kernels/kernels.h"
#include "quant/activation.h"
#include "quant/encode.h"
#include "testing/moderate_blocks.h"

namespace sluice::kernels {
namespace {

const KernelTable& table() {
  return kernel_table(Isa::ref);
}

std::vector<float> random_floats(size_t count, uint64_t seed) {
  Random random(seed);
  std::vector<float> x(count);
  for (float& value : x) value = static_cast<float>(random.uniform() * 2 - 1);
  return x;
}

struct alignas(64) Line {
  std::byte bytes[64];
};

/// Activation rows of any format, and the values they stand for.
struct Activations {
  Activations(ActivationFormat format, const std::vector<float>& x, size_t cols)
      : stride(activation_layout(format, cols).row_bytes), values(x) {
    memory.resize(x.size() / cols * stride / sizeof(Line));
    for (size_t row = 0; row < x.size() / cols; ++row) fill(format, row, cols);
  }

  void fill(ActivationFormat format, size_t row, size_t cols) {
    std::byte* bytes = data() + row * stride;
    float* x = values.data() + row * cols;
    if (format == ActivationFormat::f32) {
      encode_f32(x, cols, bytes);
      return;
    }
    const bool large = format == ActivationFormat::q8_256;
    const QuantizedRow quantized = quantized_row(format, cols, bytes);
    (large ? table().quantize_q8_256 : table().quantize_q8_32)(x, cols, quantized);
    for (size_t i = 0; i < cols; ++i)
      x[i] = quantized.scale[i / (large ? 256 : 32)] * static_cast<float>(quantized.q[i]);
  }

  std::byte* data() { return memory.front().bytes; }

  size_t stride;
  std::vector<Line> memory;
  std::vector<float> values;  ///< what the rows hold after rounding
};

TEST(Reference, MatmulIsTheProductOfDecodedValues) {
  constexpr size_t kRows = 5, kCols = 512, kTokens = 3;
  for (uint32_t id = 0; id < kDtypeIdCount; ++id) {
    if (table().matmul[id] == nullptr) continue;
    const DtypeInfo& info = *find_dtype(id);
    SCOPED_TRACE(info.name);
    const size_t row_bytes = kCols / info.block_elements * info.block_bytes;
    const size_t block_count = kRows * kCols / info.block_elements;
    const std::vector<std::byte> weights = moderate_blocks(info.dtype, block_count, 1);
    std::vector<float> decoded(kRows * kCols);
    info.decode(weights.data(), block_count, decoded.data());
    Activations x(info.activation, random_floats(kTokens * kCols, 2), kCols);

    const int32_t token_rows[] = {2, 0, 1, 2};
    std::vector<float> out(4 * kRows);
    table().matmul[id]({.weights = weights.data(),
                        .row_bytes = row_bytes,
                        .row_count = kRows,
                        .cols = kCols,
                        .activations = x.data(),
                        .activation_stride = x.stride,
                        .token_rows = token_rows,
                        .token_count = 4,
                        .out = out.data(),
                        .out_stride = kRows});
    for (size_t t = 0; t < 4; ++t) {
      for (size_t r = 0; r < kRows; ++r) {
        double sum = 0;
        for (size_t i = 0; i < kCols; ++i)
          sum += double{decoded[r * kCols + i]} *
                 x.values[static_cast<size_t>(token_rows[t]) * kCols + i];
        EXPECT_NEAR(out[t * kRows + r], sum, 2e-5) << "token " << t << ", row " << r;
      }
    }
  }
}

TEST(Reference, FloatSumsHaveSixteenLanes) {
  // Lane 0 gets 1e8, 1, −1e8: the 1 is lost to rounding there. Lane 1 keeps its 1.
  std::vector<float> w(48, 0.0f);
  w[0] = 1e8f;
  w[16] = 1.0f;
  w[32] = -1e8f;
  w[33] = 1.0f;
  const Activations ones(ActivationFormat::f32, std::vector<float>(48, 1.0f), 48);
  float out = 0;
  const MatmulFn multiply = table().matvec[static_cast<size_t>(Dtype::f32)];
  multiply({.weights = reinterpret_cast<const std::byte*>(w.data()),
            .row_bytes = 48 * 4,
            .row_count = 1,
            .cols = 48,
            .activations = ones.memory.front().bytes,
            .activation_stride = ones.stride,
            .token_rows = nullptr,
            .token_count = 1,
            .out = &out,
            .out_stride = 1});
  EXPECT_EQ(out, 1.0f);
}

/// Softmax attention in double, one query over `count` keys.
std::vector<double> attention_in_double(const float* query, const std::vector<float>& keys,
                                        const std::vector<float>& values, size_t head_dim,
                                        size_t count, double scale) {
  std::vector<double> weight(count), out(head_dim, 0.0);
  double total = 0;
  for (size_t j = 0; j < count; ++j) {
    double dot = 0;
    for (size_t d = 0; d < head_dim; ++d) dot += double{query[d]} * keys[j * head_dim + d];
    weight[j] = std::exp(dot * scale);
    total += weight[j];
  }
  for (size_t j = 0; j < count; ++j)
    for (size_t d = 0; d < head_dim; ++d) out[d] += weight[j] / total * values[j * head_dim + d];
  return out;
}

TEST(Reference, AttentionIsSoftmaxAttention) {
  constexpr size_t kHeadDim = 24, kStride = 32, kGroup = 2, kFirst = 120, kTokens = 20;
  constexpr size_t kPositions = kFirst + kTokens;
  const std::vector<float> queries = random_floats(kTokens * kGroup * kHeadDim, 3);
  const std::vector<float> keys = random_floats(kPositions * kHeadDim, 4);
  const std::vector<float> values = random_floats(kPositions * kHeadDim, 5);
  constexpr double kTolerances[kKvTypeCount] = {1e-3, 2e-6, 1e-2};
  for (const KvType type : {KvType::f16, KvType::f32, KvType::q8_0}) {
    const auto index = static_cast<size_t>(type);
    std::vector<float> stored_keys(144 * kHeadDim), stored_values(144 * kStride);
    for (size_t p = 0; p < kPositions; ++p) {
      table().store_key[index](&keys[p * kHeadDim], kHeadDim, p, stored_keys.data());
      table().store_value[index](&values[p * kHeadDim], kHeadDim, p, kStride, stored_values.data());
    }
    std::vector<float> out(queries.size());
    table().attention[index]({.queries = queries.data(),
                              .query_stride = kGroup * kHeadDim,
                              .token_count = kTokens,
                              .group_size = kGroup,
                              .first_position = kFirst,
                              .keys = stored_keys.data(),
                              .values = stored_values.data(),
                              .key_dim = kHeadDim,
                              .value_dim = kHeadDim,
                              .value_stride = kStride,
                              .scale = 0.7f,
                              .out = out.data(),
                              .out_stride = kGroup * kHeadDim});
    for (size_t t = 0; t < kTokens; ++t) {
      for (size_t j = 0; j < kGroup; ++j) {
        const size_t offset = (t * kGroup + j) * kHeadDim;
        const std::vector<double> wanted = attention_in_double(
            queries.data() + offset, keys, values, kHeadDim, kFirst + t + 1, 0.7);
        for (size_t d = 0; d < kHeadDim; ++d)
          EXPECT_NEAR(out[offset + d], wanted[d], kTolerances[index]);
      }
    }
  }
}

TEST(Reference, KeysLieInTiles) {
  std::vector<float> keys(2 * kKeyTile * 3, 0.0f);
  const float key[] = {1.0f, 2.0f, 3.0f};
  table().store_key[static_cast<size_t>(KvType::f32)](key, 3, 18, keys.data());
  EXPECT_EQ(keys[(3 + 0) * kKeyTile + 2], 1.0f);
  EXPECT_EQ(keys[(3 + 1) * kKeyTile + 2], 2.0f);
  EXPECT_EQ(keys[(3 + 2) * kKeyTile + 2], 3.0f);
}

/// 40 dimensions are a block of 32 and one of 8, each with a scale of its own.
TEST(Reference, Q8_0KeepsAScaleForEachBlockBehindTheCodes) {
  constexpr size_t kHeadDim = 40, kStride = 48, kPosition = 18;
  constexpr auto q8_0 = static_cast<size_t>(KvType::q8_0);
  EXPECT_EQ(kv_tile_bytes(KvType::q8_0, kHeadDim), 16u * (40 + 2 * 2));
  EXPECT_EQ(kv_tile_bytes(KvType::q8_0, 32), 16u * (32 + 2));
  std::vector<float> x(kHeadDim, 0.0f);
  x[3] = -254.0f;  // scale 2
  x[4] = 3.0f;     // 1.5, a tie
  x[39] = 63.5f;   // scale 0.5
  std::vector<int8_t> keys(2 * kv_tile_bytes(KvType::q8_0, kHeadDim), 77);
  table().store_key[q8_0](x.data(), kHeadDim, kPosition, keys.data());
  const int8_t* tile = keys.data() + keys.size() / 2;
  EXPECT_EQ(tile[3 * kKeyTile + 2], -127);
  EXPECT_EQ(tile[4 * kKeyTile + 2], 2);
  EXPECT_EQ(tile[39 * kKeyTile + 2], 127);
  EXPECT_EQ(tile[39 * kKeyTile + 3], 77) << "another position";
  const auto* scales = reinterpret_cast<const uint16_t*>(tile + kKeyTile * kHeadDim);
  EXPECT_EQ(scales[2], 0x4000) << "2";
  EXPECT_EQ(scales[kKeyTile + 2], 0x3800) << "0.5";

  std::vector<int8_t> values(2 * kv_tile_bytes(KvType::q8_0, kStride), 77);
  table().store_value[q8_0](x.data(), kHeadDim, kPosition, kStride, values.data());
  const int8_t* row = values.data() + values.size() / 2 + 2 * kStride;
  EXPECT_EQ(row[3], -127);
  EXPECT_EQ(row[39], 127);
  for (size_t d = kHeadDim; d < kStride; ++d) EXPECT_EQ(row[d], 0) << "padding";
  EXPECT_EQ(row[kStride], 77) << "another position";
  const int8_t* behind = values.data() + values.size() / 2 + kKeyTile * kStride;
  EXPECT_EQ(reinterpret_cast<const uint16_t*>(behind)[kKeyTile + 2], 0x3800);
}

/// Attention of one query over two positions of one dimension, after a stored key and value.
float attend_two(KvType type, float query, const float (&keys)[2], const float (&values)[2]) {
  const auto index = static_cast<size_t>(type);
  std::vector<float> stored_keys(64, 0.0f), stored_values(kKeyTile * 17, 0.0f);
  for (size_t p = 0; p < 2; ++p) {
    table().store_key[index](&keys[p], 1, p, stored_keys.data());
    table().store_value[index](&values[p], 1, p, 16, stored_values.data());
  }
  float out = 0;
  table().attention[index]({.queries = &query,
                            .query_stride = 1,
                            .token_count = 1,
                            .group_size = 1,
                            .first_position = 1,
                            .keys = stored_keys.data(),
                            .values = stored_values.data(),
                            .key_dim = 1,
                            .value_dim = 1,
                            .value_stride = 16,
                            .scale = 1.0f,
                            .out = &out,
                            .out_stride = 1});
  return out;
}

TEST(Reference, WhatIsNotFiniteInTheCacheShowsInTheResult) {
  for (const KvType type : {KvType::f16, KvType::f32, KvType::q8_0}) {
    for (const float broken : {std::numeric_limits<float>::infinity(), std::nanf("")}) {
      EXPECT_FALSE(std::isfinite(attend_two(type, 1.0f, {0.5f, 0.25f}, {broken, 1.0f})));
      EXPECT_FALSE(std::isfinite(attend_two(type, 1.0f, {0.5f, broken}, {1.0f, 1.0f})));
    }
  }
}

TEST(Reference, ScoresFarApartStayFinite) {
  for (const KvType type : {KvType::f16, KvType::f32, KvType::q8_0})
    EXPECT_EQ(attend_two(type, 1000.0f, {-1000.0f, 1000.0f}, {254.0f, 127.0f}), 127.0f);
}

TEST(Reference, RmsNorm) {
  const std::vector<float> x = random_floats(37, 6), weight = random_floats(37, 7);
  std::vector<float> out(37);
  table().rms_norm(x.data(), weight.data(), 1e-5f, 37, out.data());
  double squares = 0;
  for (const float value : x) squares += double{value} * value;
  for (size_t i = 0; i < 37; ++i)
    EXPECT_NEAR(out[i], x[i] / std::sqrt(squares / 37 + 1e-5) * weight[i], 1e-6);
}

TEST(Reference, Softmax) {
  std::vector<float> x = {1.0f, 2.0f, 3.0f, -1e30f, 3.0f};
  table().softmax(x.data(), x.size());
  const double total = std::exp(-2.0) + std::exp(-1.0) + 2;
  EXPECT_NEAR(x[0], std::exp(-2.0) / total, 1e-7);
  EXPECT_NEAR(x[1], std::exp(-1.0) / total, 1e-7);
  EXPECT_NEAR(x[2], 1 / total, 1e-7);
  EXPECT_EQ(x[3], 0.0f);
  EXPECT_EQ(x[4], x[2]);
}

TEST(Reference, SiluMultiply) {
  const float gate[] = {0.0f, 1.0f, -3.0f, 200.0f, -200.0f};
  const float up[] = {5.0f, 2.0f, 2.0f, 1.0f, 1.0f};
  float out[5];
  table().silu_multiply(gate, up, 5, out);
  EXPECT_EQ(out[0], 0.0f);
  EXPECT_NEAR(out[1], 2 / (1 + std::exp(-1.0)), 1e-6);
  EXPECT_NEAR(out[2], -6 / (1 + std::exp(3.0)), 1e-6);
  EXPECT_EQ(out[3], 200.0f);
  EXPECT_EQ(out[4], 0.0f) << "no NaN where e^x overflows";
}

TEST(Reference, RopeTurnsPairsByTheirAngle) {
  float x[] = {1.0f, 2.0f, 0.0f, 3.0f};  // pairs (1, 0) and (2, 3)
  const float cos[] = {0.0f, 0.6f}, sin[] = {1.0f, 0.8f};
  table().rope_neox(x, cos, sin, 2);
  EXPECT_EQ(x[0], 0.0f);
  EXPECT_EQ(x[2], 1.0f);
  EXPECT_FLOAT_EQ(x[1], 2 * 0.6f - 3 * 0.8f);
  EXPECT_FLOAT_EQ(x[3], 2 * 0.8f + 3 * 0.6f);
}

TEST(Reference, ReluMultiply) {
  const float gate[] = {2.0f, -2.0f, 0.0f}, up[] = {3.0f, 3.0f, 3.0f};
  float out[3];
  table().relu_multiply(gate, up, 3, out);
  EXPECT_EQ(out[0], 6.0f);
  EXPECT_EQ(out[1], 0.0f);
  EXPECT_EQ(out[2], 0.0f);
}

TEST(Reference, GeluMultiply) {
  const float gate[] = {0.0f, 1.0f, -2.0f, 200.0f, -200.0f};
  const float up[] = {5.0f, 2.0f, 10.0f, 1.0f, 1.0f};
  float out[5];
  table().gelu_multiply(gate, up, 5, out);
  EXPECT_EQ(out[0], 0.0f);
  EXPECT_NEAR(out[1], 2 * 0.841192, 1e-5);
  EXPECT_NEAR(out[2], 10 * -0.0454023, 1e-5);
  EXPECT_EQ(out[3], 200.0f);
  EXPECT_EQ(out[4], 0.0f);
}

TEST(Reference, SoftCapBendsWhatComesNearIt) {
  float x[] = {0.0f, 0.6f, -6.0f, 600.0f};
  table().soft_cap(6.0f, 4, x);
  EXPECT_EQ(x[0], 0.0f);
  EXPECT_NEAR(x[1], 0.598008, 1e-6);
  EXPECT_NEAR(x[2], -6 * 0.761594, 1e-5);
  EXPECT_EQ(x[3], 6.0f);
}

TEST(Reference, SwigluIsClamped) {
  const auto sigmoid = [](double x) { return 1 / (1 + std::exp(-1.702 * x)); };
  const float gate[] = {1.0f, 9.0f, -9.0f, 0.0f, 1.0f};
  const float up[] = {2.0f, 2.0f, 2.0f, 5.0f, -9.0f};
  float out[5];
  table().swiglu_clamped(gate, up, 5, out);
  EXPECT_NEAR(out[0], sigmoid(1) * 3, 1e-6);
  EXPECT_NEAR(out[1], 7 * sigmoid(7) * 3, 1e-5) << "the gate is clamped from above";
  EXPECT_NEAR(out[2], -9 * sigmoid(-9) * 3, 1e-9) << "and not from below";
  EXPECT_EQ(out[3], 0.0f);
  EXPECT_NEAR(out[4], sigmoid(1) * -6, 1e-6) << "up is clamped to both sides";
  const float high[] = {1.0f}, above[] = {9.0f};
  table().swiglu_clamped(high, above, 1, out);
  EXPECT_NEAR(out[0], sigmoid(1) * 8, 1e-6);
}

TEST(Reference, SinksAndUnseenKeysChangeOnlyTheWeights) {
  // Two positions of one dimension; scores 0 and ln 3, so that weights are as 1 to 3.
  const float query[] = {1.0f};
  float keys[kKeyTile] = {0.0f, std::log(3.0f)};
  float values[2 * 16] = {};
  values[0] = 8.0f;
  values[16] = 4.0f;
  float out[1];
  AttentionArgs args{.queries = query,
                     .query_stride = 1,
                     .token_count = 1,
                     .group_size = 1,
                     .first_position = 1,
                     .keys = keys,
                     .values = values,
                     .key_dim = 1,
                     .value_dim = 1,
                     .value_stride = 16,
                     .scale = 1.0f,
                     .out = out,
                     .out_stride = 1};
  const auto attend = [&] {
    table().attention[static_cast<size_t>(KvType::f32)](args);
    return out[0];
  };
  EXPECT_FLOAT_EQ(attend(), (8 + 3 * 4) / 4.0f);
  const float sink[] = {std::log(4.0f)};
  args.sinks = sink;
  EXPECT_FLOAT_EQ(attend(), (8 + 3 * 4) / 8.0f);
  args.first_key = 1;
  EXPECT_FLOAT_EQ(attend(), 3 * 4 / 7.0f);
  args.sinks = nullptr;
  EXPECT_FLOAT_EQ(attend(), 4.0f);
}

TEST(Reference, AdjacentPairsTurnAlike) {
  float x[] = {1.0f, 0.0f, 2.0f, 3.0f};
  const float cos[] = {0.0f, 0.6f}, sin[] = {1.0f, 0.8f};
  table().rope_adjacent(x, cos, sin, 2);
  EXPECT_EQ(x[0], 0.0f);
  EXPECT_EQ(x[1], 1.0f);
  EXPECT_FLOAT_EQ(x[2], 2 * 0.6f - 3 * 0.8f);
  EXPECT_FLOAT_EQ(x[3], 2 * 0.8f + 3 * 0.6f);
}

TEST(Reference, AddAndAddScaled) {
  const float x[] = {1.0f, 2.0f, 3.0f};
  float y[] = {10.0f, 20.0f, 30.0f};
  table().add(x, 3, y);
  table().add_scaled(-2.0f, x, 2, y);
  EXPECT_EQ(y[0], 9.0f);
  EXPECT_EQ(y[1], 18.0f);
  EXPECT_EQ(y[2], 33.0f);
}

TEST(Reference, GatesAndLengthsByHand) {
  const float gate[] = {0.0f, 100.0f, -100.0f}, up[] = {3.0f, -8.0f, 5.0f};
  float out[3];
  table().sigmoid_multiply(gate, up, 3, out);
  EXPECT_EQ(out[0], 1.5f);
  EXPECT_EQ(out[1], -8.0f);
  EXPECT_EQ(out[2], 0.0f);
  table().swiglu_limited(gate, up, 2.0f, 3, out);
  EXPECT_EQ(out[0], 0.0f);
  EXPECT_EQ(out[1], -4.0f) << "both are limited, and up on both sides";
  EXPECT_EQ(out[2], 0.0f);
  float x[] = {3.0f, 4.0f}, small[] = {0.0f, 1e-9f};
  table().set_length(x, 10.0f, 1e-6f, 2);
  EXPECT_EQ(x[0], 6.0f);
  EXPECT_EQ(x[1], 8.0f);
  table().set_length(small, 1.0f, 0.5f, 2);
  EXPECT_EQ(small[1], 2e-9f) << "a short one does not grow beyond 1 / eps";
}

TEST(Reference, ConvolutionByHand) {
  // Two channels, three taps; the last row is the newest.
  const float x[] = {1, 10, 2, 20, 3, 30}, taps[] = {1, 0, 0, 1, 2, -1};
  float out[2];
  table().convolve(x, 2, taps, 2, 3, 2, out);
  table().silu(out, 2);
  EXPECT_NEAR(out[0], 7 / (1 + std::exp(-7.0)), 1e-5);
  EXPECT_NEAR(out[1], -10 / (1 + std::exp(10.0)), 1e-8);
}

TEST(Reference, DecaysFollowTheirFormulas) {
  const float bias[] = {0.5f, -1.0f, 2.0f};
  const float start[] = {-3.0f, 0.25f, 1.5f};
  float x[3], bounded[3];
  std::copy_n(start, 3, x);
  std::copy_n(start, 3, bounded);
  table().softplus_decay(x, bias, -0.75f, 3);
  table().sigmoid_decay(bounded, bias, 1.25f, -5.0f, 3);
  for (size_t i = 0; i < 3; ++i) {
    const double sum = static_cast<double>(start[i]) + static_cast<double>(bias[i]);
    EXPECT_NEAR(x[i], std::exp(-0.75 * std::log1p(std::exp(sum))), 1e-6);
    EXPECT_NEAR(bounded[i], std::exp(-5.0 / (1 + std::exp(-1.25 * sum))), 1e-6);
  }
}

/// Against the definition of the delta rule in double, and cut into two calls.
TEST(Reference, DeltaRuleIsItsFormula) {
  constexpr size_t kKey = 5, kValue = 18, kTokens = 4;
  const std::vector<float> q = random_floats(kTokens * kKey, 1), k = random_floats(q.size(), 2),
                           v = random_floats(kTokens * kValue, 3), b = random_floats(kTokens, 4);
  std::vector<float> decay = random_floats(q.size(), 5);
  for (float& a : decay) a = std::abs(a);
  std::vector<double> state(kKey * kValue), wanted(kTokens * kValue);
  for (size_t t = 0; t < kTokens; ++t)
    for (size_t j = 0; j < kValue; ++j) {
      double known = 0;
      for (size_t i = 0; i < kKey; ++i)
        known += double{k[t * kKey + i]} * (state[i * kValue + j] *= double{decay[t * kKey + i]});
      const double correction = (double{v[t * kValue + j]} - known) * double{b[t]};
      for (size_t i = 0; i < kKey; ++i) {
        state[i * kValue + j] += double{k[t * kKey + i]} * correction;
        wanted[t * kValue + j] += double{q[t * kKey + i]} * state[i * kValue + j];
      }
    }
  std::vector<float> tiles(delta_state_floats(kKey, kValue)), out(kTokens * kValue);
  DeltaArgs args{.state = tiles.data(),
                 .key_dim = kKey,
                 .value_dim = kValue,
                 .token_count = 1,
                 .queries = q.data(),
                 .keys = k.data(),
                 .query_stride = kKey,
                 .decays = decay.data(),
                 .decay_stride = kKey,
                 .values = v.data(),
                 .value_stride = kValue,
                 .strengths = b.data(),
                 .strength_stride = 1,
                 .out = out.data(),
                 .out_stride = kValue};
  table().delta_rule(args);
  args.token_count = kTokens - 1;
  args.queries += kKey;
  args.keys += kKey;
  args.decays += kKey;
  args.values += kValue;
  args.strengths += 1;
  args.out += kValue;
  table().delta_rule(args);
  for (size_t i = 0; i < out.size(); ++i) EXPECT_NEAR(out[i], wanted[i], 1e-6);
  EXPECT_NEAR(tiles[3 * kDeltaTile + 7], state[3 * kValue + 7], 1e-6);
}

}  // namespace
}  // namespace sluice::kernels
