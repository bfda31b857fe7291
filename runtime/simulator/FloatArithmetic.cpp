// One function computes an element in a wider type and rounds it. The common cases, f32 and f64 to nearest without
// flushing, have separate handlers that the compiler vectorises.

#include "runtime/simulator/FloatArithmetic.h"

#include "runtime/simulator/Approximation.h"
#include "runtime/simulator/CodeBuilder.h"
#include "runtime/simulator/Cta.h"
#include "runtime/simulator/Lanes.h"

#include <bit>
#include <cmath>
#include <limits>

namespace kiln::simulator {

using ptx::Type;
using Op = FloatOperation;

FloatModifiers takeFloatModifiers(Decoder &decoder, bool saturate) {
  FloatModifiers modifiers;
  modifiers.saturate = saturate;
  modifiers.rounding = static_cast<Rounding>(decoder.takeOne({"rn", "rz", "rm", "rp"}, 0));
  modifiers.flush = decoder.take("ftz");
  return modifiers;
}

// --- One element ---------------------------------------------------------------------------------------------------

template <class T> static T extremumOfMagnitudes(T a, T b, bool maximum, bool nan) {
  const T magnitude = extremum(std::fabs(a), std::fabs(b), maximum, nan);
  return std::isnan(magnitude) || std::signbit(a) == std::signbit(b) ? magnitude : -magnitude;
}

/// f32 or f64 by the operation's definition.
template <class T> static T compute(Op operation, const FloatModifiers &m, T a, T b, T c) {
  switch (operation) {
  case Op::add:
    return m.rounding == Rounding::nearest ? a + b : addIn(a, b, m.rounding);
  case Op::subtract:
    return m.rounding == Rounding::nearest ? a - b : addIn(a, -b, m.rounding);
  case Op::multiply:
    return m.rounding == Rounding::nearest ? a * b : multiplyIn(a, b, m.rounding);
  case Op::divide:
    return m.rounding == Rounding::nearest ? a / b : divideIn(a, b, m.rounding);
  case Op::divideApproximately:
    return a / b;
  case Op::fma:
    return m.rounding == Rounding::nearest ? std::fma(a, b, c) : fmaIn(a, b, c, m.rounding);
  case Op::minimum:
  case Op::maximum:
    return m.xorsign ? extremumOfMagnitudes(a, b, operation == Op::maximum, m.nan)
                     : extremum(a, b, operation == Op::maximum, m.nan);
  case Op::negate:
    return -a;
  case Op::absolute:
    return std::fabs(a);
  }
  return 0;
}

/// Modifiers as a step's detail, and back.
static uint64_t pack(Op operation, const FloatModifiers &m) {
  return static_cast<uint64_t>(operation) | static_cast<uint64_t>(m.rounding) << 8 | uint64_t{m.flush} << 16 |
         uint64_t{m.saturate} << 17 | uint64_t{m.nan} << 18 | uint64_t{m.relu} << 19 | uint64_t{m.xorsign} << 20 |
         uint64_t{m.magnitudes} << 21;
}
static FloatModifiers unpack(uint64_t detail) {
  return {.rounding = static_cast<Rounding>(detail >> 8 & 0xff),
          .flush = (detail >> 16 & 1) != 0,
          .saturate = (detail >> 17 & 1) != 0,
          .nan = (detail >> 18 & 1) != 0,
          .relu = (detail >> 19 & 1) != 0,
          .xorsign = (detail >> 20 & 1) != 0,
          .magnitudes = (detail >> 21 & 1) != 0};
}

static float finish(float value, const FloatModifiers &m) {
  if (m.flush)
    value = flushed(value);
  if (m.relu && !std::isnan(value))
    value = std::max(value, 0.0f);
  return m.saturate ? saturated(value) : withOneNaN(value);
}

static float computeSingle(Op operation, const FloatModifiers &m, float a, float b, float c) {
  if (m.flush)
    a = flushed(a), b = flushed(b), c = flushed(c);
  return finish(compute(operation, m, a, b, c), m);
}

static double computeDouble(Op operation, const FloatModifiers &m, double a, double b, double c) {
  const double value = compute(operation, m, a, b, c);
  return m.saturate ? saturated(value) : value;
}

/// a · b + c of narrow numbers, rounded to odd; the product is exact. An inexact sum becomes the neighbour with an odd
/// last bit, so that a second rounding does not mistake it for a tie.
static double fmaToOdd(double a, double b, double c) {
  const double product = a * b, sum = product + c;
  const double added = sum - product, error = (product - (sum - added)) + (c - added);
  const bool isInexact = std::fabs(error) > 0; // not for a NaN
  if (!isInexact || (std::bit_cast<uint64_t>(sum) & 1) != 0)
    return sum;
  return std::nextafter(sum, std::copysign(std::numeric_limits<double>::infinity(), error));
}

/// Narrow floats are computed in double and rounded once. Products are exact, and the rounded sum of two numbers is
/// never mistaken for a tie. The sum of a product and a number may be, so it is rounded to odd.
static uint16_t computeNarrow(Op operation, const FloatModifiers &m, bool isBf16, uint16_t a, uint16_t b, uint16_t c) {
  const auto flushing = [&](uint16_t bits) {
    const bool isDenormal = (bits & (isBf16 ? 0x7f80 : 0x7c00)) == 0;
    return static_cast<uint16_t>(m.flush && isDenormal ? bits & 0x8000 : bits);
  };
  if (operation == Op::negate)
    return flushing(a) ^ 0x8000;
  if (operation == Op::absolute)
    return flushing(a) & 0x7fff;
  const auto wide = [&](uint16_t bits) {
    return static_cast<double>(isBf16 ? fromBf16(flushing(bits)) : fromHalf(flushing(bits)));
  };
  FloatModifiers exact = m;
  exact.rounding = Rounding::nearest;
  double value =
      operation == Op::fma ? fmaToOdd(wide(a), wide(b), wide(c)) : compute(operation, exact, wide(a), wide(b), wide(c));
  if (m.relu && !std::isnan(value))
    value = std::max(value, 0.0);
  if (m.saturate)
    value = saturated(value);
  return flushing(isBf16 ? toBf16(value, m.rounding) : toHalf(value, m.rounding));
}

// --- Handlers ------------------------------------------------------------------------------------------------------

/// Any operation, operand by operand: `Element` computes one lane's word.
template <class Word, class Element> static void onEach(Warp &warp, const Step &step, Element element) {
  const FloatModifiers modifiers = unpack(step.detail);
  const auto operation = static_cast<Op>(step.detail & 0xff);
  auto *result = warp.reg<Word>(step.slots[0]);
  const Word *a = warp.reg<Word>(step.slots[1]);
  const Word *b = step.slots[2] == Step::none ? a : warp.reg<Word>(step.slots[2]);
  const Word *c = step.slots[3] == Step::none ? a : warp.reg<Word>(step.slots[3]);
  for (int lane = 0; lane < lanesOfWarp; ++lane)
    if (warp.exec >> lane & 1)
      result[lane] = element(operation, modifiers, a[lane], b[lane], c[lane]);
}

static void runSingle(Warp &warp, const Step &step) {
  onEach<uint32_t>(warp, step, [](Op op, const FloatModifiers &m, uint32_t a, uint32_t b, uint32_t c) {
    return toWord(computeSingle(op, m, fromWord<float>(a), fromWord<float>(b), fromWord<float>(c)));
  });
}
static void runDouble(Warp &warp, const Step &step) {
  onEach<uint64_t>(warp, step, [](Op op, const FloatModifiers &m, uint64_t a, uint64_t b, uint64_t c) {
    return toWord(computeDouble(op, m, fromWord<double>(a), fromWord<double>(b), fromWord<double>(c)));
  });
}
template <bool IsBf16, bool Packed> static void runNarrow(Warp &warp, const Step &step) {
  onEach<uint32_t>(warp, step, [](Op op, const FloatModifiers &m, uint32_t a, uint32_t b, uint32_t c) {
    const auto half = [&](int shift) {
      return static_cast<uint32_t>(computeNarrow(op, m, IsBf16, static_cast<uint16_t>(a >> shift),
                                                 static_cast<uint16_t>(b >> shift), static_cast<uint16_t>(c >> shift)));
    };
    return half(0) | (Packed ? half(16) << 16 : 0);
  });
}

/// Two f32 in a lane's 64 bits.
static void runSinglePair(Warp &warp, const Step &step) {
  onEach<uint64_t>(warp, step, [](Op op, const FloatModifiers &m, uint64_t a, uint64_t b, uint64_t c) {
    const auto part = [](uint64_t word, int shift) { return fromWord<float>(static_cast<uint32_t>(word >> shift)); };
    const auto half = [&](int shift) {
      return uint64_t{toWord(computeSingle(op, m, part(a, shift), part(b, shift), part(c, shift)))} << shift;
    };
    return half(0) | half(32);
  });
}

/// f32 with narrow factors, or with a narrow summand.
template <bool IsBf16> static void runMixed(Warp &warp, const Step &step) {
  onEach<uint32_t>(warp, step, [](Op op, const FloatModifiers &m, uint32_t a, uint32_t b, uint32_t c) {
    const auto wide = [](uint32_t word) {
      return IsBf16 ? fromBf16(static_cast<uint16_t>(word)) : fromHalf(static_cast<uint16_t>(word));
    };
    return toWord(computeSingle(op, m, wide(a), op == Op::fma ? wide(b) : fromWord<float>(b), fromWord<float>(c)));
  });
}

/// The vectorised handler of an operation on f32 or f64 to nearest, or none.
template <class T> static Handler fastHandler(Op operation) {
  switch (operation) {
  case Op::add:
    return elementwise<T, T, T>([](T a, T b) { return withOneNaN(a + b); });
  case Op::subtract:
    return elementwise<T, T, T>([](T a, T b) { return withOneNaN(a - b); });
  case Op::multiply:
    return elementwise<T, T, T>([](T a, T b) { return withOneNaN(a * b); });
  case Op::divide:
  case Op::divideApproximately:
    return elementwise<T, T, T>([](T a, T b) { return withOneNaN(a / b); });
  case Op::fma:
    return elementwise<T, T, T, T>([](T a, T b, T c) { return withOneNaN(std::fma(a, b, c)); });
  case Op::negate:
    return elementwise<T, T>([](T a) { return withOneNaN(-a); });
  case Op::absolute:
    return elementwise<T, T>([](T a) { return withOneNaN(std::fabs(a)); });
  default:
    return nullptr;
  }
}

/// div.full and div.approx.
static void divideApproximately(Warp &warp, const Step &step) {
  runSingle(warp, step);
  const int times = warp.cta.grid.errorTimes;
  if (!times)
    return;
  auto *result = warp.reg<uint32_t>(step.slots[0]);
  for (int lane = 0; lane < lanesOfWarp; ++lane)
    if (warp.exec >> lane & 1)
      result[lane] = toWord(static_cast<float>(
          withError(fromWord<float>(result[lane]), ofDivision, times, warp.cta.grid.seed, result[lane])));
}

static Handler handlerFor(const Decoder &decoder, Op operation, Type type, const FloatModifiers &m) {
  const bool plain = m.rounding == Rounding::nearest && !m.flush && !m.saturate && !m.nan && !m.relu && !m.xorsign;
  switch (type) {
  case Type::f32:
    if (operation == Op::divideApproximately)
      return divideApproximately;
    if (const Handler fast = plain ? fastHandler<float>(operation) : nullptr)
      return fast;
    return runSingle;
  case Type::f64:
    if (const Handler fast = plain ? fastHandler<double>(operation) : nullptr)
      return fast;
    return runDouble;
  case Type::f32x2:
    return runSinglePair;
  case Type::f16:
    return runNarrow<false, false>;
  case Type::bf16:
    return runNarrow<true, false>;
  case Type::f16x2:
    return runNarrow<false, true>;
  case Type::bf16x2:
    return runNarrow<true, true>;
  default:
    decoder.unsupported();
  }
}

/// min and max of three.
static void runExtremumOfThree(Warp &warp, const Step &step) {
  onEach<uint32_t>(warp, step, [](Op op, const FloatModifiers &m, uint32_t a, uint32_t b, uint32_t c) {
    const auto number = [&](uint32_t word) {
      const float value = m.flush ? flushed(fromWord<float>(word)) : fromWord<float>(word);
      return m.magnitudes ? std::fabs(value) : value;
    };
    const bool maximum = op == Op::maximum;
    return toWord(withOneNaN(extremum(extremum(number(a), number(b), maximum, m.nan), number(c), maximum, m.nan)));
  });
}

static void emitExtremumOfThree(Decoder &d, Op operation, Type type, const FloatModifiers &modifiers) {
  d.expectTarget(100, 88);
  if (type != Type::f32 || modifiers.xorsign)
    d.unsupported();
  d.emit(runExtremumOfThree, {d.result(0, type), d.source(1, type), d.source(2, type), d.source(3, type)},
         pack(operation, modifiers));
}

/// The handler of an operation with narrow and f32 operands.
static Handler mixedHandler(const Decoder &decoder, Op operation, Type narrow, const FloatModifiers &modifiers) {
  const bool sums = operation == Op::add || operation == Op::subtract || operation == Op::fma;
  if (!sums || modifiers.flush || (narrow != Type::f16 && narrow != Type::bf16))
    decoder.unsupported();
  return narrow == Type::bf16 ? runMixed<true> : runMixed<false>;
}

void emitFloat(Decoder &d, Op operation, Type type, const FloatModifiers &modifiers) {
  const std::optional<Type> mixed = type == Type::f32 ? d.optionalType() : std::nullopt;
  const bool narrow = ptx::bitsOf(type) == 16 || type == Type::f16x2 || type == Type::bf16x2;
  if (narrow &&
      (operation == Op::divide || operation == Op::divideApproximately || modifiers.rounding != Rounding::nearest))
    d.unsupported();
  if ((modifiers.relu && !narrow) || (modifiers.xorsign && type == Type::f64))
    d.unsupported();
  if (type == Type::f32x2) {
    d.expectTarget(100, 86);
    if (operation > Op::fma || operation == Op::divide || operation == Op::divideApproximately || modifiers.saturate)
      d.unsupported();
  }
  if (operation == Op::minimum || operation == Op::maximum)
    if (d.count() == 4)
      return emitExtremumOfThree(d, operation, type, modifiers);
  if (modifiers.magnitudes)
    d.unsupported();
  const size_t sources = operation == Op::fma ? 3 : operation == Op::negate || operation == Op::absolute ? 1 : 2;
  d.expectCount(sources + 1, sources + 1);
  const Handler handler =
      mixed ? mixedHandler(d, operation, *mixed, modifiers) : handlerFor(d, operation, type, modifiers);
  Step &step = d.emit(handler, {d.result(0, type)}, pack(operation, modifiers));
  for (size_t i = 1; i <= sources; ++i) {
    const bool isNarrow = mixed && (i == 1 || (i == 2 && operation == Op::fma));
    step.slots[i] = d.source(i, isNarrow ? *mixed : type);
  }
}

} // namespace kiln::simulator
