#include "testing/temp_folder.h"

#include <stdlib.h>

#include <filesystem>
#include <fstream>

#include "base/check.h"

namespace sluice {

namespace fs = std::filesystem;

TempFolder::TempFolder(const std::string& parent) {
  const fs::path place = parent.empty() ? fs::temp_directory_path() : fs::path(parent);
  path_ = (place / "sluice_test_XXXXXX").string();
  CHECK(mkdtemp(path_.data()) != nullptr);
}

TempFolder::~TempFolder() {
  std::error_code ignored;
  fs::remove_all(path_, ignored);
}

std::string TempFolder::write(std::string_view name, std::string_view text) const {
  const fs::path file = fs::path(path_) / name;
  fs::create_directories(file.parent_path());
  std::ofstream out(file, std::ios::binary);
  out.write(text.data(), static_cast<std::streamsize>(text.size()));
  out.close();
  CHECK(out.good());
  return file.string();
}

std::string TempFolder::write(std::string_view name, std::span<const std::byte> bytes) const {
  return write(name, std::string_view(reinterpret_cast<const char*>(bytes.data()), bytes.size()));
}

}  // namespace sluice
