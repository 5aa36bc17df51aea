#include "backend/sequence_state.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>

namespace sluice {
namespace {

ModelConfig config_of(uint32_t head_dim, const std::vector<uint32_t>& kv_head_counts) {
  ModelConfig config;
  for (const uint32_t count : kv_head_counts)
    config.layers.push_back({.head_count = count * 2,
                             .kv_head_count = count,
                             .key_dim = head_dim,
                             .value_dim = head_dim});
  return config;
}

SequenceState::Limits limits_of(size_t context, KvType type) {
  return {.context_token_max = context, .ubatch_token_max = 64, .type = type};
}

SequenceState allocate(const ModelConfig& config, size_t context, KvType type, Ledger& ledger) {
  auto cache = SequenceState::allocate(config, limits_of(context, type), ledger);
  CHECK(cache.ok());
  return std::move(*cache);
}

TEST(SequenceState, BytesByHand) {
  const ModelConfig config = config_of(64, {2, 2, 2});
  EXPECT_EQ(SequenceState::bytes_per_token(config, KvType::f16), 3u * 2 * (64 + 64) * 2);
  EXPECT_EQ(SequenceState::bytes_per_token(config, KvType::f32), 3u * 2 * (64 + 64) * 4);
  EXPECT_EQ(SequenceState::bytes_for(config, limits_of(64, KvType::f16)), 64u * 1536);
  EXPECT_EQ(SequenceState::bytes_for(config, limits_of(65, KvType::f16)), 128u * 1536)
      << "whole attention blocks of 64 positions";
  EXPECT_EQ(SequenceState::bytes_per_token(config_of(20, {1}), KvType::f32), (20u + 32) * 4)
      << "rows of values are padded to 16";
  EXPECT_EQ(SequenceState::bytes_per_token(config, KvType::q8_0), 3u * 2 * (64 + 64) * 34 / 32)
      << "a scale of two bytes for each 32 elements";
  EXPECT_EQ(SequenceState::bytes_per_token(config_of(40, {1}), KvType::q8_0), (40u + 4) + (48 + 4));
  EXPECT_EQ(SequenceState::bytes_for(config, limits_of(65, KvType::q8_0)), 128u * 816);
}

TEST(SequenceState, EveryHeadHasRoomOfItsOwn) {
  for (const KvType type : {KvType::f16, KvType::f32, KvType::q8_0}) {
    for (const uint32_t head_dim : {16u, 20u, 80u, 128u}) {
      Ledger ledger;
      const std::vector<uint32_t> heads{3, 1, 4};
      const ModelConfig config = config_of(head_dim, heads);
      const SequenceState cache = allocate(config, 100, type, ledger);
      EXPECT_EQ(cache.type(), type);
      EXPECT_EQ(cache.context_token_max(), 100u);
      EXPECT_EQ(cache.value_stride(0) % 16, 0u);
      EXPECT_GE(cache.value_stride(0), head_dim);
      constexpr size_t kTiles = 8;  // 100 positions are 2 blocks of 4 tiles
      std::vector<std::pair<std::byte*, size_t>> ranges;
      for (size_t layer = 0; layer < heads.size(); ++layer)
        for (size_t head = 0; head < heads[layer]; ++head) {
          ranges.emplace_back(cache.keys(layer, head),
                              kTiles * kernels::kv_tile_bytes(type, head_dim));
          ranges.emplace_back(cache.values(layer, head),
                              kTiles * kernels::kv_tile_bytes(type, cache.value_stride(layer)));
        }
      std::ranges::sort(ranges);
      for (size_t i = 0; i < ranges.size(); ++i) {
        EXPECT_EQ(reinterpret_cast<uintptr_t>(ranges[i].first) % 64, 0u);
        if (i > 0) {
          EXPECT_LE(ranges[i - 1].first + ranges[i - 1].second, ranges[i].first);
        }
        std::memset(ranges[i].first, 1, ranges[i].second);  // all of it is ours
      }
      EXPECT_LE(ranges.back().first + ranges.back().second,
                ranges.front().first + SequenceState::bytes_for(config, limits_of(100, type)));
    }
  }
}

TEST(SequenceState, TheLedgerKnowsItAlsoWhenItMoves) {
  Ledger ledger;
  {
    SequenceState cache = allocate(config_of(64, {2, 2}), 1000, KvType::f16, ledger);
    const uint64_t bytes = ledger.bytes(MemoryUse::kv);
    EXPECT_GE(bytes, SequenceState::bytes_for(config_of(64, {2, 2}), limits_of(1000, KvType::f16)));
    const std::byte* keys = cache.keys(1, 1);
    const SequenceState moved = std::move(cache);
    EXPECT_EQ(ledger.bytes(MemoryUse::kv), bytes);
    EXPECT_EQ(moved.keys(1, 1), keys);
  }
  EXPECT_EQ(ledger.total_bytes(), 0u);
}

TEST(SequenceState, WhatCannotBeHadIsAnError) {
  Ledger ledger;
  const auto cache = SequenceState::allocate(config_of(128, {64, 64, 64, 64}),
                                             limits_of(size_t{1} << 33, KvType::f32), ledger);
  ASSERT_FALSE(cache.ok());
  EXPECT_EQ(cache.error().kind, ErrorKind::memory);
  EXPECT_NE(cache.error().message.find("KV cache"), std::string::npos);
  EXPECT_EQ(ledger.total_bytes(), 0u);
}

/// A window of 8 and a ubatch of 64 make a ring of 128 positions.
ModelConfig windowed_config() {
  ModelConfig config = config_of(16, {1, 1});
  config.layers[0].window = 8;
  return config;
}

ModelConfig running_config() {
  ModelConfig config = config_of(16, {1, 0});
  config.layers[1].state_floats = 3;
  return config;
}

void step(SequenceState& state, size_t tokens) {
  state.begin_step(tokens);
  state.end_step();
}

TEST(SequenceState, AWindowKeepsNoMoreThanItSees) {
  const ModelConfig config = windowed_config();
  constexpr size_t kPositions = 128 + 2 * 2 * 64;  // the ring, and two snapshots of two blocks
  Ledger ledger;
  const SequenceState state = allocate(config, 100000, KvType::f16, ledger);
  EXPECT_EQ(state.ring_positions(0), 128u);
  EXPECT_EQ(state.ring_positions(1), 100032u);
  EXPECT_EQ(SequenceState::bytes_per_token(config, KvType::f16), 64u) << "of the other layer";
  EXPECT_EQ(SequenceState::fixed_bytes(config, 64, KvType::f16), kPositions * 64);
  EXPECT_EQ(SequenceState::bytes_for(config, limits_of(100000, KvType::f16)),
            (100032 + kPositions) * 64);
  EXPECT_EQ(allocate(config, kPositions, KvType::f16, ledger).ring_positions(0), kPositions)
      << "no more than the context";
}

/// 36 layers as gpt-oss has them, every other one with a window of 128.
TEST(SequenceState, ALongContextTakesLittleWhereHalfTheLayersHaveWindows) {
  ModelConfig config = config_of(64, std::vector<uint32_t>(36, 8));
  for (size_t i = 0; i < 36; i += 2) config.layers[i].window = 128;
  const SequenceState::Limits limits{100000, 512, KvType::f16};
  constexpr uint64_t kLayerBytes = uint64_t{8} * 2 * 64 * 2;  // of one position
  EXPECT_EQ(SequenceState::bytes_for(config, limits),
            18 * kLayerBytes * (100032 + 640 + 2 * 3 * 64));
  uint64_t before = 0;
  for (size_t context = 1; context < 3000; ++context) {
    const uint64_t bytes = SequenceState::bytes_for(config, {context, 512, KvType::f16});
    ASSERT_GE(bytes, before) << "a longer context never takes less";
    ASSERT_LE(bytes, (context + 63) / 64 * 64 * 36 * kLayerBytes) << "windows save, or nothing";
    before = bytes;
  }
}

TEST(SequenceState, FullLayersGoBackAnywhere) {
  Ledger ledger;
  SequenceState state = allocate(config_of(16, {1}), 1000, KvType::f16, ledger);
  step(state, 900);
  EXPECT_EQ(state.rewind(901), 900u) << "never forward";
  EXPECT_EQ(state.rewind(17), 17u);
  state.begin_step(5);
  EXPECT_EQ(state.rewind(17), 17u) << "a step that failed";
  EXPECT_EQ(state.position(), 17u);
}

TEST(SequenceState, ARingGoesBackAsFarAsTheWindowIsWhole) {
  Ledger ledger;
  SequenceState state = allocate(windowed_config(), 1000, KvType::f16, ledger);
  step(state, 500);
  // Positions 372 … 499 are there; a token at 379 looks back at 372.
  EXPECT_EQ(state.rewind(379), 379u);
  EXPECT_EQ(state.rewind(378), 0u);
  step(state, 100);
  EXPECT_EQ(state.rewind(3), 3u) << "nothing has been overwritten yet";
}

TEST(SequenceState, AFailedStepMayHaveOverwrittenTheWindow) {
  Ledger ledger;
  SequenceState state = allocate(windowed_config(), 1000, KvType::f16, ledger);
  step(state, 300);
  state.begin_step(121);
  EXPECT_EQ(state.rewind(300), 300u);
  state.begin_step(122);
  EXPECT_EQ(state.rewind(300), 0u);
}

TEST(SequenceState, ARingThatWasNeverFullGoesBackAnywhere) {
  Ledger ledger;
  ModelConfig config = windowed_config();
  config.layers[0].window = 100;  // a ring of 192
  SequenceState state = allocate(config, 1000, KvType::f16, ledger);
  step(state, 192);
  EXPECT_EQ(state.rewind(3), 3u);
  step(state, 190);
  EXPECT_EQ(state.rewind(100), 100u) << "position 1 is the first that is there";
  EXPECT_EQ(state.rewind(99), 0u);
}

/// A step of one layer after the other, which writes a number into the running state of each.
void run_to(SequenceState& state, const ModelConfig& config, size_t position, float value) {
  state.begin_step(position - state.position());
  for (size_t layer = 0; layer < config.layer_count(); ++layer)
    for (size_t p = state.position(), count = 0; p < position; p += count) {
      count = state.piece_before_snapshot(p, position - p);
      if (config.layers[layer].state_floats > 0)
        state.running(layer)[0] = value + static_cast<float>(p + count);
      state.end_piece(layer, p + count);
    }
  state.end_step();
}

TEST(SequenceState, RunningStatesGoBackToSnapshotsOnly) {
  const ModelConfig config = running_config();
  Ledger ledger;
  SequenceState state = allocate(config, 1000, KvType::f16, ledger);
  const float& value = state.running(1)[0];
  EXPECT_EQ(value, 0.0f);
  state.plan_snapshot(7);
  run_to(state, config, 10, 0.5f);
  EXPECT_EQ(value, 10.5f);
  EXPECT_EQ(state.rewind(10), 10u) << "where it stands";
  EXPECT_EQ(state.rewind(9), 7u);
  EXPECT_EQ(value, 7.5f) << "as it was on the way";
  run_to(state, config, 20, 0.25f);
  state.begin_step(4);
  state.running(1)[0] = 99.0f;
  EXPECT_EQ(state.rewind(20), 7u) << "a step that failed";
  EXPECT_EQ(value, 7.5f);
  EXPECT_EQ(state.rewind(6), 0u);
  EXPECT_EQ(value, 0.0f);
  run_to(state, config, 30, 0.0f);
  EXPECT_EQ(state.rewind(15), 0u) << "the snapshot at 7 was of other tokens";
}

TEST(SequenceState, ASnapshotMayBeTakenWhereTheStateStands) {
  const ModelConfig config = running_config();
  Ledger ledger;
  SequenceState state = allocate(config, 1000, KvType::f16, ledger);
  run_to(state, config, 10, 0.5f);
  state.plan_snapshot(10);
  run_to(state, config, 11, 0.5f);
  EXPECT_EQ(state.rewind(10), 10u);
  EXPECT_EQ(state.running(1)[0], 10.5f);
}

TEST(SequenceState, ASnapshotOfAFailedStepIsNone) {
  const ModelConfig config = running_config();
  Ledger ledger;
  SequenceState state = allocate(config, 1000, KvType::f16, ledger);
  state.plan_snapshot(5);
  state.begin_step(10);
  state.end_piece(0, 5);
  EXPECT_EQ(state.rewind(0), 0u);
  run_to(state, config, 10, 0.0f);
  EXPECT_EQ(state.rewind(8), 0u) << "nor is it taken later";
}

TEST(SequenceState, TheEarliestSnapshotGoes) {
  const ModelConfig config = running_config();
  Ledger ledger;
  SequenceState state = allocate(config, 1000, KvType::f16, ledger);
  for (size_t end = 10; end <= 40; end += 10) {
    state.plan_snapshot(end - 1);
    run_to(state, config, end, 0.5f);
  }
  EXPECT_EQ(state.rewind(39), 39u);
  EXPECT_EQ(state.rewind(38), 29u);
  EXPECT_EQ(state.running(1)[0], 29.5f);
  EXPECT_EQ(state.rewind(28), 0u);
}

/// Every byte of a ring tells which position it belongs to, for windows and blocks in every place.
TEST(SequenceState, ASnapshotBringsWindowsBack) {
  for (const uint32_t window : {1u, 2u, 8u, 63u, 64u, 65u, 66u, 200u}) {
    ModelConfig config = windowed_config();
    config.layers[0].window = window;
    Ledger ledger;
    SequenceState state = allocate(config, 3000, KvType::f32, ledger);
    const size_t ring = state.ring_positions(0);
    ASSERT_LT(ring, 3000u);
    const auto value_of = [&](size_t position) -> float& {
      float* values = reinterpret_cast<float*>(state.values(0, 0));
      return values[position % ring * state.value_stride(0)];
    };
    const auto advance_to = [&](size_t position, float mark) {
      while (state.position() < position) {  // a ubatch at a time, as layers do
        const size_t first = state.position();
        const size_t count =
            state.piece_before_snapshot(first, std::min<size_t>(64, position - first));
        state.begin_step(count);
        for (size_t p = first; p < first + count; ++p) value_of(p) = static_cast<float>(p) + mark;
        for (size_t layer = 0; layer < 2; ++layer) state.end_piece(layer, first + count);
        state.end_step();
      }
    };
    for (size_t at = 1000; at < 1130; at += 7) {
      state.rewind(0);
      state.plan_snapshot(at);
      advance_to(at + ring + 100, 0.25f);
      ASSERT_EQ(state.rewind(at + 1), at);
      for (size_t p = at - (window - 1); p < at; ++p)
        ASSERT_EQ(value_of(p), static_cast<float>(p) + 0.25f) << window << " at " << at;
      EXPECT_EQ(state.rewind(at - 1), 0u) << "only its own window came back";
    }
  }
}

}  // namespace
}  // namespace sluice
