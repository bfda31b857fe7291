// Element types, shapes, source locations and errors: the plain data that the language, the plans and the runtime
// share.

#pragma once

#include <cstdint>
#include <stdexcept>
#include <string>
#include <vector>

namespace kiln {

/// Element type of a tile or a tensor. bool takes one byte in memory, 0 or 1.
enum class Type : uint8_t { boolean, i8, i32, i64, bf16, f16, f32, f64 };
inline constexpr Type boolean = Type::boolean, i8 = Type::i8, i32 = Type::i32, i64 = Type::i64, bf16 = Type::bf16,
                      f16 = Type::f16, f32 = Type::f32, f64 = Type::f64;

/// Bytes that one element takes in memory.
int64_t bytesOf(Type type);
/// `f32`, `bool`, …: the spelling used in messages, flags and files.
const char *nameOf(Type type);
/// The type spelt `name`; throws Error when there is none.
Type typeNamed(const std::string &name);
inline bool isFloat(Type type) { return type >= Type::bf16; }

/// Extents of a tile or tensor, outermost first; empty for a scalar.
using Shape = std::vector<int64_t>;
/// `64x32`, or `scalar`.
std::string textOf(const Shape &shape);

/// A line of the user's C++ source.
struct Loc {
  const char *file = "";
  int line = 0;
};
/// The caller's line, as a default argument.
constexpr Loc here(const char *file = __builtin_FILE(), int line = __builtin_LINE()) { return {file, line}; }

/// Whose fault an error is: the caller's, the machine's or file system's, or Kiln's own.
enum class Fault { user, device, internal };

/// What the runtime, the models and the language throw. The text says what was expected and what it got.
class Error : public std::runtime_error {
public:
  explicit Error(const std::string &text, Fault fault = Fault::user) : std::runtime_error(text), fault(fault) {}
  const Fault fault;
};

} // namespace kiln
