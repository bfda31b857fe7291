// Products of the lowest 24 bits, alone and with a summand.

#include "test/runtime/simulator/machine.h"

#include <algorithm>
#include <fmt/format.h>

namespace kiln::simulator::test {

/// A word's lowest 24 bits as a number.
static int64_t low24(uint64_t word, bool isSigned) {
  const auto low = static_cast<int64_t>(word & 0xffffff);
  return isSigned && low >> 23 ? low - (1 << 24) : low;
}

static int64_t sum(const Column &row, bool isSigned, int from) {
  const auto product = low24(row[0], isSigned) * low24(row[1], isSigned) >> from;
  const auto part = static_cast<uint32_t>(static_cast<uint64_t>(product));
  const int64_t number = isSigned ? int64_t{static_cast<int32_t>(part)} : int64_t{part};
  if (row.size() == 2)
    return number;
  return number + (isSigned ? int64_t{static_cast<int32_t>(row[2])} : static_cast<int64_t>(row[2]));
}

static uint64_t word(int64_t value) { return static_cast<uint32_t>(static_cast<uint64_t>(value)); }

// The low part is bits 0 to 31 of the product, the high part bits 16 to 47; sums wrap.
TEST(Product24Test, LowAndHighParts) {
  for (const bool isSigned : {false, true})
    for (const int from : {0, 16}) {
      const std::string modifiers = fmt::format("{}.{}", from ? "hi" : "lo", isSigned ? "s32" : "u32");
      const auto want = [&](const Column &row) { return word(sum(row, isSigned, from)); };
      expectEach(fmt::format("mul24.{} %d, %a, %b;", modifiers), "b32", {"b32", "b32"}, words32, want);
      expectEach(fmt::format("mad24.{} %d, %a, %b, %c;", modifiers), "b32", {"b32", "b32", "b32"}, words32, want);
    }
}

// A saturating sum stops at the ends.
TEST(Product24Test, SumsSaturate) {
  expectEach("mad24.hi.sat.s32 %d, %a, %b, %c;", "b32", {"b32", "b32", "b32"}, words32,
             [](const Column &row) { return word(std::clamp<int64_t>(sum(row, true, 16), INT32_MIN, INT32_MAX)); });
}

} // namespace kiln::simulator::test
