// Every setting of the engine, in one table: name, values, default, what it does and why it is
// there. The command line, its --help, docs/cli.md and the tests all read this table; nothing is
// configured anywhere else, least of all by environment variables. Plain data; any thread.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "base/result.h"

namespace sluice {

enum class StreamMode : uint8_t { automatic, on, off };
enum class DirectReads : uint8_t { automatic, on, off };
enum class ReadBackend : uint8_t { automatic, uring, threads };
enum class KvFormat : uint8_t { f16, f32, q8_0 };
enum class EvictionKind : uint8_t { contest, decay, lru };
enum class PoolKind : uint8_t { layer, ring };
enum class Switch : uint8_t { off, on };

/// The size of the expert cache: automatic, so many bytes, or so many slots for each layer.
struct CacheSize {
  std::optional<uint64_t> bytes;
  std::optional<uint32_t> slots_per_layer;
};

struct EngineOptions {
  uint32_t threads = 0;         ///< 0: the usable cores
  uint32_t context_tokens = 0;  ///< 0: from the memory there is
  KvFormat kv = KvFormat::f16;
  std::string isa = "auto";
  uint32_t ubatch_tokens = 512;
  uint64_t ram_bytes = 0;  ///< 0: from the memory there is

  StreamMode stream = StreamMode::automatic;
  CacheSize cache = {};
  uint64_t headroom_bytes = uint64_t{512} << 20;
  PoolKind pool = PoolKind::layer;
  uint32_t ring_slots = 0;  ///< 0: from the memory there is
  EvictionKind evict = EvictionKind::contest;
  uint32_t half_life_tokens = 64;

  DirectReads direct = DirectReads::automatic;
  ReadBackend io = ReadBackend::automatic;
  uint32_t io_threads = 8;
  uint64_t prefetch_chunk_bytes = uint64_t{512} << 10;
  uint32_t prefetch_cap = 4;         ///< chunks in service
  uint32_t prefetch_cap_demand = 2;  ///< chunks in service beside a demand read

  uint32_t lookahead_layers = 2;
  uint32_t lookahead_width = 0;  ///< 0: as many as the model uses
  Switch lookahead_first = Switch::on;
  std::string correction_path = {};  ///< empty: none
  uint32_t spec_count = 0;
  Switch governor = Switch::on;
  uint32_t readahead_layers = 2;
  Switch prewarm = Switch::on;
  std::string census = "auto";  ///< or "off", or a file
  std::string trace_path = {};  ///< empty: none
  Switch trace_scores = Switch::off;
};

struct OptionSpec {
  std::string_view name;      ///< "--moe-stream-cache"
  std::string_view values;    ///< "auto|NG|NM|Ns"
  std::string_view fallback;  ///< the default, as it would be typed
  std::string_view help;      ///< one line: what it does
  std::string_view reason;    ///< one line: why one would change it
  Status (*set)(EngineOptions& options, std::string_view text);
};

std::span<const OptionSpec> option_table();

/// Whether an option has no effect on a model without routed experts. The other options of
/// streaming rule the budget or every read, also of dense weights.
bool rules_experts_only(const OptionSpec& spec);

/// Sets one option from its text. Errors are ErrorKind::usage and name the option, what was given
/// and what is allowed.
Status set_option(EngineOptions& options, std::string_view name, std::string_view text);

}  // namespace sluice
