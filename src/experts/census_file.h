// Where the usage census of a model lies, and how it gets there and back. Beside the model as
// `<model file>.census`; where that folder cannot be written, in the user's cache folder, as
// `sluice/<hash of the model's path>.census`. What a run has learned is joined with what the file
// holds when it is written, so that two processes that end at the same time both count.
//
// A census only makes things faster: whatever is wrong with the file costs a line, not the run, and
// a file that is no census is never overwritten. One thread at a time.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "experts/census.h"

namespace sluice {

/// --moe-stream-census auto|off|FILE
struct CensusSetting {
  enum class Kind : uint8_t { automatic, off, file };
  Kind kind = Kind::automatic;
  std::string path = {};  ///< of `file`
};
Result<CensusSetting> parse_census_setting(std::string_view text);

class CensusFile {
 public:
  /// A run that decoded less tells too little to be written by itself.
  static constexpr uint64_t kDecodeTokensMin = 256;

  /// `model_path`: the (first) file of the model.
  CensusFile(const CensusSetting& setting, const std::string& model_path);

  /// Where it will be written; empty when it will not be.
  const std::string& path() const { return path_; }

  /// Takes in what earlier runs have learned. The result is a line for the user, where a file is
  /// there but cannot be used.
  std::optional<std::string> load(UsageCensus& census) const;

  /// Writes the census, joined with what the file holds now, and continues from there. Does nothing
  /// when it is off, or automatic and fewer than kDecodeTokensMin tokens were decoded. The result
  /// is a line for the user, where it failed.
  std::optional<std::string> save(UsageCensus& census) const;

 private:
  CensusSetting::Kind kind_;
  std::string path_;
  std::string beside_;  ///< beside the model; read when there is nothing at path_
};

}  // namespace sluice
