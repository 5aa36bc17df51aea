// Puts a correction file together (docs/lookahead.md has its format), also one that is wrong. Tests
// only; one thread at a time.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace sluice {

class CorrectionBytes {
 public:
  enum : uint32_t { predicted = 1, chosen = 2 };

  CorrectionBytes(uint32_t layer_count, uint32_t expert_count, uint64_t router_hash,
                  uint32_t version = 1)
      : layer_count_(layer_count),
        expert_count_(expert_count),
        router_hash_(router_hash),
        version_(version) {}

  /// Adds a map: the bias, then the matrices of the inputs.
  CorrectionBytes& map(uint32_t layer, uint32_t distance, uint32_t inputs,
                       const std::vector<float>& floats, uint32_t reserved = 0) {
    for (const uint32_t field : {layer, distance, inputs, reserved}) append(maps_, field);
    for (const float value : floats) append(maps_, value);
    ++map_count_;
    return *this;
  }
  /// Adds a map that gives back the later router's scores.
  CorrectionBytes& identity(uint32_t layer, uint32_t distance) {
    std::vector<float> floats(expert_count_ * (1 + expert_count_));
    for (uint32_t i = 0; i < expert_count_; ++i) floats[expert_count_ * (1 + i) + i] = 1.0f;
    return map(layer, distance, predicted, floats);
  }
  /// Claims another number of maps than were added.
  CorrectionBytes& claim(uint32_t map_count) {
    map_count_ = map_count;
    return *this;
  }

  std::string bytes() const {
    std::string bytes = "sluiceLC";
    for (const uint32_t field : {version_, layer_count_, expert_count_, map_count_})
      append(bytes, field);
    append(bytes, router_hash_);
    return bytes + maps_;
  }

 private:
  template <typename T>
  static void append(std::string& bytes, const T& value) {
    bytes.append(reinterpret_cast<const char*>(&value), sizeof(value));
  }

  uint32_t layer_count_;
  uint32_t expert_count_;
  uint64_t router_hash_;
  uint32_t version_;
  uint32_t map_count_ = 0;
  std::string maps_;
};

}  // namespace sluice
