// Tile sizes of matrix products for a CPU: the fastest ones of a cost model, and rules for few rows of A.
//
// The model counts the cycles of a core for a tile. They are those of multiply-adds, of fetching and packing both
// operands, and of reading and writing accumulators in each step of BK. Only BK, which is equal for all candidates,
// decides the order of a sum, so the choice never changes a result.
//
// The constants are in structs, each with its unit. The rates are estimates: they rank tiles of one product, and are
// no predictions. `kiln-bench matmul` compares the chosen tiles with oneDNN, and `kiln-bench token` measures those of
// few rows.

#include "kernels/matmul_pick.h"

#include <algorithm>

namespace kiln {

namespace {
/// Rates of a core.
struct CpuRates {
  double multiplyAdds;   // per cycle
  double b;              // cycles to fetch and pack an element of B
  double a, transposedA; // cycles to fetch an element of A; to pack it, too, if A is read by columns
  double accumulator;    // cycles for each accumulator in each step of BK
};

/// Constants of the tiles.
struct CpuMatmulTiles {
  int64_t bk = 256, longBk = 1024;     // steps of K; the long one with AMX and i8, whose steps are short
  int64_t bkUnit = 16, amxBkUnit = 64; // BK is a multiple
  int64_t bmUnit = 8, amxBmUnit = 32;  // BM is a multiple: rows that `dot` computes at a time
  int64_t bnUnit = 32;                 // BN is a multiple
  int64_t l2Percent = 85;              // share of L2 for a tile of A and the accumulators
  int64_t maxBm = 256;                 // candidates of BM without AMX
  int64_t usualBn = 384;               // candidates of BN, unless A's packing is costly or BN covers N
  int64_t skinnyRows = 4;              // rows of A up to which the skinny path is used
  int64_t fewRows = 8;                 // rows of A below which B is read once, in long pieces of its rows
  int64_t fewBn = 64, fewMostBn = 384; // columns of a tile of few rows
  int64_t lineBytes = 64;              // cache line
  int64_t rowBk = 768, rowsBk = 256;   // skinny, B transposed: elements of a row of B for one row of A, and for more
  int64_t skinnyBn = 16, maxSkinnyBn = 64; // skinny, B transposed: BN is a multiple, at most
  int64_t accumulators = 4096;             // skinny: of a program, which stay in L1
};
constexpr CpuMatmulTiles cpuMatmul;
} // namespace

/// a rounded up to a multiple of b.
static int64_t roundUp(int64_t a, int64_t b) { return cdiv(a, b) * b; }

/// Rates of cores with AVX-512, and with AMX, which packs B while it multiplies. An f16 A is always copied and widened.
static CpuRates cpuRates(const CpuFacts &cpu, Type type) {
  if (cpu.tiles && (type == bf16 || type == i8))
    return {.multiplyAdds = 230, .b = 0.1, .a = 0.1, .transposedA = 0.4, .accumulator = 0.1};
  return {.multiplyAdds = 27, .b = 0.5, .a = type == f16 ? 0.9 : 0.4, .transposedA = 1.0, .accumulator = 0.2};
}

/// Modelled cycles of one core for a tile of bm × bn accumulators that sum K products each.
static double tileCycles(const CpuRates &rates, const MatmulConfig &c, int64_t bm, int64_t bn, int64_t K) {
  const double sums = static_cast<double>(bm) * bn;
  const double fetched = rates.b * bn + (c.ta ? rates.transposedA : rates.a) * bm;
  return sums * K / rates.multiplyAdds + K * fetched + rates.accumulator * sums * (cdiv(K, c.bk) + 1);
}

/// Modelled cycles of the product on `cores`, which process tiles in turn. Tiles of the last row and column are as
/// large as the rest of the matrix.
static double productCycles(const CpuRates &rates, const MatmulConfig &c, int64_t M, int64_t N, int64_t K,
                            int64_t cores) {
  // All tiles are equal except those of the last row and column. A loop could have billions of iterations.
  const int64_t rows = cdiv(M, c.bm), columns = cdiv(N, c.bn), tiles = rows * columns;
  if (tiles == 0)
    return 0;
  const int64_t lastM = M - (rows - 1) * c.bm,
                lastN = std::min<int64_t>(c.bn, roundUp(N - (columns - 1) * c.bn, cpuMatmul.bnUnit));
  const auto across = [&](int64_t bm) {
    return static_cast<double>(columns - 1) * tileCycles(rates, c, bm, c.bn, K) + tileCycles(rates, c, bm, lastN, K);
  };
  const double total = static_cast<double>(rows - 1) * across(c.bm) + across(lastM);
  const double largest =
      tileCycles(rates, c, std::min<int64_t>(c.bm, M), std::min<int64_t>(c.bn, roundUp(N, cpuMatmul.bnUnit)), K);
  return tiles <= 4 * cores ? largest * cdiv(tiles, cores) : total / cores + largest / 2;
}

/// An extent of about `size`, a multiple of `unit`, that divides `extent` into equal parts without a small rest.
static int64_t divideEvenly(int64_t extent, int64_t size, int64_t unit) {
  const int64_t parts = std::max<int64_t>(1, cdiv(extent, size + unit));
  return roundUp(std::max<int64_t>(1, cdiv(extent, parts)), unit);
}

/// Up to four rows by a transposed B, such as a token table. Its rows are multiplied as they are stored, without a
/// transposition, one cache line after the other. For one row of A, a program reads whole rows of B. For more, it reads
/// pieces that stay in L1 until each row of A has used them.
static void pickTransposedSkinny(const CpuFacts &cpu, int64_t M, int64_t N, int64_t K, Type type,
                                 MatmulConfig &config) {
  const auto unroll = static_cast<int>(cpuMatmul.lineBytes / bytesOf(type));
  const int64_t longest = M <= 1 ? cpuMatmul.rowBk : cpuMatmul.rowsBk, unit = cpuMatmul.skinnyBn;
  config.bm = static_cast<int>(std::max<int64_t>(M, 1));
  config.bn =
      static_cast<int>(std::clamp<int64_t>(N / std::max(1, cpu.cores) / unit * unit, unit, cpuMatmul.maxSkinnyBn));
  config.kUnroll = unroll;
  config.bk = static_cast<int>(std::clamp<int64_t>(roundUp(K, unroll), unroll, longest));
}

/// Up to four rows otherwise: each row of B is multiplied by one element of each row of A and added to the
/// accumulators. Nothing is packed, and long pieces of B's rows are read fastest.
static void pickSkinny(const CpuFacts &cpu, int64_t M, int64_t N, MatmulConfig &config) {
  config.bm = static_cast<int>(std::max<int64_t>(M, 1));
  const int64_t bn =
      std::clamp<int64_t>(N / std::max(1, cpu.cores), cpuMatmul.fewBn, cpuMatmul.accumulators / config.bm);
  config.bn = static_cast<int>(divideEvenly(N, bn, cpuMatmul.bnUnit));
  config.kUnroll = 1;
  config.bk = M <= 2 ? 8 : 4;
}

/// The fastest tile of the model among those whose A and accumulators fit L2. Wide tiles are faster if the packing of A
/// is costly, because A is read by columns or widened. They are also faster if they cover N, so that A is read once.
static void pickByModel(const CpuFacts &cpu, int64_t M, int64_t N, int64_t K, Type type, bool usesAmx,
                        MatmulConfig &config) {
  const CpuRates rates = cpuRates(cpu, type);
  const int64_t held = type == f16 ? bytesOf(f32) : bytesOf(type); // bytes of an element of A; f16 is widened
  double best = 0;
  for (int64_t bm : {64, 128, 256, 512}) {
    if (bm > cpuMatmul.maxBm && !usesAmx)
      break;
    for (int64_t bn : {64, 128, 192, 256, 384, 768}) {
      if (bn > cpuMatmul.usualBn && bn < N && !config.ta && type != f16)
        break;
      MatmulConfig tile = config;
      tile.bm = divideEvenly(M, bm, usesAmx ? cpuMatmul.amxBmUnit : cpuMatmul.bmUnit);
      tile.bn = divideEvenly(N, bn, cpuMatmul.bnUnit);
      const int64_t bytes = tile.bm * (held * tile.bk + 4 * static_cast<int64_t>(tile.bn));
      const double cycles = productCycles(rates, tile, M, N, K, std::max(1, cpu.cores));
      const bool fits = bytes <= cpu.l2Bytes * cpuMatmul.l2Percent / 100 || (bm == 64 && bn == 64);
      if (fits && (best == 0 || cycles < best)) {
        best = cycles;
        config = tile;
      }
    }
  }
}

void pickCpuTile(const CpuFacts &cpu, const Product &e, MatmulConfig &config) {
  const auto &[M, N, K, type, epilogue, parts, others] = e;
  const bool usesAmx = cpu.tiles && (type == bf16 || type == i8);
  config.bk = divideEvenly(K, usesAmx || type == i8 ? cpuMatmul.longBk : cpuMatmul.bk,
                           usesAmx ? cpuMatmul.amxBkUnit : cpuMatmul.bkUnit);
  if (M <= cpuMatmul.skinnyRows && config.tb && type != i8)
    return pickTransposedSkinny(cpu, M, N, K, type, config);
  if (M <= cpuMatmul.skinnyRows && !config.ta && !config.tb && type != i8)
    return pickSkinny(cpu, M, N, config);
  if (M >= cpuMatmul.fewRows)
    return pickByModel(cpu, M, N, K, type, usesAmx, config);
  // Fewer rows than `dot` computes at a time: B is read once, which takes all the time. Each core has some columns.
  const int64_t bn = std::clamp<int64_t>(N / std::max(1, cpu.cores), cpuMatmul.fewBn, cpuMatmul.fewMostBn);
  config.bm = static_cast<int>(std::max<int64_t>(M, 1));
  config.bn = divideEvenly(N, bn, cpuMatmul.bnUnit);
}

} // namespace kiln
