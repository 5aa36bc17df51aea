// One call of run() is one generation. The caller writes the function, raises the generation and
// wakes whoever sleeps on it; each thread calls the function and takes itself off `running`; the
// one that brings it to zero wakes the caller, should that sleep.
//
//   function, context   written by the caller while running = 0; the release of `generation`
//                       publishes them, the acquire by a thread reads them
//   results             written by a thread before its release on `running`; seen by the caller
//                       after its acquire of running = 0
//
// Waiting costs most: a futex call and a switch of threads take 5 to 50 µs, a spin finds the next
// generation in a fraction of one. But a spinning thread takes a core, and where there are more
// threads than cores it takes it from the one it waits for. So threads spin only as long as a layer
// has small gaps, and where cores are short they offer the core to others from the start.
#include "parallel/compute_pool.h"

#include <system_error>
#include <thread>
#include <vector>

#include "base/check.h"
#include "os/clock.h"
#include "os/cpu.h"

namespace sluice {
namespace {

constexpr uint64_t kSpinNs = 30'000;  // Then sleep.
constexpr int kPausesPerLook = 32;    // Looks at the clock are dearer than looks at the value.

// A cache line each, and its neighbour, which the processor fetches along with it.
constexpr size_t kLineBytes = 128;

}  // namespace

struct ComputePool::Team {
  alignas(kLineBytes) std::atomic<uint32_t> generation{0};
  Erased function = nullptr;  ///< null tells the threads to end
  const void* context = nullptr;

  alignas(kLineBytes) std::atomic<uint32_t> running{0};

  alignas(kLineBytes) bool cores_short = false;
  std::vector<std::thread> threads;

  /// Returns once `value` is no longer `old`.
  void wait_while(const std::atomic<uint32_t>& value, uint32_t old) const;
  void work(size_t thread_index);
  void start(Erased call, const void* argument);
};

void ComputePool::Team::wait_while(const std::atomic<uint32_t>& value, uint32_t old) const {
  const uint64_t deadline_ns = os::now_ns() + kSpinNs;
  do {
    for (int i = 0; i < kPausesPerLook; ++i) {
      if (value.load(std::memory_order_acquire) != old) return;
      os::spin_pause();
    }
    if (cores_short) std::this_thread::yield();
  } while (os::now_ns() < deadline_ns);
  value.wait(old, std::memory_order_acquire);
}

void ComputePool::Team::work(size_t thread_index) {
  for (uint32_t seen = 0;; ++seen) {
    wait_while(generation, seen);
    if (function == nullptr) return;
    function(context, thread_index);
    if (running.fetch_sub(1, std::memory_order_seq_cst) == 1) running.notify_one();
  }
}

void ComputePool::Team::start(Erased call, const void* argument) {
  function = call;
  context = argument;
  running.store(static_cast<uint32_t>(threads.size()), std::memory_order_relaxed);
  generation.fetch_add(1, std::memory_order_seq_cst);
  generation.notify_all();
}

ComputePool::ComputePool(size_t thread_count)
    : thread_count_(thread_count), team_(std::make_unique<Team>()) {
  CHECK(thread_count >= 1);
  team_->cores_short = thread_count > os::usable_core_count();
  team_->threads.reserve(thread_count - 1);
  try {
    for (size_t i = 1; i < thread_count; ++i)
      team_->threads.emplace_back([team = team_.get(), i] { team->work(i); });
  } catch (const std::system_error&) {
    thread_count_ = team_->threads.size() + 1;
  }
}

ComputePool::~ComputePool() {
  team_->start(nullptr, nullptr);
  for (std::thread& thread : team_->threads) thread.join();
}

void ComputePool::run_erased(Erased function, const void* context) {
  if (thread_count_ > 1) team_->start(function, context);
  function(context, 0);
  for (uint32_t left; (left = team_->running.load(std::memory_order_acquire)) != 0;)
    team_->wait_while(team_->running, left);
}

}  // namespace sluice
