// Parses numbers exactly, then converts them to a type.

#include "tools/kiln-sim/arguments.h"

#include "runtime/Tensor.h"

#include <charconv>
#include <cmath>
#include <fmt/format.h>
#include <optional>

namespace kiln::simulator {

namespace {
/// A type, with its name in --args and messages.
struct NumberType {
  enum Kind : uint8_t { truth, isSigned, isUnsigned, real };
  std::string_view name;
  Kind kind;
  uint32_t bytes;
};

/// A parsed number.
struct Number {
  enum Kind : uint8_t { truth, integer, real };
  Kind kind = integer;
  bool isNegative = false;
  uint64_t magnitude = 0; // of an integer or boolean
  double value = 0;       // for all kinds
};
} // namespace

static constexpr NumberType numberTypes[] = {
    {"bool", NumberType::truth, 1},     {"i8", NumberType::isSigned, 1},    {"i16", NumberType::isSigned, 2},
    {"i32", NumberType::isSigned, 4},   {"i64", NumberType::isSigned, 8},   {"u8", NumberType::isUnsigned, 1},
    {"u16", NumberType::isUnsigned, 2}, {"u32", NumberType::isUnsigned, 4}, {"u64", NumberType::isUnsigned, 8},
    {"bf16", NumberType::real, 2},      {"f16", NumberType::real, 2},       {"f32", NumberType::real, 4},
    {"f64", NumberType::real, 8}};

static const NumberType *typeCalled(std::string_view name) {
  for (const NumberType &type : numberTypes)
    if (type.name == name)
      return &type;
  return nullptr;
}

template <class Value> static bool readAll(std::string_view text, Value &value) {
  const auto [stop, failure] = std::from_chars(text.data(), text.data() + text.size(), value);
  return failure == std::errc() && stop == text.data() + text.size();
}

static std::optional<Number> parseNumber(std::string_view text) {
  Number number;
  if (text == "true" || text == "false") {
    number.kind = Number::truth;
    number.magnitude = text == "true";
    number.value = static_cast<double>(number.magnitude);
    return number;
  }
  number.isNegative = text.starts_with('-');
  if (readAll(text.substr(number.isNegative), number.magnitude)) {
    number.value = number.isNegative ? -static_cast<double>(number.magnitude) : static_cast<double>(number.magnitude);
    return number;
  }
  number.kind = Number::real;
  return readAll(text, number.value) ? std::optional(number) : std::nullopt;
}

/// The bits of the float of `type` that is nearest to `value`; none if a finite number becomes infinite.
static std::optional<uint64_t> floatBits(const NumberType &type, double value) {
  const Type element = typeNamed(std::string(type.name));
  uint64_t bits = 0;
  fromDoubles({value}, element, &bits);
  const double rounded = toDoubles(&bits, element, 1).front();
  return std::isfinite(rounded) || !std::isfinite(value) ? std::optional(bits) : std::nullopt;
}

/// The bits of a number in a type; none if it does not fit.
static std::optional<uint64_t> bitsAs(const NumberType &type, const Number &number) {
  const uint64_t half = uint64_t{1} << (8 * type.bytes - 1), mask = half | (half - 1);
  switch (type.kind) {
  case NumberType::truth:
    return number.kind != Number::real && !number.isNegative && number.magnitude <= 1 ? std::optional(number.magnitude)
                                                                                      : std::nullopt;
  case NumberType::isSigned:
    if (number.kind == Number::real || number.magnitude > half - !number.isNegative)
      return std::nullopt;
    return (number.isNegative ? 0 - number.magnitude : number.magnitude) & mask;
  case NumberType::isUnsigned:
    if (number.kind == Number::real || number.magnitude > mask || (number.isNegative && number.magnitude))
      return std::nullopt;
    return number.magnitude;
  case NumberType::real:
    break;
  }
  return number.kind == Number::truth ? std::nullopt : floatBits(type, number.value);
}

/// The possible types of a parameter, most likely first, for numbers without a type.
static std::vector<const NumberType *> typesOf(const Parameter &parameter, bool isReal) {
  const bool isPlain = ptx::bytesOf(parameter.type) == static_cast<int>(parameter.bytes);
  const std::string_view name = ptx::nameOf(parameter.type);
  if (isPlain && ptx::isFloat(parameter.type))
    return typeCalled(name) ? std::vector{typeCalled(name)} : std::vector<const NumberType *>();
  std::vector<const NumberType *> types;
  const bool isOpen = !isPlain || ptx::isUntyped(parameter.type);
  if (isReal && !isOpen)
    return types;
  for (const NumberType &type : numberTypes) {
    const bool isLikely = isReal ? type.kind == NumberType::real && type.bytes >= 4
                                 : type.kind == NumberType::isSigned ||
                                       (type.kind == NumberType::isUnsigned && !ptx::isSigned(parameter.type));
    if (type.bytes == parameter.bytes && isLikely)
      types.push_back(&type);
  }
  return types;
}

/// Whether a number with this explicit type may be passed as the parameter.
static bool mayHold(const Parameter &parameter, const NumberType &type) {
  if (type.bytes != parameter.bytes)
    return false;
  if (ptx::bytesOf(parameter.type) != static_cast<int>(parameter.bytes) || ptx::isUntyped(parameter.type))
    return true;
  return ptx::isFloat(parameter.type) == (type.kind == NumberType::real);
}

static std::string described(const Parameter &parameter) {
  if (ptx::bytesOf(parameter.type) == static_cast<int>(parameter.bytes))
    return fmt::format("'{}' (.{})", parameter.name, ptx::nameOf(parameter.type));
  return fmt::format("'{}' ({} bytes)", parameter.name, parameter.bytes);
}

uint64_t numberFor(const Parameter &parameter, const std::string &text) {
  const size_t open = text.find('(');
  const NumberType *named =
      open != std::string::npos && text.ends_with(')') ? typeCalled(text.substr(0, open)) : nullptr;
  const std::optional<Number> number = parseNumber(named ? text.substr(open + 1, text.size() - open - 2) : text);
  if (!number)
    throw Error(fmt::format("'{}' in --args is no argument; expected a .npy file, zeros such as f32[64]->out.npy, or a "
                            "number such as 3, 2.5, true or bf16(2.5)",
                            text));
  if (named && !bitsAs(*named, *number))
    throw Error(fmt::format("expected a number that fits {} in --args, but got '{}'", named->name, text));
  if (named && mayHold(parameter, *named))
    return *bitsAs(*named, *number);
  if (!named)
    for (const NumberType *type : typesOf(parameter, number->kind == Number::real))
      if (const std::optional<uint64_t> bits = bitsAs(*type, *number))
        return *bits;
  throw Error(
      fmt::format("expected a number that fits parameter {} in --args, but got '{}'", described(parameter), text));
}

} // namespace kiln::simulator
