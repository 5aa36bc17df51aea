// A reference case: a tiny model, tokens, and the logits and experts that another engine (the
// reference) gave for them, with the tolerances that its authors measured. Tests only; any thread.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace sluice {

struct ReferenceCase {
  std::string name;
  std::string folder;
  std::string model_path;
  std::string architecture;
  std::vector<std::string> tensor_types;  ///< "Q4_K", …
  std::vector<int32_t> tokens;
  size_t vocabulary_size = 0;
  std::vector<float> batch_logits;   ///< [token][vocabulary], all tokens at once
  std::vector<float> single_logits;  ///< the same, token by token
  /// The same weights as floats; empty where the case has none.
  std::vector<float> float_logits;
  /// [layer][token]: ascending
  std::vector<std::vector<std::vector<int32_t>>> experts;

  double max_abs = 0;
  double max_abs_f16_kv = 0;
  double float_max_abs = 0;
  std::optional<double> mean_kl;
  bool same_experts_with_f16_kv = false;

  /// A damaged case stops the test program.
  static ReferenceCase read(const std::string& folder);

  /// Whether all weights are stored as floats.
  bool is_float() const;
};

/// The folders below `folder` that hold a case, in order of name; none if it does not exist.
std::vector<std::string> case_folders(const std::string& folder);

/// How far logits are from those of the reference.
struct Deviation {
  double max_abs = 0;
  double mean_kl = 0;  ///< from the reference to ours
  /// Tokens whose most likely next token differs although the reference's lead was clear: more than
  /// twice `tolerance`.
  size_t clear_top1_misses = 0;
};
Deviation compare_logits(std::span<const float> reference, std::span<const float> ours,
                         size_t vocabulary_size, double tolerance);

}  // namespace sluice
