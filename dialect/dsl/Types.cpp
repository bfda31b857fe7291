// Element types and shapes as text and bytes.

#include "dialect/dsl/Types.h"

namespace kiln {

static constexpr Type allTypes[] = {boolean, i8, i32, i64, bf16, f16, f32, f64};

int64_t bytesOf(Type type) {
  switch (type) {
  case Type::boolean:
  case Type::i8:
    return 1;
  case Type::bf16:
  case Type::f16:
    return 2;
  case Type::i32:
  case Type::f32:
    return 4;
  case Type::i64:
  case Type::f64:
    return 8;
  }
  throw Error("expected an element type, but got number " + std::to_string(static_cast<int>(type)));
}

const char *nameOf(Type type) {
  static constexpr const char *names[] = {"bool", "i8", "i32", "i64", "bf16", "f16", "f32", "f64"};
  auto number = static_cast<size_t>(type);
  return number < std::size(names) ? names[number] : "unknown";
}

Type typeNamed(const std::string &name) {
  std::string all;
  for (Type type : allTypes) {
    if (name == nameOf(type))
      return type;
    all += (all.empty() ? "" : ", ") + std::string(nameOf(type));
  }
  throw Error("expected an element type (" + all + "), but got '" + name + "'");
}

std::string textOf(const Shape &shape) {
  if (shape.empty())
    return "scalar";
  std::string text;
  for (int64_t extent : shape)
    text += (text.empty() ? "" : "x") + std::to_string(extent);
  return text;
}

} // namespace kiln
