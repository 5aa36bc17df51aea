// The compute pool: a fixed team of threads that runs one function at a time over all of them, with
// one barrier at the end. The caller is thread 0 of the team. Waiting threads spin briefly (the
// next call usually comes within microseconds) and then sleep. A call allocates nothing and takes
// no lock.
//
// Which thread computes what never changes a result: kernels give each output element one float
// chain of its own, so work may be divided in any way.
//
// One thread at a time may call run(); the pool is not re-entrant.
#pragma once

#include <atomic>
#include <cstddef>
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

  /// Calls f(i, thread_index) for each i in [0, count); threads take the next i from a shared
  /// counter, so that none idles while another has work left. For tasks of unequal size.
  template <typename F>
  void run_queue(size_t count, const F& f) {
    if (count <= 1 || thread_count_ == 1) {
      for (size_t i = 0; i < count; ++i) f(i, size_t{0});
      return;
    }
    std::atomic<size_t> next{0};
    run([&](size_t thread_index) {
      for (size_t i; (i = next.fetch_add(1, std::memory_order_relaxed)) < count;)
        f(i, thread_index);
    });
  }

 private:
  using Erased = void (*)(const void* context, size_t thread_index);
  struct Team;

  void run_erased(Erased function, const void* context);

  size_t thread_count_;
  std::unique_ptr<Team> team_;
};

}  // namespace sluice
