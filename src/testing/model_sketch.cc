#include "testing/model_sketch.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "base/check.h"
#include "base/random.h"
#include "testing/temp_folder.h"

namespace sluice {

ModelSketch::ModelSketch() {
  set("general.architecture", "qwen3moe");
  set("qwen3moe.block_count", uint32_t{2});
  set("qwen3moe.context_length", uint32_t{1000});
  set("qwen3moe.embedding_length", uint32_t{64});
  set("qwen3moe.attention.head_count", uint32_t{4});
  set("qwen3moe.attention.head_count_kv", uint32_t{2});
  set("qwen3moe.attention.key_length", uint32_t{16});
  set("qwen3moe.attention.layer_norm_rms_epsilon", 1e-5f);
  set("qwen3moe.rope.freq_base", 1e6f);
  set("qwen3moe.expert_count", uint32_t{6});
  set("qwen3moe.expert_used_count", uint32_t{2});
  set("qwen3moe.expert_feed_forward_length", uint32_t{32});
  set_tensor("token_embd.weight", Dtype::f32, {64, 40});
  for (int layer = 0; layer < 2; ++layer) {
    const auto name = [&](const char* part) {
      return fmt::format("blk.{}.{}.weight", layer, part);
    };
    set_tensor(name("attn_norm"), Dtype::f32, {64});
    set_tensor(name("attn_q"), Dtype::f32, {64, 64});
    set_tensor(name("attn_k"), Dtype::f32, {64, 32});
    set_tensor(name("attn_v"), Dtype::f32, {64, 32});
    set_tensor(name("attn_output"), Dtype::f32, {64, 64});
    set_tensor(name("attn_q_norm"), Dtype::f32, {16});
    set_tensor(name("attn_k_norm"), Dtype::f32, {16});
    set_tensor(name("ffn_norm"), Dtype::f32, {64});
    set_tensor(name("ffn_gate_inp"), Dtype::f32, {64, 6});
    set_tensor(name("ffn_gate_exps"), Dtype::f32, {64, 32, 6});
    set_tensor(name("ffn_up_exps"), Dtype::f32, {64, 32, 6});
    set_tensor(name("ffn_down_exps"), Dtype::f32, {32, 64, 6});
  }
  set_tensor("output_norm.weight", Dtype::f32, {64});
  set_tensor("output.weight", Dtype::f32, {64, 40});
}

ModelSketch& ModelSketch::erase_key(const std::string& key) {
  CHECK(keys_.contains(key));
  keys_.erase(key);
  return *this;
}

ModelSketch& ModelSketch::rename_architecture(const std::string& name) {
  std::map<std::string, Write> renamed;
  for (const auto& [key, write] : keys_) {
    constexpr std::string_view kOldName = "qwen3moe";
    renamed[key.starts_with(kOldName) ? name + key.substr(kOldName.size()) : key] = write;
  }
  keys_ = std::move(renamed);
  return set("general.architecture", name);
}

ModelSketch& ModelSketch::set_tensor(const std::string& name, Dtype dtype,
                                     std::vector<uint64_t> shape) {
  const auto place = std::ranges::find(tensors_, name, &Tensor::name);
  if (place == tensors_.end())
    tensors_.push_back({name, dtype, std::move(shape)});
  else
    *place = {name, dtype, std::move(shape)};
  return *this;
}

ModelSketch& ModelSketch::erase_tensor(const std::string& name) {
  const auto place = std::ranges::find(tensors_, name, &Tensor::name);
  CHECK(place != tensors_.end());
  tensors_.erase(place);
  return *this;
}

void ModelSketch::write(const std::string& path, const Fill& fill) const {
  gguf::GgufWriter writer;
  for (const auto& [key, write] : keys_) write(key, writer);
  for (const Tensor& tensor : tensors_)
    writer.add_tensor(tensor.name, tensor.dtype, tensor.shape,
                      [&fill](uint64_t, std::span<std::byte> piece) {
                        fill(piece);
                        return Status();
                      });
  CHECK(writer.write(path).ok());
}

void ModelSketch::write_random(const std::string& path, uint64_t seed) const {
  Random random(seed);
  write(path, [&random](std::span<std::byte> piece) {
    for (size_t i = 0; i < piece.size(); i += sizeof(float)) {
      const auto weight = static_cast<float>(random.uniform() - 0.5);
      std::memcpy(piece.data() + i, &weight, sizeof(weight));
    }
  });
}

gguf::GgufFile ModelSketch::open() const {
  const TempFolder folder;
  const std::string path = folder.path() + "/sketch.gguf";
  write(path, [](std::span<std::byte> piece) { std::ranges::fill(piece, std::byte{0}); });
  auto file = gguf::GgufFile::open(path);
  CHECK(file.ok());
  return std::move(*file);
}

}  // namespace sluice
