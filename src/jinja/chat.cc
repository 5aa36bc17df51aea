#include "jinja/chat.h"

#include <limits>

namespace sluice::jinja {
namespace {

/// Leaves templates room to put what they are given into lists of their own.
constexpr uint32_t kJsonDepthMax = kValueDepthMax / 2;

Error too_deep() {
  return make_error(ErrorKind::usage, "messages: nested more than {} levels deep", kJsonDepthMax);
}

Result<Value> value_at(const Json& json, uint32_t depth);

Result<Value> list_of(const Json& json, uint32_t depth) {
  List list;
  for (const Json& item : json) {
    auto value = value_at(item, depth + 1);
    if (!value) return value.error();
    list.depth = std::max(list.depth, value->depth() + 1);
    list.items.push_back(*std::move(value));
  }
  return Value(std::make_shared<const List>(std::move(list)));
}

Result<Value> dict_of(const Json& json, uint32_t depth) {
  Dict dict;
  for (const auto& entry : json.items()) {
    auto value = value_at(entry.value(), depth + 1);
    if (!value) return value.error();
    dict.set(Text(entry.key(), Origin::message), *std::move(value));
  }
  return Value(std::make_shared<const Dict>(std::move(dict)));
}

Value number_of(const Json& json) {
  if (json.is_number_float()) return json.get<double>();
  const bool is_large = json.is_number_unsigned() &&
                        json.get<uint64_t>() > uint64_t{std::numeric_limits<int64_t>::max()};
  return is_large ? Value(json.get<double>()) : Value(json.get<int64_t>());
}

Result<Value> value_at(const Json& json, uint32_t depth) {
  if (depth > kJsonDepthMax) return too_deep();
  switch (json.type()) {
    case Json::value_t::boolean:
      return Value(json.get<bool>());
    case Json::value_t::number_integer:
    case Json::value_t::number_unsigned:
    case Json::value_t::number_float:
      return number_of(json);
    case Json::value_t::string:
      return Value(Text(json.get_ref<const std::string&>(), Origin::message));
    case Json::value_t::array:
      return list_of(json, depth);
    case Json::value_t::object:
      return dict_of(json, depth);
    default:
      return Value(None{});
  }
}

}  // namespace

Result<Value> value_of(const Json& json) {
  return value_at(json, 1);
}

Result<Variables> variables_of(const Conversation& conversation) {
  Variables variables;
  variables["documents"] = None{};
  variables["bos_token"] = Text(conversation.bos_token, Origin::written);
  variables["eos_token"] = Text(conversation.eos_token, Origin::written);
  const auto add = [&](const std::string& name, const Json& json) -> Status {
    auto value = value_of(json);
    if (!value) return value.error();
    variables[name] = *std::move(value);
    return {};
  };
  if (const Status added = add("messages", conversation.messages); !added) return added.error();
  if (const Status added = add("tools", conversation.tools); !added) return added.error();
  for (const auto& argument : conversation.arguments.items())
    if (const Status added = add(argument.key(), argument.value()); !added) return added.error();
  return variables;
}

}  // namespace sluice::jinja
