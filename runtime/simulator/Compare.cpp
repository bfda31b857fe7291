// setp, set, selp, slct, testp, copysign.

#include "runtime/simulator/Lanes.h"
#include "runtime/simulator/Numbers.h"

namespace kiln::simulator {

using ptx::Type;

/// Comparisons by name. The second half holds when an operand is NaN.
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

/// The lanes for which `a ∘ b` holds. Element says how a lane's word becomes a number.
template <class Word, class Element>
static Mask compareLanes(Warp &warp, Comparison comparison, uint32_t left, uint32_t right, Element element) {
  const Word *a = warp.reg<Word>(left), *b = warp.reg<Word>(right);
  Mask mask = 0;
  for (int lane = 0; lane < lanesOfWarp; ++lane)
    mask |= static_cast<Mask>(holds(comparison, element(a[lane]), element(b[lane]))) << lane;
  return mask;
}

template <class T> static Mask compareLanes(Warp &warp, Comparison comparison, uint32_t left, uint32_t right) {
  // One loop a comparison, so that each is vectorised.
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

/// The comparison of a step's two sources, by type. `flush`: f32 denormals count as 0.
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
    return compareLanes<uint32_t>(warp, comparison, a, b,
                                  [](uint32_t word) { return fromHalf(static_cast<uint16_t>(word)); });
  case Type::bf16:
    return compareLanes<uint32_t>(warp, comparison, a, b,
                                  [](uint32_t word) { return fromBf16(static_cast<uint16_t>(word)); });
  default:
    return 0;
  }
}

/// A comparison's step: detail = comparison | type << 8 | flush << 16 | how a third predicate joins << 17 | its
/// inversion << 19.
struct CompareDetail {
  Comparison comparison;
  Type type;
  bool flush;
  int join; // −1 none, 0 and, 1 or, 2 xor
  bool negated;

  uint64_t pack() const {
    return static_cast<uint64_t>(comparison) | static_cast<uint64_t>(type) << 8 | uint64_t{flush} << 16 |
           static_cast<uint64_t>(join + 1) << 17 | uint64_t{negated} << 20;
  }
  static CompareDetail unpack(uint64_t detail) {
    return {static_cast<Comparison>(detail & 0xff), static_cast<Type>(detail >> 8 & 0xff), (detail >> 16 & 1) != 0,
            static_cast<int>(detail >> 17 & 7) - 1, (detail >> 20 & 1) != 0};
  }
};

static Mask joined(int join, Mask compared, Mask other) {
  return join == 0 ? compared & other : join == 1 ? compared | other : join == 2 ? compared ^ other : compared;
}

static void setPredicates(Warp &warp, const Step &step) {
  const CompareDetail detail = CompareDetail::unpack(step.detail);
  const Mask holding = compared(warp, detail.type, detail.flush, detail.comparison, step.slots[2], step.slots[3]);
  Mask third = 0;
  if (detail.join >= 0)
    third = warp.predicate(step.slots[4]) ^ (detail.negated ? allLanes : 0);
  Mask &first = warp.predicate(step.slots[0]);
  first = (first & ~warp.exec) | (joined(detail.join, holding, third) & warp.exec);
  if (step.slots[1] != Step::none) {
    Mask &second = warp.predicate(step.slots[1]);
    second = (second & ~warp.exec) | (joined(detail.join, ~holding, third) & warp.exec);
  }
}

static void decodeSetp(Decoder &d) {
  CompareDetail detail{};
  detail.comparison = takeComparison(d);
  detail.join = d.takeOne({"and", "or", "xor"});
  detail.flush = d.take("ftz");
  detail.type = d.type();
  if (detail.type == Type::f16x2 || detail.type == Type::bf16x2 || laneBytes(detail.type) == 0)
    d.unsupported();
  d.expectCount(detail.join < 0 ? 3 : 4, detail.join < 0 ? 3 : 4);
  const auto results = d.elements(d.operand(0));
  Step &step = d.emit(setPredicates, {d.result(results[0], Type::pred)});
  if (results.size() == 2)
    step.slots[1] = d.result(results[1], Type::pred);
  step.slots[2] = d.source(1, detail.type);
  step.slots[3] = d.source(2, detail.type);
  if (detail.join >= 0)
    step.slots[4] = d.predicate(d.operand(3), detail.negated);
  step.detail = detail.pack();
}

