#include "jinja/template.h"

#include <gtest/gtest.h>

#include "base/random.h"
#include "jinja/chat.h"

namespace sluice::jinja {
namespace {

Variables variables_from(const char* json) {
  Variables variables;
  const Json tree = Json::parse(json);
  for (const auto& entry : tree.items()) variables[entry.key()] = value_of(entry.value()).value();
  return variables;
}

Result<std::vector<Span>> spans_of(std::string_view source, const char* json = "{}",
                                   const Limits& limits = {}) {
  const auto parsed = Template::parse(source);
  if (!parsed) return parsed.error();
  return parsed->render(variables_from(json), {.limits = limits});
}

std::string rendered(std::string_view source, const char* json = "{}") {
  const auto spans = spans_of(source, json);
  return spans.ok() ? text_of(*spans) : "error: " + spans.error().message;
}

TEST(Template, BlocksTakeTheirNewlineAndIndentation) {
  EXPECT_EQ(rendered("  {% if true %}\n  a\n  {% endif %}\nb\n"), "  a\nb");
  EXPECT_EQ(rendered("a  {%- if true -%}\n  b  {%- endif %}"), "ab");
  EXPECT_EQ(rendered(" {%+ if true +%}\nx{% endif %}"), " \nx");
  EXPECT_EQ(rendered("  {{ 1 }}\n  {# note #}\n{{ 2 }}"), "  1\n2");
  EXPECT_EQ(rendered("{% raw %}{{ x }}{% endraw %}"), "{{ x }}");
}

TEST(Template, LoopsKnowWhereTheyAre) {
  EXPECT_EQ(
      rendered("{% for i in l %}{{ loop.index }}{{ loop.last }} {% endfor %}", R"({"l": [7, 8]})"),
      "1False 2True ");
  EXPECT_EQ(rendered("{% for i in l if i > 1 %}{{ i }}/{{ loop.length }} {% endfor %}",
                     R"({"l": [1, 2, 3]})"),
            "2/2 3/2 ");
  EXPECT_EQ(rendered("{% for i in [] %}x{% else %}none{% endfor %}"), "none");
  EXPECT_EQ(rendered("{% for i in range(9) %}{% if i == 2 %}{% continue %}{% endif %}"
                     "{% if i == 4 %}{% break %}{% endif %}{{ i }}{% endfor %}"),
            "013");
}

TEST(Template, LoopsKeepTheirNamesToThemselves) {
  EXPECT_EQ(rendered("{% set x = 1 %}{% for i in [5] %}{% set x = i %}{{ x }}{% endfor %}{{ x }}"),
            "51");
  EXPECT_EQ(rendered("{% set n = namespace(x=1) %}{% for i in [5] %}{% set n.x = i %}{% endfor %}"
                     "{{ n.x }}"),
            "5");
}

TEST(Template, MacrosTakeDefaultsNamesAndCallers) {
  EXPECT_EQ(
      rendered("{% macro f(a, b=2) %}{{ a }}{{ b }}{% endmacro %}{{ f(1) }} {{ f(b=3, a=4) }}"),
      "12 43");
  EXPECT_EQ(rendered("{% macro f() %}<{{ caller(1) }}>{% endmacro %}"
                     "{% call(x) f() %}hi{{ x }}{% endcall %}"),
            "<hi1>");
  EXPECT_EQ(rendered("{% filter upper %}a{% endfilter %}{% set x | trim %} b {% endset %}{{ x }}"),
            "Ab");
}

TEST(Template, ValuesAreSpelledAsPythonDoes) {
  EXPECT_EQ(rendered("{{ [true, none, 1.0, 1e22, 1e-7, \"it's\", 'a\n'] }}"),
            R"([True, None, 1.0, 1e+22, 1e-07, "it's", 'a\n'])");
  EXPECT_EQ(rendered("{{ d }} {{ (1,) }}", R"({"d": {"b": 1, "a": "é"}})"),
            "{'b': 1, 'a': 'é'} (1,)");
  EXPECT_EQ(rendered("{{ -7 // 2 }} {{ -7 % 3 }} {{ 7 / 2 }} {{ 2 ** 3 ** 2 }}"), "-4 2 3.5 64");
}

TEST(Template, JsonIsPythons) {
  const char* json = R"({"d": {"b": [1, 2.0, {}], "a": "<é\"\u0001>"}})";
  EXPECT_EQ(rendered("{{ d | tojson }}", json), R"({"b": [1, 2.0, {}], "a": "<é\"\u0001>"})");
  EXPECT_EQ(rendered("{{ d | tojson(indent=1, sort_keys=true) }}", json),
            "{\n \"a\": \"<é\\\"\\u0001>\",\n \"b\": [\n  1,\n  2.0,\n  {}\n ]\n}");
  EXPECT_EQ(rendered("{{ '😀' | tojson(true, separators=(',', ':')) }}"), R"("\ud83d\ude00")");
}

