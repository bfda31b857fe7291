// Tile sizes of matrix products for a GPU: the fastest ones of a cost model of its pipes, and rules for few rows of A.
//
// An iteration of a program multiplies a (BM, BK) by a (BK, BN) tile. It takes as long as its slowest pipe:
//
//     cycles = max(multiply-adds / tensor cores, bytes / shared memory, bytes / L2, instructions / issue rate)
//
// A tile takes its iterations, the latency that they do not hide, and its stores. SMs take tiles in turn, so a product
// takes as long as an SM with the most tiles. With split-K the sums of the parts are added.
//
// On sm_90 the tensor cores read operands of two bytes from shared memory for a warpgroup (wgmma): A once, and B once
// for each 64 rows.
//
// The constants are in structs, each with its unit. They rank tiles of one product, and are no predictions. Rates are
// close to NVIDIA's; latencies are estimates. `kiln-bench static` counts instructions and predicts times, `kiln-bench
// ptxas` prints registers and spills, and `kiln-bench matmul --device cuda` measures.

#include "kernels/matmul_pick.h"

#include <algorithm>
#include <bit>
#include <limits>

namespace kiln {

namespace {

/// Rates of an SM, per cycle.
struct SmRates {
  double multiplyAdds;       // of the tensor cores, or of f32 arithmetic
  double shared = 128;       // bytes of shared memory
  double l2 = 64;            // bytes of L2
  double memory = 13;        // bytes of global memory, an SM's share
  double instructions = 4;   // warp instructions
  double multiplyAddsPerMma; // of a warp instruction
};

/// Rates of tensor cores in multiply-adds of two-byte operands per cycle and SM.
struct TensorCoreRates {
  double sm80 = 1024, sm90 = 1340, consumer = 256; // consumer GPUs with f32 accumulators have a quarter of sm_80's
  double wgmma = 2027;                             // sm_90, a warpgroup
  double mma = 2048, wgmmaInstruction = 32768; // multiply-adds of an instruction: m16n8k16, m64n128k16, a warp's share
  double ffma = 32;                            // multiply-adds of an f32 instruction of a warp
  double sm80Ffma = 64, laterFfma = 128;       // multiply-adds of f32 per cycle and SM
};
constexpr TensorCoreRates tensorCores;

/// Constants of the cost model.
struct GpuCosts {
  double prologueCycles = 1500;    // of a program, until its first operands have arrived
  double iterationCycles = 60;     // from one iteration to the next: barrier and wait
  double launchCycles = 4000;      // of a second launch
  double latencyCycles = 700;      // of global memory
  double instructionsPerMma = 1.8; // warp instructions of an iteration for each MMA (`kiln-bench static`)
  double heavyInstructions = 20;   // thread instructions of an expensive epilogue for each accumulator
  int64_t otherRegisters = 96;     // of a thread, besides accumulators (`kiln-bench ptxas`)
  int64_t maxRegisters = 255;      // of a thread
  int maxWarps = 8;                // of a program
  int64_t maxStages = 4;           // of the pipeline
  int64_t rowBytes = 128;          // of a row of an operand in shared memory: a cache line, and the unit of a swizzle
  int64_t reservedBytes = 1024;    // of shared memory, for each CTA
  int64_t persistentTiles = 2;     // of an SM: with more, `kiln-bench static` predicts persistent programs to be faster
  int64_t maxTiles = 1 << 30;      // that persistent programs number with 32 bits
};
constexpr GpuCosts costs;

/// Constants of skinny products.
struct SkinnyTiles {
  int warps = 8, lanes = 32;
  int64_t vector = 16, line = 128, sector = 32; // bytes: of a load, of a cache line, of the least access to memory
  int64_t fewRows = 4;                          // rows of A
  int64_t maxLoads = 8, maxLoadsOfRows = 4;     // loads of B in flight a thread, up to and beyond `fewRows`
};
constexpr SkinnyTiles skinny;

/// A candidate.
struct TileShape {
  int bm, bn, warps;
  bool onlyWarpgroups = false;
};
constexpr TileShape shapes[] = {{128, 128, 4}, {128, 256, 8}, {256, 128, 8}, {128, 192, 8, true}, {128, 96, 4},
                                {128, 64, 4},  {64, 128, 4},  {64, 64, 4},   {32, 64, 2},         {32, 32, 1}};

} // namespace

/// The rates of an SM for operands of `type`, multiplied warp by warp.
static SmRates smRates(const GpuFacts &gpu, Type type, Precision precision) {
  const double halves = gpu.isConsumer()         ? tensorCores.consumer
                        : gpu.architecture >= 90 ? tensorCores.sm90
                                                 : tensorCores.sm80;
  if (type == i8)
    return {.multiplyAdds = 2 * halves, .multiplyAddsPerMma = 2 * tensorCores.mma};
  if (type != f32)
    return {.multiplyAdds = halves, .multiplyAddsPerMma = tensorCores.mma};
  if (precision == Precision::ieee)
    return {.multiplyAdds = gpu.isConsumer() || gpu.architecture >= 90 ? tensorCores.laterFfma : tensorCores.sm80Ffma,
            .multiplyAddsPerMma = tensorCores.ffma};
  const double products = precision == Precision::tf32 ? 1 : 3; // MMAs for each product of two numbers
  if (precision == Precision::bf16x3)
    return {.multiplyAdds = halves / products, .multiplyAddsPerMma = tensorCores.mma / products};
  return {.multiplyAdds = halves / 2 / products, .multiplyAddsPerMma = tensorCores.mma / 2 / products};
}

/// Whether warpgroups multiply the tile, 64 rows at a time.
static bool usesWarpgroups(const GpuFacts &gpu, Type type, const TileShape &shape) {
  return gpu.architecture == 90 && (type == bf16 || type == f16) && shape.warps % 4 == 0 &&
         shape.bm >= 16 * shape.warps;
}

/// Whether a thread has registers for the epilogue in addition to its accumulators, as `kiln-bench ptxas` shows. With
/// wgmma, operands take none, and more are free.
static bool hasRegistersFor(const Product &e, const TileShape &shape, bool isWgmma) {
  const int sums = shape.bm * shape.bn / (32 * shape.warps);
  if (!isWgmma)
    return e.epilogue < Epilogue::accumulate && (e.epilogue < Epilogue::activated || e.type != f16 || sums <= 64);
  switch (e.epilogue) {
  case Epilogue::light:
    return true;
  case Epilogue::added:
    return shape.bn <= 192;
  case Epilogue::activated:
    return e.type == bf16 || (shape.bn <= 128 && (sums <= 96 || shape.bm > 128));
  case Epilogue::activatedAndAdded:
    return shape.bn <= 128 && sums <= 96;
  case Epilogue::accumulate:
    return sums <= 96;
  case Epilogue::heavy:
  case Epilogue::dropout:
    break;
  }
  return sums <= 64;
}

/// Estimated registers of a thread.
static int64_t countRegisters(const TileShape &shape) {
  return std::min(costs.maxRegisters, cdiv(shape.bm * shape.bn, 32 * shape.warps) + costs.otherRegisters);
}

/// Modelled cycles to write the sums of each part, in f32, and to add them. They stay in L2 if they fit.
static double splitCycles(const GpuFacts &gpu, const SmRates &rates, const Product &e) {
  if (e.parts == 1)
    return 0;
  double elements = static_cast<double>(e.M) * static_cast<double>(e.N);
  for (const auto &[M, N] : e.others)
    elements += static_cast<double>(M) * static_cast<double>(N);
  const double bytes = 4.0 * elements * static_cast<double>(e.parts);
  const double rate = bytes <= static_cast<double>(gpu.l2Bytes) ? rates.l2 : rates.memory;
  return costs.launchCycles + 2 * bytes / rate / gpu.sms;
}

/// The fit of a tile: stages of its pipeline and CTAs per SM; no stages if it does not fit.
struct Occupancy {
  int64_t stages = 0, ctas = 0;
};

/// Two CTAs per SM hide each other's waits. Then the pipeline has as many stages as fit, up to four. The accumulators
/// go through shared memory to the rows that are stored, as f32 if these are.
static Occupancy computeOccupancy(const GpuFacts &gpu, const TileShape &shape, int64_t stageBytes) {
  if (int64_t{4} * shape.bm * shape.bn > gpu.ctaSharedBytes)
    return {};
  const int64_t byRegisters = std::max<int64_t>(1, gpu.registers / (countRegisters(shape) * 32 * shape.warps));
  for (int64_t ctas : {byRegisters >= 2 ? int64_t{2} : int64_t{1}, int64_t{1}}) {
    const int64_t room = std::min(gpu.ctaSharedBytes, gpu.smSharedBytes / ctas - costs.reservedBytes);
    if (2 * stageBytes <= room)
      return {std::min<int64_t>(costs.maxStages, room / stageBytes), ctas};
  }
  return {};
}

/// Modelled cycles of an iteration's slowest pipe.
static double iterationCycles(const SmRates &rates, const TileShape &shape, int64_t bk, int64_t size, bool isWgmma) {
  const double products = static_cast<double>(shape.bm) * shape.bn * static_cast<double>(bk);
  const auto stage = static_cast<double>((shape.bm + shape.bn) * bk * size);
  // Each warp reads the rows of A and the columns of B of its part of the tile, which is about square.
  const double down = shape.warps >= 4 ? 2 : 1, across = shape.warps / down;
  const double rowsRead = isWgmma ? shape.bm + shape.bn * (shape.bm / 64.0) : shape.bm * across + shape.bn * down;
  const double read = rowsRead * static_cast<double>(bk) * static_cast<double>(size);
  return std::max({products / rates.multiplyAdds, (read + stage) / rates.shared, stage / rates.l2,
                   costs.instructionsPerMma * products / rates.multiplyAddsPerMma / rates.instructions});
}

/// Modelled cycles of a tile, of several that an SM has at a time.
static double tileCycles(const SmRates &rates, const Product &e, const TileShape &shape, int64_t bk, bool isWgmma,
                         const Occupancy &fit) {
  const double iteration = iterationCycles(rates, shape, bk, bytesOf(e.type), isWgmma);
  // From four stages on, wgmma keeps the previous iteration's product in flight, which takes a stage.
  const bool isOverlapped = isWgmma && fit.stages >= costs.maxStages;
  const double ahead = iteration * static_cast<double>((fit.stages - (isOverlapped ? 2 : 1)) * fit.ctas);
  const double wait = isOverlapped ? costs.iterationCycles / 2
                      : isWgmma    ? 2 * costs.iterationCycles
                                   : costs.iterationCycles;
  const double exposed = std::max(0.0, costs.latencyCycles - ahead) + wait / static_cast<double>(fit.ctas);
  // With wgmma, the stores of a tile overlap with the products of the next tile.
  const double sums = static_cast<double>(shape.bm) * shape.bn,
               work = isWgmma && e.epilogue >= Epilogue::activated ? costs.heavyInstructions * sums / 128 : 0;
  const double written = 4 * sums / (isWgmma ? rates.l2 : rates.memory) + work;
  const auto iterations = static_cast<double>(cdiv(cdiv(e.K, e.parts), bk));
  return iterations * (iteration + exposed) + (costs.prologueCycles + written) / static_cast<double>(fit.ctas);
}

/// Modelled cycles of a product with tiles of this shape, which `config` gets with as many stages as fit.
static double productCycles(const GpuFacts &gpu, SmRates rates, const Product &e, const TileShape &shape,
                            MatmulConfig &config) {
  const bool isWgmma = usesWarpgroups(gpu, e.type, shape);
  if (isWgmma) {
    rates.multiplyAdds = tensorCores.wgmma;
    rates.multiplyAddsPerMma = tensorCores.wgmmaInstruction;
  }
  const Occupancy fit = computeOccupancy(gpu, shape, (shape.bm + shape.bn) * config.bk * bytesOf(e.type));
  if (fit.stages < 2)
    return std::numeric_limits<double>::infinity();
  const auto countTiles = [&](int64_t M, int64_t N) { return cdiv(M, shape.bm) * cdiv(N, shape.bn) * e.parts; };
  int64_t tiles = countTiles(e.M, e.N);
  for (const auto &[M, N] : e.others)
    tiles += countTiles(M, N);
  config.bm = shape.bm;
  config.bn = shape.bn;
  config.warps = shape.warps;
  config.stages = static_cast<int>(fit.stages);
  return static_cast<double>(cdiv(tiles, gpu.sms)) * tileCycles(rates, e, shape, config.bk, isWgmma, fit) +
         splitCycles(gpu, rates, e);
}

double pickGpuTile(const GpuFacts &gpu, const Product &e, MatmulConfig &config) {
  const SmRates rates = smRates(gpu, e.type, config.precision);
  config.bk = static_cast<int>(costs.rowBytes / bytesOf(e.type));
  double best = std::numeric_limits<double>::infinity();
  const bool isExact = config.precision == Precision::ieee;
  for (TileShape shape : shapes) {
    // Epilogues, operands outside of tensor cores, and operands of two numbers each need registers: twice the warps.
    if ((e.type == f32 && (isExact || isSplit(config.precision))) ||
        !hasRegistersFor(e, shape, usesWarpgroups(gpu, e.type, shape)))
      shape.warps *= 2;
    if (shape.warps > costs.maxWarps || (shape.onlyWarpgroups && !usesWarpgroups(gpu, e.type, shape)))
      continue;
    MatmulConfig tile = config;
    const double cycles = productCycles(gpu, rates, e, shape, tile);
    if (cycles < best) {
      best = cycles;
      config = tile;
    }
  }
  return best;
}

bool prefersPersistent(const GpuFacts &gpu, const MatmulConfig &config, Type type, Type stored, int64_t tiles) {
  const TileShape shape = {config.bm, config.bn, config.warps};
  const int64_t size = bytesOf(type), stageBytes = (shape.bm + shape.bn) * config.bk * size;
  const int64_t slots = config.stages >= costs.maxStages ? 2 : 1; // that are empty while the first loads run
  return usesWarpgroups(gpu, type, shape) && tiles > costs.persistentTiles * gpu.sms && tiles <= costs.maxTiles &&
         config.stages > 1 && computeOccupancy(gpu, shape, stageBytes).ctas == 1 &&
         std::min(shape.bm, shape.bn) * bytesOf(stored) <= slots * config.bk * size;
}

/// To hide the latency of memory, an SM should have about 16 KB of B in flight. A thread has up to eight loads of 16
/// bytes in flight. So half as many programs, of 8 warps each, as SMs are enough. Each program reads a piece of B's
/// rows, from a cache line down to a sector: the longest that gives that many programs. If B is transposed, a warp has
/// a row of it, or two, and adds the sums of its lanes without other warps.
void pickFewRows(const GpuFacts &gpu, const Product &e, MatmulConfig &config) {
  config.bm = static_cast<int>(std::bit_ceil(static_cast<uint64_t>(std::max<int64_t>(e.M, 1))));
  config.warps = skinny.warps;
  const int64_t size = bytesOf(e.type);
  if (config.tb) {
    config.bn = config.bm <= 2 ? 2 * skinny.warps : skinny.warps;
    config.kUnroll = static_cast<int>(skinny.lanes * skinny.vector / size);
  } else {
    int64_t piece = skinny.line;
    while (piece > skinny.sector && 2 * cdiv(e.N, piece / size) < gpu.sms)
      piece /= 2;
    config.bn = static_cast<int>(piece / size);
    config.kUnroll = static_cast<int>(skinny.warps * skinny.lanes * skinny.vector / piece);
  }
  // A thread has bm accumulators for each element of a vector, and an element of each row of A for each of its vectors.
  const int64_t most = config.bm <= skinny.fewRows ? skinny.maxLoads : skinny.maxLoadsOfRows;
  config.bk = static_cast<int>(std::clamp<int64_t>(cdiv(e.K, config.kUnroll), 1, most) * config.kUnroll);
}

} // namespace kiln
