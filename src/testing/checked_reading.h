// A read queue under test. Every request gets a guarded buffer, and while the test does what it
// likes, all that the queue promises is checked against a second bookkeeping:
//
//   the order of service   at each read that starts: nobody more urgent waits, the caps and the
//                          places kept for demand are respected, the piece has the size of its
//                          class and begins where the one before it ended (nothing is read twice)
//   the end of a request   comes once, with nothing of it in flight; the bytes are the file's, or
//                          the error is the one that fits; nothing lies outside of the window. Its
//                          buffer is then wiped and used again, so that a late write is found out
//   the state              by check_state(), between two calls: the sums of io_stats.h, and
//                          whether a prefetch would start
//
// For tests only; one thread at a time.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cerrno>
#include <cstring>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "io/read_queue.h"
#include "io/window.h"
#include "os/arena.h"
#include "testing/watched_reader.h"

namespace sluice::io {

inline constexpr uint64_t kSector = 4096;
inline constexpr std::byte kGuard{0x5a};

using Files = std::vector<std::vector<std::byte>>;

/// One request of a test and what became of it.
struct Wish {
  FileExtent wanted;
  AlignedWindow window;
  ReadClass read_class;  ///< demand after promotion
  std::byte* region;     ///< guard, window, guard
  uint64_t region_bytes;
  RequestHandle handle;
  bool cancelled = false;
  bool broken = false;         ///< a read of it failed
  uint64_t started_bytes = 0;  ///< of the window
  uint64_t read_bytes = 0;     ///< delivered for it
  uint32_t in_flight_count = 0;
  int completed_count = 0;
  std::optional<Error> error;

  bool waits() const {
    return completed_count == 0 && !cancelled && !broken && started_bytes < window.bytes;
  }
};

class Reading final : private ReadObserver {
 public:
  Reading(os::AsyncReader& reader, const Files& files, uint32_t alignment,
          ReadQueueOptions options = {}, uint64_t memory_bytes = 4 << 20)
      : files_(files),
        alignment_(alignment),
        options_(options),
        memory_(*os::Arena::allocate(memory_bytes, "a test")),
        watched_(reader, *this),
        last_ops_(reader.depth_max()),
        queue_(std::make_unique<ReadQueue>(watched_, facts(files.size(), alignment), options)) {}

  /// Called within the queue's call when a wish has ended; it may push, promote and cancel.
  std::function<void(size_t wish)> on_end;

  ReadQueue& queue() { return *queue_; }
  const IoStats& stats() const { return queue_->stats(); }
  void destroy_queue() { queue_.reset(); }
  const Wish& wish(size_t index) const { return wishes_[index]; }
  size_t wish_count() const { return wishes_.size(); }
  /// Numbers of the wishes that have not ended.
  std::vector<size_t> open_wishes() const {
    std::vector<size_t> result;
    for (const auto& [region, index] : open_) result.push_back(index);
    return result;
  }
  /// Pieces in flight, by the class their request has now.
  uint32_t in_service(ReadClass read_class) const { return in_service_[number(read_class)]; }
  uint32_t waiting(ReadClass read_class) const { return waiting_[number(read_class)]; }

  size_t push(FileExtent wanted, ReadClass read_class = ReadClass::demand) {
    const AlignedWindow window = window_of(wanted, alignment_);
    const uint64_t room = std::bit_ceil(window.bytes + 2 * alignment_);
    const size_t index = wishes_.size();
    wishes_.push_back({.wanted = wanted,
                       .window = window,
                       .read_class = read_class,
                       .region = take_region(room),
                       .region_bytes = room,
                       .handle = {},
                       .error = {}});
    Wish& wish = wishes_.back();
    open_.emplace(wish.region, index);
    ++waiting_[number(read_class)];
    ++model_.of(read_class).started_count;
    wish.handle = queue_->push({.wanted = wanted,
                                .buffer = wish.region + alignment_,
                                .read_class = read_class,
                                .tag = index,
                                .sink = {on_complete, this}});
    return index;
  }

  void promote(size_t index) {
    Wish& wish = wishes_.at(index);
    const ReadClass guessed = wish.read_class;
    const bool may = wish.completed_count == 0 && !wish.cancelled && guessed != ReadClass::demand;
    ASSERT_EQ(queue_->promote(wish.handle), may);
    if (!may) return;
    ++model_.of(guessed).promoted_count;
    in_service_[number(guessed)] -= wish.in_flight_count;
    in_service_[number(ReadClass::demand)] += wish.in_flight_count;
    waiting_[number(guessed)] -= wish.waits();
    waiting_[number(ReadClass::demand)] += wish.waits();
    wish.read_class = ReadClass::demand;
  }

