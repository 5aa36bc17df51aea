// A first-in first-out queue of fixed capacity for many producers and many consumers, without a
// lock and without allocation after it was made. Any thread may call any of it at any time.
//
// The algorithm is D. Vyukov's. The cells form a ring, and each carries a number that says whose
// turn it is. Positions count up for ever; position p uses cell p mod capacity:
//
//   number of the cell    means                                    set by
//   p                     free for the producer of position p      constructor, or consumer p −
//   cap. p + 1                 holds the item of position p             producer p p + capacity
//   free again, for position p + capacity    consumer p
//
// A producer looks at the cell of the next position; if it is free, one compare-exchange on `tail_`
// claims the position, and nobody else will touch the cell until its number is raised. Consumers do
// the same on `head_`. So the ends never meet, and a thread that loses a race has only to look
// again.
//
//   operation                     order     why
//   claim (tail_, head_)          relaxed   it only hands out positions; bytes pass by the numbers
//   number, raised by producer    release   whoever acquires p + 1 sees the item
//   number, raised by consumer    release   whoever acquires p + capacity comes after the taking
//   number, read before a claim   acquire   the other half of both
//
// Two things it does not promise. A thread put off its core between its claim and the raising of
// the number holds up those who come to its cell: until it runs again the queue looks empty to
// consumers at that place though later items are complete, or full to a producer one round later
// though it holds fewer items than capacity(). And with several producers, "empty" is not a claim
// about a moment: who must not miss an item looks again after being told (base/event_count.h).
#pragma once

#include <atomic>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <type_traits>
#include <vector>

namespace sluice {

template <typename T>
class MpmcQueue {
  static_assert(std::is_trivially_copyable_v<T> && std::is_default_constructible_v<T>);

 public:
  /// Room for at least that many items: the next power of two, and two at least, since in a ring
  /// of one cell "holds p" and "free for p + 1" would be the same number.
  explicit MpmcQueue(size_t capacity_min)
      : cells_(std::bit_ceil(capacity_min < 2 ? size_t{2} : capacity_min)),
        mask_(cells_.size() - 1) {
    for (size_t i = 0; i < cells_.size(); ++i) cells_[i].number.store(i, std::memory_order_relaxed);
  }
  MpmcQueue(const MpmcQueue&) = delete;
  MpmcQueue& operator=(const MpmcQueue&) = delete;

  size_t capacity() const { return cells_.size(); }

  /// False where the queue is full.
  bool try_push(const T& item) {
    Cell* cell = claim(tail_, 0);
    if (cell == nullptr) return false;
    cell->item = item;
    pass_on(*cell, 1);
    return true;
  }

  /// The item that has waited longest; none where the queue is empty.
  std::optional<T> try_pop() {
    Cell* cell = claim(head_, 1);
    if (cell == nullptr) return std::nullopt;
    const std::optional<T> item(cell->item);
    pass_on(*cell, mask_);  // from p + 1 to p + capacity
    return item;
  }

 private:
  // A cache line, and its neighbour, which the processor loads along with it: producers and
  // consumers keep off each other's ends.
  static constexpr size_t kLineBytes = 128;

  struct Cell {
    std::atomic<size_t> number{0};
    T item{};
  };

  /// The cell of the next position at this end, once its number is position + `turn`; null where
  /// it is not that far.
  Cell* claim(std::atomic<size_t>& end, size_t turn) {
    size_t position = end.load(std::memory_order_relaxed);
    for (;;) {
      Cell& cell = cells_[position & mask_];
      const size_t number = cell.number.load(std::memory_order_acquire);
      const auto ahead = static_cast<ptrdiff_t>(number - (position + turn));
      if (ahead < 0) return nullptr;
      if (ahead > 0) {
        position = end.load(std::memory_order_relaxed);  // Another has taken the position.
      } else if (end.compare_exchange_weak(position, position + 1, std::memory_order_relaxed)) {
        return &cell;
      }
    }
  }

  /// Raises the number of a cell that this thread has claimed.
  static void pass_on(Cell& cell, size_t by) {
    cell.number.store(cell.number.load(std::memory_order_relaxed) + by, std::memory_order_release);
  }

  alignas(kLineBytes) std::atomic<size_t> tail_{0};  ///< the next position to be filled
  alignas(kLineBytes) std::atomic<size_t> head_{0};  ///< the next position to be taken
  alignas(kLineBytes) std::vector<Cell> cells_;
  const size_t mask_;
};

}  // namespace sluice
