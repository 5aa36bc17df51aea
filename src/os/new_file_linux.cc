#include <sys/stat.h>

#include <cstdlib>
#include <cstring>

#include "os/descriptor_linux.h"
#include "os/new_file.h"

namespace sluice::os {

struct NewFile::State {
  State(std::string final_path, std::string temporary_path, int number)
      : path(std::move(final_path)), temporary(std::move(temporary_path)), file(number) {}
  ~State() {
    if (!temporary.empty()) ::unlink(temporary.c_str());
  }

  Error failed(int reason) const {
    return make_error(ErrorKind::io, "{}: cannot write: {}", path, std::strerror(reason));
  }

  const std::string path;
  std::string temporary;  ///< empty once it has its name
  const Descriptor file;
};

NewFile::NewFile(std::unique_ptr<State> state) : state_(std::move(state)) {}
NewFile::NewFile(NewFile&& other) noexcept = default;
NewFile::~NewFile() = default;

Result<NewFile> NewFile::create(const std::string& path) {
  struct stat facts {};
  if (stat(path.c_str(), &facts) == 0 && !S_ISREG(facts.st_mode))
    return make_error(ErrorKind::usage, "{} is no regular file and stays as it is", path);
  std::string temporary = path + ".XXXXXX";
  const int number = mkostemp(temporary.data(), O_CLOEXEC);
  if (number < 0)
    return make_error(ErrorKind::io, "{}: cannot write beside it: {}", path, std::strerror(errno));
  return NewFile(std::make_unique<State>(path, std::move(temporary), number));
}

Status NewFile::write(std::span<const std::byte> bytes) {
  while (!bytes.empty()) {
    const ssize_t count = ::write(state_->file.number(), bytes.data(), bytes.size());
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) return state_->failed(errno);
    bytes = bytes.subspan(static_cast<size_t>(count));
  }
  return {};
}

Status NewFile::commit() {
  constexpr mode_t kMode = 0644;  // mkostemp makes files that only their owner may read
  const int number = state_->file.number();
  if (fchmod(number, kMode) != 0 || fsync(number) != 0 ||
      ::rename(state_->temporary.c_str(), state_->path.c_str()) != 0)
    return state_->failed(errno);
  state_->temporary.clear();
  const Descriptor folder = open_folder(folder_of(state_->path));
  if (folder.is_open()) fsync(folder.number());  // the name; the content is safe already
  return {};
}

}  // namespace sluice::os
