#include "jinja/template.h"

#include "jinja/evaluator.h"
#include "jinja/parser.h"

namespace sluice::jinja {

Result<Template> Template::parse(std::string_view source) {
  auto syntax = jinja::parse(source);
  if (!syntax) return syntax.error();
  return Template(*std::move(syntax));
}

Result<std::vector<Span>> Template::render(const Variables& variables,
                                           const RenderOptions& options) const {
  Run run(options.limits, options.now);
  const Text text = Evaluator(run, variables).render(syntax_.body);
  if (run.error()) return *run.error();
  return text.spans();
}

std::string text_of(const std::vector<Span>& spans) {
  std::string text;
  for (const Span& span : spans) text += span.text;
  return text;
}

}  // namespace sluice::jinja
