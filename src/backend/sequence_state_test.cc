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
  Ledger ledger;
  const SequenceState state = allocate(config, 100000, KvType::f16, ledger);
  EXPECT_EQ(state.ring_positions(0), 128u);
  EXPECT_EQ(state.ring_positions(1), 100032u);
  EXPECT_EQ(SequenceState::bytes_per_token(config, KvType::f16), 64u) << "of the other layer";
  EXPECT_EQ(SequenceState::fixed_bytes(config, 64, KvType::f16), 4 * 128u * 64)
      << "the ring and three snapshots";
  EXPECT_EQ(SequenceState::bytes_for(config, limits_of(100000, KvType::f16)),
            100032u * 64 + 4 * 128 * 64);
  EXPECT_EQ(allocate(config, 100, KvType::f16, ledger).ring_positions(0), 128u)
      << "no more than the context";
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

TEST(SequenceState, RunningStatesGoBackToSnapshotsOnly) {
  Ledger ledger;
  SequenceState state = allocate(running_config(), 1000, KvType::f16, ledger);
  const auto run = [&](size_t tokens, float value) {
    state.begin_step(tokens);
    state.running(1)[2] = value;
    state.end_step();
  };
  EXPECT_EQ(state.running(1)[2], 0.0f);
  run(10, 1.0f);
  state.take_snapshot();
  run(10, 2.0f);
  EXPECT_EQ(state.rewind(20), 20u) << "where it stands";
  EXPECT_EQ(state.running(1)[2], 2.0f);
  EXPECT_EQ(state.rewind(19), 10u);
  EXPECT_EQ(state.running(1)[2], 1.0f);
  state.begin_step(4);
  state.running(1)[2] = 7.0f;
  EXPECT_EQ(state.rewind(10), 10u) << "a step that failed";
  EXPECT_EQ(state.running(1)[2], 1.0f);
  EXPECT_EQ(state.rewind(9), 0u);
  EXPECT_EQ(state.running(1)[2], 0.0f);
  run(30, 3.0f);
  EXPECT_EQ(state.rewind(15), 0u) << "the snapshot at 10 was of other tokens";
}

TEST(SequenceState, TheEarliestSnapshotGoes) {
  Ledger ledger;
  SequenceState state = allocate(running_config(), 1000, KvType::f16, ledger);
  for (size_t i = 1; i <= SequenceState::kSnapshotsMax + 1; ++i) {
    step(state, 10);
    state.take_snapshot();
    state.take_snapshot();  // again at the same place: once
  }
  step(state, 1);
  EXPECT_EQ(state.rewind(40), 40u);
  EXPECT_EQ(state.rewind(39), 30u);
  EXPECT_EQ(state.rewind(29), 20u);
  EXPECT_EQ(state.rewind(19), 0u);
}

TEST(SequenceState, ASnapshotBringsWindowsBack) {
  Ledger ledger;
  SequenceState state = allocate(windowed_config(), 1000, KvType::f16, ledger);
  step(state, 200);
  std::memset(state.keys(0, 0), 1, 64);
  state.take_snapshot();
  step(state, 500);
  std::memset(state.keys(0, 0), 2, 64);
  EXPECT_EQ(state.rewind(300), 200u);
  EXPECT_EQ(static_cast<int>(*state.keys(0, 0)), 1);
  EXPECT_EQ(state.rewind(150), 150u) << "200 were written when the snapshot was taken";
}

}  // namespace
}  // namespace sluice
