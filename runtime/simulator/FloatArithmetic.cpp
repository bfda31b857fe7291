// Arithmetic: one function computes an element in a wider type and rounds it. The common cases, f32 and f64 to nearest
// without flushing, have separate handlers that the compiler vectorises.
//
// rcp, sqrt, rsqrt, ex2, lg2, sin, cos, tanh: exact where PTX says so; approximate ones by the host's library, rounded
// to f32.

#include "runtime/simulator/FloatArithmetic.h"

#include "runtime/simulator/CodeBuilder.h"
#include "runtime/simulator/Cta.h"
#include "runtime/simulator/Lanes.h"
#include "runtime/simulator/Numbers.h"

#include <bit>
#include <cmath>
#include <functional>
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
    return rounded(m.rounding, std::plus<T>(), a, b);
  case Op::subtract:
    return rounded(m.rounding, std::minus<T>(), a, b);
  case Op::multiply:
    return rounded(m.rounding, std::multiplies<T>(), a, b);
  case Op::divide:
    return rounded(m.rounding, std::divides<T>(), a, b);
  case Op::divideApproximately:
    return a / b;
  case Op::fma:
    return rounded(m.rounding, [](T x, T y, T z) { return std::fma(x, y, z); }, a, b, c);
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

namespace {
/// A step's detail.
struct Detail {
  Op operation;
  FloatModifiers modifiers;
};
} // namespace

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
  const auto [operation, modifiers] = unpackDetail<Detail>(step);
  auto *result = warp.reg<Word>(step.slots[0]);
  const Word *a = warp.reg<Word>(step.slots[1]);
  const Word *b = step.slots[2] == Step::none ? a : warp.reg<Word>(step.slots[2]);
  const Word *c = step.slots[3] == Step::none ? a : warp.reg<Word>(step.slots[3]);
  forEachLane(
      warp, [&, op = operation, m = modifiers](int lane) { result[lane] = element(op, m, a[lane], b[lane], c[lane]); });
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
  forEachLane(warp, [&](int lane) {
    const double y = withError(fromWord<float>(result[lane]), ofDivision, times, warp.cta.grid.seed, result[lane]);
    result[lane] = toWord(static_cast<float>(y));
  });
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
  d.emitOn(runExtremumOfThree, {type, type, type, type}, asDetail(Detail{operation, modifiers}));
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
  Step &step = d.emit(handler, {d.result(0, type)}, asDetail(Detail{operation, modifiers}));
  for (size_t i = 1; i <= sources; ++i) {
    const bool isNarrow = mixed && (i == 1 || (i == 2 && operation == Op::fma));
    step.slots[i] = d.source(i, isNarrow ? *mixed : type);
  }
}

// --- Functions -----------------------------------------------------------------------------------------------------

namespace {
/// A function, and the error that PTX allows.
struct Function {
  double (*of)(double x);
  AllowedError error;
};

constexpr Function reciprocal{[](double x) { return 1 / x; }, ofReciprocal},
    root{[](double x) { return std::sqrt(x); }, ofRoot},
    reciprocalRoot{[](double x) { return x == 0 ? std::copysign(HUGE_VAL, x) : 1 / std::sqrt(x); }, ofReciprocalRoot},
    exp2{[](double x) { return std::exp2(x); }, ofExp2}, log2{[](double x) { return std::log2(x); }, ofLog2},
    sine{[](double x) { return std::sin(x); }, ofSine}, cosine{[](double x) { return std::cos(x); }, ofSine},
    tanh{[](double x) { return std::tanh(x); }, ofTanh};

/// A step's detail.
struct FunctionModifiers {
  Rounding rounding;
  bool flush, approximate;
};
} // namespace

