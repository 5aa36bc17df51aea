// The KV cache: keys and values of every layer and position of one session, laid out for the
// attention kernel (kernels/kernels.h): keys in tiles of 16 positions with the positions adjacent,
// values row by row, with q8_0 both in tiles that end with their scales. One thread at a time
// writes; the attention stage's threads read.
#pragma once

#include <cstdint>
#include <vector>

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

  std::byte* keys(size_t layer, size_t kv_head) const {
    const Layer& place = layers_[layer];
    return arena_.begin() + place.offset + kv_head * place.head_bytes;
  }
  std::byte* values(size_t layer, size_t kv_head) const {
    return keys(layer, kv_head) + layers_[layer].key_bytes;
  }
  /// In elements.
  size_t value_stride(size_t layer) const { return layers_[layer].value_stride; }

 private:
  /// Where a layer's heads lie.
  struct Layer {
    uint64_t offset = 0;
    uint64_t key_bytes = 0;   ///< of one head
    uint64_t head_bytes = 0;  ///< keys and values of one head
    size_t value_stride = 0;
  };
  KvCache(const ModelConfig& config, size_t context_tokens, KvType type);

  os::Arena arena_;
  Ledger* ledger_ = nullptr;
  KvType type_;
  size_t context_token_max_;
  std::vector<Layer> layers_;
  uint64_t bytes_ = 0;  ///< of all of them
};

}  // namespace sluice