  void cancel(size_t index) {
    Wish& wish = wishes_.at(index);
    const bool open = wish.completed_count == 0;
    if (open) note_cancelled(wish);
    ASSERT_EQ(queue_->cancel(wish.handle), open);
    // In a sink its last reads may be among those that the queue is still to look at.
    if (!open || in_sink_) return;
    ASSERT_EQ(wish.completed_count, wish.in_flight_count == 0 ? 1 : 0);
  }

  void give_up_waiting() {
    for (const auto& [region, index] : open_)
      if (wishes_[index].waits()) note_cancelled(wishes_[index]);
    queue_->give_up_waiting();
  }

  /// The queue has counted what has happened, and its sums are as io_stats.h states them.
  void check_state() const {
    const IoStats& stats = queue_->stats();
    std::array<size_t, kReadClassCount> open{};
    for (const auto& [region, index] : open_) ++open[number(wishes_[index].read_class)];
    for (const ReadClass read_class : kReadClasses) {
      ASSERT_EQ(stats.of(read_class), model_.of(read_class)) << "class " << number(read_class);
      ASSERT_EQ(stats.not_ended_count(read_class), open[number(read_class)]);
    }
    ASSERT_EQ(stats.read_bytes, model_.read_bytes);
    ASSERT_EQ(stats.cancelled_bytes, model_.cancelled_bytes);
    ASSERT_EQ(queue_->request_count(), open_.size());
    ASSERT_EQ(queue_->wants_prefetch(), prefetch_would_start());
  }

  /// Ends a test: all has ended, once, and no buffer was written to after that.
  void check() const {
    check_state();
    for (const Wish& wish : wishes_) ASSERT_EQ(wish.completed_count, 1);
    for (const auto& [room, regions] : free_regions_)
      for (const std::byte* region : regions) ASSERT_TRUE(is_guard(region, region + room));
  }

  size_t failed_count() const {
    return static_cast<size_t>(
        std::ranges::count_if(wishes_, [](const Wish& wish) { return wish.error.has_value(); }));
  }

 private:
  /// What was last submitted with a tag.
  struct LastOp {
    size_t wish = SIZE_MAX;
    uint64_t end = 0;
    bool wanted_at_return = false;
  };

  static size_t number(ReadClass read_class) { return static_cast<size_t>(read_class); }

  static std::vector<FileFacts> facts(size_t count, uint32_t alignment) {
    std::vector<FileFacts> result;
    for (size_t i = 0; i < count; ++i)
      result.push_back({"model-" + std::to_string(i) + ".gguf", alignment});
    return result;
  }

  /// A wiped region, used before if there is one.
  std::byte* take_region(uint64_t room) {
    auto& regions = free_regions_[room];
    if (!regions.empty()) {
      std::byte* const region = regions.back();
      regions.pop_back();
      EXPECT_TRUE(is_guard(region, region + room)) << "written to after its request had ended";
      return region;
    }
    CHECK(used_ + room <= memory_.bytes());
    std::byte* const region = memory_.begin() + used_;
    used_ += room;
    std::memset(region, static_cast<int>(kGuard), room);
    return region;
  }

  bool prefetch_would_start() const {
    const uint32_t demand = in_service(ReadClass::demand);
    const uint32_t prefetch = in_service(ReadClass::prefetch);
    const size_t depth = last_ops_.size();
    return open_.size() < options_.request_count_max && waiting(ReadClass::demand) == 0 &&
           waiting(ReadClass::prefetch) == 0 &&
           demand + prefetch + in_service(ReadClass::load) < depth - depth / 2 &&
           prefetch < (demand > 0 ? options_.prefetch_in_service_beside_demand_max
                                  : options_.prefetch_in_service_max);
  }

  void note_cancelled(Wish& wish) {
    waiting_[number(wish.read_class)] -= wish.waits();
    wish.cancelled = true;
  }

  void on_submit(const os::ReadOp& op) override {
    const size_t index = std::prev(open_.upper_bound(op.buffer))->second;
    Wish& wish = wishes_[index];
    const auto begin = static_cast<uint64_t>(op.buffer - wish.region) - alignment_;
    const uint64_t end = begin + op.bytes;
    ASSERT_EQ(op.offset, wish.window.offset + begin);
    LastOp& last = last_ops_.at(op.tag);
    const bool continued = last.wish == index && last.end == end;
    if (continued) {
      ASSERT_TRUE(last.wanted_at_return) << "nobody wanted the rest of it";
    } else {
      check_turn(wish, begin, end);
    }
    last = {index, end};
    ++wish.in_flight_count;
    ++in_service_[number(wish.read_class)];
    if (continued) return;
    waiting_[number(wish.read_class)] -= end == wish.window.bytes;
    wish.started_bytes = end;
  }