template <class T, const Function &f> static void runFunction(Warp &warp, const Step &step) {
  const auto modifiers = unpackDetail<FunctionModifiers>(step);
  const int times = modifiers.approximate && sizeof(T) == 4 ? warp.cta.grid.errorTimes : 0;
  auto *result = warp.reg<WordOf<T>>(step.slots[0]);
  const auto *source = warp.reg<WordOf<T>>(step.slots[1]);
  forEachLane(warp, [&](int lane) {
    const T given = fromWord<T>(source[lane]), x = modifiers.flush ? flushed(given) : given;
    T y = 0;
    if (&f == &reciprocal && modifiers.rounding != Rounding::nearest)
      y = rounded(modifiers.rounding, std::divides<T>(), T(1), x);
    else if (&f == &root && modifiers.rounding != Rounding::nearest)
      y = rounded(modifiers.rounding, [](T of) { return std::sqrt(of); }, x);
    else
      y = static_cast<T>(times ? withError(f.of(x), f.error, times, warp.cta.grid.seed, source[lane]) : f.of(x));
    result[lane] = toWord(withOneNaN(modifiers.flush ? flushed(y) : y));
  });
}

/// ex2 and tanh on narrow floats, rounded once from double.
template <const Function &f, bool IsBf16, bool Packed> static void runNarrowFunction(Warp &warp, const Step &step) {
  auto *result = warp.reg<uint32_t>(step.slots[0]);
  const auto *source = warp.reg<uint32_t>(step.slots[1]);
  const auto one = [&](uint32_t word, int shift) {
    const auto bits = static_cast<uint16_t>(word >> shift);
    const double y = f.of(IsBf16 ? fromBf16(bits) : fromHalf(bits));
    return static_cast<uint32_t>(IsBf16 ? toBf16(y, Rounding::nearest) : toHalf(y, Rounding::nearest)) << shift;
  };
  forEachLane(warp, [&](int lane) { result[lane] = one(source[lane], 0) | (Packed ? one(source[lane], 16) : 0); });
}

template <const Function &f> static Handler functionHandler(Type type) {
  constexpr bool inDouble = &f == &reciprocal || &f == &root || &f == &reciprocalRoot;
  constexpr bool inNarrow = &f == &exp2 || &f == &tanh;
  switch (type) {
  case Type::f32:
    return runFunction<float, f>;
  case Type::f64:
    return inDouble ? runFunction<double, f> : nullptr;
  case Type::f16:
    return inNarrow ? runNarrowFunction<f, false, false> : nullptr;
  case Type::bf16:
    return inNarrow ? runNarrowFunction<f, true, false> : nullptr;
  case Type::f16x2:
    return inNarrow ? runNarrowFunction<f, false, true> : nullptr;
  case Type::bf16x2:
    return inNarrow ? runNarrowFunction<f, true, true> : nullptr;
  default:
    return nullptr;
  }
}

template <const Function &f> static void decodeFunction(Decoder &d) {
  FunctionModifiers modifiers{};
  modifiers.approximate = d.take("approx");
  modifiers.rounding = static_cast<Rounding>(d.takeOne({"rn", "rz", "rm", "rp"}, 0));
  modifiers.flush = d.take("ftz");
  const Type type = d.type();
  // Among narrow floats only ex2 of bf16 is flushed, and always.
  const bool isBf16 = type == Type::bf16 || type == Type::bf16x2, isHalf = type == Type::f16 || type == Type::f16x2;
  if ((isBf16 || isHalf) && modifiers.flush != (isBf16 && &f == &exp2))
    d.unsupported();
  d.emitOn(functionHandler<f>(type), {type, type}, asDetail(modifiers));
}

void addFloatFunctions(InstructionTable &table) {
  table["rcp"] = decodeFunction<reciprocal>;
  table["sqrt"] = decodeFunction<root>;
  table["rsqrt"] = decodeFunction<reciprocalRoot>;
  table["ex2"] = decodeFunction<exp2>;
  table["lg2"] = decodeFunction<log2>;
  table["sin"] = decodeFunction<sine>;
  table["cos"] = decodeFunction<cosine>;
  table["tanh"] = decodeFunction<tanh>;
}

} // namespace kiln::simulator
