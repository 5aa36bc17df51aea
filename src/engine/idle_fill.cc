#include "engine/idle_fill.h"

#include <system_error>

namespace sluice {

IdleFill::IdleFill(ExpertStore& store, UsageCensus& census, const Options& options)
    : store_(store), census_(census), options_(options) {
  if (!options_.enabled) return;
  try {
    thread_ = std::thread([this] { work(); });
  } catch (const std::system_error&) {
    // No thread, no filling: the cache warms up as it is used.
  }
}

IdleFill::~IdleFill() {
  {
    const std::lock_guard lock(mutex_);
    stop_ = true;
  }
  wake_.notify_all();
  if (thread_.joinable()) thread_.join();
}

/// Says that it waits before it does, so that the filler, which holds the lock for a moment at a
/// time, does not begin another read.
IdleFill::Request::Request(IdleFill& owner) : owner_(owner) {
  owner_.waiting_requests_.fetch_add(1, std::memory_order_relaxed);
  lock_ = std::unique_lock(owner_.mutex_);
  owner_.waiting_requests_.fetch_sub(1, std::memory_order_relaxed);
  owner_.store_.drop_guesses();
}

/// The filler looks again by itself: to wake it after every token would cost each of them a switch
/// of threads.
IdleFill::Request::~Request() {
  owner_.quiet_from_ = std::chrono::steady_clock::now() + kQuietTime;
  owner_.next_rank_ = 0;
}

void IdleFill::work() {
  std::unique_lock lock(mutex_);
  while (!stop_) {
    const auto now = std::chrono::steady_clock::now();
    if (now < quiet_from_) {
      wake_.wait_until(lock, quiet_from_);
    } else if (waiting_requests_.load(std::memory_order_relaxed) > 0 || fill_next()) {
      wake_.wait_for(lock, kBetweenReads);
    } else {
      wake_.wait_for(lock, kQuietTime);  // nothing to fill until a request has changed something
    }
  }
}

/// Delivers what has landed and starts one more read; false when nothing is left to do.
bool IdleFill::fill_next() {
  store_.pump();
  if (store_.queue().wants_prefetch()) {
    const std::span<const ExpertId> ranking = census_.most_used();
    bool started = false;
    while (!started && next_rank_ < ranking.size() &&
           store_.cache().empty_count() > options_.slots_kept_empty)
      started = store_.fill(ranking[next_rank_++]);
    if (started) store_.pump();
  }
  return store_.is_reading();
}

}  // namespace sluice
