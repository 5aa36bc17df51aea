#include <charconv>
#include <string>
#include <string_view>

#include "base/units.h"
#include "os/cgroup.h"
#include "os/file.h"
#include "os/memory.h"

namespace sluice::os {
namespace {

/// The value of a line "Name:   1234 kB" in bytes; 0 where the file or the line is missing.
uint64_t kilobytes_line(const std::string& path, std::string_view name) {
  const auto text = read_text_file(path, kMiB);
  if (!text.ok()) return 0;
  const std::string wanted = fmt::format("\n{}:", name);
  const std::string lines = "\n" + *text;
  const size_t found = lines.find(wanted);
  if (found == std::string::npos) return 0;
  const size_t digits = lines.find_first_not_of(" \t", found + wanted.size());
  if (digits == std::string::npos) return 0;
  uint64_t kilobytes = 0;
  std::from_chars(lines.data() + digits, lines.data() + lines.size(), kilobytes);
  return kilobytes * kKiB;
}

}  // namespace

MemoryState memory_state() {
  return memory_state_under("/");
}

MemoryState memory_state_under(const char* root) {
  const std::string meminfo = std::string(root) + "/proc/meminfo";
  const CgroupMemory cgroup = cgroup_memory(root);
  return {.total_bytes = kilobytes_line(meminfo, "MemTotal"),
          .available_bytes = kilobytes_line(meminfo, "MemAvailable"),
          .cgroup_left_bytes = cgroup.left_bytes,
          .cgroup_limit_bytes = cgroup.limit_bytes};
}

uint64_t resident_bytes() {
  return kilobytes_line("/proc/self/status", "VmRSS");
}

uint64_t resident_peak_bytes() {
  return kilobytes_line("/proc/self/status", "VmHWM");
}

}  // namespace sluice::os
