// The generator's knowledge of every element of a tile, and so the largest permitted difference between two machines.
//
// dialect/NUMERICS.md states which results are equal on all machines and which are within a bound. Facts propagate that
// from operation to operation while a program is generated. A tile of small enough integers is summed exactly in every
// order. Other tiles get the bound that follows from that page. Operations without a known bound are not drawn.

#pragma once

#include "dialect/dsl/Tile.h"

#include <optional>

namespace kiln::fuzz {

struct Facts {
  double bound = 0;     // the largest magnitude; infinite where there may be infinities or NaN
  bool whole = true;    // every element is an integer
  bool openZero = true; // the sign of a zero may differ
  // Two machines differ by at most relative · |x| + absolute.
  double relative = 0, absolute = 0;

  bool exact() const { return relative == 0 && absolute == 0; }
  bool bounded() const;
  /// The largest difference of two machines.
  double error() const;
  /// Whether all that has these facts has `other`, too.
  bool implies(const Facts &other) const;
};

/// The facts of a tile that has no known property except that all machines agree on it.
Facts anything(Type type);
/// Whole numbers from −bound to bound.
Facts wholeNumbers(double bound);

/// The largest finite number, and the distance from 1 to the next number, of a float type.
double largestOf(Type type);
double unitOf(Type type);

/// `facts` as a tile of `type` can have them: floats that may overflow are unbounded, integers wrap.
Facts within(Type type, Facts facts);

/// The facts that cover both tiles.
Facts either(const Facts &a, const Facts &b);
/// The accumulator type of sums of integers.
Type sumsOf(Type type);
/// The sum of `count` elements of type `type`, and the product of two tiles over `count` terms on an accumulator;
/// nothing when the README gives no bound.
std::optional<Facts> sumOf(Type type, const Facts &terms, int64_t count);
std::optional<Facts> productOf(Type type, const Facts &left, const Facts &right, const Facts &acc, int64_t count,
                               Precision precision = Precision::ieee);
/// random_normal.
Facts normalFacts();
/// softmax over `count` elements.
std::optional<Facts> softmaxOf(Type type, const Facts &terms, int64_t count);
/// A conversion between types.
std::optional<Facts> castOf(Type from, Type to, const Facts &facts);

} // namespace kiln::fuzz
