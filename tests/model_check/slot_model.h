// A slot and all who touch it, as a model: its owner, who acquires experts and evicts them; a
// completer for each of its parts, who writes the bytes and says so, or that the read failed; and
// readers, who compute from it. The owner takes the slot through several rounds: it begins a read,
// then leases the slot for each reader, gives the read up or leaves it alone, and clears the slot
// when nobody holds it and no read is in flight. What it decides and whether a read fails is open:
// every way is tried.
//
// The bytes of a part say which round they are from. A reader that finds others computed from
// something that was not there yet or not there any more.
#pragma once

#include <fmt/format.h>

#include <string>
#include <string_view>

#include "tests/model_check/explorer.h"
#include "tests/model_check/slot_word.h"

namespace sluice::model_check {

/// What can be wrong with a state.
inline constexpr std::string_view kForbidden = "a transition that is forbidden";
inline constexpr std::string_view kMisread = "bytes were read too early or too late";
inline constexpr std::string_view kLeasedEmpty = "an empty slot is leased";
inline constexpr std::string_view kRisen = "a failed slot has become resident";
inline constexpr std::string_view kLacksBytes = "a resident slot lacks bytes";

/// Ways to get it wrong, to see that they are found.
enum class SlotFlaw {
  none,
  clear_ignores_leases,
  clear_ignores_reads,          ///< a slot given up is cleared with reads in flight
  ready_before_bytes,           ///< a completer says so, then writes
  part_ready_without_exchange,  ///< the word is read, then written
  failure_is_forgotten,         ///< the last part makes a failed slot resident
  lease_in_two_steps,           ///< the phase is looked at, then the lease added
  read_without_look,            ///< a reader does not wait for its part
};

template <size_t kReaders, uint8_t kRounds>
class SlotModel {
 public:
  static constexpr size_t kThreads = 1 + kSlotParts + kReaders;

  /// The places in the programs. Reading a word and exchanging it are steps of their own where the
  /// code loops around a compare-exchange.
  enum At : uint8_t {
    // the owner
    begin,
    submit,
    decide,
    lease,
    exchange_lease,
    give_up,
    exchange_give_up,
    settle,
    clear,
    // completers
    idle,
    write,
    finish_write,
    load,
    exchange,
    deliver,
    // readers
    waiting,
    look,
    read,
    drop
  };

  struct Thread {
    uint8_t at = begin;
    uint8_t has_ended = 0;
    uint8_t has_failed = 0;  ///< completers: this read brings nothing
    uint8_t part = 0;        ///< readers: looked at next; completers: theirs
    uint8_t has_work = 0;    ///< completers: a read was submitted; readers: a lease was handed over
    SlotWord seen;           ///< what was loaded for an exchange
  };
  struct State {
    SlotWord word;
    uint8_t bytes[kSlotParts] = {};  ///< the round they are from
    uint8_t round = 0;
    uint8_t reads_in_flight = 0;
    uint8_t was_misread = 0;  ///< a reader met bytes that are not of this round, or half written
    uint8_t was_lost = 0;     ///< in this round the read has failed or was given up
    uint8_t next_reader = 0;  ///< the owner's: who gets the next lease
    Thread threads[kThreads];
  };

  explicit SlotModel(SlotFlaw flaw = SlotFlaw::none) : flaw_(flaw) {}

  State start() const {
    State state;
    for (uint8_t part = 0; part < kSlotParts; ++part) {
      state.threads[1 + part].at = idle;
      state.threads[1 + part].part = part;
    }
    for (size_t i = 1 + kSlotParts; i < kThreads; ++i) state.threads[i].at = waiting;
    return state;
  }

  size_t thread_count() const { return kThreads; }

  size_t choice_count(const State& state, size_t thread) const {
    switch (state.threads[thread].at) {
      case decide:
        return 3;
      case write:
        return 2;
      default:
        return 1;
    }
  }

  Move step(State& state, size_t thread, size_t choice) const {
    Thread& self = state.threads[thread];
    if (self.has_ended != 0) return Move::ended;
    if (thread == 0) return own(state, self, choice);
    return thread <= kSlotParts ? complete(state, self, choice) : compute(state, self);
  }

  std::string step_name(const State& state, size_t thread) const {
    constexpr const char* kSteps[] = {"begin",   "submit",        "decide", "lease",    "try lease",
                                      "give up", "try giving up", "settle", "clear",    "idle",
                                      "write",   "written",       "load",   "exchange", "deliver",
                                      "waiting", "look",          "read",   "drop"};
    const char* name = thread == 0 ? "owner" : thread <= kSlotParts ? "completer" : "reader";
    return fmt::format("{} {}: {}", name, thread, kSteps[state.threads[thread].at]);
  }

  std::string_view wrong_with(const State& state) const {
    if (state.word.is_forbidden != 0) return kForbidden;
    if (state.was_misread != 0) return kMisread;
    if (state.word.is(SlotPhase::empty) && state.word.leases > 0) return kLeasedEmpty;
    if (!state.word.is(SlotPhase::resident)) return {};
    if (state.was_lost != 0) return kRisen;
    for (const uint8_t bytes : state.bytes)
      if (bytes != state.round) return kLacksBytes;
    return {};
  }

 private:
  static constexpr uint8_t kTorn = 255;  ///< bytes while they are being written

  bool has_flaw(SlotFlaw flaw) const { return flaw_ == flaw; }

  /// The exchange of a word that was loaded before: on failure the word is loaded anew. What is
  /// forbidden is so even where the exchange fails: the code checks before it tries.
  static bool try_exchange(SlotWord& word, SlotWord& seen, const SlotWord& next) {
    if (next.is_forbidden != 0) seen = word = next;
    const bool is_right = word == seen;
    if (is_right) word = next;
    seen = is_right ? SlotWord{} : word;
    return is_right;
  }

