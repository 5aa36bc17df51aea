#include "os/async_read.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>

#include <atomic>
#include <chrono>
#include <cstring>
#include <map>
#include <thread>

#include "base/random.h"
#include "base/units.h"
#include "os/arena.h"
#include "testing/temp_folder.h"

namespace sluice::os {
namespace {

using ::testing::HasSubstr;

constexpr size_t kDepth = 16;
constexpr uint64_t kBlock = 4096;
constexpr uint64_t kBufferBytes = 32 * kBlock;

std::vector<std::byte> random_bytes(size_t count, uint64_t seed) {
  Random random(seed);
  std::vector<std::byte> bytes(count);
  for (std::byte& b : bytes) b = static_cast<std::byte>(random.next());
  return bytes;
}

struct Way {
  ReaderKind kind;
  DirectMode direct;
};

std::string way_name(const ::testing::TestParamInfo<Way>& way) {
  return std::string(way.param.kind == ReaderKind::uring ? "Uring" : "Threads") +
         (way.param.direct == DirectMode::off ? "Buffered" : "Direct");
}

// Every kind of reader, on files opened either way, must pass the same tests.
class AsyncReadTest : public ::testing::TestWithParam<Way> {
 protected:
  void SetUp() override {
    for (size_t i = 0; i < contents_.size(); ++i) {
      auto file = File::open(folder_.write(std::to_string(i), contents_[i]), GetParam().direct);
      ASSERT_TRUE(file.ok()) << file.error().message;
      files_.push_back(std::move(*file));
    }
    make_reader(kDepth);
  }

  void make_reader(size_t depth_max) {
    reader_.reset();
    std::vector<const File*> files;
    for (const File& file : files_) files.push_back(&file);
    std::string refusal;
    const ReaderOptions options{.kind = GetParam().kind, .depth_max = depth_max, .thread_count = 3};
    auto reader = make_async_reader(files, options, &refusal);
    if (!refusal.empty()) GTEST_SKIP() << "io_uring: " << refusal;
    ASSERT_TRUE(reader.ok()) << reader.error().message;
    reader_ = std::move(*reader);
  }

  std::byte* buffer(size_t index) { return buffers_.begin() + index * kBufferBytes; }

  /// What a read should bring: the window, cut at the end of the file.
  std::span<const std::byte> expected(const ReadOp& op) const {
    const auto& file = contents_[op.file];
    if (op.offset >= file.size()) return {};
    return std::span(file).subspan(op.offset, std::min<size_t>(op.bytes, file.size() - op.offset));
  }

  void expect_result(const ReadOp& op, int64_t result) const {
    const auto wanted = expected(op);
    ASSERT_EQ(result, static_cast<int64_t>(wanted.size())) << op.file << " at " << op.offset;
    if (wanted.empty()) return;
    ASSERT_EQ(std::memcmp(op.buffer, wanted.data(), wanted.size()), 0);
  }

  /// One read, start to end.
  int64_t read_alone(const ReadOp& op) {
    reader_->submit({&op, 1});
    ReadCompletion done = {};
    EXPECT_EQ(reader_->poll({&done, 1}, true), 1u);
    EXPECT_EQ(done.tag, op.tag);
    return done.result;
  }

  void read_random_windows(int round_count, uint64_t seed);

