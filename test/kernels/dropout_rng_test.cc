// The numbers that dropout keeps: they follow the definition for every tile, and are independent.

#include "kernels/dropout_rng.h"
#include "test/devices.h"
#include "test/expect_error.h"
#include "test/kernels/harness.h"
#include "test/kernels/host_dropout.h"

#include <cmath>

namespace kiln {
namespace {

struct TileConfig {
  int rows = 8, columns = 64;
};

/// out[i, j] is 1 where the element of the rngState is kept, else 0.
void keptAll(View out, View rngState, Tile time, Tile most, Tile threshold, Tile scale, TileConfig cfg) {
  Tile n = program_id(0) * cfg.rows, c = program_id(1) * cfg.columns;
  Tile all = kept({rngState, time, most, threshold, scale}, n, cfg.rows, out.dim(1), c, cfg.columns);
  store(out, {n, c}, cast(all, f32));
}
const Kernel keptAllKernel = kernel(
    "kept_all", keptAll, {"out (N, C)", "rng_state (2) i64", "time i64", "most i64", "threshold i64", "scale f32"},
    {field("rows", &TileConfig::rows, "rows of a tile"), field("columns", &TileConfig::columns, "its columns")});

class ChancesTest : public KernelTest {
protected:
  /// The keep mask of (N, C) in sequences of `time` rows of at most `most`.
  std::vector<double> run(int64_t key, int64_t base, int64_t N, int64_t C, int64_t time, int64_t most, double chance,
                          TileConfig tile) {
    Tensor rngState(device, i64, {2});
    const int64_t numbers[] = {key, base};
    rngState.upload(numbers, sizeof numbers);
    Array out = unwritten({N, C}, f32);
    std::vector<Arg> args = {out};
    appendArgs(args, Dropout{{chance}, rngState.ref(), time, most}, out);
    KernelTest::run({.launches = {{&keptAllKernel, textOf(keptAllKernel.fields, tile),
                                   programs(cdiv(N, tile.rows), cdiv(C, tile.columns)), args}}});
    return out.read();
  }
};

// Every tile has the definition's bits: wide and narrow ones, tiles that divide units of 128, and tiles that cross
// them; in sequences shorter than the maximum, and after others of the step.
TEST_P(ChancesTest, AreTheDefinitionsUnderEveryTile) {
  const int64_t key = -0x123456789ABCDEF, N = 21, time = 7, most = 9, base = 5;
  for (const int64_t C : {40, 300})
    for (const TileConfig tile : {TileConfig{8, 64}, {4, 128}, {2, 256}, {8, 32}, {16, 16}, {4, 96}, {4, 24}, {2, 8}}) {
      std::vector<double> want;
      for (int64_t n = 0; n < N; ++n)
        for (int64_t c = 0; c < C; ++c)
          want.push_back(test::isKept(key, (base + n / time) * most + n % time, C, c, 6554));
      SCOPED_TRACE(testing::Message() << C << " columns, tiles of " << tile.rows << "x" << tile.columns);
      expectEqual("kept", run(key, base, N, C, time, most, 0.1, tile), want);
    }
}

// No chance drops nothing.
TEST_P(ChancesTest, NoneDropsNothing) {
  for (const double kept : run(1, 0, 8, 64, 8, 8, 0, {}))
    EXPECT_EQ(kept, 1);
}

KILN_ON_THESE_MACHINES(ChancesTest, floatMachines("ChancesTest"));

// --- Statistics, of the definition, which the tests above hold the kernels to
// ------------------------------------------

/// Of a (rows, columns) mask.
class Mask {
public:
  Mask(int64_t key, int64_t rows, int64_t columns, int64_t threshold) : columns(columns), all(rows * columns) {
    for (int64_t r = 0; r < rows; ++r)
      for (int64_t c = 0; c < columns; ++c)
        all[r * columns + c] = test::isKept(key, r, columns, c, threshold);
  }
  /// The correlation of the elements with those of `other` at a distance of so many rows and columns, as a multiple of
  /// the usual one of independent elements: the correlation times the root of their number.
  double sigmas(const Mask &other, int64_t rowsOn, int64_t columnsOn, double share) const {
    double sum = 0;
    int64_t count = 0;
    const int64_t rows = std::ssize(all) / columns;
    for (int64_t r = 0; r + rowsOn < rows; ++r)
      for (int64_t c = std::max<int64_t>(0, -columnsOn); c < columns && c + columnsOn < columns; ++c, ++count)
        sum += (all[r * columns + c] - share) * (other.all[(r + rowsOn) * columns + c + columnsOn] - share);
    return sum / (share * (1 - share)) / std::sqrt(static_cast<double>(count));
  }
  double mean() const {
    double sum = 0;
    for (const bool kept : all)
      sum += kept;
    return sum / static_cast<double>(all.size());
  }

private:
  int64_t columns;
  std::vector<char> all;
};

// The kept fraction is the requested one, within four standard deviations, at each rate and for several keys.
TEST(Chances, KeepTheShareThatIsAskedFor) {
  for (const double chance : {0.01, 0.1, 0.5, 0.9})
    for (const int64_t key : {0, 1, -1}) {
      const DropoutRate rate{chance};
      const int64_t rows = 256, columns = 384;
      const double deviation = std::sqrt(rate.share() * (1 - rate.share()) / (rows * columns));
      EXPECT_NEAR(Mask(key, rows, columns, rate.threshold()).mean(), rate.share(), 4 * deviation) << chance;
      EXPECT_NEAR(rate.share(), 1 - chance, 0x1p-17);
    }
}

// Neighbours are independent in rows, in columns, on diagonals in both directions, and at the distances at which
// elements share a number. Two keys are independent.
TEST(Chances, GoTogetherWithNoOthers) {
  const DropoutRate rate{0.1};
  const Mask mask(7, 512, 256, rate.threshold()), other(8, 512, 256, rate.threshold());
  for (int64_t rows = 0; rows <= 3; ++rows)
    for (const int64_t columns : {-128, -17, -16, -3, -2, -1, 0, 1, 2, 3, 16, 17, 32, 64, 128}) {
      if (rows > 0 || columns > 0) {
        EXPECT_LE(std::abs(mask.sigmas(mask, rows, columns, rate.share())), 4) << rows << " " << columns;
      }
      EXPECT_LE(std::abs(mask.sigmas(other, rows, columns, rate.share())), 4) << rows << " " << columns;
    }
}

// The scale of kept elements compensates for the dropped ones, or evaluation multiplies by the keep probability.
TEST(Chances, ScalesMakeUpForWhatIsDropped) {
  const DropoutRate inverted{0.1, DropoutKind::inverted}, plain{0.1, DropoutKind::plain};
  EXPECT_EQ(inverted.threshold(), 6554);
  EXPECT_DOUBLE_EQ(inverted.scale() * inverted.share(), inverted.evaluationScale());
  EXPECT_DOUBLE_EQ(plain.scale() * plain.share(), plain.evaluationScale());
}

TEST(Chances, RefuseARateThatIsNone) {
  for (const double asked : {-0.1, 1.0, std::nan("")})
    expectError([&] { verify(DropoutRate{asked}); }, {"expected a dropout rate of at least 0 and below 1"});
}

} // namespace
} // namespace kiln
