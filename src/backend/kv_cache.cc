#include "backend/kv_cache.h"

#include <utility>

#include "base/units.h"

namespace sluice {
namespace {

size_t value_stride_of(const LayerConfig& layer) {
  return round_up(layer.value_dim, kernels::kKeyTile);
}

}  // namespace

KvCache::KvCache(const ModelConfig& config, size_t context_tokens, KvType type)
    : type_(type), context_token_max_(context_tokens) {
  const uint64_t tiles = round_up(context_tokens, kernels::kAttentionBlock) / kernels::kKeyTile;
  const auto bytes = [&](size_t row_elements) {
    return round_up(tiles * kernels::kv_tile_bytes(type, row_elements), 64);
  };
  for (const LayerConfig& layer : config.layers) {
    Layer& place = layers_.emplace_back();
    place.offset = bytes_;
    place.value_stride = value_stride_of(layer);
    place.key_bytes = bytes(layer.key_dim);
    place.head_bytes = place.key_bytes + bytes(place.value_stride);
    bytes_ += layer.kv_head_count * place.head_bytes;
  }
}

Result<KvCache> KvCache::allocate(const ModelConfig& config, size_t context_tokens, KvType type,
                                  Ledger& ledger) {
  KvCache cache(config, context_tokens, type);
  auto arena = os::Arena::allocate(cache.bytes_, "the KV cache");
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
      layers_(std::move(other.layers_)),
      bytes_(other.bytes_) {}

KvCache::~KvCache() {
  if (ledger_ != nullptr) ledger_->remove(MemoryUse::kv, arena_.bytes());
}

uint64_t KvCache::bytes_per_token(const ModelConfig& config, KvType type) {
  uint64_t tile_bytes = 0;
  for (const LayerConfig& layer : config.layers)
    tile_bytes += layer.kv_head_count * (kernels::kv_tile_bytes(type, layer.key_dim) +
                                         kernels::kv_tile_bytes(type, value_stride_of(layer)));
  return tile_bytes / kernels::kKeyTile;
}

uint64_t KvCache::bytes_for(const ModelConfig& config, size_t context_tokens, KvType type) {
  return KvCache(config, context_tokens, type).bytes_;
}

}  // namespace sluice
