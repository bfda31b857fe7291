// Stochastic rounding compared with its definition: the nearest number, or the neighbour on the other side of x if the
// random number is below the fraction of the way to it.

#include "kernels/rounding.h"
#include "test/devices.h"
#include "test/kernels/harness.h"

#include <cmath>

namespace kiln {
namespace {

static constexpr int block = 64;

/// out = x, rounded with the numbers in `uniform`. All (N).
void roundAll(View x, View uniform, View out) {
  Tile n = program_id() * block;
  store(out, {n}, roundStochastically(load(x, {n}, {block}), out.type(), load(uniform, {n}, {block})));
}
const Kernel roundAllKernel = kernel("round_all", roundAll, {"x (N)", "uniform (N)", "out (N)"});

class RoundingTest : public KernelTest {
protected:
  /// `x` rounded to nearest, even on ties.
  double nearest(double x) const {
    char bytes[8];
    fromDoubles({x}, type(), bytes);
    return toDoubles(bytes, type(), 1)[0];
  }
  /// The definition, in exact arithmetic: numbers of the type are multiples of their unit, which is a power of two.
  double rounded(double x, double uniform) const {
    const int digits = type() == bf16 ? 8 : 11, least = type() == bf16 ? -126 : -14;
    const double place = std::ldexp(1.0, std::max(x == 0 ? least : std::ilogb(x), least) - digits + 1);
    const double below = std::floor(x / place) * place, above = std::ceil(x / place) * place, near = nearest(x);
    const double other = near == below ? above : below;
    if (std::isinf(near) || std::isinf(nearest(other)))
      return near;
    return uniform * place < std::abs(x - near) ? other : near;
  }
  std::vector<double> run(const std::vector<double> &x, const std::vector<double> &uniform) {
    const int64_t n = std::ssize(x);
    Array from = array({n}, f32, x), chances = array({n}, f32, uniform), to = unwritten({n}, type());
    KernelTest::run({.launches = {{&roundAllKernel, "", programs(cdiv(n, block)), {from, chances, to}}}});
    return to.read();
  }
};

// Numbers of all magnitudes, down to those below the smallest normal f16, of both signs, next to powers of two, where
// the units change, and exactly half-way; with random numbers that are multiples of 2⁻²⁴, including 0.
TEST_P(RoundingTest, IsItsDefinition) {
  std::vector<double> x, uniform;
  std::uniform_real_distribution<double> number(-1, 1);
  for (int exponent = -27; exponent <= 15; ++exponent)
    for (int i = 0; i < 48; ++i) {
      const double size = std::ldexp(1.0, exponent), step = std::ldexp(1.0, exponent - 22);
      const double value = i < 16   ? number(random) * size
                           : i < 32 ? size + (i - 24) * step
                                    : nearest(number(random) * size) * (1 + unit(type()) / 2 * (i % 3));
      x.push_back(static_cast<float>(value));
      uniform.push_back(i % 8 == 0 ? 0 : static_cast<double>(random() >> 8) * 0x1p-24);
    }
  std::vector<double> want;
  for (size_t i = 0; i < x.size(); ++i)
    want.push_back(rounded(x[i], uniform[i]));
  expectEqual("rounded", run(x, uniform), want);
}

// Representable numbers are unchanged. A number that is finite when rounded to nearest stays finite: 65519 is the
// second last f32 that f16 rounds to 65504. Infinity and NaN are unchanged, too.
TEST_P(RoundingTest, KeepsWhatIsExactOrLast) {
  const double last = type() == f16 ? 65504 : 0x1.fep127, above = type() == f16 ? 65519 : 0x1.feep127;
  const std::vector<double> x = {0, 1, -1, 1.5, last, -last, above, -above, infinity, -infinity};
  std::vector<double> want = x;
  want[6] = last, want[7] = -last;
  for (const double chance : {0.0, 0.5, 1 - 0x1p-24})
    EXPECT_EQ(run(x, std::vector<double>(x.size(), chance)), want) << chance;
  EXPECT_TRUE(std::isnan(run({nan}, {0.5})[0]));
}

KILN_ON_THESE_MACHINES(RoundingTest, narrowMachines("RoundingTest"));

} // namespace
} // namespace kiln
