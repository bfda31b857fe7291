// Video instructions: arithmetic on selected bytes and halves of words.
//
// The scalar ones (vadd … vset) select a byte, a half or the whole of each source, and compute exactly. The result may
// be saturated, and is then combined with a third source or merged into it. Those on two halves or four bytes (vadd2 …
// vset4) select each element from the eight bytes of both sources.

#include "runtime/simulator/Decoder.h"
#include "runtime/simulator/Warp.h"

#include <algorithm>
#include <bit>
#include <string>

namespace kiln::simulator {

using ptx::Operand;
using ptx::Type;

namespace {
enum class Operation : uint32_t { add, subtract, difference, average, minimum, maximum, shiftLeft, shiftRight, test };
enum class Second : uint32_t { add, minimum, maximum, none };

/// Whether the result and the first two sources are signed.
struct Signs {
  bool d = false, a = false, b = false;
};
} // namespace

static __int128 clamped(__int128 value, int bits, bool isSigned) {
  const __int128 one = 1;
  return std::clamp(value, isSigned ? -(one << (bits - 1)) : 0, (one << (isSigned ? bits - 1 : bits)) - 1);
}

/// The element of `bits` bits at bit `from` of a word, sign- or zero-extended.
static int64_t elementAt(uint64_t word, int from, int bits, bool isSigned) {
  const uint64_t element = word >> from << (64 - bits);
  return isSigned ? static_cast<int64_t>(element) >> (64 - bits) : static_cast<int64_t>(element >> (64 - bits));
}

static bool holds(uint32_t comparison, int64_t a, int64_t b) {
  const bool answers[] = {a == b, a != b, a<b, a <= b, a> b, a >= b};
  return answers[comparison];
}

/// The operation on a pair of elements, for all instructions except shifts.
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

static uint32_t takeComparison(Decoder &d) {
  const int comparison = d.takeOne({"eq", "ne", "lt", "le", "gt", "ge"});
  if (comparison < 0)
    d.wrong("a comparison");
  return static_cast<uint32_t>(comparison);
}

/// Whether the next of the types is signed.
static bool takeSign(Decoder &d) {
  const Type type = d.type();
  if (type != Type::u32 && type != Type::s32)
    d.unsupported();
  return type == Type::s32;
}

/// A source with an optional selector or negation.
static uint32_t partialSource(Decoder &d, Operand operand) {
  operand.selector = {};
  operand.isMinus = false;
  return d.source(operand, Type::u32);
}

static uint32_t partialResult(Decoder &d, Operand operand) {
  operand.selector = {};
  return d.result(operand, Type::u32);
}

// --- Scalars -------------------------------------------------------------------------------------------------------

namespace {
/// A byte, a half or the whole of a word.
struct Part {
  int from = 0, bits = 32;
};

/// A scalar instruction, stored at the beginning of its step's list.
struct Scalar {
  Operation operation = Operation::add;
  uint32_t comparison = 0;
  Second second = Second::none;
  Part ofD, ofA, ofB;
  Signs isSigned;
  bool saturates = false, wraps = false, merges = false;
};
} // namespace

/// Stores a trivially copyable structure in a step's list, and loads it.
template <class T> static void giveDetail(Decoder &d, Step &step, const T &detail) {
  std::vector<uint32_t> words((sizeof(T) + 3) / 4);
  std::memcpy(words.data(), &detail, sizeof(T));
  d.giveList(step, words);
}
template <class T> static T detailOf(const Warp &warp, const Step &step) {
  T detail;
  std::memcpy(static_cast<void *>(&detail), warp.list(step), sizeof(T));
  return detail;
}

static Part partOf(Decoder &d, const Operand &operand) {
  static constexpr std::string_view names[] = {"b0", "b1", "b2", "b3", "h0", "h1"};
  if (operand.selector.empty())
    return {};
  const auto *const at = std::find(std::begin(names), std::end(names), operand.selector);
  if (at == std::end(names))
    d.wrong("a part '.b0' to '.b3', '.h0' or '.h1'");
  const int number = static_cast<int>(at - names);
  return number < 4 ? Part{8 * number, 8} : Part{16 * (number - 4), 16};
}

static __int128 shifted(const Scalar &v, int64_t a, int64_t amount) {
  amount = v.wraps ? amount & 31 : std::min<int64_t>(amount, 32);
  return v.operation == Operation::shiftLeft ? static_cast<__int128>(a) << amount : a >> amount;
}

/// The lowest `bits` bits as a signed number: intermediate results have 34 bits, and 33 before a second operation.
static int64_t wrapped(__int128 value, int bits) { return elementAt(static_cast<uint64_t>(value), 0, bits, true); }

static uint32_t scalar(const Scalar &v, uint32_t wordA, uint32_t wordB, uint32_t wordC) {
  const int64_t a = elementAt(wordA, v.ofA.from, v.ofA.bits, v.isSigned.a);
  const int64_t b = elementAt(wordB, v.ofB.from, v.ofB.bits, v.isSigned.b);
  const bool shifts = v.operation == Operation::shiftLeft || v.operation == Operation::shiftRight;
  int64_t value = wrapped(shifts ? shifted(v, a, b) : combine(v.operation, v.comparison, a, b), 34);
  if (v.saturates)
    value = static_cast<int64_t>(clamped(value, v.ofD.bits, v.isSigned.d));
  value = wrapped(value, 33);
  const int64_t c = elementAt(wordC, 0, 32, v.isSigned.d);
  switch (v.second) {
  case Second::add:
    return static_cast<uint32_t>(value + c);
  case Second::minimum:
    return static_cast<uint32_t>(std::min(value, c));
  case Second::maximum:
    return static_cast<uint32_t>(std::max(value, c));
  case Second::none:
    break;
  }
  const uint32_t mask = v.ofD.bits == 32 ? ~0u : (1u << v.ofD.bits) - 1;
  const uint32_t merged = (static_cast<uint32_t>(value) & mask) << v.ofD.from;
  return v.merges ? merged | (wordC & ~(mask << v.ofD.from)) : merged;
}

/// Computes a step's result from its three sources, lane by lane. Without a third one it is 0.
template <class Compute> static void onWords(Warp &warp, const Step &step, Compute compute) {
  auto *const result = warp.reg<uint32_t>(step.slots[0]);
  const auto *const a = warp.reg<uint32_t>(step.slots[1]), *const b = warp.reg<uint32_t>(step.slots[2]);
  const auto *const c = step.slots[3] == Step::none ? nullptr : warp.reg<uint32_t>(step.slots[3]);
  for (int lane = 0; lane < lanesOfWarp; ++lane)
    if (warp.exec >> lane & 1)
      result[lane] = compute(a[lane], b[lane], c ? c[lane] : 0);
}

static void runScalar(Warp &warp, const Step &step) {
  const auto detail = detailOf<Scalar>(warp, step);
  onWords(warp, step, [&](uint32_t a, uint32_t b, uint32_t c) { return scalar(detail, a, b, c); });
}

template <Operation operation> static void decodeScalar(Decoder &d) {
  constexpr bool tests = operation == Operation::test;
  Scalar v{.operation = operation};
  v.second = static_cast<Second>(d.takeOne({"add", "min", "max"}, static_cast<int>(Second::none)));
  if (operation == Operation::shiftLeft || operation == Operation::shiftRight) {
    v.wraps = d.take("wrap");
    if (!v.wraps && !d.take("clamp"))
      d.wrong("'.clamp' or '.wrap'");
  }
  if (tests)
    v.comparison = takeComparison(d);
  else
    v.isSigned.d = takeSign(d);
  v.isSigned.a = takeSign(d);
  v.isSigned.b = takeSign(d);
  if ((operation == Operation::shiftLeft || operation == Operation::shiftRight) && v.isSigned.b)
    d.wrong("'.u32' for the amount of a shift");
  v.saturates = !tests && d.take("sat");
  v.merges = !d.operand(0).selector.empty();
  const bool combines = v.second != Second::none;
  if (v.merges && combines)
    d.wrong("a part of the result or a second operation, but not both,");
  const size_t sources = v.merges || combines ? 3 : 2;
  d.expectCount(sources + 1, sources + 1);
  for (const size_t i : {1, 2})
    if (d.operand(i).isMinus)
      d.wrong("sources without '-'");
  v.ofD = partOf(d, d.operand(0));
  v.ofA = partOf(d, d.operand(1));
  v.ofB = partOf(d, d.operand(2));
  Step &step = d.emit(runScalar,
                      {partialResult(d, d.operand(0)), partialSource(d, d.operand(1)), partialSource(d, d.operand(2))});
  if (sources == 3)
    step.slots[3] = d.source(3, Type::u32);
  giveDetail(d, step, v);
}

// --- vmad ----------------------------------------------------------------------------------------------------------

namespace {
struct Mad {
  Part ofA, ofB;
  Signs isSigned; // d: whether the sum is signed
  bool negatesProduct = false, negatesC = false, addsOne = false, saturates = false;
  int scale = 0;
};
} // namespace

static uint32_t mad(const Mad &v, uint32_t wordA, uint32_t wordB, uint32_t wordC) {
  const __int128 product = static_cast<__int128>(elementAt(wordA, v.ofA.from, v.ofA.bits, v.isSigned.a)) *
                           elementAt(wordB, v.ofB.from, v.ofB.bits, v.isSigned.b);
  const __int128 c = elementAt(wordC, 0, 32, v.isSigned.d);
  const __int128 sum = (v.negatesProduct ? -product : product) + (v.negatesC ? -c : c) + v.addsOne;
  const __int128 scaled = sum >> v.scale;
  return static_cast<uint32_t>(v.saturates ? clamped(scaled, 32, v.isSigned.d) : scaled);
}

static void decodeMad(Decoder &d) {
  Mad v;
  v.saturates = d.take("sat");
  v.addsOne = d.take("po");
  v.scale = d.take("shr7") ? 7 : d.take("shr15") ? 15 : 0;
  takeSign(d); // the result's sign, implied by the sources
  v.isSigned.a = takeSign(d);
  v.isSigned.b = takeSign(d);
  d.expectCount(4, 4);
  const Operand &c = d.operand(3);
  v.negatesProduct = d.operand(1).isMinus != d.operand(2).isMinus;
  v.negatesC = c.isMinus;
  if (v.negatesC + v.negatesProduct + v.addsOne > 1)
    d.wrong("one of '-' before a factor, '-' before the summand, and '.po'");
  if (!c.selector.empty())
    d.wrong("the whole of the summand");
  v.isSigned.d = v.isSigned.a || v.isSigned.b || v.negatesProduct || v.negatesC;
  v.ofA = partOf(d, d.operand(1));
  v.ofB = partOf(d, d.operand(2));
  Step &step = d.emit(
      [](Warp &warp, const Step &step) {
        const auto detail = detailOf<Mad>(warp, step);
        onWords(warp, step, [&](uint32_t a, uint32_t b, uint32_t c) { return mad(detail, a, b, c); });
      },
      {d.result(0, Type::u32), partialSource(d, d.operand(1)), partialSource(d, d.operand(2)), partialSource(d, c)});
  giveDetail(d, step, v);
}

// --- Two halves or four bytes --------------------------------------------------------------------------------------

namespace {
/// An instruction on several elements. Elements of both sources are numbered consecutively, those of `a` first.
struct Elements {
  Operation operation = Operation::add;
  uint32_t comparison = 0;
  int count = 2;
  std::array<uint8_t, 4> ofA{}, ofB{};
  uint32_t mask = 0; // the computed elements of the result; the others come from the third source
  Signs isSigned;
  bool saturates = false, sums = false;
};
} // namespace

static uint32_t elements(const Elements &v, uint32_t a, uint32_t b, uint32_t c) {
  const int bits = 32 / v.count;
  const uint32_t ones = (1u << bits) - 1;
  const uint64_t both = uint64_t{b} << 32 | a;
  uint32_t result = c;
  for (int i = 0; i < v.count; ++i) {
    if (!(v.mask >> i & 1))
      continue;
    const auto index = static_cast<size_t>(i);
    int64_t value = combine(v.operation, v.comparison, elementAt(both, bits * v.ofA[index], bits, v.isSigned.a),
                            elementAt(both, bits * v.ofB[index], bits, v.isSigned.b));
    if (v.saturates)
      value = static_cast<int64_t>(clamped(value, bits, v.isSigned.d));
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

template <Operation operation, int count> static void decodeElements(Decoder &d) {
  constexpr bool tests = operation == Operation::test;
  Elements v{.operation = operation, .count = count};
  v.sums = d.take("add");
  if (tests)
    v.comparison = takeComparison(d);
  else
    v.isSigned.d = takeSign(d);
  v.isSigned.a = takeSign(d);
  v.isSigned.b = takeSign(d);
  v.saturates = !tests && d.take("sat");
  if (v.sums && v.saturates)
    d.wrong("'.sat' or '.add', but not both,");
  d.expectCount(4, 4);
  for (const size_t i : {1, 2})
    if (d.operand(i).isMinus)
      d.wrong("sources without '-'");
  v.ofA = selected(d, d.operand(1), count, 0);
  v.ofB = selected(d, d.operand(2), count, count);
  v.mask = maskOf(d, d.operand(0), count);
  Step &step = d.emit(
      [](Warp &warp, const Step &step) {
        const auto detail = detailOf<Elements>(warp, step);
        onWords(warp, step, [&](uint32_t a, uint32_t b, uint32_t c) { return elements(detail, a, b, c); });
      },
      {partialResult(d, d.operand(0)), partialSource(d, d.operand(1)), partialSource(d, d.operand(2)),
       d.source(3, Type::u32)});
  giveDetail(d, step, v);
}

void addVideo(InstructionTable &table) {
  using enum Operation;
  table["vadd"] = decodeScalar<add>;
  table["vsub"] = decodeScalar<subtract>;
  table["vabsdiff"] = decodeScalar<difference>;
  table["vmin"] = decodeScalar<minimum>;
  table["vmax"] = decodeScalar<maximum>;
  table["vshl"] = decodeScalar<shiftLeft>;
  table["vshr"] = decodeScalar<shiftRight>;
  table["vset"] = decodeScalar<test>;
  table["vmad"] = decodeMad;
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
