// Stochastic rounding by arithmetic, without access to bits, so that results are equal on every machine.

#include "kernels/rounding.h"

namespace kiln {

/// Half a unit in the last place of 1, and the spacing of a type's denormals.
struct Spacing {
  double half, smallest;
};
static Spacing findSpacing(Type type) { return type == bf16 ? Spacing{0x1p-8, 0x1p-133} : Spacing{0x1p-11, 0x1p-24}; }

Tile roundStochastically(Tile x, Type type, Tile uniform) {
  const Spacing spacing = findSpacing(type);

  // 1. The nearest number, and the remainder of x, which is exact because it consists of the last digits of x.
  Tile nearest = cast(x, type), near = cast(nearest, f32);
  Tile rest = x - near;

  // 2. The neighbour on the other side of x. With precision p its distance is between 2⁻ᵖ and 2¹⁻ᵖ times |near|. It is
  //    half of that if near is a power of two and the neighbour is below. 1.25 · 2⁻ᵖ · |near| is always between 0.5 and
  //    1.5 times the distance, so the sum rounds to the neighbour.
  Tile reach = max(abs(near) * (1.25 * spacing.half), spacing.smallest);
  Tile other = cast(where(rest < 0.0, near - reach, near + reach), type);

  // 3. The distance is a power of two, so the product is exact. It is NaN if `other` is infinite and `uniform` is zero;
  //    then the nearest number is taken, too.
  return where(uniform * abs(cast(other, f32) - near) < abs(rest), other, nearest);
}

} // namespace kiln
