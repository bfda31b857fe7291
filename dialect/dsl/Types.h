// Element types, shapes, source locations and errors: plain data shared by the language, the plans and the runtime.

#pragma once

#include <cstdint>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

namespace kiln {

/// Element type of a tile or a tensor. boolean takes one byte in memory, 0 or 1.
enum class Type : uint8_t {
#define KILN_TYPE(name, spelling, bytes, kind, MLIR, NumPy, safetensors) name,
#include "dialect/tile/ElementTypes.def"
};
#define KILN_TYPE(name, spelling, bytes, kind, MLIR, NumPy, safetensors) inline constexpr Type name = Type::name;
#include "dialect/tile/ElementTypes.def"

inline constexpr Type everyType[] = {
#define KILN_TYPE(name, spelling, bytes, kind, MLIR, NumPy, safetensors) Type::name,
#include "dialect/tile/ElementTypes.def"
};

/// The properties of a type, from ElementTypes.def.
struct TypeInfo {
  enum Kind { boolean, signedInteger, unsignedInteger, floating, pairs };
  const char *spelling; // in messages, flags and files: `f32`, `boolean`
  int64_t bytes;        // of one element in memory
  Kind kind;
  const char *numPy, *safetensors; // the spellings in these formats
};
inline constexpr TypeInfo allTypes[] = {
#define KILN_TYPE(name, spelling, bytes, kind, MLIR, NumPy, safetensors)                                               \
  {spelling, bytes, TypeInfo::kind, NumPy, safetensors},
#include "dialect/tile/ElementTypes.def"
};
/// Throws Error for a number that is not a type.
const TypeInfo &infoOf(Type type);

inline int64_t bytesOf(Type type) { return infoOf(type).bytes; }
inline const char *nameOf(Type type) { return infoOf(type).spelling; }
inline bool isFloat(Type type) { return infoOf(type).kind == TypeInfo::floating; }
inline bool isPair(Type type) { return infoOf(type).kind == TypeInfo::pairs; }
/// Whether the language computes with the type. Scales and pairs are only moved and converted.
inline bool hasArithmetic(Type type) { return type != f8e8m0 && !isPair(type); }
inline bool isUnsigned(Type type) { return infoOf(type).kind == TypeInfo::unsignedInteger; }
inline bool isInteger(Type type) { return isUnsigned(type) || infoOf(type).kind == TypeInfo::signedInteger; }
/// The unsigned type with as many bytes as a signed one.
Type unsignedOf(Type type);
/// The type with the spelling `name`; throws Error if there is none.
Type typeNamed(const std::string &name);
/// The type whose `spelling`, a member of TypeInfo, is `name`; nothing if there is none.
std::optional<Type> findType(const char *TypeInfo::*spelling, std::string_view name);

/// Extents of a tile or tensor, outermost first; empty for a scalar.
using Shape = std::vector<int64_t>;
/// `64x32`, or `scalar`.
std::string textOf(const Shape &shape);

/// A line of the user's C++ source.
struct Loc {
  const char *file = "";
  int line = 0;
};
/// The caller's line, for use as a default argument.
constexpr Loc here(const char *file = __builtin_FILE(), int line = __builtin_LINE()) { return {file, line}; }

/// The source of an error: the caller, the machine or file system, or Kiln itself.
enum class Fault { user, device, internal };

/// The exception of the runtime, the models and the language. The text has the expected and the actual value.
class Error : public std::runtime_error {
public:
  explicit Error(const std::string &text, Fault fault = Fault::user) : std::runtime_error(text), fault(fault) {}
  const Fault fault;
};

} // namespace kiln
