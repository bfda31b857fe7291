// Names and widths of types and state spaces.

#include "runtime/simulator/ptx/Module.h"

namespace kiln::ptx {

int bitsOf(Type type) {
  switch (type) {
  case Type::pred:
    return 1;
  case Type::b8:
  case Type::u8:
  case Type::s8:
  case Type::e4m3:
  case Type::e5m2:
    return 8;
  case Type::b16:
  case Type::u16:
  case Type::s16:
  case Type::f16:
  case Type::bf16:
    return 16;
  case Type::b32:
  case Type::u32:
  case Type::s32:
  case Type::f32:
  case Type::tf32:
  case Type::u16x2:
  case Type::s16x2:
  case Type::f16x2:
  case Type::bf16x2:
    return 32;
  case Type::b64:
  case Type::u64:
  case Type::s64:
  case Type::f64:
  case Type::f32x2:
    return 64;
  case Type::b128:
    return 128;
  }
  return 0;
}

static constexpr const char *typeNames[] = {"pred", "b8",  "b16",  "b32",   "b64",    "b128",  "u8",    "u16",  "u32",
                                            "u64",  "s8",  "s16",  "s32",   "s64",    "u16x2", "s16x2", "f16",  "bf16",
                                            "f32",  "f64", "tf32", "f16x2", "bf16x2", "e4m3",  "e5m2",  "f32x2"};

const char *nameOf(Type type) { return typeNames[static_cast<int>(type)]; }

std::optional<Type> typeNamed(std::string_view name) {
  for (size_t i = 0; i < std::size(typeNames); ++i)
    if (name == typeNames[i])
      return static_cast<Type>(i);
  return std::nullopt;
}

const char *nameOf(Space space) {
  static constexpr const char *names[] = {"generic", "global", "shared", "local", "const", "param"};
  return names[static_cast<int>(space)];
}

} // namespace kiln::ptx
