// The arithmetic of atomic operations, for atom, red, redux and the bulk reductions.

#pragma once

#include "runtime/simulator/Lanes.h"
#include "runtime/simulator/Numbers.h"

#include <algorithm>

namespace kiln::simulator {

enum class AtomicOperation : uint8_t { add, min, max, and_, or_, xor_, increment, decrement, exchange, compare };

/// The new value of memory that holds `old`, after an operation with b (and c).
template <class T> T updated(AtomicOperation operation, T old, T b, T c) {
  using Op = AtomicOperation;
  if constexpr (std::is_floating_point_v<T>) {
    switch (operation) {
    case Op::add:
      return old + b;
    case Op::min: // with one NaN operand, the other one
      return std::fmin(old, b);
    case Op::max:
      return std::fmax(old, b);
    case Op::exchange:
      return b;
    default:
      return old;
    }
  } else {
    using U = std::make_unsigned_t<T>;
    const auto x = static_cast<U>(old), y = static_cast<U>(b);
    switch (operation) {
    case Op::add:
      return static_cast<T>(x + y);
    case Op::min:
      return std::min(old, b);
    case Op::max:
      return std::max(old, b);
    case Op::and_:
      return static_cast<T>(x & y);
    case Op::or_:
      return static_cast<T>(x | y);
    case Op::xor_:
      return static_cast<T>(x ^ y);
    case Op::exchange:
      return b;
    case Op::compare:
      return old == b ? c : old;
    case Op::increment:
      return x >= y ? T(0) : static_cast<T>(x + 1);
    case Op::decrement:
      return x == 0 || x > y ? b : static_cast<T>(x - 1);
    }
    return old;
  }
}

/// A number that memory holds as a word of its width.
template <class T> struct AtomicWord {
  using Word = std::conditional_t<sizeof(T) == 8, uint64_t, std::conditional_t<sizeof(T) == 4, uint32_t, uint16_t>>;
  static T number(Word word) { return fromWord<T>(word); }
  static Word word(T number) { return static_cast<Word>(toWord<T>(number)); }
  static Word next(AtomicOperation operation, Word old, Word b) {
    return word(updated<T>(operation, number(old), number(b), T()));
  }
};

/// A narrow float. An operation is rounded once, from double, which holds its result exactly or nearly so.
template <bool IsBf16> struct NarrowWord {
  using Word = uint16_t;
  static float number(Word word) { return IsBf16 ? fromBf16(word) : fromHalf(word); }
  static Word word(double value) {
    return IsBf16 ? toBf16(value, Rounding::nearest) : toHalf(value, Rounding::nearest);
  }
  static Word next(AtomicOperation operation, Word old, Word b) {
    return word(updated<double>(operation, number(old), number(b), 0));
  }
};

/// Two narrow floats in a word.
template <bool IsBf16> struct NarrowPair {
  using Word = uint32_t;
  static Word next(AtomicOperation operation, Word old, Word b) {
    using Half = NarrowWord<IsBf16>;
    const auto half = [&](int shift) {
      return Word{Half::next(operation, static_cast<uint16_t>(old >> shift), static_cast<uint16_t>(b >> shift))}
             << shift;
    };
    return half(0) | half(16);
  }
};

} // namespace kiln::simulator