/// set: all ones, or 1.0, where the comparison holds.
template <bool Packed> static void setWords(Warp &warp, const Step &step) {
  const CompareDetail detail = CompareDetail::unpack(step.detail);
  auto *result = warp.reg<uint32_t>(step.slots[0]);
  const bool isFloat = detail.join >= 0;
  if constexpr (Packed) { // f16x2 to f16x2: 1.0 or 0 in each half
    const auto *a = warp.reg<uint32_t>(step.slots[1]), *b = warp.reg<uint32_t>(step.slots[2]);
    const bool isBf16 = detail.type == Type::bf16x2;
    for (int lane = 0; lane < lanesOfWarp; ++lane) {
      if (!(warp.exec >> lane & 1))
        continue;
      uint32_t word = 0;
      for (const int shift : {0, 16}) {
        const auto number = [&](uint32_t bits) {
          return isBf16 ? fromBf16(static_cast<uint16_t>(bits >> shift))
                        : fromHalf(static_cast<uint16_t>(bits >> shift));
        };
        if (holds(detail.comparison, number(a[lane]), number(b[lane])))
          word |= (isFloat ? (isBf16 ? 0x3f80u : 0x3c00u) : 0xffffu) << shift;
      }
      result[lane] = word;
    }
  } else {
    const Mask holding = compared(warp, detail.type, detail.flush, detail.comparison, step.slots[1], step.slots[2]);
    for (int lane = 0; lane < lanesOfWarp; ++lane)
      if (warp.exec >> lane & 1)
        result[lane] = holding >> lane & 1 ? (isFloat ? 0x3f800000u : ~0u) : 0;
  }
}

static void decodeSet(Decoder &d) {
  CompareDetail detail{};
  detail.comparison = takeComparison(d);
  detail.flush = d.take("ftz");
  const Type to = d.type();
  detail.type = d.type();
  detail.join = ptx::isFloat(to) ? 0 : -1; // of `set`: whether the result is a float
  const bool packed = detail.type == Type::f16x2 || detail.type == Type::bf16x2;
  if (laneBytes(to) != 4 || ptx::bitsOf(to) != 32 || (packed && ptx::isFloat(to) && to != detail.type))
    d.unsupported();
  d.expectCount(3, 3);
  d.emit(packed ? setWords<true> : setWords<false>,
         {d.result(0, to), d.source(1, detail.type), d.source(2, detail.type)}, detail.pack());
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
  d.expectCount(4, 4);
  const auto onInteger = [](auto a, auto b, int32_t c) { return c >= 0 ? a : b; };
  const auto onFloat = [](auto a, auto b, float c) { return c >= 0 ? a : b; };
  if (flush || (by != Type::s32 && by != Type::f32))
    d.unsupported();
  const bool wide = laneBytes(type) == 8;
  const Handler handler = by == Type::s32 ? (wide ? elementwise<uint64_t, uint64_t, uint64_t, int32_t>(onInteger)
                                                  : elementwise<uint32_t, uint32_t, uint32_t, int32_t>(onInteger))
                                          : (wide ? elementwise<uint64_t, uint64_t, uint64_t, float>(onFloat)
                                                  : elementwise<uint32_t, uint32_t, uint32_t, float>(onFloat));
  d.emit(handler, {d.result(0, type), d.source(1, type), d.source(2, type), d.source(3, by)});
}

template <class T> static Handler testHandler(int test) {
  switch (test) {
  case 0:
    return testing<T>([](T a) { return std::isfinite(a); });
  case 1:
    return testing<T>([](T a) { return std::isinf(a); });
  case 2:
    return testing<T>([](T a) { return !std::isnan(a); });
  case 3:
    return testing<T>([](T a) { return std::isnan(a); });
  case 4:
    return testing<T>([](T a) { return std::isnormal(a); });
  default:
    return testing<T>([](T a) { return std::fpclassify(a) == FP_SUBNORMAL; });
  }
}

static void decodeTestp(Decoder &d) {
  const int test = d.takeOne({"finite", "infinite", "number", "notanumber", "normal", "subnormal"});
  const Type type = d.type();
  if (test < 0 || (type != Type::f32 && type != Type::f64))
    d.unsupported();
  d.expectCount(2, 2);
  d.emit(type == Type::f32 ? testHandler<float>(test) : testHandler<double>(test),
         {d.result(0, Type::pred), d.source(1, type)});
}

static void decodeCopysign(Decoder &d) {
  const Type type = d.type();
  if (type != Type::f32 && type != Type::f64)
    d.unsupported();
  d.expectCount(3, 3);
  const auto f = [](auto sign, auto value) { return std::copysign(value, sign); };
  d.emit(type == Type::f32 ? elementwise<float, float, float>(f) : elementwise<double, double, double>(f),
         {d.result(0, type), d.source(1, type), d.source(2, type)});
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
