#include "os/memory_pressure.h"

#include <fcntl.h>
#include <linux/magic.h>
#include <poll.h>
#include <sys/vfs.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <optional>
#include <string_view>
#include <utility>

#include "os/cgroup.h"
#include "os/descriptor_linux.h"

namespace sluice::os {
namespace {

/// 100 ms of 2 s. Windows of whole multiples of 2 s are open to every user (from Linux 6.4 on);
/// others, and older kernels, want privileges.
constexpr std::string_view kTrigger("some 100000 2000000\0", 20);
constexpr double kTriggerShare = 0.1 / 2.0;
static_assert(kTriggerShare == MemoryPressure::kStallShare);

/// Files of the kernel understand a trigger; to any other it would be text that is written into it.
bool is_kernel_file(int descriptor) {
  struct statfs facts = {};
  if (fstatfs(descriptor, &facts) != 0) return false;
  const auto kind = static_cast<unsigned long>(facts.f_type);
  return kind == PROC_SUPER_MAGIC || kind == CGROUP2_SUPER_MAGIC;
}

/// The total of "some avg10=0.00 avg60=0.00 avg300=0.00 total=10607607", in microseconds.
std::optional<uint64_t> parse_total(std::string_view text) {
  constexpr std::string_view kName = "total=";
  if (!text.starts_with("some ")) return std::nullopt;
  const std::string_view line = text.substr(0, text.find('\n'));
  const size_t found = line.find(kName);
  if (found == std::string_view::npos) return std::nullopt;
  uint64_t total = 0;
  const char* digits = line.data() + found + kName.size();
  const auto [end, status] = std::from_chars(digits, line.data() + line.size(), total);
  return status == std::errc{} ? std::optional(total) : std::nullopt;
}

std::optional<uint64_t> read_total(int descriptor) {
  std::byte text[512];
  const int64_t count = read_once(descriptor, text, sizeof(text), 0);
  if (count <= 0) return std::nullopt;
  return parse_total({reinterpret_cast<const char*>(text), static_cast<size_t>(count)});
}

}  // namespace

MemoryPressure::MemoryPressure(const std::string& root) {
  if (const auto folder = cgroup_v2_folder(root);
      folder && open_source(*folder + "/memory.pressure"))
    source_ = PressureSource::control_group;
  else if (open_source(root + "/proc/pressure/memory"))
    source_ = PressureSource::machine;
}

MemoryPressure::MemoryPressure(MemoryPressure&& other) noexcept
    : source_(std::exchange(other.source_, PressureSource::none)),
      has_trigger_(other.has_trigger_),
      descriptor_(std::exchange(other.descriptor_, -1)),
      read_ns_(other.read_ns_),
      stall_us_(other.stall_us_) {}

MemoryPressure::~MemoryPressure() {
  close_source();
}

bool MemoryPressure::open_source(const std::string& path) {
  descriptor_ = ::open(path.c_str(), O_RDWR | O_NONBLOCK | O_CLOEXEC);
  has_trigger_ = descriptor_ >= 0 && is_kernel_file(descriptor_) &&
                 ::write(descriptor_, kTrigger.data(), kTrigger.size()) > 0;
  if (has_trigger_) return true;
  close_source();
  descriptor_ = ::open(path.c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC);
  // A kernel without pressure information has the file all the same, and refuses to read it.
  if (descriptor_ >= 0 && read_total(descriptor_)) return true;
  close_source();
  return false;
}

void MemoryPressure::close_source() {
  if (descriptor_ >= 0) ::close(descriptor_);
  descriptor_ = -1;
  source_ = PressureSource::none;
}

bool MemoryPressure::is_pressed(uint64_t now_ns) {
  if (source_ == PressureSource::none) return false;
  return has_trigger_ ? was_triggered() : has_stalled(now_ns);
}

bool MemoryPressure::was_triggered() {
  pollfd question = {.fd = descriptor_, .events = POLLPRI, .revents = 0};
  if (::poll(&question, 1, 0) <= 0) return false;
  // The group has gone; nobody will tell any more.
  if ((question.revents & POLLERR) != 0) close_source();
  return (question.revents & POLLPRI) != 0 && (question.revents & POLLERR) == 0;
}

bool MemoryPressure::has_stalled(uint64_t now_ns) {
  if (read_ns_ != 0 && now_ns - read_ns_ < kReadInterval_ns) return false;
  const auto total = read_total(descriptor_);
  if (!total) {
    close_source();
    return false;
  }
  const double stalled_ns = 1e3 * static_cast<double>(*total - std::min(*total, stall_us_));
  const double passed_ns = static_cast<double>(now_ns - read_ns_);
  const bool first = std::exchange(read_ns_, now_ns) == 0;
  stall_us_ = *total;
  return !first && stalled_ns >= kStallShare * passed_ns;
}

}  // namespace sluice::os