  /// It is this wish's turn, and this is the piece of it that comes next.
  void check_turn(const Wish& wish, uint64_t begin, uint64_t end) const {
    const uint32_t demand = in_service(ReadClass::demand);
    const uint32_t prefetch = in_service(ReadClass::prefetch);
    ASSERT_EQ(begin, wish.started_bytes);
    ASSERT_FALSE(wish.cancelled || wish.broken) << "nobody wants more of it";
    uint64_t bytes_max = options_.demand_read_bytes_max;
    if (wish.read_class != ReadClass::demand) {
      ASSERT_EQ(waiting(ReadClass::demand), 0u) << "demand is strictly first";
      const size_t all = demand + prefetch + in_service(ReadClass::load);
      ASSERT_LT(all, last_ops_.size() - last_ops_.size() / 2) << "a place kept for demand";
    }
    if (wish.read_class == ReadClass::prefetch) {
      bytes_max = options_.prefetch_chunk_bytes;
      ASSERT_LT(prefetch, demand > 0 ? options_.prefetch_in_service_beside_demand_max
                                     : options_.prefetch_in_service_max);
    }
    if (wish.read_class == ReadClass::load) {
      bytes_max = options_.load_chunk_bytes;
      ASSERT_EQ(demand, 0u);
      ASSERT_EQ(waiting(ReadClass::prefetch), 0u) << "load is last";
    }
    ASSERT_EQ(end, std::min(begin + bytes_max, wish.window.bytes));
  }

  void on_return(const os::ReadCompletion& done) override {
    LastOp& last = last_ops_.at(done.tag);
    Wish& wish = wishes_[last.wish];
    last.wanted_at_return = !wish.cancelled && !wish.broken;
    --wish.in_flight_count;
    --in_service_[number(wish.read_class)];
    const auto bytes = static_cast<uint64_t>(std::max<int64_t>(done.result, 0));
    wish.read_bytes += bytes;
    model_.read_bytes += bytes;
    if (done.result > 0 || done.result == -EINTR || done.result == -EAGAIN) return;
    waiting_[number(wish.read_class)] -= wish.waits();
    wish.broken = true;
  }

  static void on_complete(void* context, uint64_t tag, const Error* error) {
    auto& reading = *static_cast<Reading*>(context);
    Wish& wish = reading.wishes_.at(tag);
    if (error != nullptr) wish.error = *error;
    reading.waiting_[number(wish.read_class)] -= wish.waits();
    ++wish.completed_count;
    reading.check_end(wish);
    std::memset(wish.region, static_cast<int>(kGuard), wish.region_bytes);
    reading.open_.erase(wish.region);
    reading.free_regions_[wish.region_bytes].push_back(wish.region);
    if (!reading.on_end) return;
    const bool outer = std::exchange(reading.in_sink_, true);
    reading.on_end(tag);
    reading.in_sink_ = outer;
  }

  void check_end(const Wish& wish) {
    ASSERT_EQ(wish.completed_count, 1);
    ASSERT_EQ(wish.in_flight_count, 0u);
    ASSERT_EQ(wish.cancelled, wish.error && wish.error->kind == ErrorKind::interrupted);
    check_bytes(wish);
    ClassStats& stats = model_.of(wish.read_class);
    if (wish.cancelled) {
      ++stats.cancelled_count;
      model_.cancelled_bytes += wish.read_bytes;
    } else if (wish.error) {
      ++stats.failed_count;
    } else {
      ++stats.finished_count;
      stats.wanted_bytes += wish.wanted.bytes;
      stats.window_bytes += wish.window.bytes;
    }
  }

  /// Whether nobody has written there: all bytes are as the first, and that is the guard.
  static bool is_guard(const std::byte* begin, const std::byte* end) {
    return *begin == kGuard &&
           std::memcmp(begin, begin + 1, static_cast<size_t>(end - begin) - 1) == 0;
  }

  void check_bytes(const Wish& wish) const {
    const std::byte* const begin = wish.region + alignment_;
    if (!wish.error) {
      const std::byte* const expected = files_[wish.wanted.file].data() + wish.wanted.offset;
      ASSERT_EQ(std::memcmp(begin + wish.window.head, expected, wish.wanted.bytes), 0)
          << wish.wanted.bytes << " bytes at " << wish.wanted.offset;
    }
    ASSERT_TRUE(is_guard(wish.region, begin));
    ASSERT_TRUE(is_guard(begin + wish.window.bytes, wish.region + wish.region_bytes));
  }

  const Files& files_;
  const uint64_t alignment_;
  const ReadQueueOptions options_;
  os::Arena memory_;
  uint64_t used_ = 0;
  std::map<uint64_t, std::vector<std::byte*>> free_regions_;  ///< by size

  std::deque<Wish> wishes_;
  std::map<const std::byte*, size_t> open_;  ///< wishes that have not ended, by region
  std::array<uint32_t, kReadClassCount> in_service_{};
  std::array<uint32_t, kReadClassCount> waiting_{};  ///< wishes with pieces still to start
  bool in_sink_ = false;
  IoStats model_;
  WatchedReader watched_;
  std::vector<LastOp> last_ops_;  ///< by tag
  std::unique_ptr<ReadQueue> queue_;
};

}  // namespace sluice::io
