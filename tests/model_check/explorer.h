// Checks a small model of threads against every way in which their steps can interleave.
//
// A model is a handful of threads over shared words. Its State is plain bytes: the words, and for
// each thread the place in its program and its registers. A step is what no other thread can come
// between: one atomic access, or one access to memory that only this thread may touch now. From a
// start the explorer takes each step of each thread in each state once (depth first, states
// remembered whole, so nothing is left out and nothing is guessed) and asks in each state whether
// something is wrong. A state in which no thread can move although not all have ended is wrong
// too: a lost wake-up looks like that. Threads that would look again and again say `blocked`
// until looking can bring something new.
//
// Memory is sequentially consistent here. That orders suffice on real machines is argued where the
// code stands, and watched by the thread sanitizer; what a missing order would do can be modelled
// by swapping two steps.
//
// Where the states are too many, random_walks takes random schedules. Both report the way to what
// is wrong. One thread at a time.
#pragma once

#include <concepts>
#include <cstring>
#include <string>
#include <string_view>
#include <type_traits>
#include <unordered_set>
#include <vector>

#include "base/random.h"

namespace sluice::model_check {

/// What became of a step. A blocked or ended thread has changed nothing.
enum class Move : uint8_t { ran, blocked, ended };

template <typename M>
concept Model = std::has_unique_object_representations_v<typename M::State> &&
    requires(const M& model, typename M::State& state, size_t thread) {
  { model.start() } -> std::same_as<typename M::State>;
  { model.thread_count() } -> std::same_as<size_t>;
  // In how many ways the thread's next step can turn out, at least 1.
  { model.choice_count(state, thread) } -> std::same_as<size_t>;
  { model.step(state, thread, size_t{}) } -> std::same_as<Move>;
  { model.step_name(state, thread) } -> std::same_as<std::string>;
  // What is wrong with the state; empty where nothing is.
  { model.wrong_with(state) } -> std::same_as<std::string_view>;
};

struct Verdict {
  std::string wrong;               ///< empty: nothing was found
  std::vector<std::string> trace;  ///< the way there, a step each
  size_t state_count = 0;          ///< distinct ones seen by explore; all, by random_walks

  std::string text() const {
    std::string lines = wrong + "\n";
    for (const std::string& step : trace) lines += "  " + step + "\n";
    return lines;
  }
};

inline constexpr std::string_view kDeadlock = "no thread can move and not all have ended";

template <Model M>
class Explorer {
 public:
  explicit Explorer(const M& model) : model_(model) {}

  Verdict explore() {
    enter(model_.start());
    while (!path_.empty() && verdict_.wrong.empty())
      if (!try_next_step(path_.back())) leave();
    verdict_.state_count = seen_.size();
    return std::move(verdict_);
  }

 private:
  using State = typename M::State;

  struct BytesHash {
    size_t operator()(const State& state) const {
      return std::hash<std::string_view>{}({reinterpret_cast<const char*>(&state), sizeof(state)});
    }
  };
  struct BytesEqual {
    bool operator()(const State& a, const State& b) const {
      return std::memcmp(&a, &b, sizeof(a)) == 0;
    }
  };

  /// A state on the way to where we are, and the step of it to be tried next.
  struct Frame {
    State state;
    size_t thread = 0;
    size_t choice = 0;
    size_t taken = 0;          ///< the thread whose step led to the next frame
    bool has_run = false;      ///< some thread could move
    bool has_blocked = false;  ///< some thread could not, and has not ended
  };

  void enter(const State& state) {
    if (!seen_.insert(state).second) return;
    path_.push_back({.state = state});
    if (const auto wrong = model_.wrong_with(state); !wrong.empty()) report(wrong);
  }

  /// False where the frame has no more steps. Its successor, if new, is the path's end then.
  bool try_next_step(Frame& frame) {
    if (frame.thread == model_.thread_count()) return false;
    State next = frame.state;
    const Move move = model_.step(next, frame.thread, frame.choice);
    frame.taken = frame.thread;
    frame.has_run |= move == Move::ran;
    frame.has_blocked |= move == Move::blocked;
    if (++frame.choice >= model_.choice_count(frame.state, frame.thread)) {
      ++frame.thread;
      frame.choice = 0;
    }
    if (move == Move::ran) enter(next);
    return true;
  }

  void leave() {
    if (!path_.back().has_run && path_.back().has_blocked)
      report(kDeadlock);
    else
      path_.pop_back();
  }

  void report(std::string_view wrong) {
    verdict_.wrong = wrong;
    for (size_t i = 0; i + 1 < path_.size(); ++i)
      verdict_.trace.push_back(model_.step_name(path_[i].state, path_[i].taken));
  }

  const M& model_;
  std::unordered_set<State, BytesHash, BytesEqual> seen_;
  std::vector<Frame> path_;
  Verdict verdict_;
};

/// All interleavings.
template <Model M>
Verdict explore(const M& model) {
  return Explorer<M>(model).explore();
}

/// One interleaving, chosen by a seed. How long a thread runs before another may is drawn too:
/// some schedules change threads at every step, in others one is put off for long.
template <Model M>
class Walk {
 public:
  enum class Trace { none, steps };

  Walk(const M& model, uint64_t seed, Trace trace)
      : model_(model),
        random_(seed),
        steps_per_change_(uint64_t{1} << random_.below(5)),
        trace_(trace),
        state_(model.start()) {}

  Verdict run(size_t step_count_max) {
    while (verdict_.state_count < step_count_max) {
      const Move move = move_some_thread();
      if (move == Move::ended) return std::move(verdict_);
      verdict_.wrong = move == Move::ran ? model_.wrong_with(state_) : kDeadlock;
      if (!verdict_.wrong.empty()) return std::move(verdict_);
    }
    verdict_.wrong = "no end after as many steps as are allowed";
    return std::move(verdict_);
  }

 private:
  /// Ended: all have. Blocked: none can move, and not all have ended.
  Move move_some_thread() {
    const size_t count = model_.thread_count();
    if (random_.below(steps_per_change_) == 0) thread_ = random_.below(count);
    bool all_ended = true;
    for (size_t tried = 0; tried < count; ++tried, thread_ = (thread_ + 1) % count) {
      const std::string name =
          trace_ == Trace::steps ? model_.step_name(state_, thread_) : std::string();
      const size_t choice = random_.below(model_.choice_count(state_, thread_));
      const Move move = model_.step(state_, thread_, choice);
      if (move == Move::ran) {
        ++verdict_.state_count;
        if (trace_ == Trace::steps) verdict_.trace.push_back(name);
        return move;
      }
      all_ended &= move == Move::ended;
    }
    return all_ended ? Move::ended : Move::blocked;
  }

  const M& model_;
  Random random_;
  const uint64_t steps_per_change_;
  const Trace trace_;
  typename M::State state_;
  size_t thread_ = 0;
  Verdict verdict_;
};

/// That many interleavings, the same ones again for the same first seed.
template <Model M>
Verdict random_walks(const M& model, size_t walk_count, uint64_t first_seed) {
  constexpr size_t kStepCountMax = 100'000;
  size_t state_count = 0;
  for (uint64_t seed = first_seed; seed < first_seed + walk_count; ++seed) {
    Verdict verdict = Walk(model, seed, Walk<M>::Trace::none).run(kStepCountMax);
    state_count += verdict.state_count;
    if (!verdict.wrong.empty())
      return Walk(model, seed, Walk<M>::Trace::steps).run(kStepCountMax);  // and the way there
  }
  return {.wrong = {}, .trace = {}, .state_count = state_count};
}

}  // namespace sluice::model_check
