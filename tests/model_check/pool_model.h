// The reading threads (os/async_read_threads.cc) as a model: callers that submit reads, workers
// that serve them, a collector that waits for each to end and then stops the workers. Both queues
// and both places to park are there; what a read does is one step.
//
// The queues run at one of two grains: each push and pop as one step, which keeps the states few
// enough for all interleavings of the parking, or cut into their accesses, for random schedules of
// everything together.
#pragma once

#include <fmt/format.h>

#include <string>
#include <string_view>

#include "tests/model_check/event_words.h"
#include "tests/model_check/explorer.h"
#include "tests/model_check/queue_words.h"

namespace sluice::model_check {

enum class QueueGrain { operations, accesses };

/// What a worker's read waits for.
enum class Service {
  alone,     ///< nothing
  together,  ///< until as many are in service as there are workers: a barrier
};

/// Ways to get the parking wrong, to see that they are found.
enum class ParkingFlaw {
  none,
  look_before_ticket,       ///< the count is noted after the look: nothing is looked at again
  announce_before_push,     ///< the work comes after its announcement
  rouse_only,               ///< sleepers are roused and the count does not move
  rouse_when_it_was_empty,  ///< the second of two reads rouses nobody
  stop_without_announcing,  ///< the end is said to nobody
};

template <size_t kCallers, size_t kWorkers, size_t kReadsEach, size_t kCapacity>
class PoolModel {
 public:
  static constexpr size_t kReads = kCallers * kReadsEach;
  static constexpr size_t kThreads = kCallers + kWorkers + 1;
  static_assert(kThreads <= 8);

  struct Options {
    QueueGrain grain = QueueGrain::operations;
    Service service = Service::alone;
    size_t batch = 1;  ///< reads submitted with one announcement; divides kReadsEach
    ParkingFlaw flaw = ParkingFlaw::none;
    QueueFlaw queue_flaw = QueueFlaw::none;
  };

  /// The places in the programs.
  ///   caller      push (a batch), announce, rouse (as often)
  ///   worker      ticket, look_at_stop, look, then park, asleep or serve, push, announce, rouse
  ///   collector   ticket, look, then park, asleep; at the end stop, announce, rouse
  enum At : uint8_t {
    push,
    announce,
    rouse,
    ticket,
    look_at_stop,
    look,
    park,
    asleep,
    serve,
    stop
  };

  struct Thread {
    uint8_t at = push;
    uint8_t has_ended = 0;
    uint8_t left = 0;         ///< callers: reads to submit; the collector: reads to see ended
    uint8_t in_batch = 0;     ///< callers: pushed and not yet announced
    uint8_t rouse_count = 0;  ///< callers: sleepers to rouse for this batch
    uint8_t ticket = 0;
    uint8_t read = 0;        ///< workers: the one in service, from 1
    uint8_t is_waiting = 0;  ///< a push was refused
    QueueHand hand;
  };
  struct State {
    QueueWords<kCapacity> work, finished;
    EventWords work_event, ended_event;
    uint8_t stop = 0;
    uint8_t started_count = 0;
    uint8_t was_garbled = 0;      ///< a worker took what was never pushed
    uint8_t served[kReads] = {};  ///< times, by read
    Thread threads[kThreads];
  };

  explicit PoolModel(const Options& options) : options_(options) {}

  State start() const {
    State state;
    for (size_t i = 0; i < kCallers; ++i) {
      state.threads[i].left = kReadsEach;
      next_batch(state.threads[i]);
    }
    for (size_t i = kCallers; i < kCollector; ++i) state.threads[i].at = first_step();
    state.threads[kCollector].left = kReads;
    state.threads[kCollector].at = ticket;
    return state;
  }

  size_t thread_count() const { return kThreads; }

  size_t choice_count(const State& state, size_t thread) const {
    const bool rouses_a_worker = thread < kCallers && state.threads[thread].at == rouse;
    return rouses_a_worker ? state.work_event.rouse_choice_count() : 1;
  }

  Move step(State& state, size_t thread, size_t choice) const {
    Thread& self = state.threads[thread];
    if (self.has_ended != 0) return Move::ended;
    if (thread < kCallers) return submit(state, self, thread, choice);
    return thread < kCollector ? work(state, self, thread) : collect(state, self);
  }

  std::string step_name(const State& state, size_t thread) const {
    constexpr const char* kSteps[] = {"push", "announce", "rouse",  "ticket", "look at stop",
                                      "look", "park",     "asleep", "serve",  "stop"};
    const char* name = thread < kCallers ? "caller" : thread < kCollector ? "worker" : "collector";
    return fmt::format("{} {}: {}", name, thread, kSteps[state.threads[thread].at]);
  }

  std::string_view wrong_with(const State& state) const {
    if (state.was_garbled != 0) return "what was taken was never pushed";
    for (const uint8_t times : state.served) {
      if (times > 1) return "a read was served twice";
      if (times == 0 && state.threads[kCollector].has_ended != 0) return "a read was not served";
    }
    return {};
  }

 private:
  static constexpr size_t kCollector = kThreads - 1;

  bool has_flaw(ParkingFlaw flaw) const { return options_.flaw == flaw; }

