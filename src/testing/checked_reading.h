// A read queue under test: every request gets a guarded buffer, and at the end each must have
// completed once, with the file's bytes and nothing written outside of its window. For tests only;
// one thread at a time.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <deque>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "io/read_queue.h"
#include "io/window.h"
#include "os/arena.h"

namespace sluice::io {

inline constexpr uint64_t kSector = 4096;
inline constexpr std::byte kGuard{0x5a};

using Files = std::vector<std::vector<std::byte>>;

/// One request of a test and what became of it.
struct Wish {
  FileExtent wanted;
  ReadClass read_class;
  std::byte* region;  ///< guard, window, guard
  uint64_t region_bytes;
  int completed_count = 0;
  std::optional<Error> error;
};

/// A queue over a reader, with a guarded buffer for each request.
class Reading {
 public:
  Reading(os::AsyncReader& reader, const Files& files, uint32_t alignment,
          ReadQueueOptions options = {}, uint64_t memory_bytes = 4 << 20)
      : files_(files),
        alignment_(alignment),
        memory_(*os::Arena::allocate(memory_bytes, "a test")),
        queue_(std::make_unique<ReadQueue>(reader, facts(files.size(), alignment), options)) {}

  ReadQueue& queue() { return *queue_; }
  void destroy_queue() { queue_.reset(); }
  const Wish& wish(size_t index) const { return wishes_[index]; }
  size_t wish_count() const { return wishes_.size(); }

  size_t push(FileExtent wanted, ReadClass read_class = ReadClass::demand) {
    const uint64_t room = window_of(wanted, alignment_).bytes + 2 * alignment_;
    CHECK(used_ + room <= memory_.bytes());
    wishes_.push_back({wanted, read_class, memory_.begin() + used_, room, 0, {}});
    std::memset(wishes_.back().region, static_cast<int>(kGuard), room);
    used_ += room;
    queue_->push({.wanted = wanted,
                  .buffer = wishes_.back().region + alignment_,
                  .read_class = read_class,
                  .tag = wishes_.size() - 1,
                  .sink = {on_complete, this}});
    return wishes_.size() - 1;
  }

  /// Every request has ended once; the good ones hold the file's bytes; nothing lies outside of any
  /// window; the sums of io_stats.h hold.
  void check() const {
    ClassStats sums[kReadClassCount] = {};
    for (const Wish& wish : wishes_) {
      ASSERT_EQ(wish.completed_count, 1);
      check_bytes(wish);
      const AlignedWindow window = window_of(wish.wanted, alignment_);
      ClassStats& sum = sums[static_cast<size_t>(wish.read_class)];
      ++sum.started_count;
      ++(wish.error ? sum.failed_count : sum.finished_count);
      sum.wanted_bytes += wish.error ? 0 : wish.wanted.bytes;
      sum.window_bytes += wish.error ? 0 : window.bytes;
    }
    for (size_t i = 0; i < kReadClassCount; ++i) {
      const ClassStats& stats = queue_->stats().by_class[i];
      EXPECT_EQ(stats.started_count, sums[i].started_count);
      EXPECT_EQ(stats.finished_count, sums[i].finished_count);
      EXPECT_EQ(stats.failed_count, sums[i].failed_count);
      EXPECT_EQ(stats.wanted_bytes, sums[i].wanted_bytes);
      EXPECT_EQ(stats.window_bytes, sums[i].window_bytes);
    }
    EXPECT_EQ(queue_->request_count(), 0u);
  }

  size_t failed_count() const {
    return static_cast<size_t>(
        std::ranges::count_if(wishes_, [](const Wish& wish) { return wish.error.has_value(); }));
  }

 private:
  static std::vector<FileFacts> facts(size_t count, uint32_t alignment) {
    std::vector<FileFacts> result;
    for (size_t i = 0; i < count; ++i)
      result.push_back({"model-" + std::to_string(i) + ".gguf", alignment});
    return result;
  }

  static void on_complete(void* context, uint64_t tag, const Error* error) {
    Wish& wish = static_cast<Reading*>(context)->wishes_.at(tag);
    ++wish.completed_count;
    if (error != nullptr) wish.error = *error;
  }

  /// Whether nobody has written there: all bytes are as the first, and that is the guard.
  static bool is_guard(const std::byte* begin, const std::byte* end) {
    return *begin == kGuard &&
           std::memcmp(begin, begin + 1, static_cast<size_t>(end - begin) - 1) == 0;
  }

  void check_bytes(const Wish& wish) const {
    const AlignedWindow window = window_of(wish.wanted, alignment_);
    const std::byte* const begin = wish.region + alignment_;
    if (!wish.error) {
      const auto& file = files_[wish.wanted.file];
      ASSERT_EQ(
          std::memcmp(begin + window.head, file.data() + wish.wanted.offset, wish.wanted.bytes), 0)
          << wish.wanted.bytes << " bytes at " << wish.wanted.offset;
    }
    ASSERT_TRUE(is_guard(wish.region, begin));
    ASSERT_TRUE(is_guard(begin + window.bytes, wish.region + wish.region_bytes));
  }

  const Files& files_;
  const uint64_t alignment_;
  os::Arena memory_;
  uint64_t used_ = 0;
  std::deque<Wish> wishes_;
  std::unique_ptr<ReadQueue> queue_;
};

}  // namespace sluice::io
