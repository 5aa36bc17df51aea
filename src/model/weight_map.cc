#include "model/weight_map.h"

#include <algorithm>
#include <charconv>
#include <set>

namespace sluice {
namespace {

/// Floats are read where they lie; files with a general.alignment below this do not exist in the
/// wild (32 is usual).
constexpr uint64_t kOffsetMultiple = 8;

/// A tensor seen as a matrix: dimension 0 runs along a row, the others are rows.
Matrix matrix_of(const gguf::Tensor& tensor, uint64_t rows) {
  const uint64_t cols = tensor.shape[0];
  return {.dtype = tensor.dtype,
          .rows = rows,
          .cols = cols,
          .row_bytes = dtype_bytes(tensor.dtype, cols),
          .data = nullptr};
}

Status check_decodable(const gguf::Tensor& tensor) {
  const DtypeInfo& info = dtype_info(tensor.dtype);
  if (info.decode != nullptr) return {};
  return make_error(ErrorKind::unsupported, "tensor '{}' has type {}; supported: {}", tensor.name,
                    info.name, supported_dtypes());
}

/// N of "blk.N.…"; 0 for tensors of the whole model.
size_t layer_of(std::string_view name) {
  constexpr std::string_view kPrefix = "blk.";
  if (!name.starts_with(kPrefix)) return 0;
  name.remove_prefix(kPrefix.size());
  size_t layer = 0;
  std::from_chars(name.data(), name.data() + name.size(), layer);
  return layer;
}

/// Collects tensors by name and remembers the first thing that is wrong.
class Planner {
 public:
  Planner(const gguf::GgufFile& file, WeightMap& map) : file_(file), map_(map) {}

  /// A dense tensor of `rows` × `cols` (one dimension when rows is 1). rows 0: any number.
  void dense(std::string name, uint64_t rows, uint64_t cols, Matrix& matrix) {
    const gguf::Tensor* tensor = find(name);
    if (tensor == nullptr) return;
    const uint64_t found_rows = tensor->shape.size() == 1 ? 1 : tensor->shape[1];
    const bool flat = tensor->shape.size() <= 2;
    if (!flat || tensor->shape[0] != cols || (rows != 0 && found_rows != rows))
      return fail(make_error(ErrorKind::corrupt, "tensor '{}' has shape {}, expected [{}, {}]",
                             name, tensor->shape_text(), cols,
                             rows == 0 ? std::string("any") : std::to_string(rows)));
    matrix = matrix_of(*tensor, found_rows);
    map_.dense_tensors.push_back({std::move(name), tensor->extent, &matrix});
  }

  /// A vector that is multiplied element by element.
  void norm(std::string name, uint64_t count, Matrix& matrix) {
    floats(std::move(name), 1, count, matrix);
  }
  /// What is used number by number: must be F32.
  void floats(std::string name, uint64_t rows, uint64_t cols, Matrix& matrix) {
    dense(name, rows, cols, matrix);
    if (!error_ && matrix.dtype != Dtype::f32)
      fail(make_error(ErrorKind::unsupported,
                      "tensor '{}' has type {}; norms and biases must be F32", name,
                      dtype_info(matrix.dtype).name));
  }

  /// A norm or bias that files may lack.
  void optional_vector(std::string name, uint64_t count, Matrix& matrix) {
    optional_floats(std::move(name), 1, count, matrix);
  }
  void optional_floats(std::string name, uint64_t rows, uint64_t cols, Matrix& matrix) {
    if (has(name)) floats(std::move(name), rows, cols, matrix);
  }

  /// Rows [first, first + rows) of a matrix of `all_rows`.
  void slice(const std::string& name, uint64_t first, uint64_t rows, uint64_t all_rows,
             uint64_t cols, Matrix& matrix) {
    dense(name, all_rows, cols, matrix);
    if (error_) return;
    DenseTensor& tensor = map_.dense_tensors.back();
    matrix.rows = rows;
    tensor.extent.offset += first * matrix.row_bytes;
    tensor.extent.bytes = matrix.bytes();
  }