  Move submit(State& state, Thread& self, size_t thread, size_t choice) const {
    switch (self.at) {
      case push: {
        const bool was_empty = state.work.looks_empty();
        const auto read = static_cast<uint8_t>((thread + 1) * kReadsEach - self.left + 1);
        const Progress progress = push_to(state.work, self, read);
        if (progress == Progress::done) pushed(self, was_empty);
        return progress == Progress::refused ? Move::blocked : Move::ran;
      }
      case announce:
        if (!has_flaw(ParkingFlaw::rouse_only)) state.work_event.announce();
        self.at = rouse;
        return Move::ran;
      default:  // rouse
        state.work_event.rouse(choice);
        if (--self.rouse_count > 0) return Move::ran;
        if (has_flaw(ParkingFlaw::announce_before_push))
          self.at = push;
        else
          next_batch(self);
        return Move::ran;
    }
  }

  void pushed(Thread& self, bool was_empty) const {
    --self.left;
    if (++self.in_batch < options_.batch) return;
    const bool is_silent = has_flaw(ParkingFlaw::announce_before_push) ||
                           (has_flaw(ParkingFlaw::rouse_when_it_was_empty) && !was_empty);
    if (is_silent)
      next_batch(self);
    else
      self.at = announce;
  }

  void next_batch(Thread& self) const {
    self.in_batch = 0;
    self.rouse_count = static_cast<uint8_t>(options_.batch);
    self.at = has_flaw(ParkingFlaw::announce_before_push) ? announce : push;
    self.has_ended = self.left == 0;
  }

  Move work(State& state, Thread& self, size_t thread) const {
    switch (self.at) {
      case ticket:
        self.ticket = state.work_event.count;
        self.at = has_flaw(ParkingFlaw::look_before_ticket) ? park : look_at_stop;
        return Move::ran;
      case look_at_stop:
        self.has_ended = state.stop;
        self.at = look;
        return Move::ran;
      case look:
        return look_for_work(state, self);
      case serve:
        if (options_.service == Service::together && state.started_count < kWorkers)
          return Move::blocked;
        if (self.read == 0)
          state.was_garbled = 1;
        else
          ++state.served[self.read - 1];
        self.at = push;
        return Move::ran;
      case push: {
        const Progress progress = push_to(state.finished, self, self.read);
        if (progress == Progress::done) {
          self.read = 0;
          self.at = announce;
        }
        return progress == Progress::refused ? Move::blocked : Move::ran;
      }
      case announce:
        state.ended_event.announce();
        self.at = rouse;
        return Move::ran;
      case rouse:
        state.ended_event.rouse_all();  // Only the collector sleeps there.
        self.at = first_step();
        return Move::ran;
      default:
        return sleep(state.work_event, self, thread, first_step());
    }
  }

  /// Of a worker's round.
  At first_step() const {
    return has_flaw(ParkingFlaw::look_before_ticket) ? look_at_stop : ticket;
  }

  Move look_for_work(State& state, Thread& self) const {
    const Progress progress = pop_from(state.work, self);
    if (progress == Progress::refused)
      self.at = has_flaw(ParkingFlaw::look_before_ticket) ? ticket : park;
    if (progress == Progress::done) {
      self.ticket = 0;
      self.at = serve;
      ++state.started_count;
    }
    return Move::ran;
  }

  Move collect(State& state, Thread& self) const {
    switch (self.at) {
      case ticket:
        self.ticket = state.ended_event.count;
        self.at = look;
        return Move::ran;
      case look: {
        const Progress progress = pop_from(state.finished, self);
        if (progress == Progress::refused) self.at = park;
        if (progress == Progress::done) {
          self.read = self.ticket = 0;
          self.at = --self.left == 0 ? stop : ticket;
        }
        return Move::ran;
      }
      case stop:
        state.stop = 1;
        self.at = announce;
        self.has_ended = has_flaw(ParkingFlaw::stop_without_announcing);
        return Move::ran;
      case announce:
        state.work_event.announce();
        self.at = rouse;
        return Move::ran;
      case rouse:
        state.work_event.rouse_all();
        self.has_ended = 1;
        return Move::ran;
      default:
        return sleep(state.ended_event, self, kCollector, ticket);
    }
  }

  /// Parking, and being asleep until roused with the count moved on.
  static Move sleep(EventWords& event, Thread& self, size_t thread, At then) {
    if (event.is_asleep(thread)) return Move::blocked;
    if (event.try_sleep(thread, self.ticket)) {
      self.at = asleep;
    } else {
      self.ticket = 0;
      self.at = then;
    }
    return Move::ran;
  }

  /// Refused: nothing has changed, and nothing would before another thread has moved.
  Progress push_to(QueueWords<kCapacity>& queue, Thread& self, uint8_t read) const {
    if (self.is_waiting != 0 && queue.looks_full()) return Progress::refused;
    self.hand.item = read;
    const Progress progress =
        at_grain([&] { return push_step(queue, self.hand, options_.queue_flaw); });
    self.is_waiting = progress == Progress::refused;
    if (progress != Progress::under_way) self.hand = {};
    return progress == Progress::done ? progress : Progress::under_way;
  }

  /// Done: the item is in self.read.
  Progress pop_from(QueueWords<kCapacity>& queue, Thread& self) const {
    const Progress progress =
        at_grain([&] { return pop_step(queue, self.hand, options_.queue_flaw); });
    if (progress == Progress::done) self.read = self.hand.item;
    if (progress != Progress::under_way) self.hand = {};
    return progress;
  }

  template <typename Step>
  Progress at_grain(const Step& step) const {
    Progress progress = step();
    while (options_.grain == QueueGrain::operations && progress == Progress::under_way)
      progress = step();
    return progress;
  }

  const Options options_;
};

}  // namespace sluice::model_check
