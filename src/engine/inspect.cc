#include "engine/inspect.h"

#include <algorithm>
#include <charconv>
#include <map>
#include <set>

#include "backend/sequence_state.h"
#include "engine/model_files.h"
#include "engine/options.h"

namespace sluice {
namespace {

/// "blk.7.ffn_gate_exps.weight" taken apart; the names that every family uses.
struct ExpertTensorName {
  uint32_t layer = 0;
  std::string kind;  ///< "gate"
};

std::optional<ExpertTensorName> parse_expert_name(std::string_view name) {
  constexpr std::string_view kBlock = "blk.";
  constexpr std::string_view kFfn = ".ffn_";
  constexpr std::string_view kExperts = "_exps.weight";
  if (!name.starts_with(kBlock) || !name.ends_with(kExperts)) return std::nullopt;
  name.remove_prefix(kBlock.size());
  name.remove_suffix(kExperts.size());
  const size_t dot = name.find(kFfn);
  uint32_t layer = 0;
  const auto [end, status] = std::from_chars(name.data(), name.data() + name.size(), layer);
  if (status != std::errc{} || dot == std::string_view::npos || end != name.data() + dot)
    return std::nullopt;
  return ExpertTensorName{layer, std::string(name.substr(dot + kFfn.size()))};
}

/// The places of the tensors that a runnable model uses.
struct UsedTensors {
  std::set<std::pair<uint32_t, uint64_t>> dense, experts;  ///< (shard, offset)
};

UsedTensors used_tensors(const WeightMap& map) {
  UsedTensors used;
  for (const DenseTensor& tensor : map.dense_tensors)
    used.dense.emplace(tensor.extent.file, tensor.extent.offset);
  for (const ExpertLayout& layer : map.experts)
    for (const ExpertPart& part : layer.parts())
      used.experts.emplace(part.first_expert.file, part.first_expert.offset);
  return used;
}

Residence residence_of(const gguf::Tensor& tensor, const std::optional<UsedTensors>& used) {
  if (!used) {
    const bool expert = parse_expert_name(tensor.name) && tensor.shape.size() == 3;
    return expert ? Residence::streamed : Residence::resident;
  }
  const std::pair place{tensor.extent.file, tensor.extent.offset};
  if (used->experts.contains(place)) return Residence::streamed;
  return used->dense.contains(place) ? Residence::resident : Residence::unused;
}

void list_tensors(const gguf::GgufFile& file, const std::optional<UsedTensors>& used,
                  ModelReport& report) {
  std::map<Dtype, ModelReport::TypeRow> types;
  for (const gguf::Tensor& tensor : file.tensors()) {
    const DtypeInfo& info = dtype_info(tensor.dtype);
    report.tensors.push_back({.name = tensor.name,
                              .type = info.name,
                              .shape = tensor.shape,
                              .bytes = tensor.extent.bytes,
                              .shard = tensor.extent.file,
                              .residence = residence_of(tensor, used)});
    ModelReport::TypeRow& row = types[tensor.dtype];
    row = {info.name, row.tensor_count + 1, row.bytes + tensor.extent.bytes,
           info.decode != nullptr};
  }
  for (const auto& [dtype, row] : types) report.types.push_back(row);
  std::ranges::stable_sort(report.types, std::greater{}, &ModelReport::TypeRow::bytes);
}

/// Reading order: what is needed first comes first.
int rank_of(const ModelReport::PartRow& part) {
  return part.kind == "down" ? 2 : part.kind == "up" ? 1 : 0;
}

void list_experts(ModelReport& report) {
  std::map<uint32_t, ModelReport::ExpertLayer> layers;
  for (const ModelReport::TensorRow& tensor : report.tensors) {
    if (tensor.residence != Residence::streamed) continue;
    const auto name = parse_expert_name(tensor.name);
    CHECK(name && tensor.shape.size() == 3);
    ModelReport::ExpertLayer& layer = layers[name->layer];
    layer.layer = name->layer;
    layer.expert_count = tensor.shape[2];
    layer.parts.push_back({name->kind, tensor.type, tensor.bytes / tensor.shape[2]});
  }
  for (auto& [index, layer] : layers) {
    std::ranges::stable_sort(layer.parts, {}, rank_of);
    report.expert_layers.push_back(std::move(layer));
  }
}

ModelReport::KvRow kv_row(const ModelConfig& config, KvType type) {
  return {SequenceState::bytes_per_token(config, type),
          SequenceState::fixed_bytes(config, EngineOptions{}.ubatch_tokens, type)};
}

/// What only a supported architecture tells. The error says why the model cannot be run.
Status describe_run(const gguf::GgufFile& file, ModelReport& report,
                    std::optional<UsedTensors>& used) {
  if (file.tensors().empty())
    return make_error(ErrorKind::unsupported, "it holds {}no weights",
                      report.vocabulary_tokens > 0 ? "a vocabulary and " : "");
  auto config = read_config(file, Log(LogLevel::quiet));
  if (!config) return config.error();
  report.layer_count = config->layer_count();
  report.context_trained_tokens = config->context_trained_tokens;
  report.router = describe_router(*config);
  report.kv_f16 = kv_row(*config, KvType::f16);
  report.kv_f32 = kv_row(*config, KvType::f32);
  report.kv_q8_0 = kv_row(*config, KvType::q8_0);
  auto weights = plan_weights(file, *config);
  if (!weights) return weights.error();
  report.dense_bytes_per_token = (*weights)->dense_bytes_per_token();
  used = used_tensors(**weights);
  auto vocabulary = read_vocabulary(file);
  if (!vocabulary) return vocabulary.error();
  if (auto made = text::Tokenizer::make(std::move(*vocabulary)); !made) return made.error();
  return {};
}

/// A text of the file; one of another type counts as missing.
std::string text_of(const gguf::GgufFile& file, std::string_view key) {
  const auto text = file.find_text(key);
  return text.ok() ? text->value_or("") : std::string();
}

uint32_t used_count_of(const gguf::GgufFile& file, const std::string& architecture) {
  const auto count = file.find_uint(architecture + ".expert_used_count");
  constexpr uint64_t kMost = 65536;  // a larger one is damage, and would overflow the sums
  return count.ok() ? static_cast<uint32_t>(std::min(count->value_or(0), kMost)) : 0;
}

}  // namespace

std::string_view residence_name(Residence residence) {
  constexpr std::string_view kNames[] = {"resident", "streamed", "unused"};
  return kNames[static_cast<size_t>(residence)];
}

uint64_t ModelReport::ExpertLayer::expert_bytes() const {
  uint64_t bytes = 0;
  for (const PartRow& part : parts) bytes += part.bytes;
  return bytes;
}

uint64_t ModelReport::bytes_of(Residence residence) const {
  uint64_t bytes = 0;
  for (const TensorRow& tensor : tensors)
    if (tensor.residence == residence) bytes += tensor.bytes;
  return bytes;
}

size_t ModelReport::count_of(Residence residence) const {
  return static_cast<size_t>(std::ranges::count(tensors, residence, &TensorRow::residence));
}

uint64_t ModelReport::file_bytes() const {
  uint64_t bytes = 0;
  for (const Shard& shard : shards) bytes += shard.bytes;
  return bytes;
}

uint64_t ModelReport::bytes_per_token() const {
  uint64_t bytes = 0;
  for (const ExpertLayer& layer : expert_layers) bytes += layer.expert_bytes() * used_count;
  return bytes;
}

Result<ModelReport> inspect_model(const std::string& path) {
  auto file = gguf::GgufFile::open(path);
  if (!file) return file.error();
  ModelReport report;
  report.architecture = text_of(*file, "general.architecture");
  report.name = text_of(*file, "general.name");
  report.version = file->version();
  for (size_t i = 0; i < file->paths().size(); ++i)
    report.shards.push_back({file->paths()[i], file->file_bytes()[i]});
  report.file_name = display_name_of(*file);
  if (const auto tokens = file->find_texts("tokenizer.ggml.tokens"); tokens.ok() && *tokens)
    report.vocabulary_tokens = (*tokens)->size();
  report.used_count = used_count_of(*file, report.architecture);

  std::optional<UsedTensors> used;
  if (const Status runs = describe_run(*file, report, used); !runs)
    report.cannot_run = runs.error().message;
  list_tensors(*file, used, report);
  list_experts(report);
  return report;
}

}  // namespace sluice
