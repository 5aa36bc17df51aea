#include "experts/census_file.h"

#include <xxhash.h>

#include "os/file.h"
#include "os/small_file.h"

namespace sluice {
namespace {

/// More than any model's census: whatever is larger is something else.
constexpr uint64_t kBytesMax = 64 << 20;

/// The place for a model in a folder that cannot be written.
std::string cache_path(const std::string& model_path) {
  const auto folder = os::user_cache_folder();
  if (!folder) return {};
  const std::string path = os::absolute_path(model_path);
  return fmt::format("{}/sluice/{:016x}.census", *folder, XXH3_64bits(path.data(), path.size()));
}

}  // namespace

Result<CensusSetting> parse_census_setting(std::string_view text) {
  using Kind = CensusSetting::Kind;
  if (text == "auto") return CensusSetting{.kind = Kind::automatic};
  if (text == "off") return CensusSetting{.kind = Kind::off};
  if (text.empty())
    return make_error(ErrorKind::usage, "--moe-stream-census: auto, off or the name of a file");
  return CensusSetting{.kind = Kind::file, .path = std::string(text)};
}

CensusFile::CensusFile(const CensusSetting& setting, const std::string& model_path)
    : kind_(setting.kind) {
  if (kind_ == CensusSetting::Kind::file) path_ = setting.path;
  if (kind_ != CensusSetting::Kind::automatic) return;
  beside_ = model_path + ".census";
  path_ = os::may_create(beside_) ? beside_ : cache_path(model_path);
}

std::optional<std::string> CensusFile::load(UsageCensus& census) const {
  const std::string& from = os::file_exists(path_) ? path_ : beside_;
  if (from.empty() || !os::file_exists(from)) return std::nullopt;
  const auto ignored = [&](const std::string& why) {
    return fmt::format("{} is ignored: {}", from, why);
  };
  const auto bytes = os::read_text_file(from, kBytesMax);
  if (!bytes) return ignored(bytes.error().message);
  const auto counts = read_census(*bytes, census.identity());
  if (!counts) return ignored(counts.error().message);
  census.join(*counts);
  return std::nullopt;
}

std::optional<std::string> CensusFile::save(UsageCensus& census) const {
  const bool enough =
      kind_ == CensusSetting::Kind::file || census.decode_token_count() >= kDecodeTokensMin;
  if (path_.empty() || !enough) return std::nullopt;
  UsageCensus joined = census;
  const auto next = [&](const std::string& present) -> Result<std::string> {
    if (!present.empty() && !looks_like_census(present))
      return make_error(ErrorKind::usage, "{} is no census and stays as it is", path_);
    const auto stored = read_census(present, census.identity());
    // A damaged census, or one of the model that had this name before, ends here.
    if (stored) joined.join(*stored);
    return write_census(joined.identity(), joined.counts());
  };
  Status written = os::make_folder_of(path_);
  if (written) written = os::update_file(path_, kBytesMax, next);
  if (!written) return fmt::format("the usage census is not kept: {}", written.error().message);
  joined.mark_stored();
  census = std::move(joined);
  return std::nullopt;
}

}  // namespace sluice
