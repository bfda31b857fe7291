// Video instructions: arithmetic on two halves or four bytes of words (vadd2 … vset4). Each element of the sources is
// selected from the eight bytes of both.

#include "runtime/simulator/Lanes.h"
#include "runtime/simulator/Numbers.h"

#include <algorithm>
#include <string>

namespace kiln::simulator {

using ptx::Operand;
using ptx::Type;

namespace {
enum class Operation : uint8_t { add, subtract, difference, average, minimum, maximum, test };

/// An instruction. Elements of both sources are numbered consecutively, those of `a` first.
struct Elements {
  Operation operation = Operation::add;
  uint32_t comparison = 0;
  int count = 2;
  std::array<uint8_t, 4> ofA{}, ofB{};
  uint32_t mask = 0; // the computed elements of the result; the others come from the third source
  bool isSignedD = false, isSignedA = false, isSignedB = false, saturates = false, sums = false;
};
} // namespace

/// The element of `bits` bits at bit `from` of a word, sign- or zero-extended.
static int64_t elementAt(uint64_t word, int from, int bits, bool isSigned) {
  const uint64_t element = word >> from << (64 - bits);
  return isSigned ? static_cast<int64_t>(element) >> (64 - bits) : static_cast<int64_t>(element >> (64 - bits));
}

static bool holds(uint32_t comparison, int64_t a, int64_t b) {
  const bool answers[] = {a == b, a != b, a<b, a <= b, a> b, a >= b};
  return answers[comparison];
}

/// The operation on a pair of elements.
static int64_t combine(Operation operation, uint32_t comparison, int64_t a, int64_t b) {
  switch (operation) {
  case Operation::add:
    return a + b;
  case Operation::subtract:
    return a - b;
  case Operation::difference:
    return std::abs(a - b);
  case Operation::average:
    return a + b >= 0 ? (a + b + 1) >> 1 : (a + b) >> 1;
  case Operation::minimum:
    return std::min(a, b);
  case Operation::maximum:
    return std::max(a, b);
  default:
    return holds(comparison, a, b);
  }
}

/// Whether the next of the types is signed.
static bool takeSign(Decoder &d) {
  const Type type = d.type();
  if (type != Type::u32 && type != Type::s32)
    d.unsupported();
  return type == Type::s32;
}

/// An operand without its selector.
static Operand whole(Operand operand) {
  operand.selector = {};
  return operand;
}

static uint32_t elements(const Elements &v, uint32_t a, uint32_t b, uint32_t c) {
  const int bits = 32 / v.count;
  const uint32_t ones = (1u << bits) - 1;
  const uint64_t both = uint64_t{b} << 32 | a;
  uint32_t result = c;
  for (int i = 0; i < v.count; ++i) {
    if (!(v.mask >> i & 1))
      continue;
    const auto index = static_cast<size_t>(i);
    int64_t value = combine(v.operation, v.comparison, elementAt(both, bits * v.ofA[index], bits, v.isSignedA),
                            elementAt(both, bits * v.ofB[index], bits, v.isSignedB));
    if (v.saturates)
      value = static_cast<int64_t>(clamped(value, bits, v.isSignedD));
    if (v.sums)
      result += static_cast<uint32_t>(value);
    else
      result = (result & ~(ones << (bits * i))) | (static_cast<uint32_t>(value) & ones) << (bits * i);
  }
  return result;
}

/// The elements named by a selector such as `h32` or `b7654`, highest first; those from `first` on without a selector.
static std::array<uint8_t, 4> selected(Decoder &d, const Operand &operand, int count, int first) {
  std::array<uint8_t, 4> numbers{};
  for (size_t i = 0; i < 4; ++i)
    numbers[i] = static_cast<uint8_t>(first + static_cast<int>(i));
  const std::string_view text = operand.selector;
  if (text.empty())
    return numbers;
  if (text.size() != static_cast<size_t>(count) + 1 || text[0] != (count == 2 ? 'h' : 'b'))
    d.wrong(count == 2 ? "a selection such as '.h32'" : "a selection such as '.b7654'");
  for (size_t i = 0; i + 1 < text.size(); ++i) {
    const int number = text[text.size() - 1 - i] - '0';
    if (number < 0 || number >= 2 * count)
      d.wrong("elements that the two sources have");
    numbers[i] = static_cast<uint8_t>(number);
  }
  return numbers;
}

/// The elements named by a mask such as `h1` or `b320`; all without a mask.
static uint32_t maskOf(Decoder &d, const Operand &operand, int count) {
  const std::string_view text = operand.selector;
  if (text.empty())
    return (1u << count) - 1;
  if (text.size() < 2 || text[0] != (count == 2 ? 'h' : 'b'))
    d.wrong(count == 2 ? "a mask such as '.h1'" : "a mask such as '.b320'");
  uint32_t mask = 0;
  for (const char digit : text.substr(1)) {
    const int number = digit - '0';
    if (number < 0 || number >= count || (mask & ((2u << number) - 1))) // must be in decreasing order
      d.wrong("elements of the result from the highest down");
    mask |= 1u << number;
  }
  return mask;
}

static void runElements(Warp &warp, const Step &step) {
  const auto v = fieldsOf<Elements>(warp, step);
  auto *const result = warp.reg<uint32_t>(step.slots[0]);
  const auto *const a = warp.reg<uint32_t>(step.slots[1]), *const b = warp.reg<uint32_t>(step.slots[2]),
                    *const c = warp.reg<uint32_t>(step.slots[3]);
  forEachLane(warp, [&](int lane) { result[lane] = elements(v, a[lane], b[lane], c[lane]); });
}

template <Operation operation, int count> static void decodeElements(Decoder &d) {
  constexpr bool tests = operation == Operation::test;
  Elements v{.operation = operation, .count = count};
  v.sums = d.take("add");
  const int comparison = tests ? d.takeOne({"eq", "ne", "lt", "le", "gt", "ge"}) : 0;
  if (comparison < 0)
    d.wrong("a comparison");
  v.comparison = static_cast<uint32_t>(comparison);
  v.isSignedD = !tests && takeSign(d);
  v.isSignedA = takeSign(d);
  v.isSignedB = takeSign(d);
  v.saturates = !tests && d.take("sat");
  if (v.sums && v.saturates)
    d.wrong("'.sat' or '.add', but not both,");
  d.expectCount(4, 4);
  v.ofA = selected(d, d.operand(1), count, 0);
  v.ofB = selected(d, d.operand(2), count, count);
  v.mask = maskOf(d, d.operand(0), count);
  Step &step = d.emit(runElements, {d.result(whole(d.operand(0)), Type::u32), d.source(whole(d.operand(1)), Type::u32),
                                    d.source(whole(d.operand(2)), Type::u32), d.source(3, Type::u32)});
  giveFields(d, step, v);
}

void addVideo(InstructionTable &table) {
  using enum Operation;
  table["vadd2"] = decodeElements<add, 2>;
  table["vsub2"] = decodeElements<subtract, 2>;
  table["vavrg2"] = decodeElements<average, 2>;
  table["vabsdiff2"] = decodeElements<difference, 2>;
  table["vmin2"] = decodeElements<minimum, 2>;
  table["vmax2"] = decodeElements<maximum, 2>;
  table["vset2"] = decodeElements<test, 2>;
  table["vadd4"] = decodeElements<add, 4>;
  table["vsub4"] = decodeElements<subtract, 4>;
  table["vavrg4"] = decodeElements<average, 4>;
  table["vabsdiff4"] = decodeElements<difference, 4>;
  table["vmin4"] = decodeElements<minimum, 4>;
  table["vmax4"] = decodeElements<maximum, 4>;
  table["vset4"] = decodeElements<test, 4>;
}

} // namespace kiln::simulator
