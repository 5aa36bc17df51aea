#include "backend/kv_cache.h"

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

KvCache allocate(const ModelConfig& config, size_t context, KvType type, Ledger& ledger) {
  auto cache = KvCache::allocate(config, context, type, ledger);
  CHECK(cache.ok());
  return std::move(*cache);
}

TEST(KvCache, BytesByHand) {
  const ModelConfig config = config_of(64, {2, 2, 2});
  EXPECT_EQ(KvCache::bytes_per_token(config, KvType::f16), 3u * 2 * (64 + 64) * 2);
  EXPECT_EQ(KvCache::bytes_per_token(config, KvType::f32), 3u * 2 * (64 + 64) * 4);
  EXPECT_EQ(KvCache::bytes_for(config, 64, KvType::f16), 64u * 1536);
  EXPECT_EQ(KvCache::bytes_for(config, 65, KvType::f16), 128u * 1536)
      << "whole attention blocks of 64 positions";
  EXPECT_EQ(KvCache::bytes_per_token(config_of(20, {1}), KvType::f32), (20u + 32) * 4)
      << "rows of values are padded to 16";
  EXPECT_EQ(KvCache::bytes_per_token(config, KvType::q8_0), 3u * 2 * (64 + 64) * 34 / 32)
      << "a scale of two bytes for each 32 elements";
  EXPECT_EQ(KvCache::bytes_per_token(config_of(40, {1}), KvType::q8_0), (40u + 4) + (48 + 4));
  EXPECT_EQ(KvCache::bytes_for(config, 65, KvType::q8_0), 128u * 816);
}

TEST(KvCache, EveryHeadHasRoomOfItsOwn) {
  for (const KvType type : {KvType::f16, KvType::f32, KvType::q8_0}) {
    for (const uint32_t head_dim : {16u, 20u, 80u, 128u}) {
      Ledger ledger;
      const std::vector<uint32_t> heads{3, 1, 4};
      const ModelConfig config = config_of(head_dim, heads);
      const KvCache cache = allocate(config, 100, type, ledger);
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
                ranges.front().first + KvCache::bytes_for(config, 100, type));
    }
  }
}

TEST(KvCache, TheLedgerKnowsItAlsoWhenItMoves) {
  Ledger ledger;
  {
    KvCache cache = allocate(config_of(64, {2, 2}), 1000, KvType::f16, ledger);
    const uint64_t bytes = ledger.bytes(MemoryUse::kv);
    EXPECT_GE(bytes, KvCache::bytes_for(config_of(64, {2, 2}), 1000, KvType::f16));
    const std::byte* keys = cache.keys(1, 1);
    const KvCache moved = std::move(cache);
    EXPECT_EQ(ledger.bytes(MemoryUse::kv), bytes);
    EXPECT_EQ(moved.keys(1, 1), keys);
  }
  EXPECT_EQ(ledger.total_bytes(), 0u);
}

TEST(KvCache, WhatCannotBeHadIsAnError) {
  Ledger ledger;
  const auto cache =
      KvCache::allocate(config_of(128, {64, 64, 64, 64}), size_t{1} << 33, KvType::f32, ledger);
  ASSERT_FALSE(cache.ok());
  EXPECT_EQ(cache.error().kind, ErrorKind::memory);
  EXPECT_NE(cache.error().message.find("KV cache"), std::string::npos);
  EXPECT_EQ(ledger.total_bytes(), 0u);
}

}  // namespace
}  // namespace sluice
