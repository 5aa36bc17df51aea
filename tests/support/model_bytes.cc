#include "tests/support/model_bytes.h"

#include <algorithm>
#include <cstring>
#include <fstream>
#include <variant>

#include "base/random.h"

namespace sluice {
namespace {

std::vector<std::byte> read_file(const std::string& path, uint64_t bytes) {
  std::vector<std::byte> content(bytes);
  std::ifstream file(path, std::ios::binary);
  file.read(reinterpret_cast<char*>(content.data()), static_cast<std::streamsize>(bytes));
  CHECK(file.good());
  return content;
}

bool ends_with(const gguf::Tensor& tensor, std::string_view ending) {
  return tensor.name.ends_with(ending);
}

void write(const gguf::GgufWriter& writer, const std::string& path) {
  const Status written = writer.write(path);
  CHECK(written.ok());
}

}  // namespace

std::unique_ptr<ModelBytes> ModelBytes::open(const std::string& path) {
  auto header = gguf::GgufFile::open(path);
  CHECK(header.ok());
  std::unique_ptr<ModelBytes> model(new ModelBytes(std::move(*header)));
  auto config = read_config(model->header_, Log(LogLevel::quiet));
  CHECK(config.ok());
  model->config_ = std::move(*config);
  auto weights = plan_weights(model->header_, model->config_);
  CHECK(weights.ok());
  model->weights_ = std::move(*weights);
  for (size_t i = 0; i < model->header_.paths().size(); ++i)
    model->files_.push_back(read_file(model->header_.paths()[i], model->header_.file_bytes()[i]));
  for (const DenseTensor& tensor : model->weights_->dense_tensors)
    tensor.matrix->data = model->bytes_of(tensor.extent).data();
  model->transposed_.resize(model->weights_->transposed_bytes());
  model->weights_->transpose_weights(model->transposed_.data());
  return model;
}

void copy_keys(const gguf::GgufFile& from, gguf::GgufWriter& to,
               const std::vector<std::string>& skipped) {
  for (const auto& [key, value] : from.values()) {
    if (key.starts_with("split.") || std::ranges::find(skipped, key) != skipped.end()) continue;
    std::visit(
        [&to, &name = key](const auto& stored) {
          using Stored = std::decay_t<decltype(stored)>;
          if constexpr (gguf::Storable<Stored>)
            to.set(name, stored);
          else if constexpr (!std::same_as<Stored, gguf::NestedArray>)
            to.set_array(name, stored);
        },
        value);
  }
}

void write_merged_twin(const ModelBytes& model, const std::string& path) {
  gguf::GgufWriter writer;
  copy_keys(model.header(), writer);
  std::vector<std::vector<std::byte>> merged;
  merged.reserve(model.header().tensors().size());  // the writer keeps spans of them
  for (const gguf::Tensor& tensor : model.header().tensors()) {
    if (ends_with(tensor, "ffn_up_exps.weight")) continue;
    const auto bytes = model.bytes_of(tensor.extent);
    if (!ends_with(tensor, "ffn_gate_exps.weight")) {
      writer.add_tensor(tensor.name, tensor.dtype, tensor.shape, bytes);
      continue;
    }
    const std::string prefix = tensor.name.substr(0, tensor.name.find("ffn_"));
    const gguf::Tensor* up = model.header().find_tensor(prefix + "ffn_up_exps.weight");
    CHECK(up != nullptr && up->dtype == tensor.dtype);
    const auto up_bytes = model.bytes_of(up->extent);
    const size_t experts = tensor.shape[2];
    const size_t size = bytes.size() / experts;
    std::vector<std::byte>& both = merged.emplace_back();
    for (size_t expert = 0; expert < experts; ++expert)
      for (const auto half : {bytes, up_bytes}) {
        const auto slice = half.subspan(expert * size, size);
        both.insert(both.end(), slice.begin(), slice.end());
      }
    writer.add_tensor(prefix + "ffn_gate_up_exps.weight", tensor.dtype,
                      {tensor.shape[0], 2 * tensor.shape[1], experts}, both);
  }
  write(writer, path);
}

void write_with_more_experts(const ModelBytes& model, uint64_t expert_count,
                             const std::string& path) {
  const std::string count_key = std::string(model.config().architecture->name) + ".expert_count";
  gguf::GgufWriter writer;
  copy_keys(model.header(), writer, {count_key});
  writer.set(count_key, expert_count);
  for (const gguf::Tensor& tensor : model.header().tensors()) {
    const auto bytes = model.bytes_of(tensor.extent);
    auto shape = tensor.shape;
    if (ends_with(tensor, "_exps.weight")) {
      shape[2] = expert_count;
      writer.add_tensor(tensor.name, tensor.dtype, shape,
                        [bytes](uint64_t offset, std::span<std::byte> piece) {
                          for (std::byte& b : piece) b = bytes[offset++ % bytes.size()];
                          return Status();
                        });
    } else if (ends_with(tensor, "ffn_gate_inp.weight")) {
      shape[1] = expert_count;
      writer.add_tensor(tensor.name, Dtype::f32, shape,
                        [random = Random(1)](uint64_t, std::span<std::byte> piece) mutable {
                          for (size_t i = 0; i < piece.size(); i += sizeof(float)) {
                            const auto weight = static_cast<float>(random.uniform() - 0.5);
                            std::memcpy(piece.data() + i, &weight, sizeof(weight));
                          }
                          return Status();
                        });
    } else {
      writer.add_tensor(tensor.name, tensor.dtype, shape, bytes);
    }
  }
  write(writer, path);
}

void write_with_fewer_experts(const ModelBytes& model, uint32_t layer, uint64_t expert_count,
                              const std::string& path) {
  gguf::GgufWriter writer;
  copy_keys(model.header(), writer);
  for (const gguf::Tensor& tensor : model.header().tensors()) {
    auto bytes = model.bytes_of(tensor.extent);
    auto shape = tensor.shape;
    const bool is_cut = ends_with(tensor, "_exps.weight") || ends_with(tensor, "_inp.weight");
    if (is_cut && tensor.name.starts_with(fmt::format("blk.{}.", layer))) {
      bytes = bytes.first(bytes.size() / shape.back() * expert_count);
      shape.back() = expert_count;
    }
    writer.add_tensor(tensor.name, tensor.dtype, shape, bytes);
  }
  write(writer, path);
}

}  // namespace sluice