  void projection(const std::string& name, uint64_t rows, uint64_t cols, Projection& projection) {
    dense(name + ".weight", rows, cols, projection.weight);
    optional_vector(name + ".bias", rows, projection.bias);
  }

  /// An FFN whose width the file says by its shape; `kind` is "" or "_shexp".
  void dense_ffn(const std::string& prefix, std::string_view kind, uint64_t hidden, DenseFfn& ffn) {
    const auto name = [&](std::string_view part) {
      return fmt::format("{}ffn_{}{}.weight", prefix, part, kind);
    };
    dense(name("gate"), 0, hidden, ffn.gate);
    dense(name("up"), ffn.gate.rows, hidden, ffn.up);
    dense(name("down"), hidden, ffn.gate.rows, ffn.down);
  }

  ExpertPart expert_part(const std::string& name, ExpertPartKind kind, uint64_t rows, uint64_t cols,
                         uint64_t experts) {
    const gguf::Tensor* tensor = find(name);
    if (tensor == nullptr) return {};
    const std::vector<uint64_t> expected{cols, rows, experts};
    if (tensor->shape != expected) {
      fail(make_error(ErrorKind::corrupt, "tensor '{}' has shape {}, expected [{}, {}, {}]", name,
                      tensor->shape_text(), cols, rows, experts));
      return {};
    }
    FileExtent first = tensor->extent;
    first.bytes = tensor->extent.bytes / experts;
    return {.kind = kind, .shape = matrix_of(*tensor, rows), .first_expert = first};
  }

  /// The third dimension of an expert tensor: how many experts this layer has.
  uint64_t expert_count(const std::string& name) {
    const gguf::Tensor* tensor = find(name);
    if (tensor == nullptr) return 1;
    if (tensor->shape.size() == 3) return tensor->shape[2];
    fail(make_error(ErrorKind::corrupt, "tensor '{}' has shape {}, expected three dimensions", name,
                    tensor->shape_text()));
    return 1;
  }

  /// A tensor that nobody asked for would change the arithmetic if we knew how: a bias, a scale,
  /// a factor. Only layers that do not run (for next-token prediction) may hold such.
  void refuse_unused(size_t layer_count) {
    for (const gguf::Tensor& tensor : file_.tensors()) {
      if (used_.contains(tensor.name) || layer_of(tensor.name) >= layer_count) continue;
      fail(make_error(ErrorKind::unsupported,
                      "tensor '{}' is not part of what this version computes for this architecture",
                      tensor.name));
    }
  }

  bool has(const std::string& name) const { return file_.find_tensor(name) != nullptr; }
  const std::optional<Error>& error() const { return error_; }

  void fail(Error error) {
    if (!error_) error_ = std::move(error);
  }

 private:
  const gguf::Tensor* find(const std::string& name) {
    used_.insert(name);
    const gguf::Tensor* tensor = file_.find_tensor(name);
    if (tensor == nullptr) {
      fail(make_error(ErrorKind::corrupt, "tensor '{}' is missing", name));
      return nullptr;
    }
    if (tensor->extent.offset % kOffsetMultiple != 0) {
      fail(make_error(ErrorKind::unsupported, "tensor '{}' begins at {}, not a multiple of {}",
                      name, tensor->extent.offset, kOffsetMultiple));
      return nullptr;
    }
    if (auto decodable = check_decodable(*tensor); !decodable) {
      fail(decodable.error());
      return nullptr;
    }
    return tensor;
  }

