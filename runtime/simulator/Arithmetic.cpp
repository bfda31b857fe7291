// add, sub, mul, mad, fma, div, rem, abs, neg, min, max, sad, with and without carry.

#include "runtime/simulator/CodeBuilder.h"
#include "runtime/simulator/FloatArithmetic.h"
#include "runtime/simulator/Lanes.h"

#include <algorithm>

namespace kiln::simulator {

using ptx::Type;

template <class T> using Unsigned = std::make_unsigned_t<T>;
template <class T>
using Wide =
    std::conditional_t<sizeof(T) == 8, std::conditional_t<std::is_signed_v<T>, __int128, unsigned __int128>,
                       std::conditional_t<sizeof(T) == 4, std::conditional_t<std::is_signed_v<T>, int64_t, uint64_t>,
                                          std::conditional_t<std::is_signed_v<T>, int32_t, uint32_t>>>;

/// The handler of an instruction on two or three integers of one type; none for another type.
template <class Function> static Handler onIntegers2(Type type, Function f) {
  return onIntegers(type, [f]<class T>() { return elementwise<T, T, T>(f); });
}
template <class Function> static Handler onIntegers3(Type type, Function f) {
  return onIntegers(type, [f]<class T>() { return elementwise<T, T, T, T>(f); });
}

/// As onIntegers2(), and for pairs of integers in the halves of a word.
template <class Function> static Handler onPairsToo(Type type, Function f) {
  const auto pairs = []<class T>(T) -> Handler {
    return elementwise<uint32_t, uint32_t, uint32_t>([](uint32_t a, uint32_t b) {
      const auto half = [&](int shift) {
        return uint32_t{static_cast<uint16_t>(Function()(static_cast<T>(a >> shift), static_cast<T>(b >> shift)))}
               << shift;
      };
      return half(0) | half(16);
    });
  };
  return type == Type::u16x2 ? pairs(uint16_t()) : type == Type::s16x2 ? pairs(int16_t()) : onIntegers2(type, f);
}

/// d = a ∘ b, all of `type`.
static void emit2(Decoder &d, Type type, Handler handler) {
  if (!handler)
    d.unsupported(std::string("not for .") + ptx::nameOf(type));
  d.emitOn(handler, {type, type, type});
}

/// The sum, which wraps.
template <class T> static T sumOf(T a, T b) {
  return static_cast<T>(static_cast<Unsigned<T>>(a) + static_cast<Unsigned<T>>(b));
}

// --- Carries -------------------------------------------------------------------------------------------------------

/// Gives a lane the sum of two numbers and the carry, if `detail` has bit 0, and sets its carry, if it has bit 1.
template <class T>
static void giveSum(Warp &warp, const Step &step, Mask &carry, int lane, Unsigned<T> a, Unsigned<T> b, bool more) {
  const unsigned __int128 sum = static_cast<unsigned __int128>(a) + b + (step.detail & 1 ? carry >> lane & 1 : more);
  warp.reg<WordOf<T>>(step.slots[0])[lane] = static_cast<Unsigned<T>>(sum);
  if (step.detail & 2)
    carry = (carry & ~(Mask{1} << lane)) | static_cast<Mask>(sum >> (8 * sizeof(T)) & 1) << lane;
}

/// d = a + b (+ carry), with an optional carry out. `detail`: bit 0 carry in, bit 1 carry out, bit 2 subtract. A
/// difference is a + ~b + 1, whose carry means no borrow, as in ptxas; addc after sub.cc reads that carry.
template <class T> static void addWithCarry(Warp &warp, const Step &step) {
  const auto *a = warp.reg<WordOf<T>>(step.slots[1]), *b = warp.reg<WordOf<T>>(step.slots[2]);
  Mask &carry = warp.predicate(step.slots[3]);
  const bool subtract = step.detail & 4;
  forEachLane(warp,
              [&](int lane) { giveSum<T>(warp, step, carry, lane, a[lane], subtract ? ~b[lane] : b[lane], subtract); });
}

static bool decodeCarry(Decoder &d, bool carryIn, bool subtract) {
  const bool carryOut = d.take("cc");
  if (!carryIn && !carryOut)
    return false;
  const Type type = d.type();
  if (ptx::isFloat(type) || ptx::bitsOf(type) < 32)
    d.unsupported();
  d.expectCount(3, 3);
  d.emit(ptx::bitsOf(type) == 32 ? addWithCarry<uint32_t> : addWithCarry<uint64_t>,
         {d.result(0, type), d.source(1, type), d.source(2, type), d.builder.carrySlot()},
         uint64_t{carryIn} | uint64_t{carryOut} << 1 | uint64_t{subtract} << 2);
  return true;
}

// --- Sums ----------------------------------------------------------------------------------------------------------

template <bool Subtract> static void decodeSum(Decoder &d) {
  if (decodeCarry(d, false, Subtract))
    return;
  const bool saturate = d.take("sat");
  if (saturate && d.take("s32"))
    return emit2(d, Type::s32, elementwise<int32_t, int32_t, int32_t>([](int32_t a, int32_t b) {
                   return static_cast<int32_t>(clamped(Subtract ? int64_t{a} - b : int64_t{a} + b, 32, true));
                 }));
  const FloatModifiers modifiers = takeFloatModifiers(d, saturate);
  const Type type = d.type();
  if (ptx::isFloat(type))
    return emitFloat(d, Subtract ? FloatOperation::subtract : FloatOperation::add, type, modifiers);
  if (modifiers.saturate || modifiers.flush)
    d.unsupported();
  const auto f = [](auto a, auto b) {
    using T = decltype(a);
    return Subtract ? static_cast<T>(static_cast<Unsigned<T>>(a) - static_cast<Unsigned<T>>(b)) : sumOf<T>(a, b);
  };
  emit2(d, type, Subtract ? onIntegers2(type, f) : onPairsToo(type, f));
}

// --- Products ------------------------------------------------------------------------------------------------------

/// The type twice as wide; throws for a type of 64 bits, and for others than integers.
static Type widened(const Decoder &d, Type type) {
  switch (type) {
  case Type::u16:
    return Type::u32;
  case Type::s16:
    return Type::s32;
  case Type::u32:
    return Type::u64;
  case Type::s32:
    return Type::s64;
  default:
    d.unsupported();
  }
}

template <class T> static T lowProduct(T a, T b) {
  return static_cast<T>(static_cast<uint64_t>(static_cast<Unsigned<T>>(a)) * static_cast<Unsigned<T>>(b));
}
template <class T> static T highProduct(T a, T b) {
  return static_cast<T>(static_cast<Wide<T>>(a) * static_cast<Wide<T>>(b) >> (8 * sizeof(T)));
}

static void decodeMul(Decoder &d) {
  const int part = d.takeOne({"lo", "hi", "wide"});
  if (part < 0) {
    const FloatModifiers modifiers = takeFloatModifiers(d, d.take("sat"));
    return emitFloat(d, FloatOperation::multiply, d.type(), modifiers);
  }
  const Type type = d.type();
  if (part == 0)
    return emit2(d, type, onIntegers2(type, [](auto a, auto b) { return lowProduct(a, b); }));
  if (part == 1)
    return emit2(d, type, onIntegers2(type, [](auto a, auto b) { return highProduct(a, b); }));
  const auto product = [](auto a, auto b) { return static_cast<Wide<decltype(a)>>(a) * b; };
  d.emitOn(onTypes<uint16_t, int16_t, uint32_t, int32_t>(
               type, [product]<class T>() { return elementwise<Wide<T>, T, T>(product); }),
           {widened(d, type), type, type});
}

/// d = low or high part of a · b, plus c, with carries. `detail` as in addWithCarry, bit 3: high part.
template <class T> static void multiplyAddWithCarry(Warp &warp, const Step &step) {
  const auto *a = warp.reg<WordOf<T>>(step.slots[1]), *b = warp.reg<WordOf<T>>(step.slots[2]),
             *c = warp.reg<WordOf<T>>(step.slots[3]);
  Mask &carry = warp.predicate(step.slots[4]);
  forEachLane(warp, [&](int lane) {
    const auto left = static_cast<T>(a[lane]), right = static_cast<T>(b[lane]);
    const T part = step.detail & 8 ? highProduct(left, right) : lowProduct(left, right);
    giveSum<T>(warp, step, carry, lane, static_cast<Unsigned<T>>(part), static_cast<Unsigned<T>>(c[lane]), false);
  });
}

static void decodeMadCarry(Decoder &d, int part, bool carryIn, bool carryOut) {
  const Type type = d.type();
  const Handler handler =
      onTypes<uint32_t, int32_t, uint64_t, int64_t>(type, []<class T>() -> Handler { return multiplyAddWithCarry<T>; });
  if (part == 2 || !handler)
    d.unsupported();
  d.expectCount(4, 4);
  d.emit(handler, {d.result(0, type), d.source(1, type), d.source(2, type), d.source(3, type), d.builder.carrySlot()},
         uint64_t{carryIn} | uint64_t{carryOut} << 1 | uint64_t{part == 1} << 3);
}

template <bool CarryIn> static void decodeMad(Decoder &d) {
  const int part = d.takeOne({"lo", "hi", "wide"});
  const bool carryOut = d.take("cc");
  if (part < 0) { // mad.f32 is fma
    const FloatModifiers modifiers = takeFloatModifiers(d, d.take("sat"));
    return emitFloat(d, FloatOperation::fma, d.type(), modifiers);
  }
  if (CarryIn || carryOut)
    return decodeMadCarry(d, part, CarryIn, carryOut);
  const bool saturates = part == 1 && d.take("sat");
  const Type type = d.type();
  d.expectCount(4, 4);
  if (saturates && type == Type::s32) {
    d.emitOn(elementwise<int32_t, int32_t, int32_t, int32_t>([](int32_t a, int32_t b, int32_t c) {
               return static_cast<int32_t>(clamped(int64_t{highProduct(a, b)} + c, 32, true));
             }),
             {type, type, type, type});
  } else if (part == 2) {
    const auto fused = [](auto a, auto b, auto c) {
      using T = decltype(c);
      return sumOf<T>(static_cast<T>(static_cast<T>(a) * static_cast<T>(b)), c);
    };
    const Type wide = widened(d, type);
    d.emitOn(onTypes<uint16_t, int16_t, uint32_t, int32_t>(
                 type, [fused]<class T>() { return elementwise<Wide<T>, T, T, Wide<T>>(fused); }),
             {wide, type, type, wide});
  } else {
    const auto low = [](auto a, auto b, auto c) { return sumOf<decltype(a)>(lowProduct(a, b), c); };
    const auto high = [](auto a, auto b, auto c) { return sumOf<decltype(a)>(highProduct(a, b), c); };
    d.emitOn(part == 0 ? onIntegers3(type, low) : onIntegers3(type, high), {type, type, type, type});
  }
}

// --- Products of 24 bits -------------------------------------------------------------------------------------------

/// The product of the lowest 24 bits of each: its bits 47 to 16 with `High`, otherwise 31 to 0.
template <class T, bool High> static T product24(T a, T b) {
  const auto low = [](T x) { return static_cast<Wide<T>>(static_cast<T>(static_cast<Unsigned<T>>(x) << 8) >> 8); };
  const auto product = low(a) * low(b);
  return static_cast<T>(High ? product >> 16 : product);
}

template <class T, bool High> static Handler product24() {
  return elementwise<T, T, T>([](T a, T b) { return product24<T, High>(a, b); });
}

/// As above plus c; the sum wraps or saturates.
template <class T, bool High, bool Saturates = false> static Handler sumOfProduct24() {
  return elementwise<T, T, T, T>([](T a, T b, T c) {
    const int64_t sum = int64_t{product24<T, High>(a, b)} + c;
    return static_cast<T>(Saturates ? clamped(sum, 32, true) : sum);
  });
}

/// mul24, mad24.
template <bool Sums> static void decodeProduct24(Decoder &d) {
  const int part = d.takeOne({"lo", "hi"});
  const bool saturates = Sums && part == 1 && d.take("sat");
  const Type type = d.type();
  if (part < 0 || (type != Type::u32 && type != Type::s32) || (saturates && type != Type::s32))
    d.unsupported();
  d.expectCount(Sums ? 4 : 3, Sums ? 4 : 3);
  const Handler plain[] = {product24<uint32_t, false>(), product24<uint32_t, true>(), product24<int32_t, false>(),
                           product24<int32_t, true>()};
  const Handler sums[] = {sumOfProduct24<uint32_t, false>(), sumOfProduct24<uint32_t, true>(),
                          sumOfProduct24<int32_t, false>(), sumOfProduct24<int32_t, true>()};
  const int number = part + (type == Type::s32 ? 2 : 0);
  Step &step = d.emit(saturates ? sumOfProduct24<int32_t, true, true>() : (Sums ? sums : plain)[number],
                      {d.result(0, type), d.source(1, type), d.source(2, type)});
  if (Sums)
    step.slots[3] = d.source(3, type);
}

static void decodeFma(Decoder &d) {
  FloatModifiers modifiers = takeFloatModifiers(d, d.take("sat"));
  modifiers.relu = d.take("relu");
  emitFloat(d, FloatOperation::fma, d.type(), modifiers);
}

// --- Quotients and remainders --------------------------------------------------------------------------------------

/// x / 0 and x % 0 are undefined in PTX; here all ones, as on NVIDIA's GPUs.
static void decodeDiv(Decoder &d) {
  const bool full = d.take("full"), approximate = d.take("approx");
  const FloatModifiers modifiers = takeFloatModifiers(d, false);
  const Type type = d.type();
  if (ptx::isFloat(type))
    return emitFloat(d, full || approximate ? FloatOperation::divideApproximately : FloatOperation::divide, type,
                     modifiers);
  emit2(d, type, onIntegers2(type, [](auto a, auto b) {
          using T = decltype(a);
          if (b == 0)
            return static_cast<T>(-1);
          if (std::is_signed_v<T> && b == static_cast<T>(-1))
            return static_cast<T>(0 - static_cast<Unsigned<T>>(a));
          return static_cast<T>(a / b);
        }));
}

static void decodeRem(Decoder &d) {
  const Type type = d.type();
  emit2(d, type, onIntegers2(type, [](auto a, auto b) {
          using T = decltype(a);
          if (b == 0)
            return static_cast<T>(-1);
          if (std::is_signed_v<T> && b == static_cast<T>(-1))
            return static_cast<T>(0);
          return static_cast<T>(a % b);
        }));
}

template <bool Maximum> static void decodeExtremum(Decoder &d) {
  FloatModifiers modifiers = takeFloatModifiers(d, false);
  modifiers.nan = d.take("NaN");
  const bool relu = d.take("relu"); // of integers
  modifiers.xorsign = d.take("xorsign");
  const bool magnitudes = d.take("abs");
  if (modifiers.xorsign && !magnitudes)
    d.wrong("'.xorsign.abs'");
  modifiers.magnitudes = magnitudes && !modifiers.xorsign;
  const Type type = d.type();
  if (ptx::isFloat(type) && !relu)
    return emitFloat(d, Maximum ? FloatOperation::maximum : FloatOperation::minimum, type, modifiers);
  if (modifiers.nan || magnitudes || modifiers.flush || (relu && type != Type::s32 && type != Type::s16x2))
    d.unsupported();
  emit2(d, type,
        relu ? onPairsToo(type,
                          [](auto a, auto b) {
                            using T = decltype(a);
                            return std::max(Maximum ? std::max(a, b) : std::min(a, b), T(0));
                          })
             : onPairsToo(type, [](auto a, auto b) { return Maximum ? std::max(a, b) : std::min(a, b); }));
}

template <bool Negate> static void decodeSign(Decoder &d) {
  const FloatModifiers modifiers = takeFloatModifiers(d, false);
  const Type type = d.type();
  if (ptx::isFloat(type))
    return emitFloat(d, Negate ? FloatOperation::negate : FloatOperation::absolute, type, modifiers);
  const auto f = [](auto a) {
    using T = decltype(a);
    return Negate || a < 0 ? static_cast<T>(0 - static_cast<Unsigned<T>>(a)) : a;
  };
  d.emitOn(onTypes<int16_t, int32_t, int64_t>(type, [f]<class T>() { return elementwise<T, T>(f); }), {type, type});
}

static void decodeSad(Decoder &d) {
  const Type type = d.type();
  const auto f = [](auto a, auto b, auto c) {
    using T = decltype(a);
    const auto x = static_cast<Unsigned<T>>(a), y = static_cast<Unsigned<T>>(b);
    return sumOf<T>(c, static_cast<T>(a < b ? y - x : x - y));
  };
  d.emitOn(onIntegers3(type, f), {type, type, type, type});
}

// --- Sums of products of bytes -------------------------------------------------------------------------------------

/// Part `index` of a word that holds parts of `bits` bits.
template <bool isSigned> static int64_t extractPart(uint32_t word, int bits, int index) {
  const uint32_t part = word >> (bits * index) & ((uint32_t{1} << bits) - 1);
  return isSigned && part >> (bits - 1) ? static_cast<int64_t>(part) - (int64_t{1} << bits) : part;
}

/// c + Σ a[i] · b[i], wrapping: of four bytes each, or of two halves of a and two bytes of b from `first` on.
template <bool aIsSigned, bool bIsSigned, int terms, int first> static Handler sumOfProducts() {
  return elementwise<uint32_t, uint32_t, uint32_t, uint32_t>([](uint32_t a, uint32_t b, uint32_t c) {
    uint32_t sum = c;
    for (int i = 0; i < terms; ++i)
      sum += static_cast<uint32_t>(extractPart<aIsSigned>(a, 32 / terms, i) * extractPart<bIsSigned>(b, 8, first + i));
    return sum;
  });
}

template <int terms, int first> static Handler sumOfProducts(bool aIsSigned, bool bIsSigned) {
  return aIsSigned
             ? (bIsSigned ? sumOfProducts<true, true, terms, first>() : sumOfProducts<true, false, terms, first>())
             : (bIsSigned ? sumOfProducts<false, true, terms, first>() : sumOfProducts<false, false, terms, first>());
}

/// dp4a, dp2a.
template <int terms> static void decodeSumOfProducts(Decoder &d) {
  const int half = terms == 2 ? d.takeOne({"lo", "hi"}) : 0;
  const Type a = d.type(), b = d.type();
  if (half < 0 || (a != Type::s32 && a != Type::u32) || (b != Type::s32 && b != Type::u32))
    d.unsupported();
  const bool aIsSigned = a == Type::s32, bIsSigned = b == Type::s32;
  const Handler handler =
      half == 1 ? sumOfProducts<terms, 2>(aIsSigned, bIsSigned) : sumOfProducts<terms, 0>(aIsSigned, bIsSigned);
  const Type sum = aIsSigned || bIsSigned ? Type::s32 : Type::u32;
  d.emitOn(handler, {sum, a, b, sum});
}

void addArithmetic(InstructionTable &table) {
  table["add"] = decodeSum<false>;
  table["sub"] = decodeSum<true>;
  table["addc"] = [](Decoder &d) { decodeCarry(d, true, false); };
  table["subc"] = [](Decoder &d) { decodeCarry(d, true, true); };
  table["mul"] = decodeMul;
  table["mad"] = decodeMad<false>;
  table["madc"] = decodeMad<true>;
  table["mul24"] = decodeProduct24<false>;
  table["mad24"] = decodeProduct24<true>;
  table["fma"] = decodeFma;
  table["div"] = decodeDiv;
  table["rem"] = decodeRem;
  table["min"] = decodeExtremum<false>;
  table["max"] = decodeExtremum<true>;
  table["neg"] = decodeSign<true>;
  table["abs"] = decodeSign<false>;
  table["sad"] = decodeSad;
  table["dp4a"] = decodeSumOfProducts<4>;
  table["dp2a"] = decodeSumOfProducts<2>;
}

} // namespace kiln::simulator