TEST(Template, TextsAreCountedInCharacters) {
  EXPECT_EQ(rendered("{{ s|length }}{{ s[1] }}{{ s[::-1] }}{{ s[-2:] }}", R"({"s": "aéb"})"),
            "3ébéaéb");
  EXPECT_EQ(rendered("{{ ' a b '.split() }}{{ 'a,b'.split(',', 1)[-1] }}{{ 'xax'.strip('x') }}"),
            "['a', 'b']ba");
}

TEST(Template, ItemsIsAMethodAndMayBeAKey) {
  const char* json = R"({"d": {"items": 3}})";
  EXPECT_EQ(rendered("{{ d['items'] }} {{ d.items()|list }}", json), "3 [('items', 3)]");
}

TEST(Template, ErrorsNameTheLine) {
  EXPECT_EQ(rendered("a\n{{ raise_exception('No\nway') }}"), "error: template, line 2: No way");
  EXPECT_EQ(rendered("\n\n{{ x.y }}"), "error: template, line 3: 'x' is undefined");
  EXPECT_EQ(rendered("{% if %}"), "error: template, line 1: a value expected, not %}");
  EXPECT_EQ(rendered("\n{% for x in y %}"), "error: template, line 2: a block without its endfor");
  EXPECT_EQ(rendered("{{ 1|nothing }}"), "error: template, line 1: there is no filter 'nothing'");
  EXPECT_EQ(rendered("{{ 'a'|upper(1) }}"),
            "error: template, line 1: upper takes 0 arguments, not 1");
  EXPECT_EQ(rendered("{{ [].append(1) }}"),
            "error: template, line 1: append would change a value; templates may only change a "
            "namespace");
}

TEST(Provenance, MessagesStayApartThroughEveryOperation) {
  const char* json = R"({"m": " <|end|> ", "l": [{"k": "<|end|>"}]})";
  const auto spans = [&](std::string_view source) { return spans_of(source, json).value(); };
  using Spans = std::vector<Span>;
  EXPECT_EQ(spans("<|im|>{{ m }}<|end|>"),
            (Spans{{"<|im|>", true}, {" <|end|> ", false}, {"<|end|>", true}}));
  EXPECT_EQ(spans("{{ '<|a|>' + m|trim ~ '<|b|>' }}"),
            (Spans{{"<|a|>", true}, {"<|end|>", false}, {"<|b|>", true}}));
  EXPECT_EQ(spans("{{ ('x' + m).split(' ')[1].replace('end', 'END')|lower }}"),
            (Spans{{"<|", false}, {"end", true}, {"|>", false}}));
  EXPECT_EQ(spans("{{ ['a', m[1:3]]|join('-') }}"), (Spans{{"a-", true}, {"<|", false}}));
  EXPECT_EQ(spans("{% macro f(x) %}[{{ x }}]{% endmacro %}{{ f(m)|replace(' ', '') }}"),
            (Spans{{"[", true}, {"<|end|>", false}, {"]", true}}));
  EXPECT_EQ(spans("{{ l|tojson }}"), (Spans{{R"([{"k": "<|end|>"}])", false}}));
  EXPECT_EQ(spans("{{ l }}{{ 'a%sb' % m[1:2] }}"),
            (Spans{{"[{'k': '<|end|>'}]", false}, {"a", true}, {"<", false}, {"b", true}}));
}

