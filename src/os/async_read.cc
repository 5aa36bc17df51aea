#include "os/async_read.h"

#include "os/async_read_kinds.h"
#include "os/clock.h"

namespace sluice::os {

uint64_t AsyncReader::now_ns() const {
  return os::now_ns();
}

Result<std::unique_ptr<AsyncReader>> make_async_reader(std::span<const File* const> files,
                                                       const ReaderOptions& options,
                                                       std::string* uring_refusal) {
  CHECK(options.depth_max >= 1 && options.thread_count >= 1);
  if (uring_refusal != nullptr) uring_refusal->clear();
  if (options.kind != ReaderKind::threads) {
    auto reader = make_uring_reader(files, options.depth_max);
    if (reader.ok()) return reader;
    if (uring_refusal != nullptr) *uring_refusal = reader.error().message;
    if (options.kind == ReaderKind::uring) return reader.error().at("io_uring");
  }
  return make_thread_reader(files, options.depth_max, options.thread_count);
}

}  // namespace sluice::os
