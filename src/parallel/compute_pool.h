// The compute pool: a fixed team of threads that runs one function at a time over all of them, with
// one barrier at the end. The caller is thread 0 of the team. Waiting threads spin briefly (the
// next call usually comes within microseconds) and then sleep. A call allocates nothing and takes
// no lock.
//
// Which thread computes what never changes a result: kernels give each output element one float
// chain of its own, so work may be divided in any way.
//
// The caller may have something to look after meanwhile: the interlude is called on its thread
// between two tasks and while it waits for the others. That is how reads are submitted and
// collected during long steps without a thread of their own, which would have to take a core from
// a computing one to do so.
//
// One thread at a time may call run(); the pool is not re-entrant, nor is the interlude to call it.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <functional>
#include <memory>

namespace sluice {

class ComputePool {
 public:
  /// REQUIRES: thread_count ≥ 1. Starts thread_count − 1 threads, or as many of them as the system
  /// allows; thread_count() tells.
  explicit ComputePool(size_t thread_count);
  ~ComputePool();
  ComputePool(const ComputePool&) = delete;
  ComputePool& operator=(const ComputePool&) = delete;

  size_t thread_count() const { return thread_count_; }

  /// What the caller's thread does between tasks; empty for nothing. It must be quick, since the
  /// next task waits for it.
  void set_interlude(std::function<void()> interlude) { interlude_ = std::move(interlude); }

  /// Calls f(thread_index) once on every thread and returns when all have returned; what they wrote
  /// is visible to the caller. f must not throw.
  template <typename F>
  void run(const F& f) {
    run_erased([](const void* context,
                  size_t thread_index) { (*static_cast<const F*>(context))(thread_index); },
               &f);
  }

  /// Splits [0, count) into one contiguous range per thread, each a multiple of `grain` (but the
  /// last), and calls f(begin, end) for those that are not empty.
  template <typename F>
  void run_ranges(size_t count, size_t grain, const F& f) {
    const size_t grains = (count + grain - 1) / grain;
    if (grains <= 1 || thread_count_ == 1) {
      if (count > 0) f(size_t{0}, count);
      return;
    }
    run([&](size_t thread_index) {
      const size_t begin = grains * thread_index / thread_count_ * grain;
      const size_t end = grains * (thread_index + 1) / thread_count_ * grain;
      if (begin < end) f(begin, end < count ? end : count);
    });
  }

  /// Calls f(begin, end, thread_index) for ranges that cover [0, count). Threads take them from a
  /// shared counter, each half of a fair share of what is left, but not more than `longest`: few
  /// beginnings, and yet none idles for long while another has work left (guided
  /// self-scheduling, Polychronopoulos and Kuck, 1987).
  template <typename F>
  void run_guided(size_t count, size_t longest, const F& f) {
    std::atomic<size_t> next{0};
    const auto take_ranges = [&](size_t thread_index) {
      size_t begin = next.load(std::memory_order_relaxed);
      while (begin < count) {
        const size_t share = (count - begin) / thread_count_;
        const size_t end = begin + std::clamp<size_t>(share / 2, 1, longest);
        if (!next.compare_exchange_weak(begin, end, std::memory_order_relaxed)) continue;
        f(begin, end, thread_index);
        if (thread_index == 0 && interlude_) interlude_();
        begin = next.load(std::memory_order_relaxed);
      }
    };
    if (count <= 1 || thread_count_ == 1)
      take_ranges(0);
    else
      run(take_ranges);
  }

  /// Calls f(i, thread_index) for each i in [0, count), each to a thread that is free: for long
  /// tasks.
  template <typename F>
  void run_queue(size_t count, const F& f) {
    run_guided(count, 1, [&](size_t i, size_t, size_t thread_index) { f(i, thread_index); });
  }

 private:
  using Erased = void (*)(const void* context, size_t thread_index);
  struct Team;

  void run_erased(Erased function, const void* context);

  size_t thread_count_;
  std::unique_ptr<Team> team_;
  std::function<void()> interlude_;
};

}  // namespace sluice