  const gguf::GgufFile& file_;
  WeightMap& map_;
  std::set<std::string> used_;
  std::optional<Error> error_;
};

ExpertLayout plan_experts(Planner& plan, const std::string& prefix, uint64_t experts,
                          const ModelConfig& config) {
  const uint64_t wide = config.expert_hidden_size;
  const uint64_t hidden = config.hidden_size;
  std::vector<ExpertPart> parts;
  if (plan.has(prefix + "ffn_gate_up_exps.weight")) {
    parts.push_back(plan.expert_part(prefix + "ffn_gate_up_exps.weight", ExpertPartKind::gate_up,
                                     2 * wide, hidden, experts));
  } else {
    parts.push_back(plan.expert_part(prefix + "ffn_gate_exps.weight", ExpertPartKind::gate, wide,
                                     hidden, experts));
    parts.push_back(
        plan.expert_part(prefix + "ffn_up_exps.weight", ExpertPartKind::up, wide, hidden, experts));
  }
  parts.push_back(plan.expert_part(prefix + "ffn_down_exps.weight", ExpertPartKind::down, hidden,
                                   wide, experts));
  if (plan.error()) return {};
  return ExpertLayout(static_cast<uint32_t>(experts), parts);
}

void plan_query_key_norms(Planner& plan, const std::string& prefix, const ModelConfig& config,
                          uint64_t query_rows, uint64_t kv_rows, LayerWeights& layer) {
  const QueryKeyNorm kind = config.architecture->query_key_norm;
  if (kind == QueryKeyNorm::none) return;
  const std::string query = prefix + "attn_q_norm.weight";
  if (kind == QueryKeyNorm::per_head_if_present && !plan.has(query)) return;
  const bool whole = kind == QueryKeyNorm::whole;
  plan.norm(query, whole ? query_rows : config.head_dim, layer.query_norm);
  plan.norm(prefix + "attn_k_norm.weight", whole ? kv_rows : config.head_dim, layer.key_norm);
}

void plan_attention(Planner& plan, size_t index, const ModelConfig& config, LayerWeights& layer) {
  const std::string prefix = fmt::format("blk.{}.", index);
  const uint64_t hidden = config.hidden_size;
  const uint64_t query_rows = uint64_t{config.layers[index].head_count} * config.head_dim;
  const uint64_t kv_rows = uint64_t{config.layers[index].kv_head_count} * config.head_dim;
  plan.norm(prefix + "attn_norm.weight", hidden, layer.attention_norm);
  if (const std::string fused = prefix + "attn_qkv.weight"; plan.has(fused)) {
    const uint64_t rows = query_rows + 2 * kv_rows;
    plan.slice(fused, 0, query_rows, rows, hidden, layer.query.weight);
    plan.slice(fused, query_rows, kv_rows, rows, hidden, layer.key.weight);
    plan.slice(fused, query_rows + kv_rows, kv_rows, rows, hidden, layer.value.weight);
  } else {
    plan.projection(prefix + "attn_q", query_rows, hidden, layer.query);
    plan.projection(prefix + "attn_k", kv_rows, hidden, layer.key);
    plan.projection(prefix + "attn_v", kv_rows, hidden, layer.value);
  }
  plan.projection(prefix + "attn_output", hidden, query_rows, layer.attention_output);
  plan_query_key_norms(plan, prefix, config, query_rows, kv_rows, layer);
  plan.optional_vector(prefix + "attn_sinks.weight", config.layers[index].head_count, layer.sinks);
}

/// The router, its experts, and what every token uses beside them.
void plan_moe(Planner& plan, size_t index, const ModelConfig& config, LayerWeights& layer,
              WeightMap& map) {
  const std::string prefix = fmt::format("blk.{}.", index);
  const uint64_t hidden = config.hidden_size;
  const uint64_t experts = plan.expert_count(prefix + "ffn_down_exps.weight");
  if (experts < config.expert_used_count || experts > config.expert_count)
    plan.fail(make_error(ErrorKind::corrupt, "layer {} has {} experts; {} are used of {}", index,
                         experts, config.expert_used_count, config.expert_count));
  plan.dense(prefix + "ffn_gate_inp.weight", experts, hidden, layer.router);
  plan.optional_vector(prefix + "ffn_gate_inp.bias", experts, layer.router_bias);
  plan.optional_vector(prefix + "exp_probs_b.bias", experts, layer.selection_bias);
  const uint64_t wide = config.expert_hidden_size;
  plan.optional_floats(prefix + "ffn_gate_exps.bias", experts, wide, layer.expert_biases.gate);
  plan.optional_floats(prefix + "ffn_up_exps.bias", experts, wide, layer.expert_biases.up);
  plan.optional_floats(prefix + "ffn_down_exps.bias", experts, hidden, layer.expert_biases.down);
  map.experts.push_back(plan_experts(plan, prefix, experts, config));
  if (!plan.has(prefix + "ffn_down_shexp.weight")) return;
  plan.dense_ffn(prefix, "_shexp", hidden, layer.shared);
  plan.optional_vector(prefix + "ffn_gate_inp_shexp.weight", hidden, layer.shared_gate);
}

void plan_layer(Planner& plan, size_t index, const ModelConfig& config, WeightMap& map) {
  const std::string prefix = fmt::format("blk.{}.", index);
  LayerWeights& layer = map.dense.layers[index];
  plan_attention(plan, index, config, layer);
  plan.norm(fmt::format("{}{}.weight", prefix, config.architecture->ffn_norm), config.hidden_size,
            layer.ffn_norm);
  if (plan.has(prefix + "ffn_gate_inp.weight") || plan.has(prefix + "ffn_down_exps.weight"))
    return plan_moe(plan, index, config, layer, map);
  plan.dense_ffn(prefix, "", config.hidden_size, layer.ffn);
  map.experts.emplace_back();
}

}  // namespace

const ExpertLayout& WeightMap::first_experts() const {
  return *std::ranges::find_if(experts,
                               [](const ExpertLayout& layer) { return layer.expert_count() > 0; });
}

uint64_t WeightMap::dense_bytes() const {
  uint64_t bytes = 0;
  for (const DenseTensor& tensor : dense_tensors) bytes += tensor.extent.bytes;
  return bytes;
}

uint64_t WeightMap::expert_bytes() const {
  uint64_t bytes = 0;
  for (const ExpertLayout& layer : experts) bytes += layer.expert_bytes() * layer.expert_count();
  return bytes;
}

uint64_t WeightMap::expert_bytes_per_token(const ModelConfig& config) const {
  uint64_t bytes = 0;
  for (const ExpertLayout& layer : experts)
    if (layer.expert_count() > 0) bytes += layer.expert_bytes() * config.expert_used_count;
  return bytes;
}

uint64_t WeightMap::dense_bytes_per_token() const {
  return dense_bytes() - (output_is_embedding ? 0 : dense.embedding.bytes());
}

Result<std::unique_ptr<WeightMap>> plan_weights(const gguf::GgufFile& file, ModelConfig& config) {
  auto map = std::make_unique<WeightMap>();
  map->dense.layers.resize(config.layer_count());
  Planner plan(file, *map);
  plan.dense("token_embd.weight", 0, config.hidden_size, map->dense.embedding);
  config.vocabulary_size = static_cast<uint32_t>(map->dense.embedding.rows);
  plan.optional_vector("rope_freqs.weight", config.rope.rotated_dim / 2, map->dense.rope_divisors);
  plan.norm("output_norm.weight", config.hidden_size, map->dense.output_norm);
  map->output_is_embedding = !plan.has("output.weight");
  if (!map->output_is_embedding)
    plan.dense("output.weight", config.vocabulary_size, config.hidden_size, map->dense.output);
  for (size_t i = 0; i < config.layer_count() && !plan.error(); ++i)
    plan_layer(plan, i, config, *map);
  if (!plan.error() && map->expert_bytes() == 0)
    plan.fail(make_error(ErrorKind::unsupported,
                         "no layer has routed experts; this version runs no dense models"));
  plan.refuse_unused(config.layer_count());
  if (plan.error()) return *plan.error();
  return map;
}

}  // namespace sluice
