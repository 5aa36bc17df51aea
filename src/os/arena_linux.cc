#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <iterator>
#include <limits>
#include <utility>

#include "base/units.h"
#include "os/arena.h"

namespace sluice::os {
namespace {

constexpr uint64_t kHugePageBytes = 2 * kMiB;

/// Fresh zeroed pages, or null with errno set.
std::byte* map_pages(uint64_t bytes) {
  void* place = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  return place == MAP_FAILED ? nullptr : static_cast<std::byte*>(place);
}

/// The same, beginning on a huge page: maps one huge page too many and gives back what sticks out
/// at both ends. Huge pages are a wish; where the system has none, small ones do.
std::byte* map_huge_pages(uint64_t bytes) {
  std::byte* mapped = map_pages(bytes + kHugePageBytes);
  if (mapped == nullptr) return nullptr;
  const auto address = reinterpret_cast<uintptr_t>(mapped);
  const uint64_t before = round_up(address, kHugePageBytes) - address;
  const uint64_t after = kHugePageBytes - before;
  std::byte* begin = mapped + before;
  if (before > 0) munmap(mapped, before);
  if (after > 0) munmap(begin + bytes, after);
  madvise(begin, bytes, MADV_HUGEPAGE);
  return begin;
}

}  // namespace

uint64_t page_bytes() {
  return static_cast<uint64_t>(sysconf(_SC_PAGESIZE));
}

Result<Arena> Arena::allocate(uint64_t bytes, std::string_view what) {
  Arena arena;
  if (bytes == 0) return arena;
  const bool huge = bytes >= kHugePageBytes;
  const uint64_t granule = huge ? kHugePageBytes : page_bytes();
  if (bytes <= std::numeric_limits<uint64_t>::max() - 2 * granule) {
    arena.bytes_ = round_up(bytes, granule);
    arena.begin_ = huge ? map_huge_pages(arena.bytes_) : map_pages(arena.bytes_);
  } else {
    errno = ENOMEM;
  }
  if (arena.begin_ == nullptr)
    return make_error(ErrorKind::memory, "cannot allocate {} for {}: {}", format_bytes(bytes), what,
                      std::strerror(errno));
  return arena;
}

Arena::Arena(Arena&& other) noexcept
    : begin_(std::exchange(other.begin_, nullptr)), bytes_(std::exchange(other.bytes_, 0)) {}

Arena& Arena::operator=(Arena&& other) noexcept {
  Arena taken(std::move(other));  // Leaves with what this arena held before.
  std::swap(begin_, taken.begin_);
  std::swap(bytes_, taken.bytes_);
  return *this;
}

Arena::~Arena() {
  if (begin_ != nullptr) munmap(begin_, bytes_);
}

void Arena::check_range(uint64_t offset, uint64_t bytes) const {
  const uint64_t page = page_bytes();
  CHECK(offset % page == 0 && bytes % page == 0);
  CHECK(offset <= bytes_ && bytes <= bytes_ - offset);
}

// A range that ends inside a huge page is cut out of it: the huge page becomes small ones, and the
// kernel frees those of the range when it looks for memory. Left to itself it would later put the
// pieces together again (khugepaged fills holes with zeros) and so take back what we gave: hence
// the second advice.
void Arena::release_pages(uint64_t offset, uint64_t bytes) {
  check_range(offset, bytes);
  if (bytes == 0) return;
  // The system keeps locked pages; zeros are promised all the same.
  if (madvise(begin_ + offset, bytes, MADV_DONTNEED) != 0) std::memset(begin_ + offset, 0, bytes);
  if (bytes_ >= kHugePageBytes) madvise(begin_ + offset, bytes, MADV_NOHUGEPAGE);
}

void Arena::reuse_pages(uint64_t offset, uint64_t bytes) {
  check_range(offset, bytes);
  if (bytes > 0 && bytes_ >= kHugePageBytes) madvise(begin_ + offset, bytes, MADV_HUGEPAGE);
}

uint64_t Arena::resident_bytes(uint64_t offset, uint64_t bytes) const {
  check_range(offset, bytes);
  const uint64_t page = page_bytes();
  unsigned char is_resident[512];  // of so many pages at a time
  uint64_t resident = 0;
  for (uint64_t done = 0; done < bytes;) {
    const uint64_t piece = std::min(bytes - done, std::size(is_resident) * page);
    if (mincore(begin_ + offset + done, piece, is_resident) != 0) return resident;
    for (uint64_t i = 0; i < piece / page; ++i) resident += (is_resident[i] & 1) * page;
    done += piece;
  }
  return resident;
}

}  // namespace sluice::os
