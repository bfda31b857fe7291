// Element types and shapes as text and bytes.

#include "dialect/dsl/Types.h"
#include "dialect/dsl/Nearest.h"

#include <iterator>

namespace kiln {

const TypeInfo &infoOf(Type type) {
  const auto number = static_cast<size_t>(type);
  if (number >= std::size(allTypes))
    throw Error("expected an element type, but got number " + std::to_string(number));
  return allTypes[number];
}

std::optional<Type> findType(const char *TypeInfo::*spelling, std::string_view name) {
  for (const Type type : everyType)
    if (name == infoOf(type).*spelling)
      return type;
  return std::nullopt;
}

Type unsignedOf(Type type) {
  for (const Type other : everyType)
    if (isUnsigned(other) && bytesOf(other) == bytesOf(type))
      return other;
  throw Error(std::string("expected an integer, but got ") + nameOf(type), Fault::internal);
}

Type typeNamed(const std::string &name) {
  if (const auto type = findType(&TypeInfo::spelling, name))
    return *type;
  std::vector<std::string> spellings;
  for (const TypeInfo &info : allTypes)
    spellings.emplace_back(info.spelling);
  throw Error(unknownName("element type", name, spellings));
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