  // The lengths: many blocks and a piece, whole blocks, less than a block.
  const std::vector<std::vector<std::byte>> contents_ = {
      random_bytes(700'001, 1), random_bytes(64 * kBlock, 2), random_bytes(100, 3)};
  TempFolder folder_{"."};
  std::vector<File> files_;
  Arena buffers_ = *Arena::allocate(kDepth * kBufferBytes, "a test");
  std::unique_ptr<AsyncReader> reader_;
};

INSTANTIATE_TEST_SUITE_P(Ways, AsyncReadTest,
                         ::testing::Values(Way{ReaderKind::uring, DirectMode::auto_detect},
                                           Way{ReaderKind::uring, DirectMode::off},
                                           Way{ReaderKind::threads, DirectMode::auto_detect},
                                           Way{ReaderKind::threads, DirectMode::off}),
                         way_name);

/// Keeps a changing number of reads in flight; submits and polls in batches of random size.
void AsyncReadTest::read_random_windows(int round_count, uint64_t seed) {
  Random random(seed);
  std::map<uint64_t, ReadOp> in_flight;  // by tag
  std::vector<size_t> free_buffers;
  for (size_t i = 0; i < kDepth; ++i) free_buffers.push_back(i);
  uint64_t tag = uint64_t{1} << 63;  // All 64 bits come back.
  for (int round = 0; round < round_count || !in_flight.empty(); ++round) {
    std::vector<ReadOp> ops;
    const size_t batch = round < round_count ? random.below(free_buffers.size() + 1) : 0;
    for (size_t i = 0; i < batch; ++i) {
      const auto file = static_cast<uint32_t>(random.below(files_.size()));
      const uint64_t alignment = files_[file].alignment();
      const uint64_t block_count = contents_[file].size() / alignment + 2;
      const ReadOp op{
          .file = file,
          .offset = random.below(block_count) * alignment,
          .buffer = buffer(free_buffers.back()),
          .bytes = static_cast<uint32_t>(alignment * (1 + random.below(kBufferBytes / alignment))),
          .tag = ++tag,
          .urgency = random.below(2) == 0 ? Urgency::demand : Urgency::background};
      free_buffers.pop_back();
      std::memset(op.buffer, 0xcc, op.bytes);
      ops.push_back(op);
      in_flight.emplace(op.tag, op);
    }
    reader_->submit(ops);
    std::vector<ReadCompletion> done(1 + random.below(kDepth));
    const bool wait = !in_flight.empty() && random.below(2) == 0;
    const size_t count = reader_->poll(done, wait);
    ASSERT_GE(count, wait ? 1u : 0u);
    for (size_t i = 0; i < count; ++i) {
      const auto found = in_flight.find(done[i].tag);
      ASSERT_NE(found, in_flight.end()) << "a tag twice, or one never given";
      const ReadOp op = found->second;
      ASSERT_NO_FATAL_FAILURE(expect_result(op, done[i].result));
      in_flight.erase(found);
      free_buffers.push_back(static_cast<size_t>(op.buffer - buffers_.begin()) / kBufferBytes);
    }
  }
}

TEST_P(AsyncReadTest, RandomWindowsEqualTheFiles) {
  read_random_windows(400, 42);
}

TEST_P(AsyncReadTest, AnsweringSignalsLosesNothing) {
  struct sigaction action = {}, before = {};
  action.sa_handler = [](int) {};  // Without SA_RESTART: system calls do come back with EINTR.
  ASSERT_EQ(sigaction(SIGUSR1, &action, &before), 0);
  std::atomic<bool> stop{false};
  const pthread_t target = pthread_self();
  std::thread sender([&] {
    while (!stop) {
      pthread_kill(target, SIGUSR1);
      kill(getpid(), SIGUSR1);
      std::this_thread::sleep_for(std::chrono::microseconds(50));
    }
  });
  read_random_windows(200, 43);
  stop = true;
  sender.join();
  sigaction(SIGUSR1, &before, nullptr);
}

TEST_P(AsyncReadTest, EndOfFileShortensAReadAndPastItThereIsNothing) {
  const uint64_t last = round_down(contents_[0].size(), kBlock);
  EXPECT_EQ(
      read_alone({.file = 0, .offset = last, .buffer = buffer(0), .bytes = 2 * kBlock, .tag = 1}),
      static_cast<int64_t>(contents_[0].size() - last));
  EXPECT_EQ(read_alone(
                {.file = 1, .offset = 64 * kBlock, .buffer = buffer(0), .bytes = kBlock, .tag = 2}),
            0);
  EXPECT_EQ(
      read_alone(
          {.file = 1, .offset = uint64_t{1} << 50, .buffer = buffer(0), .bytes = kBlock, .tag = 3}),
      0);
}

TEST_P(AsyncReadTest, WhatCannotBeReadCompletesWithAnError) {
  const auto read = [&](uint32_t file, uint64_t offset) {
    return read_alone(
        {.file = file, .offset = offset, .buffer = buffer(0), .bytes = kBlock, .tag = 9});
  };
  EXPECT_EQ(read(3, 0), -EBADF);
  EXPECT_EQ(read(UINT32_MAX, 0), -EBADF);
  EXPECT_EQ(read(0, uint64_t{1} << 63), -EINVAL);
  EXPECT_EQ(read(0, UINT64_MAX), -EINVAL);  // For io_uring this would mean "where the file stands".
  // Good reads go on after bad ones.
  EXPECT_EQ(read(0, kBlock), int64_t{kBlock});
}

TEST_P(AsyncReadTest, GoodAndBadReadsMixInOneBatch) {
  const std::vector<ReadOp> ops = {
      {.file = 0, .offset = 0, .buffer = buffer(0), .bytes = kBlock, .tag = 0},
      {.file = 7, .offset = 0, .buffer = buffer(1), .bytes = kBlock, .tag = 1},
      {.file = 1, .offset = kBlock, .buffer = buffer(2), .bytes = kBlock, .tag = 2}};
  reader_->submit(ops);
  std::map<uint64_t, int64_t> results;
  while (results.size() < ops.size()) {
    ReadCompletion done = {};
    ASSERT_EQ(reader_->poll({&done, 1}, true), 1u);
    results[done.tag] = done.result;
  }
  EXPECT_EQ(results[1], -EBADF);
  expect_result(ops[0], results[0]);
  expect_result(ops[2], results[2]);
  ReadCompletion none = {};
  EXPECT_EQ(reader_->poll({&none, 1}, false), 0u);
}

TEST_P(AsyncReadTest, AClosedFileIsABadOne) {
  const File taken = std::move(files_[1]);
  ASSERT_NO_FATAL_FAILURE(make_reader(kDepth));
  EXPECT_EQ(read_alone({.file = 1, .offset = 0, .buffer = buffer(0), .bytes = kBlock, .tag = 5}),
            -EBADF);
  EXPECT_EQ(read_alone({.file = 0, .offset = 0, .buffer = buffer(0), .bytes = kBlock, .tag = 6}),
            int64_t{kBlock});
}

TEST_P(AsyncReadTest, HoldsAsManyAsItSays) {
  for (const size_t depth : {size_t{1}, size_t{5}, kDepth}) {
    ASSERT_NO_FATAL_FAILURE(make_reader(depth));
    ASSERT_EQ(reader_->depth_max(), depth);
    for (int round = 0; round < 3; ++round) {
      std::vector<ReadOp> ops;
      for (size_t i = 0; i < depth; ++i)
        ops.push_back(
            {.file = 1, .offset = i * kBlock, .buffer = buffer(i), .bytes = kBlock, .tag = i});
      reader_->submit(ops);
      std::vector<ReadCompletion> done(depth);
      size_t count = 0;
      while (count < depth) count += reader_->poll(std::span(done).subspan(count), true);
      for (const ReadCompletion& one : done) expect_result(ops[one.tag], one.result);
    }
  }
}

using AsyncReadDeathTest = AsyncReadTest;
INSTANTIATE_TEST_SUITE_P(Ways, AsyncReadDeathTest,
                         ::testing::Values(Way{ReaderKind::uring, DirectMode::off},
                                           Way{ReaderKind::threads, DirectMode::off}),
                         way_name);

TEST_P(AsyncReadDeathTest, MoreThanTheDepthIsOurMistake) {
  reader_.reset();  // The child makes its own: it inherits no threads.
  const std::vector<ReadOp> ops(
      kDepth + 1, ReadOp{.file = 0, .offset = 0, .buffer = buffer(0), .bytes = kBlock, .tag = 0});
  const auto submit_too_many = [&] {
    make_reader(kDepth);
    reader_->submit(ops);
  };
  EXPECT_DEATH(submit_too_many(), "check failed");
  const auto wait_for_nothing = [&] {
    make_reader(kDepth);
    ReadCompletion done = {};
    reader_->poll({&done, 1}, true);
  };
  EXPECT_DEATH(wait_for_nothing(), "check failed");
}

TEST_P(AsyncReadTest, NothingIsWrittenAfterTheReaderIsGone) {
  for (int round = 0; round < 20; ++round) {
    ASSERT_NO_FATAL_FAILURE(make_reader(kDepth));
    std::vector<ReadOp> ops;
    for (size_t i = 0; i < kDepth; ++i)
      ops.push_back({.file = 0,
                     .offset = i * kBlock,
                     .buffer = buffer(i),
                     .bytes = static_cast<uint32_t>(kBufferBytes),
                     .tag = i});
    reader_->submit(ops);
    reader_.reset();
    std::memset(buffers_.begin(), 0xdd, buffers_.bytes());
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
    const std::byte* end = buffers_.begin() + buffers_.bytes();
    ASSERT_EQ(std::find_if(buffers_.begin(), const_cast<std::byte*>(end),
                           [](std::byte b) { return b != std::byte{0xdd}; }),
              end);
  }
}

// What follows takes something away from the process and so runs in a child of its own, which ends
// with 0 when all was right.

/// From now on the system call fails with this errno, as the rules of a container may have it.
void forbid_system_call(long number, int reason) {
  const auto call = static_cast<unsigned>(number);
  const unsigned refuse = SECCOMP_RET_ERRNO | static_cast<unsigned>(reason);
  sock_filter program[] = {
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr)),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, call, 0, 1),
      BPF_STMT(BPF_RET | BPF_K, refuse),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
  };
  const sock_fprog filter{.len = 4, .filter = program};
  prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
  if (prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &filter) != 0) std::exit(77);
}

