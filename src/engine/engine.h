// The whole API of sluice. Front ends (the command line, later the server) see this header, the
// tokenizer and base/; never a tensor, a slot or a read.
//
// Objects
//   Engine   a loaded model with its threads, its expert cache and its reader. Expensive, one per
//            model; outlives everything made from it.
//   Session  one sequence of tokens and its KV cache: prefill, then decode. Cheap next to the
//            engine. A session's step may fail (a read error, an interruption); the session then
//            stands where it stood before the step and may go on.
//
// The logits of a token depend on the model file, the tokens before it and the KV format, and on
// nothing else: not on threads, instruction set, cache size, ubatch or the order of reads
// (docs/numerics.md).
//
// Threads: one thread at a time may use an engine and its sessions; the engine uses many inside.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/function_ref.h"
#include "base/ledger.h"
#include "base/log.h"
#include "base/result.h"
#include "engine/options.h"
#include "text/tokenizer.h"

namespace sluice {

struct SessionState;

/// What a loaded model is, for reports.
struct ModelFacts {
  std::string file_name;
  std::vector<std::string> paths;  ///< of its files
  std::string architecture;
  std::string router;  ///< "softmax over 128 experts, 8 used, …"
  size_t layer_count = 0;
  size_t vocabulary_size = 0;
  uint32_t context_trained_tokens = 0;
  uint32_t expert_count = 0;
  uint32_t expert_used_count = 0;
  uint64_t dense_bytes = 0;
  uint64_t expert_bytes = 0;            ///< of one expert of the first MoE layer
  uint64_t experts_bytes = 0;           ///< of all experts
  uint64_t expert_bytes_per_token = 0;  ///< B of docs/streaming.md
  uint64_t active_bytes_per_token = 0;  ///< weights that computing one token reads
};

/// How the engine runs it, for reports.
struct RunMode {
  std::string mode;  ///< "streamed", "resident" or "buffered"
  std::string pool = "layer";
  std::string evict;
  std::string io;  ///< "uring" or "threads"
  bool direct = false;
  std::string isa;
  uint32_t threads = 0;
  std::vector<uint32_t> slots_per_layer;
  uint64_t cache_bytes = 0;
  size_t context_tokens = 0;
  uint64_t budget_bytes = 0;
  std::string budget_reason;
  double load_s = 0;
  double drive_bytes_per_s = 0;
  double drive_latency_us = 0;
  double drive_delay_by_followers = 1;  ///< see io/device_probe.h
};

/// How good guesses made so many layers ahead were; see lookahead/lookahead_stats.h.
struct LookaheadCounters {
  uint64_t picks = 0, foreseen = 0;          ///< experts that routers chose; of them, guessed
  uint64_t misses = 0, misses_foreseen = 0;  ///< choices that the expert cache did not hold
  uint64_t started = 0, useful = 0, wasted = 0, cancelled = 0;  ///< reads of guessed experts

  LookaheadCounters since(const LookaheadCounters& before) const;
};

/// Counters since the engine was opened; see experts/expert_stats.h for the sums they obey.
struct MoeCounters {
  uint64_t lookups = 0, hits = 0, joins = 0, misses = 0, evictions = 0;
  uint64_t distinct = 0;  ///< experts asked for, each once for a prompt
  uint64_t reads = 0;     ///< experts read, whatever for
  uint64_t demand_reads = 0, demand_bytes = 0;
  uint64_t prefetch_reads = 0, prefetch_bytes = 0, prefetch_useful_bytes = 0, promoted = 0;
  uint64_t idle_fills = 0;
  double stall_s = 0;
  std::vector<LookaheadCounters> lookahead;  ///< [distance]; 0: guesses for the next token

  LookaheadCounters all_guesses() const;
  /// Expert bytes that came from the drive, and those of them that were used.
  uint64_t read_bytes() const { return demand_bytes + prefetch_bytes; }
  uint64_t useful_bytes() const { return demand_bytes + prefetch_useful_bytes; }

  MoeCounters since(const MoeCounters& before) const;
};

/// Receives the logits of consecutive tokens, [count][vocabulary], valid during the call.
using LogitsReceiver = FunctionRef<void(std::span<const float> logits, size_t token_count)>;

class Session {
 public:
  ~Session();
  Session(const Session&) = delete;
  Session& operator=(const Session&) = delete;

  /// Appends tokens; afterwards logits() are those of the last one. A prompt that does not fit the
  /// context is ErrorKind::usage. REQUIRES: ids within the vocabulary, at least one.
  Status prefill(std::span<const text::TokenId> tokens);
  /// The same, and hands on the logits of every position.
  Status prefill(std::span<const text::TokenId> tokens, const LogitsReceiver& receiver);
  /// Appends one token.
  Status decode(text::TokenId token);

  /// [vocabulary] of the last token; empty before the first. Valid until the next
  /// step.
  std::span<const float> logits() const;
  std::span<const text::TokenId> tokens() const;
  size_t position() const { return tokens().size(); }
  /// Keeps what its tokens and these have in common at the start, but not all of these, so that
  /// there is something to run; forgets the rest, and says how many are kept: from there on the
  /// caller prefills. May keep less than there is in common. logits() are of no token until then.
  size_t keep_prefix(std::span<const text::TokenId> tokens);
  /// Forgets all tokens.
  void reset();

 private:
  friend class Engine;
  explicit Session(std::unique_ptr<SessionState> state);
  std::unique_ptr<SessionState> state_;
};

class Engine {
 public:
  /// Opens the model, plans memory, loads what must be resident. Long-running; `stop` ends it and
  /// every later step at the next layer or read.
  static Result<std::unique_ptr<Engine>> open(const std::string& path, const EngineOptions& options,
                                              const Log& log, const std::atomic<bool>* stop);
  ~Engine();

  const ModelFacts& facts() const;
  const RunMode& mode() const;
  const text::Tokenizer& tokenizer() const;
  const Ledger& ledger() const;
  MoeCounters counters() const;

  /// A refusal is ErrorKind::memory and names the largest context that fits.
  Result<std::unique_ptr<Session>> new_session();

  /// Empties the expert cache, so that a measurement starts as after opening. An engine that keeps
  /// all experts in memory keeps them.
  void forget_experts();

  /// Bytes per second that the compute threads read from memory, measured over resident weights.
  /// Takes some milliseconds; not during a step.
  double measure_ram_rate();

  struct Impl;  ///< engine/engine_impl.h, for engine/ only

 private:
  explicit Engine(std::unique_ptr<Impl> impl);
  Status check_room_for_session() const;
  std::unique_ptr<Impl> impl_;
};

/// The tokenizer of a file by itself; also of a vocabulary-only file.
Result<std::unique_ptr<text::Tokenizer>> open_tokenizer(const std::string& path);

/// "ref avx2 avx512": what --isa accepts on this machine, worst first.
std::string usable_isa_names();

/// The most memory that this process ever had resident.
uint64_t process_peak_bytes();

/// The whole of a text file, at most 1 GiB; "-" is standard input, which Ctrl-C ends.
Result<std::string> read_text(const std::string& path);

/// For the start of a program: a closed standard stream or a broken pipe becomes an error of the
/// write, never a signal or a file that takes the stream's number.
void guard_standard_streams();

/// Sets a flag at the first Ctrl-C (a second one ends the process) and returns it.
const std::atomic<bool>& stop_on_interrupt();

}  // namespace sluice
