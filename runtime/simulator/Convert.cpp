// cvt: between integers, between floats, and across; cvta, isspacep, mapa and getctarank: address spaces and clusters.

#include "runtime/simulator/CodeBuilder.h"
#include "runtime/simulator/Lanes.h"
#include "runtime/simulator/Numbers.h"

#include <algorithm>
#include <fmt/format.h>
#include <functional>
#include <limits>

namespace kiln::simulator {

// --- mov ------------------------------------------------------------------------------------------------------------

using ptx::Type;

/// The word composed of `parts`, lowest first. `detail`: bits of a part.
template <class Word> static void packParts(Warp &warp, const Step &step) {
  Word *result = warp.reg<Word>(step.slots[0]);
  const uint32_t *slots = warp.list(step);
  const auto bits = static_cast<unsigned>(step.detail);
  const uint64_t mask = (uint64_t{1} << bits) - 1;
  forEachLane(warp, [&](int lane) {
    uint64_t word = 0;
    for (uint32_t part = 0; part < step.count; ++part)
      word |= (uint64_t{warp.reg<uint32_t>(slots[part])[lane]} & mask) << (part * bits);
    result[lane] = static_cast<Word>(word);
  });
}

template <class Word> static void unpackParts(Warp &warp, const Step &step) {
  const Word *source = warp.reg<Word>(step.slots[0]);
  const uint32_t *slots = warp.list(step);
  const auto bits = static_cast<unsigned>(step.detail);
  const uint64_t mask = (uint64_t{1} << bits) - 1;
  forEachLane(warp, [&](int lane) {
    const uint64_t word = source[lane]; // may be one of the results
    for (uint32_t part = 0; part < step.count; ++part)
      warp.reg<uint32_t>(slots[part])[lane] = static_cast<uint32_t>(word >> (part * bits) & mask);
  });
}

static void decodeVectorMove(Decoder &d, Type type) {
  const bool packs = d.operand(1).kind == ptx::Operand::Kind::vector;
  const auto parts = d.elements(d.operand(packs ? 1 : 0));
  const int bits = ptx::bitsOf(type) / static_cast<int>(std::max<size_t>(parts.size(), 1));
  if (ptx::bitsOf(type) > 64 || (bits != 8 && bits != 16 && bits != 32) ||
      bits * static_cast<int>(parts.size()) != ptx::bitsOf(type))
    d.unsupported();
  const Type part = bits == 32 ? Type::b32 : bits == 16 ? Type::b16 : Type::b8;
  std::vector<uint32_t> slots;
  for (const ptx::Operand &operand : parts)
    slots.push_back(packs ? d.source(operand, part) : d.result(operand, part));
  const bool wide = laneBytes(type) == 8;
  const uint32_t whole = packs ? d.result(0, type) : d.source(1, type);
  Step &step = d.emit(packs ? (wide ? packParts<uint64_t> : packParts<uint32_t>)
                            : (wide ? unpackParts<uint64_t> : unpackParts<uint32_t>),
                      {whole}, static_cast<uint64_t>(bits));
  d.giveList(step, slots);
}

static void decodeMov(Decoder &d) {
  const Type type = d.type();
  d.expectCount(2, 2);
  if (d.operand(0).kind == ptx::Operand::Kind::vector || d.operand(1).kind == ptx::Operand::Kind::vector)
    return decodeVectorMove(d, type);
  if (type == Type::pred) {
    bool negated = false;
    const uint32_t source = d.predicate(d.operand(1), negated);
    d.emit(
        [](Warp &warp, const Step &step) {
          warp.setPredicate(step.slots[0], warp.predicate(step.slots[1]) ^ (step.detail ? allLanes : 0));
        },
        {d.result(0, type), source}, negated);
    return;
  }
  const auto same = [](auto a) { return a; };
  d.emitOn(onWords(type, [same]<class T>() { return elementwise<T, T>(same); }), {type, type});
}

static void decodeActivemask(Decoder &d) {
  if (d.type() != Type::b32)
    d.unsupported();
  d.emitOn([](Warp &warp, const Step &step) { setLanes(warp, step.slots[0], warp.exec); }, {Type::b32});
}

void addMoves(InstructionTable &table) {
  table["mov"] = decodeMov;
  table["activemask"] = decodeActivemask;
}

using ptx::Type;

namespace {
/// The conversion of one element, as a step's detail.
struct Conversion {
  Type to = Type::b32, from = Type::b32;
  Rounding rounding = Rounding::nearest;
  bool toInteger = false; // round a float to an integral value
  bool flush = false, saturate = false, relu = false, finite = false;
};
static_assert(sizeof(Conversion) == 8);
} // namespace

// --- One element ---------------------------------------------------------------------------------------------------

static uint64_t bitsOfFloat(Type type, double value, Rounding rounding) {
  switch (type) {
  case Type::f16:
    return toHalf(value, rounding);
  case Type::bf16:
    return toBf16(value, rounding);
  case Type::f64:
    return std::bit_cast<uint64_t>(value);
  case Type::tf32:
    return std::isnan(value) ? 0x7fffffff
                             : std::bit_cast<uint32_t>(static_cast<float>(roundTo(value, tf32Format, rounding)));
  default:
    if (std::isnan(value))
      return 0x7fffffff;
    return std::bit_cast<uint32_t>(rounding == Rounding::nearest
                                       ? static_cast<float>(value)
                                       : static_cast<float>(roundTo(value, singleFormat, rounding)));
  }
}

/// The integer of `bits` bits nearest in the mode; out of range saturates, NaN gives 0.
static uint64_t integerOf(double value, Type to, Rounding rounding) {
  const int bits = ptx::bitsOf(to);
  if (std::isnan(value))
    return 0;
  value = integral(value, rounding);
  if (ptx::isSigned(to)) {
    const double end = std::ldexp(1.0, bits - 1);
    if (value >= end)
      return (uint64_t{1} << (bits - 1)) - 1;
    return static_cast<uint64_t>(value < -end ? std::numeric_limits<int64_t>::min() >> (64 - bits)
                                              : static_cast<int64_t>(value));
  }
  if (value >= std::ldexp(1.0, bits))
    return bits == 64 ? ~uint64_t{0} : (uint64_t{1} << bits) - 1;
  return value <= 0 ? 0 : static_cast<uint64_t>(value);
}

/// An integer register's number, sign- or zero-extended.
static int64_t extended(Type type, uint64_t bits) {
  const int shift = 64 - ptx::bitsOf(type);
  return ptx::isSigned(type) ? static_cast<int64_t>(bits << shift) >> shift
                             : static_cast<int64_t>(bits << shift >> shift);
}

static uint64_t integerToFloat(const Conversion &c, uint64_t bits) {
  const int64_t value = extended(c.from, bits);
  const bool isUnsigned = !ptx::isSigned(c.from);
  if (c.to == Type::f64) { // one rounding, in the requested mode
    if (c.rounding == Rounding::nearest)
      return std::bit_cast<uint64_t>(isUnsigned ? static_cast<double>(static_cast<uint64_t>(value))
                                                : static_cast<double>(value));
    const double high = static_cast<double>(value >> 32) * 0x1p32;
    const double top = isUnsigned ? static_cast<double>(static_cast<uint64_t>(value) >> 32) * 0x1p32 : high;
    return std::bit_cast<uint64_t>(
        rounded(c.rounding, std::plus<double>(), top, static_cast<double>(static_cast<uint32_t>(value))));
  }
  // To narrower floats through a double rounded to odd, so that the result is rounded once.
  const uint64_t magnitude = isUnsigned || value >= 0 ? static_cast<uint64_t>(value) : 0 - static_cast<uint64_t>(value);
  const int excess = std::max(0, 64 - std::countl_zero(magnitude) - 50);
  const uint64_t sticky = excess && (magnitude & ((uint64_t{1} << excess) - 1)) ? 1 : 0;
  double wide = std::ldexp(static_cast<double>((magnitude >> excess) | sticky), excess);
  if (!isUnsigned && value < 0)
    wide = -wide;
  return bitsOfFloat(c.to, wide, c.rounding);
}

/// A double to a narrower float with one rounding and the modifiers.
static uint64_t narrowed(const Conversion &c, double value) {
  if (c.relu && value < 0)
    value = 0;
  if (c.saturate)
    value = saturated(value);
  uint64_t bits = bitsOfFloat(c.to, value, c.rounding);
  if (c.flush && c.to == Type::f32)
    bits = std::bit_cast<uint32_t>(flushed(std::bit_cast<float>(static_cast<uint32_t>(bits))));
  if (c.finite && std::isinf(floatOf(c.to, bits))) // the largest number is the one before
    bits -= c.to == Type::tf32 ? 1u << 13 : 1;
  return bits;
}

static uint64_t convert(const Conversion &c, uint64_t bits) {
  const bool fromFloat = ptx::isFloat(c.from), toFloat = ptx::isFloat(c.to);
  if (!fromFloat && !toFloat) {
    const int64_t value = extended(c.from, bits);
    if (!c.saturate)
      return static_cast<uint64_t>(value);
    const __int128 exact = ptx::isSigned(c.from) ? __int128{value} : __int128{static_cast<uint64_t>(value)};
    return static_cast<uint64_t>(clamped(exact, ptx::bitsOf(c.to), ptx::isSigned(c.to)));
  }
  if (!fromFloat) {
    const uint64_t converted = integerToFloat(c, bits);
    return c.saturate ? narrowed(c, floatOf(c.to, converted)) : converted;
  }
  double value = floatOf(c.from, bits);
  if (c.flush && c.from == Type::f32)
    value = flushed(static_cast<float>(value));
  if (!toFloat)
    return integerOf(value, c.to, c.rounding);
  if (c.toInteger) {
    Conversion exact = c;
    exact.rounding = Rounding::nearest;
    return narrowed(exact, std::isnan(value) ? value : std::copysign(integral(value, c.rounding), value));
  }
  return narrowed(c, value);
}

// --- 8-bit floats --------------------------------------------------------------------------------------------------

/// To nearest even; numbers that are too large saturate (`.satfinite`, which PTX requires).
static uint8_t toEighth(bool isE5m2, double value) {
  const uint8_t sign = std::signbit(value) ? 0x80 : 0;
  if (std::isnan(value))
    return 0x7f;
  const Format format = isE5m2 ? Format{2, -14, 15} : Format{3, -6, 8};
  const double largest = isE5m2 ? 57344 : 448;
  const double rounded = std::min(std::fabs(roundTo(std::clamp(value, -1e6, 1e6), format, Rounding::nearest)), largest);
  if (rounded == 0)
    return sign;
  const int exponent = std::max(std::ilogb(rounded), format.minExponent);
  const auto scaled = static_cast<int>(std::ldexp(rounded, format.mantissa - exponent));
  const int biased = scaled >> format.mantissa ? exponent - format.minExponent + 1 : 0;
  return static_cast<uint8_t>(sign | biased << format.mantissa | (scaled & ((1 << format.mantissa) - 1)));
}

// --- Handlers ------------------------------------------------------------------------------------------------------

template <class To, class From> static void convertLanes(Warp &warp, const Step &step) {
  const auto c = unpackDetail<Conversion>(step);
  To *result = warp.reg<To>(step.slots[0]);
  const From *source = warp.reg<From>(step.slots[1]);
  const auto lowest = [](int bits) { return bits >= 64 ? ~uint64_t{0} : (uint64_t{1} << bits) - 1; };
  const uint64_t mask = lowest(ptx::bitsOf(c.to)), whole = lowest(step.target); // of the result's register
  const bool extend = !ptx::isFloat(c.to) && ptx::isSigned(c.to);               // to a register wider than the type
  forEachLane(warp, [&](int lane) {
    const uint64_t bits = convert(c, source[lane]) & mask;
    result[lane] = static_cast<To>(extend ? static_cast<uint64_t>(extended(c.to, bits)) & whole : bits);
  });
}

/// cvt.rn.f16x2.f32 d, a, b: a becomes the high half.
static void convertPair(Warp &warp, const Step &step) {
  const auto c = unpackDetail<Conversion>(step);
  auto *result = warp.reg<uint32_t>(step.slots[0]);
  const auto *high = warp.reg<uint32_t>(step.slots[1]), *low = warp.reg<uint32_t>(step.slots[2]);
  forEachLane(warp, [&](int lane) {
    result[lane] = static_cast<uint32_t>(convert(c, high[lane]) << 16 | convert(c, low[lane]));
  });
}

/// Two 8-bit floats from two f32 (slots 1 and 2) or from the halves of a word (slot 1), and back.
static void convertEighths(Warp &warp, const Step &step) {
  const auto c = unpackDetail<Conversion>(step);
  const bool isE5m2 = c.to == Type::e5m2 || c.from == Type::e5m2;
  auto *result = warp.reg<uint32_t>(step.slots[0]);
  const auto *a = warp.reg<uint32_t>(step.slots[1]);
  const auto *b = step.slots[2] == Step::none ? a : warp.reg<uint32_t>(step.slots[2]);
  const auto eighth = [&](double value) {
    return static_cast<uint32_t>(toEighth(isE5m2, c.relu && value < 0 ? 0.0 : value));
  };
  const auto half = [&](uint32_t bits) {
    return static_cast<uint32_t>(toHalf(static_cast<float>(fromEighth(isE5m2, static_cast<uint8_t>(bits)))));
  };
  forEachLane(warp, [&](int lane) {
    if (c.from == Type::f32)
      result[lane] = eighth(fromWord<float>(a[lane])) << 8 | eighth(fromWord<float>(b[lane]));
    else if (c.from == Type::f16x2)
      result[lane] = eighth(fromHalf(static_cast<uint16_t>(a[lane] >> 16))) << 8 |
                     eighth(fromHalf(static_cast<uint16_t>(a[lane])));
    else
      result[lane] = half(a[lane] >> 8) << 16 | half(a[lane]);
  });
}

/// The most common conversions, vectorised; none for others.
static Handler fastConversion(const Conversion &c) {
  if (c.saturate || c.flush || c.relu || c.finite || c.toInteger)
    return nullptr;
  if (c.to == Type::f32 && c.from == Type::s32 && c.rounding == Rounding::nearest)
    return elementwise<float, int32_t>([](int32_t a) { return static_cast<float>(a); });
  if (c.to == Type::f32 && c.from == Type::f16)
    return elementwise<float, uint16_t>([](uint16_t a) { return fromHalf(a); });
  if (c.to == Type::f32 && c.from == Type::bf16)
    return elementwise<float, uint16_t>([](uint16_t a) { return fromBf16(a); });
  if (c.to == Type::bf16 && c.from == Type::f32 && c.rounding == Rounding::nearest)
    return elementwise<uint16_t, float>([](float a) { return toBf16(a); });
  if (c.to == Type::f16 && c.from == Type::f32 && c.rounding == Rounding::nearest)
    return elementwise<uint16_t, float>([](float a) { return std::isnan(a) ? uint16_t{0x7fff} : toHalf(a); });
  if ((c.to == Type::u64 || c.to == Type::s64) && c.from == Type::u32)
    return elementwise<uint64_t, uint32_t>([](uint32_t a) { return uint64_t{a}; });
  if ((c.to == Type::u64 || c.to == Type::s64) && c.from == Type::s32)
    return elementwise<int64_t, int32_t>([](int32_t a) { return int64_t{a}; });
  if ((c.to == Type::u32 || c.to == Type::s32) && ptx::bitsOf(c.from) == 64 && !ptx::isFloat(c.from))
    return elementwise<uint32_t, uint64_t>([](uint64_t a) { return static_cast<uint32_t>(a); });
  return nullptr;
}

// --- Decoding ------------------------------------------------------------------------------------------------------

/// A conversion from or to a pair of 8-bit floats.
static void decodeEighths(Decoder &d, Conversion c, int to, int from) {
  c.to = to == 0 ? Type::e4m3 : to == 1 ? Type::e5m2 : d.type();
  c.from = from == 0 ? Type::e4m3 : from == 1 ? Type::e5m2 : d.type();
  const bool narrowing = to >= 0;
  if (narrowing ? (!c.finite || (c.from != Type::f32 && c.from != Type::f16x2)) : c.to != Type::f16x2)
    d.unsupported();
  Step &step = d.emit(convertEighths, {d.result(0, narrowing ? Type::b16 : Type::b32)}, asDetail(c));
  step.slots[1] = d.source(1, narrowing ? Type::b32 : Type::b16);
  if (c.from == Type::f32)
    step.slots[2] = d.source(2, Type::b32);
  d.expectCount(c.from == Type::f32 ? 3 : 2, c.from == Type::f32 ? 3 : 2);
}

// --- Packing -------------------------------------------------------------------------------------------------------

/// cvt.pack: b and a, saturated, become the two lowest elements; c's lowest bits follow above them. `detail`: bits of
/// an element, and whether it is signed.
static void packClamped(Warp &warp, const Step &step) {
  const auto bits = static_cast<int>(step.detail & 0xff);
  const bool isSigned = step.detail >> 8 & 1;
  const uint32_t mask = (1u << bits) - 1;
  auto *const result = warp.reg<uint32_t>(step.slots[0]);
  const auto *const a = warp.reg<uint32_t>(step.slots[1]), *const b = warp.reg<uint32_t>(step.slots[2]);
  const auto *const c = step.slots[3] == Step::none ? nullptr : warp.reg<uint32_t>(step.slots[3]);
  const auto element = [&](uint32_t word) {
    return static_cast<uint32_t>(clamped(static_cast<int32_t>(word), bits, isSigned)) & mask;
  };
  forEachLane(warp, [&](int lane) {
    result[lane] = (c ? c[lane] << (2 * bits) : 0) | element(a[lane]) << bits | element(b[lane]);
  });
}

static void decodePack(Decoder &d) {
  static constexpr int bitsOf[] = {16, 16, 8, 8, 4, 4, 2, 2};
  if (!d.take("sat"))
    d.wrong("'.sat'");
  const int to = d.takeOne({"u16", "s16", "u8", "s8", "u4", "s4", "u2", "s2"});
  if (to < 0 || !d.take("s32"))
    d.unsupported();
  const bool isHalf = to < 2;
  d.expectTarget(to < 4 ? 72 : 75, 65);
  if (!isHalf && !d.take("b32"))
    d.wrong("'.b32' for the third operand");
  d.expectCount(isHalf ? 3 : 4, isHalf ? 3 : 4);
  Step &step = d.emit(packClamped, {d.result(0, Type::b32), d.source(1, Type::s32), d.source(2, Type::s32)},
                      static_cast<uint64_t>(bitsOf[to]) | static_cast<uint64_t>(to & 1) << 8);
  if (!isHalf)
    step.slots[3] = d.source(3, Type::b32);
}

static void decodeCvt(Decoder &d) {
  if (d.take("pack"))
    return decodePack(d);
  Conversion c;
  const int toIntegral = d.takeOne({"rni", "rzi", "rmi", "rpi"});
  const int rounding = d.takeOne({"rn", "rz", "rm", "rp", "rna"});
  c.toInteger = toIntegral >= 0;
  c.rounding = static_cast<Rounding>(std::max(0, std::max(toIntegral, rounding)));
  c.flush = d.take("ftz");
  c.saturate = d.take("sat");
  c.relu = d.take("relu");
  c.finite = d.take("satfinite");
  const int firstEighth = d.takeOne({"e4m3x2", "e5m2x2"});
  if (firstEighth >= 0) { // the first type is the result's
    const bool toEighths = d.count() == 3 || laneBytes(d.registerType(d.operand(0))) == 4;
    const bool narrows = toEighths && ptx::bitsOf(d.registerType(d.operand(0))) == 16;
    return decodeEighths(d, c, narrows ? firstEighth : -1, narrows ? -1 : firstEighth);
  }
  c.to = d.type();
  c.from = d.type();
  if (c.to == Type::f16x2 || c.to == Type::bf16x2) {
    if (c.from != Type::f32)
      d.unsupported();
    Conversion half = c;
    half.to = c.to == Type::f16x2 ? Type::f16 : Type::bf16;
    d.emitOn(convertPair, {Type::b32, Type::f32, Type::f32}, asDetail(half));
    return;
  }
  d.expectCount(2, 2);
  if (c.saturate && !ptx::isFloat(c.to) && !ptx::isFloat(c.from)) { // of a type that has numbers beyond the other's
    const int more = ptx::isSigned(c.to) && !ptx::isSigned(c.from);
    if (ptx::bitsOf(c.to) - more >= ptx::bitsOf(c.from) && ptx::isSigned(c.to) >= ptx::isSigned(c.from))
      d.wrong("a type with fewer numbers for '.sat'");
  }
  // The registers may be wider than the types.
  d.expectKind(d.operand(0), c.to);
  d.expectKind(d.operand(1), c.from);
  const Type result = d.operand(0).kind == ptx::Operand::Kind::sink ? c.to : d.registerType(d.operand(0));
  const Type source = d.operand(1).kind == ptx::Operand::Kind::reg ? d.registerType(d.operand(1)) : c.from;
  const bool wideTo = laneBytes(result) == 8, wideFrom = laneBytes(source) == 8;
  const bool exact = wideTo == (laneBytes(c.to) == 8) && wideFrom == (laneBytes(c.from) == 8);
  Handler handler = exact ? fastConversion(c) : nullptr;
  if (!handler)
    handler = wideTo ? (wideFrom ? convertLanes<uint64_t, uint64_t> : convertLanes<uint64_t, uint32_t>)
                     : (wideFrom ? convertLanes<uint32_t, uint64_t> : convertLanes<uint32_t, uint32_t>);
  d.emit(handler, {d.result(0, result), d.source(1, source)}, asDetail(c)).target = ptx::bitsOf(result);
}

// --- Address spaces ------------------------------------------------------------------------------------------------

static uint64_t windowOf(ptx::Space space) {
  return space == ptx::Space::shared  ? sharedWindow
         : space == ptx::Space::local ? localWindow
         : space == ptx::Space::param ? paramWindow
                                      : 0;
}

/// Converts an address of a space to a generic one by setting its window's bits, and back by clearing them.
static void decodeCvta(Decoder &d) {
  const bool to = d.take("to");
  const ptx::Space space = d.space();
  const Type type = d.type();
  d.expectCount(2, 2);
  if (type != Type::u64 || space == ptx::Space::generic)
    d.unsupported();
  const ptx::Operand &source = d.operand(1);
  const bool isName = !to && source.kind == ptx::Operand::Kind::variable;
  const uint32_t slot = isName ? d.variable(source, type) : d.source(source, type);
  if (to)
    d.emit(elementwise<uint64_t, uint64_t>([](uint64_t a) { return a & ~windowMask; }), {d.result(0, type), slot});
  else
    d.emit(elementwise<uint64_t, uint64_t, uint64_t>([](uint64_t a, uint64_t window) { return a | window; }),
           {d.result(0, type), slot, d.constant(windowOf(space), 8)});
}

static void decodeIsspacep(Decoder &d) {
  const ptx::Space space = d.space();
  d.expectCount(2, 2);
  d.emit(testing<uint64_t, uint64_t>([](uint64_t a, uint64_t window) { return (a & windowMask) == window; }),
         {d.result(0, Type::pred), d.source(1, Type::u64), d.constant(windowOf(space), 8)});
}

/// The address in another block of the cluster; the cluster has only this block.
template <class Word> static void runMapa(Warp &warp, const Step &step) {
  const auto *rank = warp.reg<uint32_t>(step.slots[2]);
  forEachLane(warp, [&](int lane) {
    if (rank[lane] != 0)
      warp.report(Check::bounds, step, lane, fmt::format("names block {} of a cluster that has one block", rank[lane]));
    warp.reg<Word>(step.slots[0])[lane] = warp.reg<Word>(step.slots[1])[lane];
  });
}

static Type takeClusterAddressType(Decoder &d) {
  d.take("shared::cluster");
  const Type type = d.type();
  if (type != Type::u32 && type != Type::u64)
    d.wrong("'.u32' or '.u64'");
  return type;
}

static void decodeMapa(Decoder &d) {
  const Type type = takeClusterAddressType(d);
  d.emitOn(type == Type::u64 ? runMapa<uint64_t> : runMapa<uint32_t>, {type, type, Type::u32});
}

static void decodeRank(Decoder &d) {
  const Type type = takeClusterAddressType(d);
  d.expectCount(2, 2);
  d.source(1, type);
  d.emit(elementwise<uint32_t, uint32_t>([](uint32_t zero) { return zero; }),
         {d.result(0, Type::u32), d.constant(0, 4)});
}

void addConvert(InstructionTable &table) {
  table["cvt"] = decodeCvt;
  table["cvta"] = decodeCvta;
  table["isspacep"] = decodeIsspacep;
  table["mapa"] = decodeMapa;
  table["getctarank"] = decodeRank;
}

} // namespace kiln::simulator
