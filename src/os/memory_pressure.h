// Whether the system is short of memory, as the kernel itself feels it: the time that tasks stand
// still because memory must be reclaimed first (Linux: pressure stall information). It tells what
// no amount of free memory tells, for that is always small. The process's own control group is
// asked where there is one, else the machine; elsewhere there is no source and never any pressure.
//
// Where the kernel allows it, it is told once what counts as pressure and looked at without a read
// (a trigger); else the counter is read, twice a second at most. Asking never blocks and does not
// allocate. One thread at a time.
#pragma once

#include <cstdint>
#include <string>

namespace sluice::os {

enum class PressureSource : uint8_t { none, control_group, machine };

class MemoryPressure {
 public:
  /// Tasks stood still for 5 % of the time.
  static constexpr double kStallShare = 0.05;
  static constexpr uint64_t kReadInterval_ns = 500'000'000;

  /// `root` stands for "/" in tests.
  explicit MemoryPressure(const std::string& root = "/");
  MemoryPressure(MemoryPressure&& other) noexcept;
  MemoryPressure& operator=(MemoryPressure&&) = delete;
  ~MemoryPressure();

  PressureSource source() const { return source_; }
  bool has_trigger() const { return has_trigger_; }

  /// Whether memory was short since the last time this could be told. `now_ns` is os::now_ns().
  bool is_pressed(uint64_t now_ns);

 private:
  bool open_source(const std::string& path);
  bool was_triggered();
  bool has_stalled(uint64_t now_ns);
  void close_source();

  PressureSource source_ = PressureSource::none;
  bool has_trigger_ = false;
  int descriptor_ = -1;
  uint64_t read_ns_ = 0;   ///< when the counter was last read; 0: never
  uint64_t stall_us_ = 0;  ///< what it said
};

}  // namespace sluice::os
