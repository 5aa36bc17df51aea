// The KV cache: keys and values of every layer and position of one session, laid out for the
// attention kernel (kernels/kernels.h): keys in tiles of 16 positions with the positions adjacent,
// values row by row, with q8_0 both in tiles that end with their scales. One thread at a time
// writes; the attention stage's threads read.
#pragma once

#include <cstdint>

#include "base/ledger.h"
#include "base/result.h"
#include "kernels/kernels.h"
#include "model/config.h"
#include "os/arena.h"

namespace sluice {

using kernels::KvType;

class KvCache {
 public:
  /// Memory for `context_tokens` positions, entered in the ledger. The pages are touched as the
  /// context fills. A refusal is ErrorKind::memory.
  static Result<KvCache> allocate(const ModelConfig& config, size_t context_tokens, KvType type,
                                  Ledger& ledger);
  static uint64_t bytes_per_token(const ModelConfig& config, KvType type);
  /// What allocate() would take: the context is rounded up to whole attention blocks.
  static uint64_t bytes_for(const ModelConfig& config, size_t context_tokens, KvType type);

  KvCache(KvCache&& other) noexcept;
  KvCache& operator=(KvCache&&) = delete;
  KvCache(const KvCache&) = delete;
  ~KvCache();

  KvType type() const { return type_; }
  size_t context_token_max() const { return context_token_max_; }

  /// From `position` on. REQUIRES: position is a multiple of kernels::kKeyTile.
  std::byte* keys(size_t layer, size_t kv_head, size_t position = 0) const {
    return head(layer, kv_head) + position / kernels::kKeyTile * key_tile_bytes_;
  }
  std::byte* values(size_t layer, size_t kv_head, size_t position = 0) const {
    return head(layer, kv_head) + key_bytes_ + position / kernels::kKeyTile * value_tile_bytes_;
  }
  size_t value_stride() const { return value_stride_; }  ///< in elements

 private:
  KvCache(const ModelConfig& config, size_t context_tokens, KvType type);

  std::byte* head(size_t layer, size_t kv_head) const {
    return arena_.begin() + (first_head_[layer] + kv_head) * head_bytes_;
  }

  os::Arena arena_;
  Ledger* ledger_ = nullptr;
  KvType type_;
  size_t context_token_max_;
  size_t value_stride_;
  uint64_t key_tile_bytes_;
  uint64_t value_tile_bytes_;
  uint64_t key_bytes_;   ///< of one head
  uint64_t head_bytes_;  ///< keys and values of one head
  std::vector<size_t>
      first_head_;  ///< [layer], counting heads over all layers; one more at the end
};

}  // namespace sluice
