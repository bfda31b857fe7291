// rcp, sqrt, rsqrt, ex2, lg2, sin, cos, tanh: exact where PTX says so; approximate ones by the host's library, rounded
// to f32.

#include "runtime/simulator/Approximation.h"
#include "runtime/simulator/Cta.h"
#include "runtime/simulator/Lanes.h"
#include "runtime/simulator/Numbers.h"

namespace kiln::simulator {

using ptx::Type;

enum class FloatFunction : uint8_t { reciprocal, root, reciprocalRoot, exp2, log2, sine, cosine, tanh };

static double compute(FloatFunction function, double x) {
  switch (function) {
  case FloatFunction::reciprocal:
    return 1 / x;
  case FloatFunction::root:
    return std::sqrt(x);
  case FloatFunction::reciprocalRoot:
    return x == 0 ? std::copysign(HUGE_VAL, x) : 1 / std::sqrt(x);
  case FloatFunction::exp2:
    return std::exp2(x);
  case FloatFunction::log2:
    return std::log2(x);
  case FloatFunction::sine:
    return std::sin(x);
  case FloatFunction::cosine:
    return std::cos(x);
  case FloatFunction::tanh:
    return std::tanh(x);
  }
  return x;
}

static AllowedError errorOf(FloatFunction function) {
  switch (function) {
  case FloatFunction::reciprocal:
    return ofReciprocal;
  case FloatFunction::root:
    return ofRoot;
  case FloatFunction::reciprocalRoot:
    return ofReciprocalRoot;
  case FloatFunction::exp2:
    return ofExp2;
  case FloatFunction::log2:
    return ofLog2;
  case FloatFunction::sine:
  case FloatFunction::cosine:
    return ofSine;
  case FloatFunction::tanh:
    return ofTanh;
  }
  return {};
}

/// detail: the function, bit 8 flush, bit 9 approximate, bits 16… the rounding.
static void runSingle(Warp &warp, const Step &step) {
  const auto function = static_cast<FloatFunction>(step.detail & 0xff);
  const bool flush = step.detail >> 8 & 1;
  const auto rounding = static_cast<Rounding>(step.detail >> 16);
  const int times = step.detail >> 9 & 1 ? warp.cta.grid.errorTimes : 0;
  auto *result = warp.reg<uint32_t>(step.slots[0]);
  const auto *source = warp.reg<uint32_t>(step.slots[1]);
  for (int lane = 0; lane < lanesOfWarp; ++lane) {
    if (!(warp.exec >> lane & 1))
      continue;
    float x = fromWord<float>(source[lane]), y = 0;
    if (flush)
      x = flushed(x);
    if (rounding != Rounding::nearest && function == FloatFunction::reciprocal)
      y = divideIn(1.0f, x, rounding);
    else if (rounding != Rounding::nearest && function == FloatFunction::root)
      y = rootIn(x, rounding);
    else
      y = static_cast<float>(
          times ? withError(compute(function, x), errorOf(function), times, warp.cta.grid.seed, source[lane])
                : compute(function, x));
    result[lane] = std::isnan(y) ? 0x7fffffff : toWord(flush ? flushed(y) : y);
  }
}

static void runDouble(Warp &warp, const Step &step) {
  const auto function = static_cast<FloatFunction>(step.detail & 0xff);
  const auto rounding = static_cast<Rounding>(step.detail >> 16);
  auto *result = warp.reg<uint64_t>(step.slots[0]);
  const auto *source = warp.reg<uint64_t>(step.slots[1]);
  for (int lane = 0; lane < lanesOfWarp; ++lane) {
    if (!(warp.exec >> lane & 1))
      continue;
    const double x = fromWord<double>(source[lane]);
    double y = 0;
    if (function == FloatFunction::reciprocal && rounding != Rounding::nearest)
      y = divideIn(1.0, x, rounding);
    else if (function == FloatFunction::root && rounding != Rounding::nearest)
      y = rootIn(x, rounding);
    else
      y = compute(function, x);
    result[lane] = toWord(y);
  }
}

/// ex2 and tanh on narrow floats, rounded once from double.
template <bool IsBf16, bool Packed> static void runNarrow(Warp &warp, const Step &step) {
  const auto function = static_cast<FloatFunction>(step.detail & 0xff);
  auto *result = warp.reg<uint32_t>(step.slots[0]);
  const auto *source = warp.reg<uint32_t>(step.slots[1]);
  const auto one = [&](uint32_t word, int shift) {
    const auto bits = static_cast<uint16_t>(word >> shift);
    const double y = compute(function, IsBf16 ? fromBf16(bits) : fromHalf(bits));
    return static_cast<uint32_t>(IsBf16 ? toBf16(y, Rounding::nearest) : toHalf(y, Rounding::nearest)) << shift;
  };
  for (int lane = 0; lane < lanesOfWarp; ++lane)
    if (warp.exec >> lane & 1)
      result[lane] = one(source[lane], 0) | (Packed ? one(source[lane], 16) : 0);
}

template <FloatFunction F> static void decodeFunction(Decoder &d) {
  const bool approximate = d.take("approx");
  const auto rounding = static_cast<uint64_t>(d.takeOne({"rn", "rz", "rm", "rp"}, 0));
  const bool flush = d.take("ftz");
  const Type type = d.type();
  const bool narrowToo = F == FloatFunction::exp2 || F == FloatFunction::tanh;
  Handler handler = nullptr;
  switch (type) {
  case Type::f32:
    handler = runSingle;
    break;
  case Type::f64:
    handler = F <= FloatFunction::reciprocalRoot ? runDouble : nullptr;
    break;
  case Type::f16:
    handler = narrowToo ? runNarrow<false, false> : nullptr;
    break;
  case Type::bf16:
    handler = narrowToo ? runNarrow<true, false> : nullptr;
    break;
  case Type::f16x2:
    handler = narrowToo ? runNarrow<false, true> : nullptr;
    break;
  case Type::bf16x2:
    handler = narrowToo ? runNarrow<true, true> : nullptr;
    break;
  default:
    break;
  }
  // Among narrow floats only ex2 of bf16 is flushed, and always.
  const bool isBf16 = type == Type::bf16 || type == Type::bf16x2,
             isNarrow = isBf16 || handler == runNarrow<false, false> || handler == runNarrow<false, true>;
  if (!handler || (isNarrow && flush != (isBf16 && F == FloatFunction::exp2)))
    d.unsupported();
  d.expectCount(2, 2);
  d.emit(handler, {d.result(0, type), d.source(1, type)},
         static_cast<uint64_t>(F) | uint64_t{flush} << 8 | uint64_t{approximate} << 9 | rounding << 16);
}

void addFloatFunctions(InstructionTable &table) {
  table["rcp"] = decodeFunction<FloatFunction::reciprocal>;
  table["sqrt"] = decodeFunction<FloatFunction::root>;
  table["rsqrt"] = decodeFunction<FloatFunction::reciprocalRoot>;
  table["ex2"] = decodeFunction<FloatFunction::exp2>;
  table["lg2"] = decodeFunction<FloatFunction::log2>;
  table["sin"] = decodeFunction<FloatFunction::sine>;
  table["cos"] = decodeFunction<FloatFunction::cosine>;
  table["tanh"] = decodeFunction<FloatFunction::tanh>;
}

} // namespace kiln::simulator
