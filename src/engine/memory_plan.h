// How the memory of the process is divided before anything large is allocated: what there is, what
// must be resident, how long the context may be, and what is left for experts. The working memory
// of a prompt is not set aside: the expert cache lends it and has it back at the first decoded
// token (engine/working_memory). Numbers in, numbers and sentences out. Pure; any thread.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "engine/options.h"
#include "os/memory.h"

namespace sluice {

struct MemoryNeeds {
  uint64_t process_bytes = 0;  ///< resident now: program, heap, vocabulary
  uint64_t dense_bytes = 0;
  uint64_t io_bytes = 0;
  /// What a session of so many tokens takes: keys and values, windows, running states, angles of
  /// rotation. A longer one never takes less.
  std::function<uint64_t(size_t context_tokens)> context_bytes;
  uint64_t ubatch_bytes_per_token = 0;  ///< backend scratch
  uint64_t batch_bytes_per_token = 0;   ///< forward pass: experts' inputs and outputs
  uint64_t step_bytes_per_token = 0;    ///< forward pass: states of all tokens of a prompt
  uint64_t fixed_scratch_bytes = 0;     ///< logits and per-thread buffers
  uint64_t cache_bytes_min =
      0;  ///< slots for the experts of one token in every layer; 0: a dense model
  uint32_t context_trained_tokens = 0;
};

struct MemoryPlan {
  uint64_t budget_bytes = 0;  ///< for the whole process
  std::string budget_reason;  ///< "the cgroup's limit", …
  /// Why the context that was asked for cannot be had, with one that can; empty: it can.
  std::string refusal;
  size_t context_tokens = 0;
  size_t context_tokens_fit = 0;  ///< the longest that the budget holds beside all else
  size_t step_tokens = 0;         ///< of a prompt, layer by layer
  size_t batch_tokens = 0;
  size_t ubatch_tokens = 0;
  uint64_t cache_bytes_max = 0;  ///< what is left for experts, before --moe-stream-cache
  uint64_t prompt_bytes = 0;     ///< of it, lent to the largest step of a prompt
  uint64_t overhead_bytes = 0;   ///< of the process, beside all that the ledger will know
  std::vector<std::string> notes;
};

MemoryPlan plan_memory(const os::MemoryState& state, const EngineOptions& options,
                       const MemoryNeeds& needs);

}  // namespace sluice
