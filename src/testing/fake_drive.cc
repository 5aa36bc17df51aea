#include "testing/fake_drive.h"

#include <algorithm>
#include <bit>
#include <cerrno>
#include <cstring>
#include <utility>

#include "base/check.h"

namespace sluice {
namespace {

/// Eight bytes for a buffer in flight: NaN as float16, bfloat16 and float32, but for the last two
/// bytes, which tell one read's poison from another's.
uint64_t poison_word(uint64_t number) {
  return ~uint64_t{0xffff} | (number & 0xffff);
}

void fill_with_poison(const os::ReadOp& op, uint64_t number) {
  const uint64_t word = poison_word(number);
  for (size_t i = 0; i < op.bytes; i += sizeof(word))
    std::memcpy(op.buffer + i, &word, sizeof(word));
}

bool holds_poison(const os::ReadOp& op, uint64_t number) {
  const uint64_t word = poison_word(number);
  for (size_t i = 0; i < op.bytes; i += sizeof(word)) {
    if (std::memcmp(op.buffer + i, &word, sizeof(word)) != 0) return false;
  }
  return true;
}

}  // namespace

FakeDrive::FakeDrive(FakeDriveOptions options, std::vector<std::vector<std::byte>> files)
    : options_(std::move(options)), files_(std::move(files)), order_random_(options_.seed) {
  CHECK(options_.depth_max >= 1 && options_.service_max >= 1);
  CHECK(std::has_single_bit(options_.alignment) && options_.alignment >= sizeof(uint64_t));
  for (const auto& file : files_) file_ends_.push_back(file.size());
}

/// The data of reads in flight still arrives: buffers that died too early are found out.
FakeDrive::~FakeDrive() {
  for (const uint64_t number : in_flight_) complete(number);
}

void FakeDrive::cut_file(uint32_t file, uint64_t bytes) {
  file_ends_.at(file) = std::min<uint64_t>(bytes, files_[file].size());
}

void FakeDrive::submit(std::span<const os::ReadOp> ops) {
  CHECK(ops.size() <= options_.depth_max - in_flight_.size());
  for (const os::ReadOp& op : ops) {
    const uint64_t number = log_.size();
    // Faults hang on the number of the read alone, not on when it was polled.
    Random random(options_.seed + (number + 1) * 0xd1342543de82ef95u);
    const FakeFault fault = draw_fault(number, random);
    const int64_t result = faulty_result(fault, readable_bytes(op), random);
    const uint64_t delay_ns =
        fault == FakeFault::delayed ? random.below(options_.delay_max_ns + 1) : 0;
    const uint64_t finished_ns = schedule(std::max<int64_t>(result, 0), delay_ns);
    if (result == -EINVAL)
      ++misaligned_count_;
    else
      fill_with_poison(op, number);
    idle_ns_ = idle_ns();
    busy_until_ns_ = std::max({busy_until_ns_, finished_ns, now_ns_});
    log_.push_back({op, fault, result, now_ns_, finished_ns});
    in_flight_.push_back(number);
  }
  if (options_.answers_together) put_off_answers();
}

/// What has not been answered yet waits for what was submitted behind it.
void FakeDrive::put_off_answers() {
  for (const uint64_t number : in_flight_)
    if (log_[number].finished_ns > now_ns_) log_[number].finished_ns = busy_until_ns_;
}

FakeFault FakeDrive::draw_fault(uint64_t number, Random& random) const {
  for (const auto& [planned_number, fault] : options_.planned)
    if (planned_number == number) return fault;
  const FakeFaultShares& s = options_.shares;
  const std::pair<double, FakeFault> table[] = {
      {s.short_aligned, FakeFault::short_aligned},
      {s.short_unaligned, FakeFault::short_unaligned},
      {s.end_of_file, FakeFault::end_of_file},
      {s.interrupted, FakeFault::interrupted},
      {s.busy, FakeFault::busy},
      {s.broken, FakeFault::broken},
      {s.delayed, FakeFault::delayed},
  };
  double left = random.uniform();
  for (const auto& [share, fault] : table) {
    if (left < share) return fault;
    left -= share;
  }
  return FakeFault::none;
}

/// What a drive without faults would answer.
int64_t FakeDrive::readable_bytes(const os::ReadOp& op) const {
  if (!is_aligned(op)) return -EINVAL;
  if (op.file >= files_.size()) return -EBADF;
  if (is_broken(op)) return -EIO;
  const uint64_t end = file_ends_[op.file];
  if (op.offset >= end) return 0;
  return static_cast<int64_t>(std::min<uint64_t>(op.bytes, end - op.offset));
}

bool FakeDrive::is_aligned(const os::ReadOp& op) const {
  const uint64_t bits = op.offset | op.bytes | reinterpret_cast<uintptr_t>(op.buffer);
  return bits % options_.alignment == 0;
}

bool FakeDrive::is_broken(const os::ReadOp& op) const {
  return std::any_of(broken_ranges_.begin(), broken_ranges_.end(), [&](const FileExtent& range) {
    return range.file == op.file && op.offset < range.end() && range.offset < op.offset + op.bytes;
  });
}

/// A read too small to be shortened is left whole.
int64_t FakeDrive::faulty_result(FakeFault fault, int64_t readable, Random& random) const {
  if (readable < 0) return readable;
  const auto bytes = static_cast<uint64_t>(readable);
  const uint64_t sector = options_.alignment;
  switch (fault) {
    case FakeFault::short_aligned: {
      const uint64_t sectors = (bytes + sector - 1) / sector;
      if (sectors < 2) return readable;
      return static_cast<int64_t>(sector * (1 + random.below(sectors - 1)));
    }
    case FakeFault::short_unaligned: {
      if (bytes < 2) return readable;
      const uint64_t fewer = 1 + random.below(bytes - 1);
      return static_cast<int64_t>(fewer % sector == 0 ? fewer - 1 : fewer);
    }
    case FakeFault::end_of_file:
      return 0;
    case FakeFault::interrupted:
      return -EINTR;
    case FakeFault::busy:
      return -EAGAIN;
    case FakeFault::broken:
      return -EIO;
    case FakeFault::none:
    case FakeFault::delayed:
      return readable;
  }
  return readable;
}

/// When the drive is done with a read submitted now.
uint64_t FakeDrive::schedule(int64_t transferred, uint64_t delay_ns) {
  uint64_t start_ns = now_ns_;
  if (places_.size() == options_.service_max) {
    start_ns = std::max(start_ns, places_.top());
    places_.pop();
  }
  uint64_t finished_ns = start_ns + options_.latency_ns;
  if (transferred > 0) {
    finished_ns = std::max(finished_ns, wire_free_ns_) +
                  static_cast<uint64_t>(static_cast<double>(transferred) / options_.bytes_per_ns);
    wire_free_ns_ = finished_ns;
  }
  finished_ns += delay_ns;
  places_.push(finished_ns);
  return finished_ns;
}

size_t FakeDrive::poll(std::span<os::ReadCompletion> done, bool wait) {
  CHECK(!wait || (!in_flight_.empty() && !done.empty()));
  const std::vector<uint64_t> finished = choose_finished(done.size(), wait);
  for (size_t i = 0; i < finished.size(); ++i) {
    done[i] = complete(finished[i]);
    std::erase(in_flight_, finished[i]);
  }
  if (finished.empty()) now_ns_ += options_.look_ns;
  return finished.size();
}

/// The reads that this poll returns, in order. Moves the clock to the next one if it must wait.
std::vector<uint64_t> FakeDrive::choose_finished(size_t count_max, bool wait) {
  const auto sooner = [this](uint64_t a, uint64_t b) {
    return log_[a].finished_ns < log_[b].finished_ns;
  };
  if (wait) {
    const auto next = std::min_element(in_flight_.begin(), in_flight_.end(), sooner);
    now_ns_ = std::max(now_ns_, log_[*next].finished_ns);
  }
  std::vector<uint64_t> finished;
  std::copy_if(in_flight_.begin(), in_flight_.end(), std::back_inserter(finished),
               [this](uint64_t number) { return log_[number].finished_ns <= now_ns_; });
  std::stable_sort(finished.begin(), finished.end(), sooner);
  if (options_.reorder && !finished.empty()) {
    for (size_t i = finished.size() - 1; i > 0; --i)
      std::swap(finished[i], finished[order_random_.below(i + 1)]);
    const size_t count_min = wait ? 1 : 0;
    finished.resize(count_min + order_random_.below(finished.size() - count_min + 1));
  }
  finished.resize(std::min(finished.size(), count_max));
  return finished;
}

/// Lets the data arrive.
os::ReadCompletion FakeDrive::complete(uint64_t number) {
  FakeRead& read = log_[number];
  read.returned_ns = now_ns_;
  if (read.result != -EINVAL && !holds_poison(read.op, number)) ++touched_count_;
  if (read.result > 0)
    std::memcpy(read.op.buffer, files_[read.op.file].data() + read.op.offset,
                static_cast<size_t>(read.result));
  return {read.op.tag, read.result};
}

}  // namespace sluice
