// How fast a vocabulary's text becomes tokens, on one core: megabytes a second of CPU time.
//
//   bench_tokenizer MODEL.gguf TEXT...
//
// The texts, one after the other and again until there are 10 MB, are tokenized as a whole. Then
// a megabyte of each of some single characters, for which a tokenizer that is not linear shows
// itself; the slowest is named.
#include <fmt/format.h>

#include <ctime>
#include <fstream>
#include <iterator>
#include <string>
#include <string_view>

#include "engine/model_files.h"
#include "gguf/gguf_file.h"
#include "text/tokenizer.h"

namespace {

using sluice::text::Tokenizer;

constexpr double kMegabyte = 1e6;

std::string repeated(std::string_view unit, size_t bytes) {
  std::string text;
  while (!unit.empty() && text.size() < bytes) text += unit;
  return text;
}

/// The CPU time of the fastest of three.
double seconds(const Tokenizer& tokenizer, std::string_view text, size_t& token_count) {
  double fastest = 1e9;
  for (int round = 0; round < 3; ++round) {
    const std::clock_t start = std::clock();
    token_count = tokenizer.tokenize(text, {}).size();
    fastest = std::min(fastest, static_cast<double>(std::clock() - start) / CLOCKS_PER_SEC);
  }
  return fastest;
}

void measure(const Tokenizer& tokenizer, std::string_view text) {
  size_t tokens = 0;
  const double mixed_s = seconds(tokenizer, text, tokens);
  const double megabytes = static_cast<double>(text.size()) / kMegabyte;
  fmt::print("{:.1f} MB in {:.2f} s: {:.1f} MB/s, {} tokens\n", megabytes, mixed_s,
             megabytes / mixed_s, tokens);
  double slowest_s = 0;
  std::string_view slowest;
  for (const std::string_view unit :
       {"a", "A", " ", "\n", "\t", "7", "'", "<", ".", "\xff", "é", "\u0301", "中", "한", "🚀"}) {
    const double unit_s = seconds(tokenizer, repeated(unit, size_t{1} << 20), tokens);
    if (unit_s <= slowest_s) continue;
    slowest_s = unit_s;
    slowest = unit;
  }
  fmt::print("1 MB of one character: {:.2f} s at most ({:?})\n", slowest_s, slowest);
}

int run(int argument_count, char** arguments) {
  std::string unit;
  for (int i = 2; i < argument_count; ++i) {
    std::ifstream file(arguments[i], std::ios::binary);
    unit.append(std::istreambuf_iterator<char>(file), {});
  }
  if (unit.empty()) {
    fmt::print(stderr, "bench_tokenizer MODEL.gguf TEXT...\n");
    return 2;
  }
  auto file = sluice::gguf::GgufFile::open(arguments[1]);
  auto vocabulary = file ? sluice::read_vocabulary(*file) : file.error();
  auto tokenizer = vocabulary ? Tokenizer::make(*std::move(vocabulary)) : vocabulary.error();
  if (!tokenizer) {
    fmt::print(stderr, "{}\n", tokenizer.error().message);
    return 1;
  }
  measure(**tokenizer, repeated(unit, size_t{10} << 20));
  return 0;
}

}  // namespace

int main(int argument_count, char** arguments) {
  return run(argument_count, arguments);
}
