#include "lookahead/correction.h"

#include <cmath>
#include <cstring>

#include "base/units.h"
#include "os/file.h"

namespace sluice {
namespace {

constexpr std::string_view kMagic = "sluiceLC";
constexpr uint32_t kVersion = 1;
constexpr size_t kHeaderBytes = 32;
constexpr size_t kMapHeaderBytes = 16;

/// Bits of a map's inputs, in the order in which their matrices follow.
constexpr uint32_t kPredicted = 1;
constexpr uint32_t kChosen = 2;
constexpr uint32_t kInputs = kPredicted | kChosen;

/// What to do about a file that is of no use.
constexpr std::string_view kRemedy = "train one with tools/train_correction, or leave it out";

Error damaged(std::string_view name, std::string_view why) {
  return make_error(ErrorKind::corrupt, "{}: {}; {}", name, why, kRemedy);
}

/// No file for this model is larger.
uint64_t file_bytes_max(const CorrectionIdentity& model) {
  const uint64_t experts = model.expert_count;
  const uint64_t map_bytes = kMapHeaderBytes + (experts + 2 * experts * experts) * sizeof(float);
  return kHeaderBytes + uint64_t{model.layer_count} * kDistanceMax * map_bytes;
}

bool all_finite(std::span<const std::byte> bytes) {
  bool finite = true;
  for (size_t i = 0; i < bytes.size(); i += sizeof(float)) {
    float value;
    std::memcpy(&value, bytes.data() + i, sizeof(float));
    finite &= std::isfinite(value);
  }
  return finite;
}

Status check_identity(const CorrectionIdentity& file, const CorrectionIdentity& model) {
  const auto differs = [](std::string_view what, auto theirs, auto ours) {
    return make_error(ErrorKind::usage, "made for another model: it has {} {}, this model {}; {}",
                      theirs, what, ours, kRemedy);
  };
  if (file.layer_count != model.layer_count)
    return differs("layers", file.layer_count, model.layer_count);
  if (file.expert_count != model.expert_count)
    return differs("experts a layer", file.expert_count, model.expert_count);
  if (file.router_hash != model.router_hash)
    return differs("as the hash of its routers", fmt::format("{:016x}", file.router_hash),
                   fmt::format("{:016x}", model.router_hash));
  return {};
}

/// scores += Σ x[i] · column i. One chain of additions for each score, in the order of i.
void add_columns(std::span<const float> x, const float* columns, std::span<float> scores) {
  for (size_t i = 0; i < x.size(); ++i)
    for (size_t j = 0; j < scores.size(); ++j) scores[j] += x[i] * columns[i * scores.size() + j];
}

}  // namespace

uint64_t router_hash(const WeightMap& map) {
  uint64_t hash = 0xcbf29ce484222325;
  for (const LayerWeights& layer : map.dense.layers) {
    const size_t bytes = layer.router.bytes();
    for (size_t i = 0; i < bytes; i += sizeof(uint64_t)) {
      uint64_t word = 0;
      std::memcpy(&word, layer.router.data + i, std::min(sizeof(word), bytes - i));
      hash = (hash ^ word) * 0x100000001b3;
    }
  }
  return hash;
}

CorrectionIdentity correction_identity(const ModelConfig& config, const WeightMap& map) {
  return {.layer_count = static_cast<uint32_t>(config.layer_count()),
          .expert_count = config.expert_count,
          .router_hash = router_hash(map)};
}

Result<Correction> Correction::read(const std::string& path, const CorrectionIdentity& model) {
  auto bytes = os::read_text_file(path, file_bytes_max(model));
  if (!bytes) return bytes.error();
  return parse(std::move(*bytes), model, path);
}

Result<Correction> Correction::parse(std::string bytes, const CorrectionIdentity& model,
                                     std::string_view name) {
  Correction correction(std::move(bytes), model);
  ByteReader reader(std::as_bytes(std::span(correction.bytes_)));
  if (reader.take_text(kMagic.size()) != kMagic) return damaged(name, "not a correction file");
  const auto version = reader.read<uint32_t>();
  CorrectionIdentity file;
  file.layer_count = reader.read<uint32_t>();
  file.expert_count = reader.read<uint32_t>();
  const auto map_count = reader.read<uint32_t>();
  file.router_hash = reader.read<uint64_t>();
  if (!reader.ok()) return damaged(name, "cut short");
  if (version != kVersion)
    return make_error(ErrorKind::unsupported, "{}: correction format {}, this program reads {}; {}",
                      name, version, kVersion, kRemedy);
  if (Status same = check_identity(file, model); !same) return same.error().at(name);
  for (uint32_t i = 0; i < map_count; ++i)
    if (Status done = correction.parse_map(reader); !done)
      return damaged(name, fmt::format("map {} of {}: {}", i + 1, map_count, done.error().message));
  if (reader.left() > 0)
    return damaged(name, fmt::format("longer than its maps, by {}", format_bytes(reader.left())));
  return correction;
}

Status Correction::parse_map(ByteReader& reader) {
  const auto layer = reader.read<uint32_t>();
  const auto distance = reader.read<uint32_t>();
  const auto inputs = reader.read<uint32_t>();
  const auto reserved = reader.read<uint32_t>();
  if (!reader.ok()) return make_error(ErrorKind::corrupt, "cut short");
  if (layer >= maps_.size() / kDistanceMax || distance == 0 || distance > kDistanceMax ||
      distance > layer + 1)
    return make_error(ErrorKind::corrupt, "no such prediction: layer {} from {} before", layer,
                      distance);
  if ((inputs & ~kInputs) != 0 || reserved != 0)
    return make_error(ErrorKind::corrupt, "unknown inputs {:#x}, {:#x}", inputs, reserved);
  if (distance == layer + 1 && (inputs & ~kPredicted) != 0)
    return make_error(ErrorKind::corrupt, "nothing is chosen before the embedding's layer");
  Map& map = maps_[size_t{layer} * kDistanceMax + distance - 1];
  if (map.bias != 0)
    return make_error(ErrorKind::corrupt, "layer {} from {} before comes twice", layer, distance);

  bool finite = true;
  const auto take = [&](uint64_t float_count) {
    const size_t offset = reader.position();
    finite &= all_finite(reader.take(float_count * sizeof(float)));
    return offset;
  };
  const uint64_t square = uint64_t{expert_count_} * expert_count_;
  map.bias = take(expert_count_);
  if ((inputs & kPredicted) != 0) map.predicted = take(square);
  if ((inputs & kChosen) != 0) map.chosen = take(square);
  if (!reader.ok()) return make_error(ErrorKind::corrupt, "cut short");
  if (!finite) return make_error(ErrorKind::corrupt, "holds numbers that are not finite");
  return {};
}

void Correction::apply(uint32_t layer, uint32_t distance, const CorrectionInput& input,
                       std::span<float> scores) const {
  const Map& map = map_of(layer, distance);
  CHECK(map.bias != 0 && scores.size() == expert_count_);
  std::memcpy(scores.data(), floats_at(map.bias), scores.size_bytes());
  if (map.predicted != 0) add_columns(input.predicted, floats_at(map.predicted), scores);
  if (map.chosen == 0) return;
  const float* columns = floats_at(map.chosen);
  for (size_t i = 0; i < input.experts.size(); ++i)
    add_columns(input.weights.subspan(i, 1),
                columns + static_cast<size_t>(input.experts[i]) * expert_count_, scores);
}

}  // namespace sluice
