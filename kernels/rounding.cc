// Rounding by chance without a look at bits, so that it is the same arithmetic on every machine.

#include "kernels/rounding.h"

namespace kiln {

/// Half a unit in the last place of 1, and the distance between the smallest numbers of a type.
struct Spacing {
  double half, smallest;
};
static Spacing spacingOf(Type type) { return type == bf16 ? Spacing{0x1p-8, 0x1p-133} : Spacing{0x1p-11, 0x1p-24}; }

Tile roundStochastically(Tile x, Type type, Tile uniform) {
  const Spacing spacing = spacingOf(type);

  // 1. The nearest number, and what it leaves of x: some of the last digits of x, so the difference is exact.
  Tile nearest = cast(x, type), near = cast(nearest, f32);
  Tile rest = x - near;

  // 2. The neighbour on the other side of x. With p digits the distance to it is between 2⁻ᵖ and 2¹⁻ᵖ of |near|, or
  // half of that when near is a power of two and the neighbour is below. 1.25 · 2⁻ᵖ of |near| is more than half of the
  // distance and less than one and a half in all cases, so that the sum rounds to the neighbour.
  Tile reach = max(abs(near) * (1.25 * spacing.half), spacing.smallest);
  Tile other = cast(where(rest < 0.0, near - reach, near + reach), type);

  // 3. The distance is a power of two, so the product is exact. It is no number where `other` is infinite and uniform
  // zero, and then, too, the nearest is taken.
  return where(uniform * abs(cast(other, f32) - near) < abs(rest), other, nearest);
}

} // namespace kiln
