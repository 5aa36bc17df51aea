#include "tests/support/reference_case.h"

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>

#include "base/byte_reader.h"
#include "base/check.h"

namespace sluice {
namespace {

namespace fs = std::filesystem;

std::string read_whole(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  std::ostringstream content;
  content << file.rdbuf();
  CHECK(file.good());
  return content.str();
}

std::vector<float> read_floats(ByteReader& reader, size_t count) {
  std::vector<float> values(count);
  for (float& value : values) value = reader.read<float>();
  return values;
}

/// int32 vocabulary, int32 tokens, the tokens, two passes of logits.
void read_golden(const std::string& path, ReferenceCase& result) {
  const std::string content = read_whole(path);
  ByteReader reader(std::as_bytes(std::span(content)));
  result.vocabulary_size = reader.read<uint32_t>();
  result.tokens.resize(reader.read<uint32_t>());
  for (int32_t& token : result.tokens) token = reader.read<int32_t>();
  const size_t count = result.tokens.size() * result.vocabulary_size;
  result.batch_logits = read_floats(reader, count);
  result.single_logits = read_floats(reader, count);
  CHECK(reader.ok() && reader.left() == 0);
}

/// "layer token expert expert …"
void read_experts(const std::string& path, ReferenceCase& result) {
  std::istringstream lines(read_whole(path));
  for (std::string line; std::getline(lines, line);) {
    std::istringstream numbers(line);
    size_t layer = 0, token = 0;
    numbers >> layer >> token;
    if (result.experts.size() <= layer) result.experts.resize(layer + 1);
    CHECK(result.experts[layer].size() == token);
    auto& experts = result.experts[layer].emplace_back();
    for (int32_t expert; numbers >> expert;) experts.push_back(expert);
  }
}

std::vector<double> softmax(std::span<const float> logits) {
  const double largest = *std::ranges::max_element(logits);
  std::vector<double> result;
  double sum = 0;
  for (const float logit : logits) sum += result.emplace_back(std::exp(logit - largest));
  for (double& value : result) value /= sum;
  return result;
}

double kl_divergence(std::span<const float> reference, std::span<const float> ours) {
  const auto p = softmax(reference), q = softmax(ours);
  double sum = 0;
  for (size_t i = 0; i < p.size(); ++i)
    if (p[i] > 0) sum += p[i] * std::log(p[i] / q[i]);
  return sum;
}

double lead(std::span<const float> logits) {
  std::vector<float> sorted(logits.begin(), logits.end());
  std::ranges::partial_sort(sorted, sorted.begin() + 2, std::greater<>());
  return static_cast<double>(sorted[0]) - sorted[1];
}

}  // namespace

ReferenceCase ReferenceCase::read(const std::string& folder) {
  ReferenceCase result;
  result.folder = folder;
  const auto json = nlohmann::json::parse(read_whole(folder + "/case.json"));
  result.name = json["name"];
  result.architecture = json["architecture"];
  result.model_path = folder + "/" + json["files"][0].get<std::string>();
  const auto types = json.value("tensor_types", nlohmann::json::object());
  for (const auto& [type, count] : types.items()) result.tensor_types.push_back(type);
  const auto& tolerance = json["tolerance"];
  result.max_abs = tolerance["suggested_max_abs"];
  result.max_abs_f16_kv = tolerance.value("suggested_max_abs_f16_kv", 0.0);
  if (tolerance.contains("suggested_mean_kl")) result.mean_kl = tolerance["suggested_mean_kl"];
  result.same_experts_with_f16_kv = tolerance.value("same_experts_with_f16_kv", false);
  if (fs::exists(folder + "/golden_f32.bin")) {
    read_golden(folder + "/golden_f32.bin", result);
    result.float_logits = std::move(result.batch_logits);
    result.float_max_abs = json["float_reference"]["suggested_max_abs"];
  }
  read_golden(folder + "/golden.bin", result);
  read_experts(folder + "/experts.txt", result);
  return result;
}

bool ReferenceCase::is_float() const {
  return !tensor_types.empty() && std::ranges::all_of(tensor_types, [](const std::string& type) {
    return type == "F32" || type == "F16" || type == "BF16";
  });
}

std::vector<std::string> case_folders(const std::string& folder) {
  std::vector<std::string> folders;
  std::error_code missing;
  for (const auto& entry : fs::directory_iterator(folder, missing))
    if (fs::exists(entry.path() / "case.json")) folders.push_back(entry.path().string());
  std::ranges::sort(folders);
  return folders;
}

Deviation compare_logits(std::span<const float> reference, std::span<const float> ours,
                         size_t vocabulary_size, double tolerance) {
  CHECK(reference.size() == ours.size() && reference.size() % vocabulary_size == 0);
  Deviation result;
  const size_t tokens = reference.size() / vocabulary_size;
  for (size_t token = 0; token < tokens; ++token) {
    const auto want = reference.subspan(token * vocabulary_size, vocabulary_size);
    const auto have = ours.subspan(token * vocabulary_size, vocabulary_size);
    for (size_t i = 0; i < vocabulary_size; ++i) {
      const double difference = std::abs(static_cast<double>(want[i]) - have[i]);
      if (std::isnan(difference) || difference > result.max_abs) result.max_abs = difference;
    }
    result.mean_kl += kl_divergence(want, have) / static_cast<double>(tokens);
    const auto top1 = [](std::span<const float> row) {
      return std::ranges::max_element(row) - row.begin();
    };
    if (lead(want) > 2 * tolerance && top1(want) != top1(have)) ++result.clear_top1_misses;
  }
  return result;
}

}  // namespace sluice
