// Fills empty slots while nobody asks for anything: at the start, before the first token, and again
// half a second after a request has ended, the most used experts of the census are read, one every
// few milliseconds. Nothing leaves for them. A request stops it at once: what is not in flight is
// given up, and the store belongs to the request until it ends.
//
// So that two threads never meet in the store, whoever uses it holds an IdleFill::Request (a step,
// which also says that the engine is busy) or an IdleFill::Look (a glance at counters). Any thread.
#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <mutex>
#include <thread>

#include "experts/census.h"
#include "experts/expert_store.h"

namespace sluice {

class IdleFill {
 public:
  static constexpr std::chrono::milliseconds kQuietTime{500};   ///< after a request
  static constexpr std::chrono::milliseconds kBetweenReads{4};  ///< keeps the drive's queue short

  struct Options {
    bool enabled = true;
    uint32_t slots_kept_empty = 0;  ///< for the working set to come
  };
  /// Store and census must outlive it. Without a thread to be had it does nothing.
  IdleFill(ExpertStore& store, UsageCensus& census, const Options& options);
  ~IdleFill();
  IdleFill(const IdleFill&) = delete;
  IdleFill& operator=(const IdleFill&) = delete;

  class Request {
   public:
    explicit Request(IdleFill& owner);
    ~Request();
    Request(const Request&) = delete;
    Request& operator=(const Request&) = delete;

   private:
    IdleFill& owner_;
    std::unique_lock<std::mutex> lock_;
  };
  using Look = std::unique_lock<std::mutex>;
  Look look() { return Look(mutex_); }

 private:
  void work();
  bool fill_next();

  ExpertStore& store_;
  UsageCensus& census_;
  const Options options_;

  std::atomic<int> waiting_requests_{0};  ///< seen by the filler before it reads on
  std::mutex mutex_;                      ///< guards the store, the census and what follows
  std::condition_variable wake_;
  bool stop_ = false;
  std::chrono::steady_clock::time_point quiet_from_;  ///< nothing is filled before
  size_t next_rank_ = 0;                              ///< in the census
  std::thread thread_;
};

}  // namespace sluice
