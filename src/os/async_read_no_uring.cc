// In place of async_read_uring.cc where the build has no liburing: reading threads do the work.
#include "os/async_read_kinds.h"

namespace sluice::os {

Result<std::unique_ptr<AsyncReader>> make_uring_reader(std::span<const File* const>, size_t) {
  return make_error(ErrorKind::unsupported, "this program was built without liburing");
}

}  // namespace sluice::os