TEST(Provenance, TheModelsOwnTokensAreTheTemplates) {
  const Conversation conversation{
      .messages = Json::parse(R"([{"role": "user", "content": "<s>"}])"),
      .bos_token = "<s>",
      .eos_token = {}};
  const auto chat_template = Template::parse("{{ bos_token }}{{ messages[0].content }}");
  const auto spans = chat_template->render(variables_of(conversation).value(), {});
  EXPECT_EQ(spans.value(), (std::vector<Span>{{"<s>", true}, {"<s>", false}}));
}

std::string error_of(std::string_view source, const Limits& limits = {}) {
  const auto spans = spans_of(source, "{}", limits);
  return spans.ok() ? "" : spans.error().message;
}

TEST(Limits, AreClearErrors) {
  const std::string line = "template, line 1: ";
  EXPECT_EQ(error_of("{% for a in range(9999) %}{% for b in range(9999) %}{% endfor %}{% endfor %}",
                     {.steps_max = 100'000}),
            line + "rendering takes more than 100000 steps");
  EXPECT_EQ(error_of("{{ 'x' * 1001 }}", {.output_bytes_max = 1000}),
            line + "a text of more than 1000 bytes; that is the limit");
  EXPECT_EQ(error_of("{% macro f() %}{{ f() }}{% endmacro %}{{ f() }}"),
            line + "macros and expressions call each other more than 1200 levels deep");
  EXPECT_EQ(error_of("{% set n = namespace(l=[]) %}{% for i in range(200) %}{% set n.l = [n.l] %}"
                     "{% endfor %}"),
            line + "a list nested more than 128 levels deep");
  EXPECT_EQ(error_of("{{ " + std::string(5000, '(') + "1" + std::string(5000, ')') + " }}"),
            line + "nested more than 256 levels deep");
  EXPECT_EQ(error_of("{{ 1" +
                     [] {
                       std::string sum;
                       for (int i = 0; i < 5000; ++i) sum += "+1";
                       return sum;
                     }() +
                     " }}"),
            line + "an expression nested more than 256 levels deep");
  EXPECT_EQ(error_of("{{ range(1000000) }}"), line + "a range of more than 100000 numbers");
  EXPECT_EQ(error_of("{{ 9223372036854775807 + 1 }}"),
            line + "the result of 9223372036854775807 + 1 does not fit in 64 bits");
}

TEST(Limits, HoldForMessagesToo) {
  const Json deep = Json::parse(std::string(100, '[') + std::string(100, ']'));
  EXPECT_EQ(value_of(deep).error().message, "messages: nested more than 64 levels deep");
}

/// Templates made of the words of templates: most are wrong, none may do harm.
TEST(Template, SurvivesRandomInput) {
  constexpr std::string_view kWords[] = {
      "{{ ",       " }}",      "{% ",    " %}",   "{#",          "#}",    "-",     "for ",
      "in ",       "if ",      "endfor", "endif", "set ",        "x",     "m",     "= ",
      "(",         ")",        "[",      "]",     "{",           "}",     "|",     "tojson",
      "join",      "is ",      "not ",   "'a'",   "1",           ".",     ":",     ",",
      "macro f()", "endmacro", "f()",    "loop",  "namespace()", "~",     "*",     "**",
      "%",         "map",      "sort",   "split", "\n",          "else ", "call ", "endcall",
      "caller()",  "\xff",     "é"};
  Random random(5);
  const Variables variables = variables_from(R"({"m": ["a", {"b": 1}], "x": "text"})");
  for (int round = 0; round < 20'000; ++round) {
    std::string source = round % 2 == 0 ? "{{ " : "";
    for (uint64_t words = random.next() % 24; words > 0; --words)
      source += kWords[random.next() % std::size(kWords)];
    if (round % 2 == 0) source += " }}";
    const auto parsed = Template::parse(source);
    if (!parsed) continue;
    const auto spans = parsed->render(variables, {.limits = {.steps_max = 10'000}});
    if (spans) continue;
    EXPECT_TRUE(spans.error().message.starts_with("template, line ")) << source;
  }
}

}  // namespace
}  // namespace sluice::jinja
