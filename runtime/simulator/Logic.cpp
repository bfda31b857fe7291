// Bit instructions: and, or, xor, not, cnot, lop3, shifts, funnel shifts, fields, masks, counts, permutations.

#include "runtime/simulator/Lanes.h"

#include <algorithm>

namespace kiln::simulator {

using ptx::Type;

/// The handler that `pick` has for the bits of a type: untyped and unsigned numbers are alike.
template <class Pick> static Handler onBits(Type type, Pick pick) {
  return onIntegers(type == Type::b16   ? Type::u16
                    : type == Type::b32 ? Type::u32
                    : type == Type::b64 ? Type::u64
                                        : type,
                    pick);
}

/// d = a ∘ b on untyped words; on predicates, on masks.
template <class Function> static void decodeBitwise(Decoder &d, Function f) {
  const Type type = d.type();
  if (type != Type::pred) {
    d.emitOn(onWords(type, [f]<class T>() { return elementwise<T, T, T>(f); }), {type, type, type});
    return;
  }
  d.expectCount(3, 3);
  bool notA = false, notB = false;
  const uint32_t a = d.predicate(d.operand(1), notA), b = d.predicate(d.operand(2), notB);
  d.emit(
      [](Warp &warp, const Step &step) {
        const Mask left = warp.predicate(step.slots[1]) ^ (step.detail & 1 ? allLanes : 0);
        const Mask right = warp.predicate(step.slots[2]) ^ (step.detail & 2 ? allLanes : 0);
        warp.setPredicate(step.slots[0], static_cast<Mask>(Function()(left, right)));
      },
      {d.result(0, type), a, b}, uint64_t{notA} | uint64_t{notB} << 1);
}

static void decodeNot(Decoder &d) {
  const Type type = d.type();
  if (type != Type::pred) {
    const auto f = [](auto a) { return static_cast<decltype(a)>(~a); };
    d.emitOn(onBits(type, [f]<class T>() { return elementwise<T, T>(f); }), {type, type});
    return;
  }
  d.expectCount(2, 2);
  bool negated = false;
  const uint32_t source = d.predicate(d.operand(1), negated);
  d.emit(
      [](Warp &warp, const Step &step) {
        warp.setPredicate(step.slots[0], warp.predicate(step.slots[1]) ^ (step.detail ? 0 : allLanes));
      },
      {d.result(0, type), source}, negated);
}

static void decodeCnot(Decoder &d) {
  const Type type = d.type();
  const auto f = [](auto a) { return static_cast<decltype(a)>(a == 0); };
  d.emitOn(onWords(type, [f]<class T>() { return elementwise<T, T>(f); }), {type, type});
}

/// lop3: applies the function of three bits whose truth table is the immediate, bit by bit.
static void decodeLop3(Decoder &d) {
  const int join = d.takeOne({"or", "and"});
  if (d.type() != Type::b32)
    d.unsupported();
  d.expectCount(join < 0 ? 5 : 6, join < 0 ? 5 : 6);
  const ptx::Operand &table = d.operand(4);
  const auto results = d.elements(d.operand(0));
  if (results.size() != (join < 0 ? 1 : 2))
    d.wrong(join < 0 ? "one result" : "a result and a predicate");
  if (table.kind != ptx::Operand::Kind::integer || table.bits > 255)
    d.wrong("a table from 0 to 255");
  const uint32_t word = d.result(results[0], Type::b32);
  d.emit(
      [](Warp &warp, const Step &step) {
        auto *result = warp.reg<uint32_t>(step.slots[0]);
        const auto *a = warp.reg<uint32_t>(step.slots[1]), *b = warp.reg<uint32_t>(step.slots[2]),
                   *c = warp.reg<uint32_t>(step.slots[3]);
        forEachLane(warp, [&](int lane) {
          uint32_t bits = 0;
          for (unsigned row = 0; row < 8; ++row)
            if (step.detail >> row & 1)
              bits |= (row & 4 ? a[lane] : ~a[lane]) & (row & 2 ? b[lane] : ~b[lane]) & (row & 1 ? c[lane] : ~c[lane]);
          result[lane] = bits;
        });
      },
      {word, d.source(1, Type::b32), d.source(2, Type::b32), d.source(3, Type::b32)}, table.bits);
  if (join < 0)
    return;
  // Whether the result is not 0, joined with a predicate.
  bool negated = false;
  const uint32_t other = d.predicate(d.operand(5), negated);
  d.emit(
      [](Warp &warp, const Step &step) {
        const auto *word = warp.reg<uint32_t>(step.slots[1]);
        Mask holds = 0;
        for (int lane = 0; lane < lanesOfWarp; ++lane)
          holds |= static_cast<Mask>(word[lane] != 0) << lane;
        const Mask other = warp.predicate(step.slots[2]) ^ (step.detail & 1 ? allLanes : 0);
        warp.setPredicate(step.slots[0], step.detail & 2 ? holds & other : holds | other);
      },
      {d.result(results[1], Type::pred), word, other}, uint64_t{negated} | uint64_t{join == 1} << 1);
}

// --- Shifts: an amount of the width or more gives 0, or the sign -----------------------------------------------------

template <class T> static T shiftedLeft(T a, uint32_t n) { return n >= 8 * sizeof(T) ? T(0) : static_cast<T>(a << n); }
template <class T> static T shiftedRight(T a, uint32_t n) {
  constexpr uint32_t width = 8 * sizeof(T);
  if constexpr (std::is_signed_v<T>)
    return static_cast<T>(a >> std::min(n, width - 1));
  else
    return n >= width ? T(0) : static_cast<T>(a >> n);
}

static void decodeShl(Decoder &d) {
  const Type type = d.type();
  const auto f = [](auto a, uint32_t n) { return shiftedLeft(a, n); };
  d.emitOn(onBits(type, [f]<class T>() { return elementwise<T, T, uint32_t>(f); }), {type, type, Type::u32});
}

static void decodeShr(Decoder &d) {
  const Type type = d.type();
  const auto f = [](auto a, uint32_t n) { return shiftedRight(a, n); };
  d.emitOn(onBits(type, [f]<class T>() { return elementwise<T, T, uint32_t>(f); }), {type, type, Type::u32});
}

/// A 64-bit shift of {b, a}. The result is the high word (left) or the low word (right).
template <bool Left, bool Wraps> static Handler funnelShift() {
  return elementwise<uint32_t, uint32_t, uint32_t, uint32_t>([](uint32_t a, uint32_t b, uint32_t n) {
    const uint64_t pair = uint64_t{b} << 32 | a;
    const uint32_t amount = Wraps ? n & 31 : std::min(n, 32u);
    return static_cast<uint32_t>(Left ? pair << amount >> 32 : pair >> amount);
  });
}

static void decodeShf(Decoder &d) {
  const bool left = d.take("l");
  if (!left && !d.take("r"))
    d.wrong("'.l' or '.r'");
  const bool wrap = d.take("wrap");
  if (!wrap && !d.take("clamp"))
    d.wrong("'.wrap' or '.clamp'");
  if (d.type() != Type::b32)
    d.unsupported();
  d.emitOn(left ? (wrap ? funnelShift<true, true>() : funnelShift<true, false>())
                : (wrap ? funnelShift<false, true>() : funnelShift<false, false>()),
           {Type::b32, Type::b32, Type::b32, Type::u32});
}

// --- Fields --------------------------------------------------------------------------------------------------------

/// Bits [start, start + length) of a; beyond the top, and for a signed field above its own sign, copies of the sign.
template <class T> static T field(T a, uint32_t start, uint32_t length) {
  constexpr int width = 8 * sizeof(T);
  const int begin = static_cast<int>(start & 0xff), count = static_cast<int>(length & 0xff);
  const int top = std::min(begin + count - 1, width - 1);
  const bool sign = std::is_signed_v<T> && count != 0 && (static_cast<std::make_unsigned_t<T>>(a) >> top & 1);
  std::make_unsigned_t<T> result = 0;
  for (int i = 0; i < width; ++i) {
    const bool inside = i < count && begin + i < width;
    const bool bit = inside ? static_cast<std::make_unsigned_t<T>>(a) >> (begin + i) & 1 : sign;
    result |= static_cast<std::make_unsigned_t<T>>(static_cast<std::make_unsigned_t<T>>(bit) << i);
  }
  return static_cast<T>(result);
}

static void decodeBfe(Decoder &d) {
  const Type type = d.type();
  const auto f = [](auto a, uint32_t start, uint32_t length) { return field(a, start, length); };
  d.emitOn(onTypes<uint32_t, int32_t, uint64_t, int64_t>(
               type, [f]<class T>() { return elementwise<T, T, uint32_t, uint32_t>(f); }),
           {type, type, Type::u32, Type::u32});
}

static void decodeBfi(Decoder &d) {
  const Type type = d.type();
  const auto f = [](auto a, auto b, uint32_t start, uint32_t length) {
    using T = decltype(a);
    const uint32_t begin = start & 0xff, count = length & 0xff, width = 8 * sizeof(T);
    if (begin >= width || count == 0)
      return b;
    const T ones = count >= width ? static_cast<T>(~T(0)) : static_cast<T>((T(1) << count) - 1);
    return static_cast<T>((b & ~(ones << begin)) | ((a & ones) << begin));
  };
  d.emitOn(onWords(type, [f]<class T>() { return elementwise<T, T, T, uint32_t, uint32_t>(f); }),
           {type, type, type, Type::u32, Type::u32});
}

/// Parses `.clamp` or `.wrap`; true for `.clamp`: numbers above the word's width are not reduced modulo the width.
static bool takeClamp(Decoder &d) {
  const int mode = d.takeOne({"clamp", "wrap"});
  if (mode < 0)
    d.wrong("'.clamp' or '.wrap'");
  return mode == 0;
}

/// A mask of the lowest `count` bits.
static uint32_t lowOnes(uint32_t count) { return count >= 32 ? ~0u : (1u << count) - 1; }

/// bmsk: ones at [a, a + b) within the word.
static void decodeBmsk(Decoder &d) {
  d.expectTarget(70, 76);
  const bool clamps = takeClamp(d);
  if (d.type() != Type::b32)
    d.unsupported();
  const Handler handler = clamps ? elementwise<uint32_t, uint32_t, uint32_t>(
                                       [](uint32_t a, uint32_t b) { return a >= 32 ? 0u : lowOnes(b) << a; })
                                 : elementwise<uint32_t, uint32_t, uint32_t>(
                                       [](uint32_t a, uint32_t b) { return lowOnes(b & 31) << (a & 31); });
  d.emitOn(handler, {Type::b32, Type::u32, Type::u32});
}

/// szext: the lowest b bits of a, sign- or zero-extended.
template <class T, bool Clamps> static Handler extension() {
  return elementwise<T, uint32_t, uint32_t>([](uint32_t a, uint32_t b) {
    const uint32_t bits = Clamps ? std::min(b, 32u) : b & 31, kept = lowOnes(bits);
    const bool isNegative = std::is_signed_v<T> && bits != 0 && (a >> (bits - 1) & 1);
    return static_cast<T>((a & kept) | (isNegative ? ~kept : 0));
  });
}

static void decodeSzext(Decoder &d) {
  d.expectTarget(70, 76);
  const bool clamps = takeClamp(d);
  const Type type = d.type();
  if (type != Type::u32 && type != Type::s32)
    d.unsupported();
  const Handler handler = type == Type::s32 ? (clamps ? extension<int32_t, true>() : extension<int32_t, false>())
                                            : (clamps ? extension<uint32_t, true>() : extension<uint32_t, false>());
  d.emitOn(handler, {type, type, Type::u32});
}

/// The position of the |n|-th set bit of a mask. It counts upwards from `base` if n > 0, and downwards if n < 0. The
/// bit at `base` itself is meant if n is 0. All ones if there is no such bit.
static uint32_t nthSet(uint32_t mask, uint32_t base, int32_t n) {
  int64_t left = n == 0 ? 1 : std::abs(int64_t{n});
  for (int64_t at = base; at >= 0 && at < 32; at += n < 0 ? -1 : 1) {
    if (mask >> at & 1 && --left == 0)
      return static_cast<uint32_t>(at);
    if (n == 0)
      break;
  }
  return ~0u;
}

static void decodeFns(Decoder &d) {
  d.expectTarget(30, 60);
  if (d.type() != Type::b32)
    d.unsupported();
  d.emitOn(elementwise<uint32_t, uint32_t, uint32_t, int32_t>(
               [](uint32_t mask, uint32_t base, int32_t n) { return nthSet(mask, base, n); }),
           {Type::b32, Type::b32, Type::b32, Type::s32});
}

// --- Counts --------------------------------------------------------------------------------------------------------

template <class Function> static void decodeCount(Decoder &d, Function f) {
  const Type type = d.type();
  d.emitOn(onWords(type, [f]<class T>() { return elementwise<uint32_t, T>(f); }), {Type::u32, type});
}

/// The position of the highest bit that is not a copy of the sign; all ones if there is none.
static void decodeBfind(Decoder &d) {
  const bool amount = d.take("shiftamt");
  const Type type = d.type();
  const auto position = [](auto a) {
    using T = decltype(a);
    const auto bits = static_cast<std::make_unsigned_t<T>>(a < 0 ? ~a : a);
    return bits ? static_cast<uint32_t>(8 * sizeof(T) - 1 - std::countl_zero(bits)) : ~0u;
  };
  const auto shift = [](auto a) {
    const uint32_t at = decltype(position)()(a);
    return at == ~0u ? at : static_cast<uint32_t>(8 * sizeof(a) - 1 - at);
  };
  d.emitOn(onTypes<uint32_t, int32_t, uint64_t, int64_t>(type,
                                                         [=]<class T>() {
                                                           return amount ? elementwise<uint32_t, T>(shift)
                                                                         : elementwise<uint32_t, T>(position);
                                                         }),
           {Type::u32, type});
}

static void decodeBrev(Decoder &d) {
  const Type type = d.type();
  const auto f = [](auto a) {
    decltype(a) result = 0;
    for (size_t i = 0; i < 8 * sizeof(a); ++i)
      result = static_cast<decltype(a)>(result << 1 | (a >> i & 1));
    return result;
  };
  d.emitOn(onWords(type, [f]<class T>() { return elementwise<T, T>(f); }), {type, type});
}

/// Each byte of the result is one of the eight of {b, a}, or eight copies of its sign.
static uint32_t permuted(uint32_t a, uint32_t b, uint32_t selectors) {
  const uint64_t bytes = uint64_t{b} << 32 | a;
  uint32_t result = 0;
  for (unsigned i = 0; i < 4; ++i) {
    const uint32_t selector = selectors >> (4 * i) & 15;
    uint32_t byte = bytes >> (8 * (selector & 7)) & 255;
    if (selector & 8)
      byte = byte & 128 ? 255 : 0;
    result |= byte << (8 * i);
  }
  return result;
}

/// The modes of prmt choose by the two low bits of c; here as selectors of the general form.
static constexpr uint32_t permutations[][4] = {
    {0x3210, 0x4321, 0x5432, 0x6543}, // f4e
    {0x5670, 0x6701, 0x7012, 0x0123}, // b4e
    {0x0000, 0x1111, 0x2222, 0x3333}, // rc8
    {0x3210, 0x3211, 0x3222, 0x3333}, // ecl
    {0x0000, 0x1110, 0x2210, 0x3210}, // ecr
    {0x1010, 0x3232, 0x1010, 0x3232}, // rc16
};

template <size_t Mode> static Handler permutingBy() {
  return elementwise<uint32_t, uint32_t, uint32_t, uint32_t>(
      [](uint32_t a, uint32_t b, uint32_t c) { return permuted(a, b, permutations[Mode][c & 3]); });
}

static void decodePrmt(Decoder &d) {
  if (d.type() != Type::b32)
    d.unsupported();
  d.expectCount(4, 4);
  static const Handler modes[] = {permutingBy<0>(), permutingBy<1>(), permutingBy<2>(),
                                  permutingBy<3>(), permutingBy<4>(), permutingBy<5>()};
  const int mode = d.takeOne({"f4e", "b4e", "rc8", "ecl", "ecr", "rc16"});
  const Handler general = elementwise<uint32_t, uint32_t, uint32_t, uint32_t>(
      [](uint32_t a, uint32_t b, uint32_t c) { return permuted(a, b, c); });
  const Handler handler = mode < 0 ? general : modes[static_cast<size_t>(mode)];
  // A source from which a constant selector takes no byte is not read; compilers may leave it unwritten.
  bool isTaken[2] = {true, true};
  if (const ptx::Operand &selectors = d.operand(3); mode < 0 && selectors.kind == ptx::Operand::Kind::integer)
    for (const unsigned source : {0U, 1U}) {
      isTaken[source] = false;
      for (int i = 0; i < 4; ++i)
        isTaken[source] |= (selectors.bits >> (4 * i + 2) & 1) == source;
    }
  const size_t a = isTaken[0] ? 1 : 2, b = isTaken[1] ? 2 : 1;
  d.emit(handler, {d.result(0, Type::b32), d.source(a, Type::b32), d.source(b, Type::b32), d.source(3, Type::b32)});
}

void addLogic(InstructionTable &table) {
  table["and"] = [](Decoder &d) { decodeBitwise(d, [](auto a, auto b) { return static_cast<decltype(a)>(a & b); }); };
  table["or"] = [](Decoder &d) { decodeBitwise(d, [](auto a, auto b) { return static_cast<decltype(a)>(a | b); }); };
  table["xor"] = [](Decoder &d) { decodeBitwise(d, [](auto a, auto b) { return static_cast<decltype(a)>(a ^ b); }); };
  table["not"] = decodeNot;
  table["cnot"] = decodeCnot;
  table["lop3"] = decodeLop3;
  table["shl"] = decodeShl;
  table["shr"] = decodeShr;
  table["shf"] = decodeShf;
  table["bfe"] = decodeBfe;
  table["bfi"] = decodeBfi;
  table["bfind"] = decodeBfind;
  table["brev"] = decodeBrev;
  table["popc"] = [](Decoder &d) { decodeCount(d, [](auto a) { return static_cast<uint32_t>(std::popcount(a)); }); };
  table["clz"] = [](Decoder &d) { decodeCount(d, [](auto a) { return static_cast<uint32_t>(std::countl_zero(a)); }); };
  table["prmt"] = decodePrmt;
  table["bmsk"] = decodeBmsk;
  table["szext"] = decodeSzext;
  table["fns"] = decodeFns;
}

} // namespace kiln::simulator
