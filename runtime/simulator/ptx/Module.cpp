// Names and widths of types and state spaces.

#include "runtime/simulator/ptx/Module.h"

namespace kiln::ptx {

namespace {
struct TypeInfo {
  const char *name;
  int bits;
};
} // namespace

static constexpr TypeInfo types[] = {
    {"pred", 1},   {"b8", 8},      {"b16", 16}, {"b32", 32},  {"b64", 64},  {"b128", 128}, {"u8", 8},
    {"u16", 16},   {"u32", 32},    {"u64", 64}, {"s8", 8},    {"s16", 16},  {"s32", 32},   {"s64", 64},
    {"u16x2", 32}, {"s16x2", 32},  {"f16", 16}, {"bf16", 16}, {"f32", 32},  {"f64", 64},   {"tf32", 32},
    {"f16x2", 32}, {"bf16x2", 32}, {"e4m3", 8}, {"e5m2", 8},  {"f32x2", 64}};

int bitsOf(Type type) { return types[static_cast<size_t>(type)].bits; }

const char *nameOf(Type type) { return types[static_cast<size_t>(type)].name; }

std::optional<Type> typeNamed(std::string_view name) {
  for (size_t i = 0; i < std::size(types); ++i)
    if (name == types[i].name)
      return static_cast<Type>(i);
  return std::nullopt;
}

const char *nameOf(Space space) {
  static constexpr const char *names[] = {"generic", "global", "shared", "local", "const", "param"};
  return names[static_cast<int>(space)];
}

} // namespace kiln::ptx
