// The table of split rules. Beside each stands the expression that its publisher gives, shortened:
// 's is (?i:'s|'t|'re|'ve|'m|'ll|'d), and "white" is \s*[\r\n]+|\s+(?!\S)|\s+. Several names for
// one rule come from the families of models that share it.
#include "text/split_deepseek_llm.h"
#include "text/splitter.h"

namespace sluice::text {
namespace {

/// 's|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|white
constexpr SplitRule triples(std::string_view name) {
  return {.name = name, .digits_max = 3};
}

/// The same, for families that look a word up before they merge; they begin with a BOS.
constexpr SplitRule llama3(std::string_view name) {
  SplitRule rule = triples(name);
  rule.adds_bos = true;
  rule.whole_tokens = true;
  return rule;
}

/// 's|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|white
constexpr SplitRule digits(std::string_view name, Normalization normalization) {
  return {.name = name, .normalization = normalization};
}

/// 's|[^\r\n\p{L}\p{N}]?[\p{L}\p{M}]+|\p{N}| ?[^\s\p{L}\p{M}\p{N}]+[\r\n]*|white
constexpr SplitRule digits_and_marks(std::string_view name) {
  return {.name = name,
          .upper = kLetters | kMark,
          .lower = kLetters | kMark,
          .signs = kSigns | kUnnamed};
}

/// [^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+('s)?
/// |[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*('s)?
/// |\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n/]*|white
constexpr SplitRule o200k(std::string_view name) {
  return {.name = name,
          .contractions = Contractions::endings,
          .upper = kUpper | kUncased | kMark,
          .lower = kLower | kUncased | kMark,
          .digits_max = 3,
          .sign_tail = kNewline | kSlash};
}

/// The same without 's, and every digit alone.
constexpr SplitRule tekken(std::string_view name) {
  SplitRule rule = o200k(name);
  rule.adds_bos = true;
  rule.whole_tokens = true;
  rule.contractions = Contractions::none;
  rule.digits_max = 1;
  return rule;
}

/// [\p{Han}]+, then as o200k with no Han among the letters, and newlines alone after signs.
constexpr SplitRule kimi(std::string_view name) {
  SplitRule rule = o200k(name);
  rule.script = Script::han;
  rule.sign_tail = kNewline;
  return rule;
}

/// \p{N}{1,3} is cut out, then [一-龥぀-ゟ゠-ヿ]+, then [!-/:-@[-`{-~][A-Za-z]+
/// |[^\r\n\p{L}\p{P}\p{S}]?[\p{L}\p{M}]+| ?[\p{P}\p{S}]+[\r\n]*|white
constexpr SplitRule deepseek_v3(std::string_view name) {
  return {.name = name,
          .contractions = Contractions::none,
          .script = Script::ideographs_and_kana,
          .cut = kNumber | kScript,
          .prefix = kMark | kSpace | kBlank | kUnnamed,
          .upper = kLetters | kMark,
          .lower = kLetters | kMark,
          .digits_max = 3,
          .signs = kSigns,
          .sign_words = true};
}

/// 's|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+
constexpr SplitRule gpt2(std::string_view name, Normalization normalization) {
  return {.name = name,
          .normalization = normalization,
          .contractions = Contractions::lower_case_words,
          .prefix = kSpace,
          .number_prefix = kSpace,
          .digits_max = 0,
          .sign_tail = 0,
          .lines_end = false};
}

/// \p{N} is cut out, then as gpt2.
constexpr SplitRule gpt2_digits(std::string_view name) {
  SplitRule rule = gpt2(name, Normalization::none);
  rule.cut = kNumber;
  rule.number_prefix = 0;
  rule.digits_max = 1;
  return rule;
}

constexpr SplitRule kRules[] = {
    digits("qwen2", Normalization::nfc),
    digits("deepseek-r1-qwen", Normalization::nfc),
    digits("hunyuan", Normalization::none),
    digits("bailingmoe", Normalization::none),
    digits("bailingmoe2", Normalization::none),
    digits("llada-moe", Normalization::none),
    digits("megrez", Normalization::nfc),
    digits_and_marks("qwen35"),
    llama3("llama-bpe"),
    llama3("llama3"),
    llama3("llama-v3"),
    llama3("lfm2"),
    llama3("falcon3"),
    llama3("pixtral"),
    triples("glm4"),
    triples("chatglm-bpe"),
    triples("dbrx"),
    triples("smaug-bpe"),
    o200k("gpt-4o"),
    o200k("llama4"),
    o200k("minimax-m2"),
    tekken("tekken"),
    kimi("kimi-k2"),
    deepseek_v3("deepseek-v3"),
    deepseek_v3("hunyuan-dense"),
    deepseek_v3("joyai-llm"),
    {.name = "deepseek-llm", .scan = deepseek_llm_word_end},
    gpt2("gpt-2", Normalization::none),
    gpt2("olmo", Normalization::nfc),
    gpt2_digits("refact"),
    gpt2_digits("starcoder"),
    gpt2_digits("smollm"),
};

}  // namespace

const SplitRule* find_split_rule(std::string_view name) {
  for (const SplitRule& rule : kRules)
    if (rule.name == name) return &rule;
  return nullptr;
}

std::string split_rule_names() {
  std::string names;
  for (const SplitRule& rule : kRules) {
    if (!names.empty()) names += ", ";
    names += rule.name;
  }
  return names;
}

}  // namespace sluice::text
