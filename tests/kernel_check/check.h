// What the kernel checks share: memory whose edges are watched, awkward numbers, and comparison
// with the reference to the last bit.
//
// Every check runs the reference and one entry of another table on the same input and compares the
// whole of two output buffers, margins and gaps included. Entries that a table takes over from a
// lower one are skipped by name, and so are instruction sets that this machine or build lacks.
// Inputs are allocated to the byte, so that a sanitizer sees a read past their end.
#pragma once

#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <new>
#include <span>
#include <string>
#include <vector>

#include "base/random.h"
#include "kernels/kernels.h"

namespace sluice::kernels::check {

/// Uninitialised bytes that start `offset` bytes past a 64-byte boundary and end where they end.
class Bytes {
 public:
  explicit Bytes(size_t size, size_t offset = 0);

  std::byte* data() { return storage_.get() + offset_; }
  const std::byte* data() const { return storage_.get() + offset_; }
  size_t size() const { return size_; }
  template <class Element>
  Element* as() {
    return reinterpret_cast<Element*>(data());
  }

 private:
  struct Delete {
    void operator()(std::byte* memory) const { ::operator delete (memory, std::align_val_t{64}); }
  };
  std::unique_ptr<std::byte[], Delete> storage_;
  size_t offset_;
  size_t size_;
};

/// An output of floats inside margins, everything preset to a pattern (or to a given content).
class Output {
 public:
  explicit Output(size_t count, size_t offset_floats = 0);
  explicit Output(std::span<const float> content, size_t offset_floats = 0);

  float* data() { return all_.data() + kMargin + offset_; }
  std::span<const float> with_margins() const { return all_; }

 private:
  static constexpr size_t kMargin = 32;
  size_t offset_;
  std::vector<float> all_;
};

/// Bit equality, except that any NaN equals any NaN: which payload survives is not defined.
/// Reports the first difference.
void expect_same(std::span<const float> got, std::span<const float> wanted);
void expect_same(const Output& got, const Output& wanted);
void expect_same_bytes(const Bytes& got, const Bytes& wanted);

/// Families of floats. `edges` are zeros, subnormals, extremes, the edges of binary16 and of exp's
/// range; `broken` is ordinary but for one in eight that is infinite or NaN.
enum class FloatKind { ordinary, tiny, huge, zeros, edges, broken };
inline constexpr FloatKind kFloatKinds[] = {FloatKind::ordinary, FloatKind::tiny,
                                            FloatKind::huge,     FloatKind::zeros,
                                            FloatKind::edges,    FloatKind::broken};
const char* name_of(FloatKind kind);
std::vector<float> make_floats(FloatKind kind, size_t count, Random& random);
float make_float(FloatKind kind, Random& random);

/// The instruction sets to compare with the reference, whether or not this machine has them.
inline constexpr Isa kComparedIsas[] = {Isa::avx2, Isa::avx512, Isa::neon, Isa::i8mm};

/// Whether a long sweep takes its case number `turn`: always, but under an emulator, where all
/// cases would take minutes, only one of `stride`. A stride without a common factor with the
/// lengths of a sweep's lists still brings every value of each.
inline bool takes_turn(size_t turn, size_t stride) {
  constexpr bool kEmulated = SLUICE_EMULATED;  // of the build: tests/CMakeLists.txt
  return !kEmulated || turn % stride == 0;
}

/// Empty when the entry is an implementation of its own that this machine can run; else the reason
/// to skip. `entry(table)` returns the entry's function pointer.
template <class Entry>
std::string reason_to_skip(Isa isa, Entry entry) {
  const std::string name(isa_name(isa));
  bool usable = false;
  for (const Isa candidate : usable_isas()) usable = usable || candidate == isa;
  if (!usable) return "this machine or build lacks " + name;
  for (const Isa lower : usable_isas()) {
    if (lower == isa) break;
    if (entry(kernel_table(lower)) == entry(kernel_table(isa)))
      return name + " takes this entry from " + std::string(isa_name(lower));
  }
  return "";
}

}  // namespace sluice::kernels::check