  Move own(State& state, Thread& self, size_t choice) const {
    switch (self.at) {
      case begin:
        state.word = state.word.begin_read();
        ++state.round;
        self.at = submit;
        return Move::ran;
      case submit:
        state.reads_in_flight = kSlotParts;
        for (uint8_t part = 0; part < kSlotParts; ++part) state.threads[1 + part].has_work = 1;
        self.at = decide;
        return Move::ran;
      case decide: {
        constexpr At kWays[] = {lease, give_up, settle};
        self.at = kWays[choice];
        return Move::ran;
      }
      case lease:
      case exchange_lease:
        return add_lease(state, self);
      case give_up:
        self.seen = state.word;
        self.at = exchange_give_up;
        return Move::ran;
      case exchange_give_up: {
        const SlotWord next = self.seen.give_up();
        if (!try_exchange(state.word, self.seen, next)) return Move::ran;
        state.was_lost |= next.is(SlotPhase::failed);
        self.at = settle;
        return Move::ran;
      }
      case settle:
        if (state.reads_in_flight > 0 && !has_flaw(SlotFlaw::clear_ignores_reads))
          return Move::blocked;
        if (state.word.is(SlotPhase::reading)) return Move::blocked;  // for the flaw alone
        if (state.word.leases > 0 && !has_flaw(SlotFlaw::clear_ignores_leases))
          return Move::blocked;
        self.at = clear;
        return Move::ran;
      default:  // clear
        return clear_slot(state, self);
    }
  }

  /// A lease for each reader, unless the read has failed.
  Move add_lease(State& state, Thread& self) const {
    if (self.at == lease) {
      self.seen = state.word;
      self.at = self.seen.is(SlotPhase::failed) ? settle : exchange_lease;
      if (self.at == settle) self.seen = {};
      return Move::ran;
    }
    if (has_flaw(SlotFlaw::lease_in_two_steps)) {
      state.word = state.word.add_lease();
      self.seen = {};
    } else {
      const SlotWord next = self.seen.try_add_lease();
      const bool is_refused = next == self.seen;
      if (!try_exchange(state.word, self.seen, next)) return Move::ran;
      if (is_refused) {
        self.at = settle;
        return Move::ran;
      }
    }
    state.threads[1 + kSlotParts + state.next_reader].has_work = 1;
    ++state.next_reader;
    self.at = state.next_reader == kReaders ? settle : lease;
    return Move::ran;
  }

  Move clear_slot(State& state, Thread& self) const {
    state.word = state.word.clear();
    state.was_lost = state.next_reader = 0;
    self.at = begin;
    self.has_ended = state.round == kRounds;
    return Move::ran;
  }

  Move complete(State& state, Thread& self, size_t choice) const {
    uint8_t& bytes = state.bytes[self.part];
    switch (self.at) {
      case idle:
        if (self.has_work == 0) {
          if (state.threads[0].has_ended == 0) return Move::blocked;
          self.has_ended = 1;
          return Move::ran;
        }
        self.has_work = 0;
        self.at = has_flaw(SlotFlaw::ready_before_bytes) ? load : write;
        return Move::ran;
      case write:  // or fail
        self.has_failed = choice == 1 && !has_flaw(SlotFlaw::ready_before_bytes);
        bytes = self.has_failed != 0 ? bytes : kTorn;
        self.at = self.has_failed != 0 ? load : finish_write;
        return Move::ran;
      case finish_write:
        bytes = state.round;
        self.at = has_flaw(SlotFlaw::ready_before_bytes) ? deliver : load;
        return Move::ran;
      case load:
        self.seen = state.word;
        self.at = exchange;
        return Move::ran;
      case exchange:
        return end_part(state, self);
      default:  // deliver
        --state.reads_in_flight;
        self.has_failed = 0;
        self.at = idle;
        return Move::ran;
    }
  }

  /// A completer's exchange: its part is ready, or has failed.
  Move end_part(State& state, Thread& self) const {
    SlotWord next = self.has_failed != 0 ? self.seen.fail() : self.seen.part_ready(self.part);
    if (has_flaw(SlotFlaw::failure_is_forgotten) && next.parts == kAllSlotParts)
      next = next.with_phase(SlotPhase::resident);
    if (has_flaw(SlotFlaw::part_ready_without_exchange)) self.seen = state.word;
    if (!try_exchange(state.word, self.seen, next)) return Move::ran;
    state.was_lost |= self.has_failed;
    self.at = has_flaw(SlotFlaw::ready_before_bytes) ? write : deliver;
    return Move::ran;
  }

  Move compute(State& state, Thread& self) const {
    switch (self.at) {
      case waiting:
        if (self.has_work == 0) {
          if (state.threads[0].has_ended == 0) return Move::blocked;
          self.has_ended = 1;
          return Move::ran;
        }
        self.has_work = 0;
        self.at = has_flaw(SlotFlaw::read_without_look) ? read : look;
        return Move::ran;
      case look:
        if (state.word.has_part(self.part))
          self.at = read;
        else if (state.word.is(SlotPhase::failed))
          self.at = drop;
        else
          return Move::blocked;
        return Move::ran;
      case read:
        state.was_misread |= state.bytes[self.part] != state.round;
        self.at = ++self.part == kSlotParts ? drop : look;
        return Move::ran;
      default:  // drop
        state.word = state.word.drop_lease();
        self.part = 0;
        self.at = waiting;
        return Move::ran;
    }
  }

  const SlotFlaw flaw_;
};

}  // namespace sluice::model_check
