#include "backend/kv_cache.h"

#include <utility>

#include "base/units.h"

namespace sluice {
namespace {

size_t kv_head_total(const ModelConfig& config) {
  size_t total = 0;
  for (const LayerConfig& layer : config.layers) total += layer.kv_head_count;
  return total;
}

}  // namespace

KvCache::KvCache(const ModelConfig& config, size_t context_tokens, KvType type)
    : type_(type),
      context_token_max_(context_tokens),
      value_stride_(round_up(config.head_dim, kernels::kKeyTile)) {
  const uint64_t positions = round_up(context_tokens, kernels::kAttentionBlock);
  const auto bytes = [&](uint64_t tile_bytes) {
    return round_up(positions / kernels::kKeyTile * tile_bytes, 64);
  };
  key_tile_bytes_ = kernels::kv_tile_bytes(type, config.head_dim);
  value_tile_bytes_ = kernels::kv_tile_bytes(type, value_stride_);
  key_bytes_ = bytes(key_tile_bytes_);
  head_bytes_ = key_bytes_ + bytes(value_tile_bytes_);
  size_t heads = 0;
  for (const LayerConfig& layer : config.layers) {
    first_head_.push_back(heads);
    heads += layer.kv_head_count;
  }
  first_head_.push_back(heads);
}

Result<KvCache> KvCache::allocate(const ModelConfig& config, size_t context_tokens, KvType type,
                                  Ledger& ledger) {
  KvCache cache(config, context_tokens, type);
  auto arena = os::Arena::allocate(cache.head_bytes_ * cache.first_head_.back(), "the KV cache");
  if (!arena) return arena.error();
  cache.arena_ = std::move(*arena);
  cache.ledger_ = &ledger;
  ledger.add(MemoryUse::kv, cache.arena_.bytes());
  return cache;
}

KvCache::KvCache(KvCache&& other) noexcept
    : arena_(std::move(other.arena_)),
      ledger_(std::exchange(other.ledger_, nullptr)),
      type_(other.type_),
      context_token_max_(other.context_token_max_),
      value_stride_(other.value_stride_),
      key_tile_bytes_(other.key_tile_bytes_),
      value_tile_bytes_(other.value_tile_bytes_),
      key_bytes_(other.key_bytes_),
      head_bytes_(other.head_bytes_),
      first_head_(std::move(other.first_head_)) {}

KvCache::~KvCache() {
  if (ledger_ != nullptr) ledger_->remove(MemoryUse::kv, arena_.bytes());
}

uint64_t KvCache::bytes_per_token(const ModelConfig& config, KvType type) {
  const uint64_t value_stride = round_up(config.head_dim, kernels::kKeyTile);
  const uint64_t tile_bytes =
      kernels::kv_tile_bytes(type, config.head_dim) + kernels::kv_tile_bytes(type, value_stride);
  return kv_head_total(config) * tile_bytes / kernels::kKeyTile;
}

uint64_t KvCache::bytes_for(const ModelConfig& config, size_t context_tokens, KvType type) {
  return KvCache(config, context_tokens, type).head_bytes_ * kv_head_total(config);
}

}  // namespace sluice
