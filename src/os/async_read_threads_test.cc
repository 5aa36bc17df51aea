// What the pool of threads promises beyond what every reader does (os/async_read_test.cc).
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <cstring>
#include <vector>

#include "base/random.h"
#include "os/arena.h"
#include "os/async_read_kinds.h"
#include "testing/temp_folder.h"

namespace sluice::os {
namespace {

constexpr uint32_t kBlock = 4096;
constexpr uint32_t kLongBytes = 32u << 20;  ///< takes milliseconds, even from the page cache
constexpr size_t kDepth = 32;

/// A file in which block i says i, and a buffer for one long read and `kDepth` short ones.
class ThreadReaderTest : public ::testing::Test {
 protected:
  void SetUp() override {
    std::string contents(kLongBytes, 'x');
    for (uint64_t block = 0; block < kLongBytes / kBlock; ++block)
      std::memcpy(contents.data() + block * kBlock, &block, sizeof(block));
    auto file = File::open(folder_.write("f", std::string_view(contents)), DirectMode::off);
    ASSERT_TRUE(file.ok()) << file.error().message;
    file_ = std::make_unique<File>(std::move(*file));
  }

  std::unique_ptr<AsyncReader> make_reader(size_t thread_count, size_t depth_max = kDepth) {
    const File* files[] = {file_.get()};
    return std::move(*make_thread_reader(files, depth_max, thread_count));
  }

  std::byte* short_buffer(size_t index) { return buffers_.begin() + kLongBytes + index * kBlock; }

  ReadOp long_read() {
    return {.file = 0, .offset = 0, .buffer = buffers_.begin(), .bytes = kLongBytes, .tag = kLong};
  }
  ReadOp short_read(uint64_t block, size_t index, Urgency urgency) {
    return {.file = 0,
            .offset = block * kBlock,
            .buffer = short_buffer(index),
            .bytes = kBlock,
            .tag = index,
            .urgency = urgency};
  }
  uint64_t block_in(size_t index) {
    uint64_t block = 0;
    std::memcpy(&block, short_buffer(index), sizeof(block));
    return block;
  }

  static constexpr uint64_t kLong = 1000;
  TempFolder folder_{"."};
  std::unique_ptr<File> file_;
  Arena buffers_ = *Arena::allocate(kLongBytes + kDepth * kBlock, "a test");
};

std::vector<uint64_t> tags_in_order_of_ending(AsyncReader& reader, size_t count) {
  std::vector<uint64_t> tags;
  while (tags.size() < count) {
    ReadCompletion done = {};
    EXPECT_EQ(reader.poll({&done, 1}, true), 1u);
    EXPECT_GT(done.result, 0);
    tags.push_back(done.tag);
  }
  return tags;
}

// One worker is kept busy by a long read while the others are queued, background first. Should the
// long one have ended by then (this thread was put off its core), the order says nothing: again.
TEST_F(ThreadReaderTest, DemandIsServedBeforeWhatWaitedLonger) {
  const auto reader = make_reader(1);
  for (int attempt = 0; attempt < 20; ++attempt) {
    const ReadOp first = long_read();
    reader->submit({&first, 1});
    std::vector<ReadOp> ops;
    for (size_t i = 0; i < 4; ++i) ops.push_back(short_read(i, i, Urgency::background));
    reader->submit(ops);
    ops.clear();
    for (size_t i = 4; i < 8; ++i)
      ops.push_back(short_read(i, i, i == 6 ? Urgency::background : Urgency::demand));
    reader->submit(ops);
    ReadCompletion done = {};
    const bool too_late = reader->poll({&done, 1}, false) > 0;
    const auto tags = tags_in_order_of_ending(*reader, too_late ? 8 : 9);
    if (too_late) continue;
    EXPECT_EQ(tags, (std::vector<uint64_t>{kLong, 4, 5, 7, 0, 1, 2, 3, 6}));
    return;
  }
  GTEST_SKIP() << "this machine is too busy to queue reads while one is in service";
}

// Reads that have not begun when the reader goes leave their buffers alone.
TEST_F(ThreadReaderTest, WhatHasNotBegunIsDropped) {
  std::memset(short_buffer(0), 0xdd, kDepth * kBlock);
  for (int attempt = 0; attempt < 20; ++attempt) {
    auto reader = make_reader(1);
    const ReadOp first = long_read();
    reader->submit({&first, 1});
    std::vector<ReadOp> ops;
    for (size_t i = 0; i < 8; ++i)
      ops.push_back(short_read(i, i, i % 2 == 0 ? Urgency::demand : Urgency::background));
    reader->submit(ops);
    reader.reset();
    const auto touched = std::count_if(short_buffer(0), short_buffer(kDepth),
                                       [](std::byte b) { return b != std::byte{0xdd}; });
    if (touched == 0) return;
    std::memset(short_buffer(0), 0xdd, kDepth * kBlock);
  }
  FAIL() << "the worker served all reads before it ended, 20 times";
}

TEST_F(ThreadReaderTest, MayGoAtAnyTime) {
  for (size_t round = 0; round < 300; ++round) {
    auto reader = make_reader(1 + round % 5);
    std::vector<ReadOp> ops;
    for (size_t i = 0; i < round % 7; ++i) ops.push_back(short_read(i, i, Urgency::background));
    reader->submit(ops);
    if (round % 3 == 0) tags_in_order_of_ending(*reader, ops.size() / 2);
  }
}

// Short reads, so that workers spend their time at the queues and between looking and parking. A
// lost wake-up hangs here.
TEST_F(ThreadReaderTest, NothingIsLostUnderStress) {
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::milliseconds(1500);
  Random random(7);
  for (size_t round = 0; std::chrono::steady_clock::now() < deadline; ++round) {
    const size_t depth = 1 + random.below(kDepth);
    const auto reader = make_reader(1 + round % 8, depth);
    std::vector<uint64_t> wanted(depth, ~uint64_t{0});  // of each buffer: the block on its way
    std::vector<size_t> free_buffers(depth);
    for (size_t i = 0; i < depth; ++i) free_buffers[i] = i;
    std::vector<ReadCompletion> done(depth);
    for (int step = 0; step < 2000 || free_buffers.size() < depth; ++step) {
      std::vector<ReadOp> ops;
      const size_t count = step < 2000 ? random.below(free_buffers.size() + 1) : 0;
      for (size_t i = 0; i < count; ++i) {
        const size_t index = free_buffers.back();
        free_buffers.pop_back();
        wanted[index] = random.below(kLongBytes / kBlock);
        ops.push_back(short_read(wanted[index], index,
                                 random.below(2) == 0 ? Urgency::demand : Urgency::background));
      }
      reader->submit(ops);
      const bool wait = free_buffers.size() < depth && random.below(4) != 0;
      const size_t ended = reader->poll(std::span(done).first(1 + random.below(depth)), wait);
      ASSERT_GE(ended, wait ? 1u : 0u);
      for (size_t i = 0; i < ended; ++i) {
        ASSERT_EQ(done[i].result, int64_t{kBlock});
        ASSERT_EQ(block_in(done[i].tag), wanted[done[i].tag]);
        free_buffers.push_back(done[i].tag);
      }
    }
  }
}

}  // namespace
}  // namespace sluice::os
