// A reader that shows every read to an observer, on its way down and on its way back, and is
// otherwise the reader beneath it. For tests only; one thread at a time, the observer included.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

#include "os/async_read.h"

namespace sluice {

class ReadObserver {
 public:
  virtual ~ReadObserver() = default;
  virtual void on_submit(const os::ReadOp& op) = 0;
  virtual void on_return(const os::ReadCompletion& done) = 0;
};

class WatchedReader final : public os::AsyncReader {
 public:
  /// Both must outlive it.
  WatchedReader(os::AsyncReader& reader, ReadObserver& observer)
      : reader_(reader), observer_(observer) {}

  std::string_view name() const override { return reader_.name(); }
  size_t depth_max() const override { return reader_.depth_max(); }
  uint64_t now_ns() const override { return reader_.now_ns(); }

  void submit(std::span<const os::ReadOp> ops) override {
    for (const os::ReadOp& op : ops) observer_.on_submit(op);
    reader_.submit(ops);
  }

  size_t poll(std::span<os::ReadCompletion> done, bool wait) override {
    const size_t count = reader_.poll(done, wait);
    for (const os::ReadCompletion& one : done.first(count)) observer_.on_return(one);
    return count;
  }

 private:
  os::AsyncReader& reader_;
  ReadObserver& observer_;
};

}  // namespace sluice
