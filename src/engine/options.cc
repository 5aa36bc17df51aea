#include "engine/options.h"

#include <algorithm>
#include <charconv>
#include <utility>

#include "base/units.h"

namespace sluice {
namespace {

Error refusal(std::string_view text, std::string_view allowed) {
  return make_error(ErrorKind::usage, "'{}' is not allowed; give {}", text, allowed);
}

Result<uint32_t> parse_count(std::string_view text, uint32_t min, uint32_t max) {
  uint32_t value = 0;
  const auto [end, status] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (status != std::errc{} || end != text.data() + text.size() || value < min || value > max)
    return refusal(text, fmt::format("a whole number from {} to {}", min, max));
  return value;
}

/// "auto" leaves 0, which stands for it; anything else is a count.
template <uint32_t EngineOptions::*member, uint32_t min, uint32_t max>
Status set_count_or_auto(EngineOptions& options, std::string_view text) {
  if (text == "auto") {
    options.*member = 0;
    return {};
  }
  auto value = parse_count(text, min, max);
  if (!value) return refusal(text, fmt::format("auto or a whole number from {} to {}", min, max));
  options.*member = *value;
  return {};
}

template <uint32_t EngineOptions::*member, uint32_t min, uint32_t max>
Status set_count(EngineOptions& options, std::string_view text) {
  auto value = parse_count(text, min, max);
  if (!value) return value.error();
  options.*member = *value;
  return {};
}

template <uint64_t EngineOptions::*member>
Status set_size(EngineOptions& options, std::string_view text) {
  auto value = parse_size(text);
  if (!value) return value.error();
  options.*member = *value;
  return {};
}

Status set_ram(EngineOptions& options, std::string_view text) {
  options.ram_bytes = 0;
  if (text == "auto") return {};
  const auto bytes = parse_size(text);
  if (!bytes || *bytes == 0) return refusal(text, "auto or a size above 0 (8G, 300M)");
  options.ram_bytes = *bytes;
  return {};
}

/// One of a few words.
template <typename Enum, size_t count>
Status set_word(Enum& target, std::string_view text,
                const std::pair<std::string_view, Enum> (&words)[count]) {
  std::string allowed;
  for (const auto& [word, value] : words) {
    if (word == text) {
      target = value;
      return {};
    }
    allowed += fmt::format("{}{}", allowed.empty() ? "" : "|", word);
  }
  return refusal(text, allowed);
}

Status set_kv(EngineOptions& options, std::string_view text) {
  return set_word(options.kv, text,
                  {std::pair<std::string_view, KvFormat>{"f16", KvFormat::f16},
                   {"f32", KvFormat::f32},
                   {"q8_0", KvFormat::q8_0}});
}

Status set_isa(EngineOptions& options, std::string_view text) {
  options.isa = text;  // whether this machine has it is found out when the engine opens
  return {};
}

Status set_stream(EngineOptions& options, std::string_view text) {
  return set_word(options.stream, text,
                  {std::pair<std::string_view, StreamMode>{"auto", StreamMode::automatic},
                   {"on", StreamMode::on},
                   {"off", StreamMode::off}});
}

Status set_cache(EngineOptions& options, std::string_view text) {
  options.cache = {};
  if (text == "auto") return {};
  if (text.ends_with('s')) {
    auto slots = parse_count(text.substr(0, text.size() - 1), 1, 65536);
    if (!slots) return refusal(text, "auto, a size (2G, 300M) or slots for each layer (16s)");
    options.cache.slots_per_layer = *slots;
    return {};
  }
  auto bytes = parse_size(text);
  if (!bytes) return refusal(text, "auto, a size (2G, 300M) or slots for each layer (16s)");
  options.cache.bytes = *bytes;
  return {};
}

Status set_evict(EngineOptions& options, std::string_view text) {
  return set_word(options.evict, text,
                  {std::pair<std::string_view, EvictionKind>{"contest", EvictionKind::contest},
                   {"decay", EvictionKind::decay},
                   {"lru", EvictionKind::lru}});
}

Status set_pool(EngineOptions& options, std::string_view text) {
  return set_word(
      options.pool, text,
      {std::pair<std::string_view, PoolKind>{"layer", PoolKind::layer}, {"ring", PoolKind::ring}});
}

template <Switch EngineOptions::*member>
Status set_switch(EngineOptions& options, std::string_view text) {
  return set_word(options.*member, text,
                  {std::pair<std::string_view, Switch>{"on", Switch::on}, {"off", Switch::off}});
}

/// A path, or a word that stands for none.
template <std::string EngineOptions::*member>
Status set_path(EngineOptions& options, std::string_view text) {
  if (text.empty()) return refusal(text, "a file, or none");
  options.*member = text == "none" ? std::string_view() : text;
  return {};
}

Status set_census(EngineOptions& options, std::string_view text) {
  if (text.empty()) return refusal(text, "auto, off or a file");
  options.census = text;
  return {};
}

/// Reads must stay aligned on any drive.
Status set_chunk(EngineOptions& options, std::string_view text) {
  constexpr uint64_t kLeast = 64 * kKiB, kMost = 64 * kMiB;
  const auto bytes = parse_size(text);
  if (!bytes) return bytes.error();
  if (*bytes < kLeast || *bytes > kMost || *bytes % kLeast != 0)
    return refusal(text, "a multiple of 64K, up to 64M");
  options.prefetch_chunk_bytes = *bytes;
  return {};
}

Status set_direct(EngineOptions& options, std::string_view text) {
  return set_word(options.direct, text,
                  {std::pair<std::string_view, DirectReads>{"auto", DirectReads::automatic},
                   {"on", DirectReads::on},
                   {"off", DirectReads::off}});
}

Status set_io(EngineOptions& options, std::string_view text) {
  return set_word(options.io, text,
                  {std::pair<std::string_view, ReadBackend>{"auto", ReadBackend::automatic},
                   {"uring", ReadBackend::uring},
                   {"threads", ReadBackend::threads}});
}

constexpr OptionSpec kOptions[] = {
    {"--threads", "auto|N", "auto", "threads that compute",
     "auto takes one for each physical performance core that affinity and the cgroup quota allow; "
     "fewer leave cores to others",
     set_count_or_auto<&EngineOptions::threads, 1, 1024>},
    {"--ctx", "auto|N", "auto", "positions that a session can hold",
     "auto takes what an eighth of the memory holds, at most 8192 and what the model was trained "
     "for",
     set_count_or_auto<&EngineOptions::context_tokens, 1, 1u << 24>},
    {"--kv", "f16|f32|q8_0", "f16", "format of the KV cache",
     "f32 is closest to the definition, f16 takes half the memory, q8_0 about a quarter", set_kv},
    {"--isa", "auto|NAME|list", "auto", "instruction set of the kernels",
     "list prints those of this machine; results are the same to the last bit; for comparing speed "
     "and for reports of faults",
     set_isa},
    {"--ubatch", "N", "512", "tokens in one compute call of a prompt",
     "fewer take less memory, more are faster up to a point; results are the same",
     set_count<&EngineOptions::ubatch_tokens, 1, 65536>},
    {"--ram", "auto|SIZE", "auto", "memory that the process may use in all",
     "auto takes what is available less the headroom, under the cgroup's limit", set_ram},
    {"--moe-stream", "auto|on|off", "auto", "stream routed experts from the drive",
     "off reads all experts at the start and needs memory for all of them; auto streams",
     set_stream},
    {"--moe-stream-cache", "auto|NG|NM|Ns", "auto", "memory for experts, or slots for each layer",
     "auto takes what the budget leaves; a ring has the slots of all layers together; the output "
     "is the same at any size",
     set_cache},
    {"--moe-stream-headroom", "SIZE", "512M", "available memory left to other programs",
     "raise it on a desktop; a cgroup's limit is not reduced by it",
     set_size<&EngineOptions::headroom_bytes>},
    {"--moe-stream-pool", "layer|ring", "layer", "who may use a slot of the expert cache",
     "layer: each layer has its share; ring: all layers compete for equal slots", set_pool},
    {"--moe-stream-ring", "auto|N", "auto", "slots of the ring",
     "auto goes by --moe-stream-cache; where that is auto, it takes what memory is free beyond an "
     "eighth (at least 4 GiB), 64 to 4096 slots",
     set_count_or_auto<&EngineOptions::ring_slots, 1, 1u << 20>},
    {"--moe-stream-evict", "contest|decay|lru", "contest", "which expert leaves the cache first",
     "decay: the least often used, old uses counting less; lru: the least recently used; contest: "
     "whichever of four rules has missed least of late",
     set_evict},
    {"--moe-stream-half-life", "N", "64", "tokens after which a use counts half (decay)",
     "shorter follows the text faster, longer knows the model better",
     set_count<&EngineOptions::half_life_tokens, 1, 1u << 20>},
    {"--moe-stream-direct", "auto|on|off", "auto", "read past the page cache",
     "off for a file system that is faster through the page cache", set_direct},
    {"--moe-stream-io", "auto|uring|threads", "auto", "how reads are issued",
     "auto takes io_uring where the system allows it", set_io},
    {"--moe-stream-io-threads", "N", "8", "reading threads where io_uring is not used",
     "the drive's useful queue depth", set_count<&EngineOptions::io_threads, 1, 256>},
    {"--moe-stream-chunk", "SIZE", "512K", "pieces that prefetches are read in",
     "a demand read waits for those in service at most; larger ones cost less on a fast drive",
     set_chunk},
    {"--moe-stream-prefetch-cap", "N", "4", "prefetch pieces in service at once, at most",
     "as many as the drive needs by its probe, never more than this",
     set_count<&EngineOptions::prefetch_cap, 1, 64>},
    {"--moe-stream-prefetch-cap-demand", "N", "2", "the same while a demand read is in service",
     "none where the probe shows that they delay it; 0 lets prefetch wait until no demand is left",
     set_count<&EngineOptions::prefetch_cap_demand, 0, 64>},
    {"--moe-stream-lookahead", "N", "2", "layers ahead whose experts are guessed",
     "more gives slow drives time, and guesses worse; 0 guesses nothing",
     set_count<&EngineOptions::lookahead_layers, 0, 3>},
    {"--moe-stream-lookahead-width", "N", "0", "experts guessed for each layer",
     "0 takes as many as the model uses; more reads more in vain",
     set_count<&EngineOptions::lookahead_width, 0, 64>},
    {"--moe-stream-lookahead-first", "on|off", "on", "guess the first layer's experts too",
     "off where its guesses, made before any layer has run, are too poor",
     set_switch<&EngineOptions::lookahead_first>},
    {"--moe-stream-correction", "none|FILE", "none", "file that corrects guesses",
     "fitted by tools/train_correction to one model; the guesses get better, nothing else changes",
     set_path<&EngineOptions::correction_path>},
    {"--moe-stream-spec", "N", "0", "runners-up of each layer read for the next token",
     "only where the drive is idle much of the time", set_count<&EngineOptions::spec_count, 0, 64>},
    {"--moe-stream-governor", "on|off", "on", "find out while running how far to look ahead",
     "off always looks as far as it may", set_switch<&EngineOptions::governor>},
    {"--moe-stream-readahead", "N", "2", "layers that a long prompt reads ahead",
     "0 reads a layer's experts when its turn comes",
     set_count<&EngineOptions::readahead_layers, 0, 8>},
    {"--moe-stream-prewarm", "on|off", "on", "read often used experts while nothing else happens",
     "off leaves an idle drive idle", set_switch<&EngineOptions::prewarm>},
    {"--moe-stream-census", "auto|off|FILE", "auto", "where the use of experts is remembered",
     "auto is beside the model, or in the cache folder where that cannot be written", set_census},
    {"--moe-stream-trace", "none|FILE", "none", "record which experts are chosen",
     "for sluice trace replay and tools/train_correction", set_path<&EngineOptions::trace_path>},
    {"--moe-stream-trace-scores", "on|off", "off", "record the routers' scores too",
     "tools/train_correction needs them; they make the file large",
     set_switch<&EngineOptions::trace_scores>},
};

}  // namespace

std::span<const OptionSpec> option_table() {
  return kOptions;
}

bool rules_experts_only(const OptionSpec& spec) {
  constexpr std::string_view kOfAllModels[] = {"--moe-stream-headroom", "--moe-stream-direct",
                                               "--moe-stream-io", "--moe-stream-io-threads"};
  return spec.name.starts_with("--moe-stream") &&
         std::ranges::find(kOfAllModels, spec.name) == std::end(kOfAllModels);
}

Status set_option(EngineOptions& options, std::string_view name, std::string_view text) {
  for (const OptionSpec& spec : kOptions) {
    if (spec.name != name) continue;
    Status done = spec.set(options, text);
    return done.ok() ? done : Status(done.error().at(name));
  }
  return make_error(ErrorKind::usage, "{} is not an option", name);
}

}  // namespace sluice
