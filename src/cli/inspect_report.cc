#include "cli/inspect_report.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/units.h"
#include "cli/report_text.h"

namespace sluice::cli {
namespace {

using nlohmann::ordered_json;

std::string counted(uint64_t count, std::string_view thing) {
  return fmt::format("{} {}{}", count, thing, count == 1 ? "" : "s");
}

std::string file_section(const ModelReport& model) {
  std::string text = fmt::format("{}\n", model.file_name);
  text += line("architecture", model.architecture.empty() ? "not said" : shown(model.architecture));
  if (!model.name.empty()) text += line("name", shown(model.name));
  text += line(
      "file",
      fmt::format("GGUF version {}, {} in {}, {}", model.version, format_bytes(model.file_bytes()),
                  counted(model.shards.size(), "file"), counted(model.tensors.size(), "tensor")));
  if (model.vocabulary_tokens > 0)
    text += line("vocabulary", counted(model.vocabulary_tokens, "token"));
  if (model.layer_count > 0) text += line("layers", std::to_string(model.layer_count));
  if (model.context_trained_tokens > 0)
    text += line("context", fmt::format("{} trained positions", model.context_trained_tokens));
  if (!model.router.empty()) text += line("router", model.router);
  text += line("can be run", model.cannot_run.empty() ? "yes" : "no: " + shown(model.cannot_run));
  return text;
}

std::string type_section(const ModelReport& model) {
  if (model.types.empty()) return {};
  std::string text = "\nTensor types\n";
  for (const auto& row : model.types)
    text += fmt::format("  {:<10}{:>6} tensors{:>13}{}\n", row.type, row.tensor_count,
                        format_bytes(row.bytes), row.supported ? "" : "   not supported");
  return text;
}

std::string residence_section(const ModelReport& model) {
  if (model.tensors.empty()) return {};
  std::string text = "\nWhere weights live\n";
  const auto row = [&](Residence residence, std::string_view what) {
    if (model.count_of(residence) == 0) return;
    text += fmt::format("  {:<10}{:>6} tensors{:>13}   {}\n", residence_name(residence),
                        model.count_of(residence), format_bytes(model.bytes_of(residence)), what);
  };
  row(Residence::resident, "in memory from load to end");
  row(Residence::streamed, "routed experts, read when needed");
  row(Residence::unused, "never read");
  return text;
}

/// A line for layers first to last, whose experts are alike.
std::string expert_line(const ModelReport::ExpertLayer& first, uint32_t last) {
  const std::string layers =
      first.layer == last ? std::to_string(last) : fmt::format("{} to {}", first.layer, last);
  std::string parts;
  for (const auto& part : first.parts)
    parts += fmt::format("   {} {} {}", part.kind, part.type, format_bytes(part.bytes));
  return fmt::format("  {:<9}{:>5} of {:>10}:{}\n", layers, first.expert_count,
                     format_bytes(first.expert_bytes()), parts);
}

std::string expert_section(const ModelReport& model) {
  if (model.expert_layers.empty()) return {};
  std::string text = "\nRouted experts of each layer\n";
  const auto alike = [](const auto& a, const auto& b) {
    return a.expert_count == b.expert_count && a.parts == b.parts && b.layer == a.layer + 1;
  };
  for (auto first = model.expert_layers.begin(); first != model.expert_layers.end();) {
    auto last = first;
    while (last + 1 != model.expert_layers.end() && alike(*last, *(last + 1))) ++last;
    text += expert_line(*first, last->layer);
    first = last + 1;
  }
  return text;
}

std::string token_section(const ModelReport& model) {
  std::string text;
  if (model.bytes_per_token() > 0)
    text += line("experts",
                 fmt::format("{} in each of {}, {} together", counted(model.used_count, "expert"),
                             counted(model.expert_layers.size(), "MoE layer"),
                             format_bytes(model.bytes_per_token())));
  if (model.dense_bytes_per_token > 0)
    text += line("dense", fmt::format("{} of the resident weights",
                                      format_bytes(model.dense_bytes_per_token)));
  const auto kv_line = [&](uint64_t ModelReport::KvRow::*bytes) {
    return fmt::format("{} (--kv f16), {} (--kv f32), {} (--kv q8_0)",
                       format_bytes(model.kv_f16.*bytes), format_bytes(model.kv_f32.*bytes),
                       format_bytes(model.kv_q8_0.*bytes));
  };
  if (model.kv_f16.bytes_per_token > 0)
    text += line("KV cache", kv_line(&ModelReport::KvRow::bytes_per_token));
  if (model.kv_f16.fixed_bytes > 0)
    text +=
        line("and at most", kv_line(&ModelReport::KvRow::fixed_bytes) + ", however many tokens");
  if (!text.empty()) text.insert(0, "\nA token\n");
  if (model.bytes_per_token() == 0) return text;
  text += "\nFloors of the expert cache\n";
  text += line("useful", fmt::format("{}: {} experts, all that one token uses",
                                     format_bytes(model.bytes_per_token()), model.cycle_experts()));
  text += line("possible", fmt::format("{} slots in each layer (--moe-stream-cache {}s)",
                                       model.used_count, model.used_count));
  return text;
}

ordered_json experts_json(const ModelReport& model) {
  auto layers = ordered_json::array();
  for (const auto& layer : model.expert_layers) {
    auto parts = ordered_json::array();
    for (const auto& part : layer.parts)
      parts.push_back({{"kind", part.kind}, {"type", part.type}, {"bytes", part.bytes}});
    layers.push_back({{"layer", layer.layer},
                      {"experts", layer.expert_count},
                      {"expert_bytes", layer.expert_bytes()},
                      {"parts", parts}});
  }
  return layers;
}

ordered_json tensors_json(const ModelReport& model) {
  auto tensors = ordered_json::array();
  for (const auto& tensor : model.tensors)
    tensors.push_back({{"name", tensor.name},
                       {"type", tensor.type},
                       {"shape", tensor.shape},
                       {"bytes", tensor.bytes},
                       {"shard", tensor.shard},
                       {"residence", residence_name(tensor.residence)}});
  return tensors;
}

}  // namespace

ordered_json inspect_json(const ModelReport& model) {
  auto shards = ordered_json::array();
  for (const auto& shard : model.shards)
    shards.push_back({{"path", shard.path}, {"bytes", shard.bytes}});
  auto types = ordered_json::array();
  for (const auto& row : model.types)
    types.push_back({{"type", row.type},
                     {"tensors", row.tensor_count},
                     {"bytes", row.bytes},
                     {"supported", row.supported}});
  return {{"model", model.file_name},
          {"architecture", model.architecture},
          {"name", model.name},
          {"version", model.version},
          {"shards", shards},
          {"vocabulary", model.vocabulary_tokens},
          {"can_run", model.cannot_run.empty()},
          {"reason", model.cannot_run},
          {"layers", model.layer_count},
          {"context", model.context_trained_tokens},
          {"router", model.router},
          {"types", types},
          {"resident_bytes", model.bytes_of(Residence::resident)},
          {"streamed_bytes", model.bytes_of(Residence::streamed)},
          {"unused_bytes", model.bytes_of(Residence::unused)},
          {"experts_used", model.used_count},
          {"expert_layers", experts_json(model)},
          {"bytes_per_token", model.bytes_per_token()},
          {"dense_bytes_per_token", model.dense_bytes_per_token},
          {"kv_bytes_per_token",
           {{"f16", model.kv_f16.bytes_per_token},
            {"f32", model.kv_f32.bytes_per_token},
            {"q8_0", model.kv_q8_0.bytes_per_token}}},
          {"kv_fixed_bytes",
           {{"f16", model.kv_f16.fixed_bytes},
            {"f32", model.kv_f32.fixed_bytes},
            {"q8_0", model.kv_q8_0.fixed_bytes}}},
          {"floors",
           {{"cache_experts", model.cycle_experts()},
            {"cache_bytes", model.bytes_per_token()},
            {"slots_per_layer", model.used_count}}},
          {"tensors", tensors_json(model)}};
}

std::string inspect_text(const ModelReport& model) {
  return file_section(model) + type_section(model) + residence_section(model) +
         expert_section(model) + token_section(model);
}

std::string tensor_table(const ModelReport& model) {
  size_t widest = 0;
  for (const auto& tensor : model.tensors) widest = std::max(widest, tensor.name.size());
  std::string text = "\nTensors\n";
  for (const auto& tensor : model.tensors)
    text += fmt::format("  {:<{}}  {:<7} {:>12}  {:<8}  [{}]\n", shown(tensor.name), widest,
                        tensor.type, format_bytes(tensor.bytes), residence_name(tensor.residence),
                        fmt::join(tensor.shape, ", "));
  return text;
}

}  // namespace sluice::cli
