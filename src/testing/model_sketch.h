// A model file made up for one test: a complete, tiny qwen3moe model whose keys and tensors can be
// changed, added and taken away before it is opened or written. Weights are zeros where only the
// header is tested, and random numbers where the model is to run. Tests only; one thread at a time.
#pragma once

#include <functional>
#include <map>
#include <string>
#include <vector>

#include "gguf/gguf_file.h"
#include "gguf/gguf_writer.h"

namespace sluice {

/// 2 layers, hidden size 64, 4 heads over 2 key/value heads of 16, 6 experts of 32 of which 2 are
/// used, a vocabulary of 40, all in F32.
class ModelSketch {
 public:
  struct Tensor {
    std::string name;
    Dtype dtype = Dtype::f32;
    std::vector<uint64_t> shape;
  };

  ModelSketch();

  template <gguf::Storable T>
  ModelSketch& set(const std::string& key, const T& value) {
    keys_[key] = [value](const std::string& name, gguf::GgufWriter& writer) {
      writer.set(name, value);
    };
    return *this;
  }
  ModelSketch& set(const std::string& key, const char* text) { return set(key, std::string(text)); }
  template <gguf::Storable T>
  ModelSketch& set_array(const std::string& key, const std::vector<T>& values) {
    keys_[key] = [values](const std::string& name, gguf::GgufWriter& writer) {
      writer.set_array(name, values);
    };
    return *this;
  }
  ModelSketch& erase_key(const std::string& key);
  /// Says that the file is of another family; the keys of the old one become those of the new.
  ModelSketch& rename_architecture(const std::string& name);

  /// Replaces the tensor of this name where it stands, or adds it at the end.
  ModelSketch& set_tensor(const std::string& name, Dtype dtype, std::vector<uint64_t> shape);
  ModelSketch& erase_tensor(const std::string& name);

  const std::vector<Tensor>& tensors() const { return tensors_; }

  /// Writes the file, opens it and removes it again: only the header can be read.
  gguf::GgufFile open() const;
  /// Writes a file with numbers from −1/2 to 1/2 for weights. REQUIRES: all tensors are F32.
  void write_random(const std::string& path, uint64_t seed) const;

 private:
  using Fill = std::function<void(std::span<std::byte> piece)>;
  void write(const std::string& path, const Fill& fill) const;

  using Write = std::function<void(const std::string& key, gguf::GgufWriter& writer)>;

  std::map<std::string, Write> keys_;
  std::vector<Tensor> tensors_;
};

}  // namespace sluice
