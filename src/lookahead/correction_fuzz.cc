// The libFuzzer target of the correction file: whatever the bytes are, they are refused with one
// line or can be applied.
#include <cstddef>
#include <cstdint>
#include <vector>

#include "lookahead/correction.h"

namespace {

using sluice::Correction;

/// 3 layers of 2 experts, so that a few bytes reach every branch.
constexpr sluice::CorrectionIdentity kModel{3, 2, 0x3837363534333231};

void apply_all(const Correction& correction) {
  const float scores[] = {0.5f, -0.25f};
  const int32_t experts[] = {1, 0};
  std::vector<float> corrected(2);
  for (uint32_t layer = 0; layer < kModel.layer_count; ++layer)
    for (uint32_t distance = 1; distance <= sluice::kDistanceMax; ++distance)
      if (correction.has(layer, distance))
        correction.apply(layer, distance, {scores, experts, scores}, corrected);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string bytes(reinterpret_cast<const char*>(data), size);
  const auto correction = Correction::parse(bytes, kModel, "input");
  if (!correction) {
    CHECK(correction.error().message.find('\n') == std::string::npos);
    return 0;
  }
  apply_all(*correction);
  CHECK(!Correction::parse(bytes + '\0', kModel, "longer").ok());
  if (size > 0) CHECK(!Correction::parse(bytes.substr(0, size - 1), kModel, "cut").ok());
  return 0;
}