/// A small file and the reads of its first block by whatever reader can be made.
struct Small {
  TempFolder folder{"."};
  std::vector<std::byte> contents = random_bytes(3 * kBlock, 4);
  File file = *File::open(folder.write("f", contents), DirectMode::auto_detect);
  const File* files[1] = {&file};
  Arena buffer = *Arena::allocate(kBlock, "a test");

  int64_t read(AsyncReader& reader) {
    const ReadOp op{
        .file = 0, .offset = kBlock, .buffer = buffer.begin(), .bytes = kBlock, .tag = 3};
    reader.submit({&op, 1});
    ReadCompletion done = {};
    reader.poll({&done, 1}, true);
    if (done.result == int64_t{kBlock} &&
        std::memcmp(buffer.begin(), contents.data() + kBlock, kBlock) != 0)
      return 0;
    return done.result;
  }
};

bool uring_works() {
  std::string refusal;
  return make_async_reader({}, {.kind = ReaderKind::uring}, &refusal).ok();
}

int fall_back(int reason, const char* words) {
  Small small;
  forbid_system_call(__NR_io_uring_setup, reason);
  std::string refusal;
  auto reader = make_async_reader(small.files, {}, &refusal);
  const bool right = reader.ok() && (*reader)->name() == "threads" &&
                     refusal.find(words) != std::string::npos &&
                     small.read(**reader) == int64_t{kBlock};
  const auto insisted = make_async_reader(small.files, {.kind = ReaderKind::uring}, nullptr);
  const bool refused = !insisted.ok() && insisted.error().message == "io_uring: " + refusal;
  std::fprintf(stderr, "refusal: %s\n", refusal.c_str());
  return right && refused ? 0 : 1;
}

