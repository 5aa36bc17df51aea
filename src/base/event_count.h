// A place to park for threads that have found nothing to do, without a lock: the waiting side of a
// queue that can be looked at but not waited for (base/mpmc_queue.h). Any thread may call any of
// it.
//
// The danger is the lost wake-up: a thread looks and finds nothing, the work arrives and its
// arrival is announced, and only then the thread goes to sleep, for ever. So the word below counts
// announcements, and whoever wants to park notes the count before it looks:
//
//   who looks for work                        who brings work
//     1  ticket = current()                     1  put the work where it is found
//     2  look; if there is work, do it          2  wake(): count + 1, then rouse sleepers
//     3  park(ticket): sleep, unless the
//        count is no longer the ticket
//     4  from 1 again
//
// Either the announcement comes before step 1 in the order of the count: then the ticket was read
// from it or from a later one, which makes the work visible to step 2 (release and acquire). Or it
// comes after: then the count differs from the ticket, and step 3 does not sleep or is roused. That
// comparing and falling asleep are one step is what std::atomic::wait promises (on Linux the kernel
// compares, in futex). The order of the steps is all that matters, so tests/model_check holds them
// against every interleaving.
//
// One announcement for several pieces of work may rouse several sleepers: wake(n). Those that come
// to a queue already emptied by others park again; that costs a look and nothing else. The count
// returns to a ticket after 2^32 announcements between two steps of one thread, which no thread is
// put off its core for.
//
// A wake() with nobody asleep is an addition and a load, no system call.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

namespace sluice {

class EventCount {
 public:
  /// A value of the count. Stands for "what I am about to look at is at least as new as this".
  enum class Ticket : uint32_t {};

  Ticket current() const { return Ticket{count_.load(std::memory_order_acquire)}; }

  /// Sleeps until roused, by something announced after the ticket was read; not at all where such
  /// a thing is already announced.
  void park(Ticket ticket) const {
    count_.wait(static_cast<uint32_t>(ticket), std::memory_order_acquire);
  }

  /// Announces, and rouses as many sleepers (all, where fewer sleep).
  void wake(size_t sleeper_count) {
    announce();
    for (size_t i = 0; i < sleeper_count; ++i) count_.notify_one();
  }
  void wake_all() {
    announce();
    count_.notify_all();
  }

 private:
  /// Not merely release: notify looks first whether anybody sleeps at all, and that look must not
  /// be made before the new count is there for those about to sleep.
  void announce() { count_.fetch_add(1, std::memory_order_seq_cst); }

  std::atomic<uint32_t> count_{0};
};

}  // namespace sluice
