// A record of routing: which experts a model chose, token by token and layer by layer, and what
// lookahead had expected. It is what eviction, lookahead and their settings can be judged by
// without a model or a drive (sluice trace replay). This is the format's vocabulary, shared by its
// writer and its reader; docs/trace.md has it to the byte.
//
//   file    header, steps
//   step    begin (prompt or decode, how many tokens)
//           for each layer in turn: its routing, and what was predicted for later layers
//           end
//
// A step without its end does not count, so a file is complete whenever it is cut. Plain data; any
// thread.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <string>
#include <vector>

namespace sluice {

inline constexpr std::array<char, 8> kTraceMagic = {'s', 'l', 'u', 'i', 'c', 'e', 'R', 'T'};
inline constexpr uint32_t kTraceVersion = 1;

/// What a reader accepts. Writers stay within it, too.
inline constexpr uint32_t kTraceLayersMax = 4096;
inline constexpr uint32_t kTraceExpertsMax = 65535;
inline constexpr uint32_t kTraceUsedMax = 64;
inline constexpr uint32_t kTraceDistanceMax = 8;
inline constexpr uint32_t kTraceNameBytesMax = 4096;
inline constexpr uint32_t kTraceStepTokensMax = 1u << 20;

struct TraceHeader {
  std::vector<uint32_t> expert_counts;  ///< [layer], 0: no routed experts
  uint32_t used_count = 0;              ///< experts a token uses in a layer
  uint32_t distance_max = 0;            ///< predictions are recorded up to this distance
  bool has_scores = false;
  uint64_t model_hash = 0;  ///< tells models apart; 0: unknown
  std::string name;         ///< of the model, for people

  uint32_t layer_count() const { return static_cast<uint32_t>(expert_counts.size()); }
  uint32_t expert_count_max() const {
    return expert_counts.empty() ? 0 : *std::ranges::max_element(expert_counts);
  }
  /// Bytes of an expert's index in the file.
  uint32_t id_bytes() const { return expert_count_max() <= 256 ? 1 : 2; }

  friend bool operator==(const TraceHeader&, const TraceHeader&) = default;
};

/// The part of the header that is always there, as it lies in the file. Behind it come the expert
/// counts (u32 each) and the name.
struct TraceHeaderBytes {
  std::array<char, 8> magic;
  uint32_t version;
  uint32_t layer_count;
  uint32_t used_count;
  uint32_t distance_max;
  uint32_t flags;
  uint32_t name_bytes;
  uint64_t model_hash;
};
static_assert(sizeof(TraceHeaderBytes) == 40);
inline constexpr uint32_t kTraceFlagScores = 1;

enum class TraceRecord : uint8_t {
  prompt = 1,     ///< begins a step: a batch of a prompt
  decode = 2,     ///< begins a step: one token of each sequence
  routing = 3,    ///< of a layer: ids [token][used], the strongest first
  predicted = 4,  ///< for a layer: ids [token][width], the most likely first
  scores = 5,     ///< of a router: f16 [token][expert]
  weights = 6,    ///< of a layer's routing: f16 [token][used]
  end = 7,        ///< ends a step
};

/// What each record opens with. `count` is the step's tokens where a step begins, the width of a
/// prediction, else 0.
struct TraceRecordHead {
  TraceRecord record;
  uint8_t distance;  ///< of a prediction or its scores; 0: the layer's own
  uint16_t layer;
  uint32_t count;
};
static_assert(sizeof(TraceRecordHead) == 8);

enum class StepKind : uint8_t { prompt, decode };

}  // namespace sluice