TEST(AsyncReadSystemDeathTest, ThreadsTakeOverWhereUringIsRefused) {
  EXPECT_EXIT(std::exit(fall_back(EPERM, "forbidden")), ::testing::ExitedWithCode(0), "");
  EXPECT_EXIT(std::exit(fall_back(ENOSYS, "kernel has none")), ::testing::ExitedWithCode(0), "");
  EXPECT_EXIT(std::exit(fall_back(ENOMEM, "lockable memory")), ::testing::ExitedWithCode(0), "");
  EXPECT_EXIT(std::exit(fall_back(EMFILE, "open files")), ::testing::ExitedWithCode(0), "");
}

int refuse_the_first_round() {
  Small small;
  forbid_system_call(__NR_io_uring_enter, EACCES);
  std::string refusal;
  auto reader = make_async_reader(small.files, {}, &refusal);
  return reader.ok() && (*reader)->name() == "threads" && !refusal.empty() ? 0 : 1;
}

TEST(AsyncReadSystemDeathTest, UringThatOnlySetsUpIsNotTaken) {
  EXPECT_EXIT(std::exit(refuse_the_first_round()), ::testing::ExitedWithCode(0), "");
}

int break_later() {
  Small small;
  auto reader = make_async_reader(small.files, {.kind = ReaderKind::uring}, nullptr);
  if (!reader.ok() || small.read(**reader) != int64_t{kBlock}) return 1;
  forbid_system_call(__NR_io_uring_enter, EACCES);
  const int64_t first = small.read(**reader);
  const int64_t second = small.read(**reader);
  reader->reset();
  return first == -EACCES && second == -EACCES ? 0 : 2;
}

TEST(AsyncReadSystemDeathTest, AUringThatBreaksFailsItsReads) {
  if (!uring_works()) GTEST_SKIP() << "no io_uring here";
  EXPECT_EXIT(std::exit(break_later()), ::testing::ExitedWithCode(0), "");
}

int read_without_descriptors() {
  Small small;
  rlimit before = {};
  getrlimit(RLIMIT_NOFILE, &before);
  const rlimit none{0, before.rlim_max};
  setrlimit(RLIMIT_NOFILE, &none);
  std::string refusal;
  auto reader = make_async_reader(small.files, {}, &refusal);
  const bool right = reader.ok() && small.read(**reader) == int64_t{kBlock};
  setrlimit(RLIMIT_NOFILE, &before);
  return right ? 0 : 1;
}

TEST(AsyncReadSystemDeathTest, ThreadsShareTheFileWhereDescriptorsRunOut) {
  EXPECT_EXIT(std::exit(read_without_descriptors()), ::testing::ExitedWithCode(0), "");
}

TEST(AsyncRead, AutoSelectTakesUringWhereItWorks) {
  std::string refusal = "left from before";
  const auto reader = make_async_reader({}, {}, &refusal);
  ASSERT_TRUE(reader.ok()) << reader.error().message;
  EXPECT_EQ((*reader)->name(), uring_works() ? "uring" : "threads");
  EXPECT_EQ(refusal.empty(), uring_works());
}

}  // namespace
}  // namespace sluice::os
