// Builds the table of each ISA that this build contains. Compiled without any ISA's flags: this is
// the code that decides whether such instructions may run at all.
#include "base/check.h"
#include "kernels/kernels.h"
#include "os/cpu.h"

namespace sluice::kernels {

namespace ref {
void fill(KernelTable& table);
}
#if SLUICE_HAVE_AVX2
namespace avx2 {
void fill(KernelTable& table);
}
#endif
#if SLUICE_HAVE_AVX512
namespace avx512 {
void fill(KernelTable& table);
}
#endif
#if SLUICE_HAVE_NEON
namespace neon {
void fill(KernelTable& table);
}
#endif
#if SLUICE_HAVE_I8MM
namespace i8mm {
void fill(KernelTable& table);
}
#endif

namespace {

struct IsaRow {
  Isa isa;
  std::string_view name;
  void (*fill)(KernelTable&);  ///< null: this build lacks it
  bool (*runs_on)(const os::CpuFeatures&);
};

constexpr IsaRow kRows[] = {
    // worst first: a table is filled by its own row and all above it
    {Isa::ref, "ref", ref::fill, [](const os::CpuFeatures&) { return true; }},
#if SLUICE_HAVE_AVX2
    {Isa::avx2, "avx2", avx2::fill, [](const os::CpuFeatures& cpu) { return cpu.avx2_fma_f16c; }},
#else
    {Isa::avx2, "avx2", nullptr, nullptr},
#endif
#if SLUICE_HAVE_AVX512
    {Isa::avx512, "avx512", avx512::fill, [](const os::CpuFeatures& cpu) { return cpu.avx512; }},
#else
    {Isa::avx512, "avx512", nullptr, nullptr},
#endif
#if SLUICE_HAVE_NEON
    {Isa::neon, "neon", neon::fill, [](const os::CpuFeatures& cpu) { return cpu.neon_dot; }},
#else
    {Isa::neon, "neon", nullptr, nullptr},
#endif
#if SLUICE_HAVE_I8MM
    {Isa::i8mm, "i8mm", i8mm::fill, [](const os::CpuFeatures& cpu) { return cpu.neon_i8mm; }},
#else
    {Isa::i8mm, "i8mm", nullptr, nullptr},
#endif
};
constexpr size_t kIsaCount = std::size(kRows);

struct Selection {
  KernelTable tables[kIsaCount];
  std::vector<Isa> usable;

  Selection() {
    const os::CpuFeatures cpu = os::cpu_features();
    KernelTable table;
    for (const IsaRow& row : kRows) {
      if (row.fill == nullptr || !row.runs_on(cpu)) continue;
      row.fill(table);
      table.isa = row.isa;
      tables[static_cast<size_t>(row.isa)] = table;
      usable.push_back(row.isa);
    }
  }
};

const Selection& selection() {
  static const Selection instance;
  return instance;
}

}  // namespace

std::string_view isa_name(Isa isa) {
  return kRows[static_cast<size_t>(isa)].name;
}

std::optional<Isa> isa_by_name(std::string_view name) {
  for (const IsaRow& row : kRows)
    if (row.name == name) return row.isa;
  return std::nullopt;
}

std::vector<Isa> usable_isas() {
  return selection().usable;
}

const KernelTable& kernel_table(Isa isa) {
  for (const Isa usable : selection().usable)
    if (usable == isa) return selection().tables[static_cast<size_t>(isa)];
  check_failed("kernel_table: this machine or this build lacks the ISA", __FILE__, __LINE__);
}

}  // namespace sluice::kernels
