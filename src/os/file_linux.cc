#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <bit>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <utility>

#include "base/units.h"
#include "os/descriptor_linux.h"
#include "os/file.h"

namespace sluice::os {
namespace {

constexpr uint32_t kDefaultAlignment = 4096;
constexpr uint32_t kAlignmentMax = 64 * 1024;  // Larger answers are taken for nonsense.

struct FreeMemory {
  void operator()(void* memory) const { std::free(memory); }
};

/// What direct reads of this file must be multiples of, where kernel and headers can tell.
uint32_t direct_alignment(int descriptor) {
#ifdef STATX_DIOALIGN
  struct statx facts = {};
  if (statx(descriptor, "", AT_EMPTY_PATH, STATX_DIOALIGN, &facts) == 0 &&
      (facts.stx_mask & STATX_DIOALIGN) != 0) {
    const uint32_t alignment = std::max(facts.stx_dio_mem_align, facts.stx_dio_offset_align);
    if (std::has_single_bit(alignment) && alignment <= kAlignmentMax) return alignment;
  }
#else
  static_cast<void>(descriptor);
#endif
  return kDefaultAlignment;
}

/// Turns direct reads on and makes one: 0, or the errno of the refusal. Some file systems refuse
/// the flag, others accept it and then refuse every read.
int try_direct(int descriptor, uint32_t alignment) {
  if (fcntl(descriptor, F_SETFL, O_DIRECT) != 0) return errno;
  const std::unique_ptr<void, FreeMemory> buffer(std::aligned_alloc(alignment, alignment));
  if (!buffer) return ENOMEM;
  const int64_t count = read_once(descriptor, static_cast<std::byte*>(buffer.get()), alignment, 0);
  return count < 0 ? static_cast<int>(-count) : 0;
}

bool is_refusal(int reason) {
  return reason == EINVAL || reason == EOPNOTSUPP;
}

Error file_error(const std::string& path, const char* what, int reason) {
  return make_error(ErrorKind::io, "{}: {}: {}", path, what, std::strerror(reason));
}

}  // namespace

Result<File> File::open(const std::string& path, DirectMode mode) {
  File file;
  file.path_ = path;
  // O_NONBLOCK keeps the open of a pipe without a writer from waiting; F_SETFL below clears it.
  file.descriptor_ = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (file.descriptor_ < 0) return file_error(path, "cannot open", errno);
  struct stat facts = {};
  if (fstat(file.descriptor_, &facts) != 0) return file_error(path, "cannot stat", errno);
  if (!S_ISREG(facts.st_mode))
    return make_error(ErrorKind::io, "{}: not a regular file{}", path,
                      S_ISDIR(facts.st_mode) ? " but a folder" : "");
  file.bytes_ = static_cast<uint64_t>(facts.st_size);

  if (mode != DirectMode::off) {
    const uint32_t alignment = direct_alignment(file.descriptor_);
    const int reason = try_direct(file.descriptor_, alignment);
    if (reason == 0) {
      file.direct_ = true;
      file.alignment_ = alignment;
      return file;
    }
    if (!is_refusal(reason)) return file_error(path, "cannot read", reason);
    if (mode == DirectMode::on)
      return make_error(ErrorKind::unsupported,
                        "{}: its file system refuses direct reads ({}); allow buffered ones", path,
                        std::strerror(reason));
  }
  if (fcntl(file.descriptor_, F_SETFL, 0) != 0) return file_error(path, "cannot set up", errno);
  return file;
}

File::File(File&& other) noexcept
    : path_(std::move(other.path_)),
      bytes_(std::exchange(other.bytes_, 0)),
      descriptor_(std::exchange(other.descriptor_, -1)),
      direct_(other.direct_),
      alignment_(other.alignment_) {}

File& File::operator=(File&& other) noexcept {
  File taken(std::move(other));  // Leaves with the descriptor this file held before.
  std::swap(path_, taken.path_);
  std::swap(bytes_, taken.bytes_);
  std::swap(descriptor_, taken.descriptor_);
  std::swap(direct_, taken.direct_);
  std::swap(alignment_, taken.alignment_);
  return *this;
}

File::~File() {
  if (descriptor_ >= 0) ::close(descriptor_);
}

// An example of a short direct read: 12288 bytes are wanted at 4096 and 5000 come. The next read
// must begin on a multiple of 4096, so it asks for 8192 bytes at 8192, and 904 bytes come twice.
Result<size_t> File::read_at(uint64_t offset, std::byte* buffer, size_t bytes,
                             size_t bytes_min) const {
  CHECK(bytes_min <= bytes);
  constexpr int kFruitlessMax = 16;  // Reads in a row that bring nothing new.
  const size_t step = direct_ ? alignment_ : 1;
  size_t done = 0;
  int fruitless = 0;
  while (done < bytes && offset + done < bytes_ && fruitless < kFruitlessMax) {
    const size_t begin = round_down(done, step);
    const int64_t count = read_once(descriptor_, buffer + begin, bytes - begin, offset + begin);
    if (count < 0)
      return make_error(ErrorKind::io, "{}: cannot read {} bytes at {}: {}", path_, bytes, offset,
                        std::strerror(static_cast<int>(-count)));
    if (count == 0) break;  // Shorter than when it was opened.
    const size_t reached = begin + static_cast<size_t>(count);
    fruitless = reached > done ? 0 : fruitless + 1;
    done = std::max(done, reached);
  }
  if (done >= bytes_min) return done;
  if (fruitless == kFruitlessMax)
    return make_error(ErrorKind::io, "{}: reads of {} bytes at {} keep coming back short", path_,
                      bytes, offset);
  const uint64_t file_end = offset < bytes_ ? offset + done : bytes_;
  return make_error(ErrorKind::corrupt,
                    "{}: {} bytes are wanted at {}, but the file ends at {}; is it cut short?",
                    path_, bytes_min, offset, file_end);
}

Result<std::string> read_text_file(const std::string& path, uint64_t bytes_max) {
  const Descriptor descriptor(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (!descriptor.is_open()) return file_error(path, "cannot open", errno);
  // The length comes from reading, not from stat: pipes and the files of /proc have none.
  constexpr size_t kPieceBytes = 16 * 1024;
  std::string text;
  size_t bytes = 0;
  while (bytes <= bytes_max) {
    text.resize(bytes + kPieceBytes);
    const ssize_t count = ::read(descriptor.number(), text.data() + bytes, kPieceBytes);
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) return file_error(path, "cannot read", errno);
    bytes += static_cast<size_t>(count);
    if (count == 0) break;
  }
  if (bytes > bytes_max)
    return make_error(ErrorKind::usage, "{}: larger than the {} allowed here", path,
                      format_bytes(bytes_max));
  text.resize(bytes);
  return text;
}

}  // namespace sluice::os
