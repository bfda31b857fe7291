// setp, set, selp, slct, testp, copysign.

#include "runtime/simulator/Lanes.h"
#include "runtime/simulator/Numbers.h"

namespace kiln::simulator {

using ptx::Type;

/// Comparisons by name. On floats, equ to geu also hold if an operand is NaN, and nan holds only then.
enum class Comparison : uint8_t { eq, ne, lt, le, gt, ge, lo, ls, hi, hs, equ, neu, ltu, leu, gtu, geu, num, nan };

static Comparison takeComparison(Decoder &d) {
  const int number = d.takeOne({"eq", "ne", "lt", "le", "gt", "ge", "lo", "ls", "hi", "hs", "equ", "neu", "ltu", "leu",
                                "gtu", "geu", "num", "nan"});
  if (number < 0)
    d.wrong("a comparison");
  return static_cast<Comparison>(number);
}

template <class T> static bool holds(Comparison comparison, T a, T b) {
  if constexpr (std::is_floating_point_v<T>) {
    const bool unordered = std::isnan(a) || std::isnan(b);
    if (comparison == Comparison::num || comparison == Comparison::nan)
      return unordered == (comparison == Comparison::nan);
    if (unordered)
      return comparison >= Comparison::equ;
  }
  switch (comparison) {
  case Comparison::eq:
  case Comparison::equ:
    return a == b;
  case Comparison::ne:
  case Comparison::neu:
    return a != b;
  case Comparison::lt:
  case Comparison::lo:
  case Comparison::ltu:
    return a < b;
  case Comparison::le:
  case Comparison::ls:
  case Comparison::leu:
    return a <= b;
  case Comparison::gt:
  case Comparison::hi:
  case Comparison::gtu:
    return a > b;
  case Comparison::ge:
  case Comparison::hs:
  case Comparison::geu:
    return a >= b;
  default:
    return false;
  }
}

/// The lanes for which `a ∘ b` holds. Element converts a lane's word to a number.
template <class Word, class Element>
static Mask compareLanes(Warp &warp, Comparison comparison, uint32_t left, uint32_t right, Element element) {
  const Word *a = warp.reg<Word>(left), *b = warp.reg<Word>(right);
  Mask mask = 0;
  for (int lane = 0; lane < lanesOfWarp; ++lane)
    mask |= static_cast<Mask>(holds(comparison, element(a[lane]), element(b[lane]))) << lane;
  return mask;
}

template <class T> static Mask compareLanes(Warp &warp, Comparison comparison, uint32_t left, uint32_t right) {
  // One loop per comparison, so that each is vectorised.
  const auto with = [&]<Comparison C>(std::integral_constant<Comparison, C>) {
    return compareLanes<WordOf<T>>(warp, C, left, right, [](WordOf<T> word) { return fromWord<T>(word); });
  };
  using enum Comparison;
  switch (comparison) {
  case eq:
    return with(std::integral_constant<Comparison, eq>());
  case ne:
    return with(std::integral_constant<Comparison, ne>());
  case lt:
    return with(std::integral_constant<Comparison, lt>());
  case ge:
    return with(std::integral_constant<Comparison, ge>());
  default:
    return compareLanes<WordOf<T>>(warp, comparison, left, right, [](WordOf<T> word) { return fromWord<T>(word); });
  }
}

/// As above, for narrow floats at bit `shift` of the lanes' words. With `flush`, their denormals count as 0.
static Mask compareNarrow(Warp &warp, bool isBf16, int shift, bool flush, Comparison comparison, uint32_t a,
                          uint32_t b) {
  return compareLanes<uint32_t>(warp, comparison, a, b, [=](uint32_t word) {
    const auto bits = static_cast<uint16_t>(word >> shift);
    const bool isDenormal = (bits & (isBf16 ? 0x7f80 : 0x7c00)) == 0;
    if (flush && isDenormal)
      return 0.0f;
    return isBf16 ? fromBf16(bits) : fromHalf(bits);
  });
}

static bool isPacked(Type type) { return type == Type::f16x2 || type == Type::bf16x2; }

/// The comparison of a step's two sources, by type; of packed ones, of their low halves. `flush`: denormals of f32 and
/// narrow floats count as 0.
static Mask compared(Warp &warp, Type type, bool flush, Comparison comparison, uint32_t a, uint32_t b) {
  switch (type) {
  case Type::b16:
  case Type::u16:
    return compareLanes<uint16_t>(warp, comparison, a, b);
  case Type::s16:
    return compareLanes<int16_t>(warp, comparison, a, b);
  case Type::b32:
  case Type::u32:
    return compareLanes<uint32_t>(warp, comparison, a, b);
  case Type::s32:
    return compareLanes<int32_t>(warp, comparison, a, b);
  case Type::b64:
  case Type::u64:
    return compareLanes<uint64_t>(warp, comparison, a, b);
  case Type::s64:
    return compareLanes<int64_t>(warp, comparison, a, b);
  case Type::f32:
    if (flush)
      return compareLanes<uint32_t>(warp, comparison, a, b,
                                    [](uint32_t word) { return flushed(fromWord<float>(word)); });
    return compareLanes<float>(warp, comparison, a, b);
  case Type::f64:
    return compareLanes<double>(warp, comparison, a, b);
  case Type::f16:
  case Type::f16x2:
    return compareNarrow(warp, false, 0, flush, comparison, a, b);
  case Type::bf16:
  case Type::bf16x2:
    return compareNarrow(warp, true, 0, flush, comparison, a, b);
  default:
    return 0;
  }
}

/// Parameters of a step of setp or set, other than its operands.
struct CompareDetail {
  Comparison comparison = Comparison::eq;
  Type type = Type::b32;
  int8_t join = -1; // −1 none, 0 and, 1 or, 2 xor
  bool flush : 1 = false, negated : 1 = false;
  uint32_t truth = 0; // of set: the value of a lane, or of each half, if the comparison holds
};

static Mask joined(int join, Mask compared, Mask other) {
  return join == 0 ? compared & other : join == 1 ? compared | other : join == 2 ? compared ^ other : compared;
}

/// The lanes for which a step's comparison holds, combined with its third operand: for whole sources, or for the low
/// and the high halves of packed ones.
struct Holding {
  Mask low, high;
};

static Holding holding(Warp &warp, const CompareDetail &detail, uint32_t a, uint32_t b, uint32_t third) {
  const Mask other = detail.join < 0 ? 0 : warp.predicate(third) ^ (detail.negated ? allLanes : 0);
  const Mask low = compared(warp, detail.type, detail.flush, detail.comparison, a, b);
  const Mask high = isPacked(detail.type)
                        ? compareNarrow(warp, detail.type == Type::bf16x2, 16, detail.flush, detail.comparison, a, b)
                        : ~low; // the complement, which is setp's second result
  return {joined(detail.join, low, other), joined(detail.join, high, other)};
}

static void setPredicates(Warp &warp, const Step &step) {
  const Holding holds = holding(warp, unpackDetail<CompareDetail>(step), step.slots[2], step.slots[3], step.slots[4]);
  warp.setPredicate(step.slots[0], holds.low);
  if (step.slots[1] != Step::none)
    warp.setPredicate(step.slots[1], holds.high);
}

/// Parses the common parts of setp and set, other than the types.
static CompareDetail takeCompare(Decoder &d) {
  CompareDetail detail;
  detail.comparison = takeComparison(d);
  detail.join = static_cast<int8_t>(d.takeOne({"and", "or", "xor"}));
  detail.flush = d.take("ftz");
  return detail;
}

static void decodeSetp(Decoder &d) {
  CompareDetail detail = takeCompare(d);
  detail.type = d.type();
  if (laneBytes(detail.type) == 0)
    d.unsupported();
  d.expectCount(detail.join < 0 ? 3 : 4, detail.join < 0 ? 3 : 4);
  const auto results = d.elements(d.operand(0));
  if (isPacked(detail.type) && results.size() != 2)
    d.wrong("two predicates, one for each half,");
  if ((detail.type == Type::f16 || detail.type == Type::bf16) && results.size() == 2)
    d.wrong("one predicate");
  bool negated = false;
  Step &step = d.emit(setPredicates, {d.result(results[0], Type::pred)});
  if (results.size() == 2)
    step.slots[1] = d.result(results[1], Type::pred);
  step.slots[2] = d.source(1, detail.type);
  step.slots[3] = d.source(2, detail.type);
  if (detail.join >= 0)
    step.slots[4] = d.predicate(d.operand(3), negated);
  detail.negated = negated;
  step.detail = asDetail(detail);
}

static void setWords(Warp &warp, const Step &step) {
  const CompareDetail detail = unpackDetail<CompareDetail>(step);
  const Holding holds = holding(warp, detail, step.slots[1], step.slots[2], step.slots[3]);
  auto *result = warp.reg<uint32_t>(step.slots[0]);
  const bool packed = isPacked(detail.type);
  forEachLane(warp, [&](int lane) {
    result[lane] =
        (holds.low >> lane & 1 ? detail.truth : 0) | (packed && holds.high >> lane & 1 ? detail.truth << 16 : 0);
  });
}

/// The result of set if the comparison holds: 1.0 in a float type, all ones otherwise.
static uint32_t trueValue(Type type, bool inHalves) {
  switch (type) {
  case Type::f32:
    return 0x3f800000;
  case Type::f16:
  case Type::f16x2:
    return 0x3c00;
  case Type::bf16:
  case Type::bf16x2:
    return 0x3f80;
  default:
    return inHalves || ptx::bitsOf(type) == 16 ? 0xffff : ~0u;
  }
}

static void decodeSet(Decoder &d) {
  CompareDetail detail = takeCompare(d);
  const Type to = d.type();
  detail.type = d.type();
  const bool packed = isPacked(detail.type);
  if (laneBytes(to) != 4 || laneBytes(detail.type) == 0 || ptx::bitsOf(to) < (packed ? 32 : 16) ||
      (packed ? ptx::isFloat(to) && to != detail.type : isPacked(to)))
    d.unsupported();
  detail.truth = trueValue(to, packed);
  d.expectCount(detail.join < 0 ? 3 : 4, detail.join < 0 ? 3 : 4);
  bool negated = false;
  Step &step = d.emit(setWords, {d.result(0, to), d.source(1, detail.type), d.source(2, detail.type)});
  if (detail.join >= 0)
    step.slots[3] = d.predicate(d.operand(3), negated);
  detail.negated = negated;
  step.detail = asDetail(detail);
}

template <class Word> static void select(Warp &warp, const Step &step) {
  Word *result = warp.reg<Word>(step.slots[0]);
  const Word *a = warp.reg<Word>(step.slots[1]), *b = warp.reg<Word>(step.slots[2]);
  const Mask mask = warp.predicate(step.slots[3]) ^ (step.detail ? allLanes : 0);
  for (int lane = 0; lane < lanesOfWarp; ++lane) {
    const Word chosen = mask >> lane & 1 ? a[lane] : b[lane];
    result[lane] = warp.exec >> lane & 1 ? chosen : result[lane];
  }
}

static void decodeSelp(Decoder &d) {
  const Type type = d.type();
  d.expectCount(4, 4);
  bool negated = false;
  const uint32_t predicate = d.predicate(d.operand(3), negated);
  d.emit(laneBytes(type) == 8 ? select<uint64_t> : select<uint32_t>,
         {d.result(0, type), d.source(1, type), d.source(2, type), predicate}, negated);
}

static void decodeSlct(Decoder &d) {
  const bool flush = d.take("ftz");
  const Type type = d.type(), by = d.type();
  const auto onInteger = [](auto a, auto b, int32_t c) { return c >= 0 ? a : b; };
  const auto onFloat = [](auto a, auto b, float c) { return c >= 0 ? a : b; }; // a denormal c, flushed or not, too
  if ((flush && by != Type::f32) || (by != Type::s32 && by != Type::f32))
    d.unsupported();
  d.emitOn(onWords(type,
                   [=]<class T>() {
                     return by == Type::s32 ? elementwise<T, T, T, int32_t>(onInteger)
                                            : elementwise<T, T, T, float>(onFloat);
                   }),
           {type, type, type, by});
}

template <class T> static Handler testHandler(int test) {
  static const Handler tests[] = {testing<T>([](T a) { return std::isfinite(a); }),
                                  testing<T>([](T a) { return std::isinf(a); }),
                                  testing<T>([](T a) { return !std::isnan(a); }),
                                  testing<T>([](T a) { return std::isnan(a); }),
                                  testing<T>([](T a) { return std::isnormal(a); }),
                                  testing<T>([](T a) { return std::fpclassify(a) == FP_SUBNORMAL; })};
  return tests[test];
}

static void decodeTestp(Decoder &d) {
  const int test = d.takeOne({"finite", "infinite", "number", "notanumber", "normal", "subnormal"});
  const Type type = d.type();
  if (test < 0 || (type != Type::f32 && type != Type::f64))
    d.unsupported();
  d.emitOn(type == Type::f32 ? testHandler<float>(test) : testHandler<double>(test), {Type::pred, type});
}

static void decodeCopysign(Decoder &d) {
  const Type type = d.type();
  if (type != Type::f32 && type != Type::f64)
    d.unsupported();
  const auto f = [](auto sign, auto value) { return std::copysign(value, sign); };
  d.emitOn(type == Type::f32 ? elementwise<float, float, float>(f) : elementwise<double, double, double>(f),
           {type, type, type});
}

void addCompare(InstructionTable &table) {
  table["setp"] = decodeSetp;
  table["set"] = decodeSet;
  table["selp"] = decodeSelp;
  table["slct"] = decodeSlct;
  table["testp"] = decodeTestp;
  table["copysign"] = decodeCopysign;
}

} // namespace kiln::simulator
