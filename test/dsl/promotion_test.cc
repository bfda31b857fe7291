// Types of operands and results: promotion of every pair, and unsigned results.

#include "test/dsl/Tracing.h"

#include <gtest/gtest.h>

namespace kiln::testing {
namespace {

template <class... P> std::string program(void (*function)(P...), std::vector<ArgFacts> args) {
  return programOf(kernel("k", function), args);
}

/// Whether neither of two integer types, or of two float types, represents all numbers of the other.
bool clashes(Type a, Type b) {
  if (a == b || a == boolean || b == boolean || isFloat(a) != isFloat(b))
    return false;
  if (isFloat(a))
    return bytesOf(a) == bytesOf(b);
  const Type unsignedType = isUnsigned(a) ? a : b, other = isUnsigned(a) ? b : a;
  return isUnsigned(unsignedType) && !isUnsigned(other) && bytesOf(other) <= bytesOf(unsignedType);
}

/// Every pair of types, and each type with numbers: the language's rules for mixed operands.
void mixed(View) {
  for (const Type i : everyType)
    for (const Type j : everyType) {
      if (clashes(i, j))
        continue;
      const Type high = std::max(i, j); // the order of the types is that of promotion
      Tile a = zeros(i, {3}), b = zeros(j, {});
      EXPECT_EQ(where(true, a, b).type(), high) << nameOf(i) << ", " << nameOf(j);
      EXPECT_EQ((a == b).type(), boolean);
      if (high == boolean)
        continue;
      EXPECT_EQ((a * b).type(), high) << nameOf(i) << ", " << nameOf(j);
      EXPECT_EQ(max(a, b).type(), high) << nameOf(i) << ", " << nameOf(j);
      if (i != boolean) {
        EXPECT_EQ((a + 1).type(), i);
        EXPECT_EQ((0.5 - a).type(), isFloat(i) ? i : f32);
      }
    }
}
TEST(Operands, EveryPairOfTypesIsPromoted) { EXPECT_EQ(program(mixed, {view(f32, {64})}), ""); }

/// An unsigned tile stays unsigned in operations that keep its type: moves, selections, loops, branches and reductions.
void unsignedNumbers(View x, Tile n) {
  Tile a = load(x, {0}, {8}), total = n, most = a;
  EXPECT_EQ(a.type(), u32);
  EXPECT_EQ(n.type(), u8);
  for (Tile i : range(4)) {
    EXPECT_EQ(most.type(), u32);
    most = max(most, a);
    if_(i == 2, [&] { total = total + 1; });
  }
  EXPECT_EQ(most.type(), u32);
  EXPECT_EQ(total.type(), u8);
  for (const Tile &same : {transpose(reshape(a, {2, 4})), broadcast(a, {3, 8}), flip(a), where(a > 3, a, 7), ~a, -a,
                           abs(a), min(a, 3), a / 2, a % 2, a >> 1, clamp(a, 1, 5), full(u32, {2}, 5), cumsum(a),
                           cummax(a), cast(bitcast(a, i32), u32), bitcast(cast(a, i32), u32)})
    EXPECT_EQ(same.type(), u32);
  for (const Tile &same : {reduce_max(a), reduce_min(a), sum(a), prod(a), reduce_xor(a), sum(cast(a, u16))})
    EXPECT_EQ(same.type(), u32);
  EXPECT_EQ(argmax(a).type(), i32);
  EXPECT_EQ(argmin(a).type(), i32);
  EXPECT_EQ(sum(cast(a, i16)).type(), i32);
  EXPECT_EQ(cast(a, i32).type(), i32);
  EXPECT_EQ((cast(a, i32) + cast(a, i32)).type(), i32);
  EXPECT_EQ((a + cast(a, i64)).type(), i64);
  EXPECT_EQ(reduce(a, 0, [](Tile p, Tile q) { return p / q; }).type(), u32);
}
TEST(Operands, StayUnsigned) { EXPECT_EQ(program(unsignedNumbers, {view(u32, {8}), scalar(u8)}), ""); }

} // namespace
} // namespace kiln::testing
