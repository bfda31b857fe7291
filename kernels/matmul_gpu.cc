// Tiles of products for a GPU: the ones that a model of its pipes finds fastest.
//
// A program's round multiplies a (bm, bk) by a (bk, bn) tile. It takes as long as its slowest pipe: the tensor cores,
// shared memory, which every warp reads its rows of A and columns of B from, the second-level cache, or the warps'
// instructions. SMs get tiles in turn, so that the product takes as long as the SM that gets one more than others.
//
// On sm_90 the tensor cores take operands of two bytes from shared memory themselves, for a group of four warps, and
// are faster by half when they do: A once, and B for each 64 rows.

#include "kernels/matmul_pick.h"

#include <algorithm>
#include <bit>
#include <limits>

namespace kiln {

namespace {

/// What an SM does in a cycle.
struct SmRates {
  double multiplyAdds;     // of the tensor cores, or of f32 arithmetic
  double shared = 128;     // bytes
  double cache = 64;       // bytes from the second-level cache
  double memory = 13;      // bytes of global memory, an SM's share
  double instructions = 4; // of warps
  double multiplyAddsEach; // of a warp's instruction
};

/// Cycles that are not the rounds': until the first operands are there, and from one round to the next.
constexpr double toBegin = 1500, toTurn = 60, toLaunch = 4000, latency = 700;
/// Instructions of a round for each of its products, and of heavy work for each sum; registers of a thread beside its
/// sums.
constexpr double instructionsEach = 1.8, workEach = 20;
constexpr int64_t otherRegisters = 96, mostRegisters = 255;
constexpr int mostWarps = 8;
/// Bytes of a row of an operand in shared memory: a line, and what a swizzle turns.
constexpr int64_t rowBytes = 128;

/// A tile and how warps share it.
struct Shape2 {
  int bm, bn, warps;
  bool forGroups = false; // for them alone
};
constexpr Shape2 shapes[] = {{128, 128, 4}, {128, 256, 8}, {256, 128, 8}, {128, 192, 8, true}, {128, 96, 4},
                             {128, 64, 4},  {64, 128, 4},  {64, 64, 4},   {32, 64, 2},         {32, 32, 1}};

} // namespace

/// A100: 1024 multiply-adds of two bytes. Tensor cores of the GPUs for graphics sum in f32 at a quarter of that, and
/// later ones for computing do a quarter more when asked by a warp.
static SmRates ratesOf(const GpuFacts &gpu, Type type, Precision precision) {
  const double halves = gpu.isForGraphics() ? 256 : gpu.architecture >= 90 ? 1340 : 1024;
  if (type == i8)
    return {.multiplyAdds = 2 * halves, .multiplyAddsEach = 4096};
  if (type != f32)
    return {.multiplyAdds = halves, .multiplyAddsEach = 2048};
  if (precision == Precision::ieee)
    return {.multiplyAdds = gpu.isForGraphics() || gpu.architecture >= 90 ? 128.0 : 64.0, .multiplyAddsEach = 32};
  const double products = precision == Precision::tf32 ? 1 : 3; // of each two numbers
  if (precision == Precision::bf16x3)
    return {.multiplyAdds = halves / products, .multiplyAddsEach = 2048 / products};
  return {.multiplyAdds = halves / 2 / products, .multiplyAddsEach = 1024 / products};
}

/// Whether groups of four warps multiply the tile, each 64 rows of it at a time.
static bool isForGroups(const GpuFacts &gpu, Type type, const Shape2 &shape) {
  return gpu.architecture == 90 && (type == bf16 || type == f16) && shape.warps % 4 == 0 &&
         shape.bm >= 16 * shape.warps;
}

/// Whether a thread has registers for what follows beside its sums, as ptxas found. Where groups multiply, operands
/// take none, and more is left.
static bool hasRegistersFor(const Product &e, const Shape2 &shape, bool isGrouped) {
  const int sums = shape.bm * shape.bn / (32 * shape.warps);
  if (!isGrouped && e.epilogue == Epilogue::activated)
    return e.type != f16 || sums <= 64;
  if (!isGrouped)
    return e.epilogue < Epilogue::accumulate;
  switch (e.epilogue) {
  case Epilogue::light:
    return true;
  case Epilogue::added:
    return shape.bn <= 192;
  case Epilogue::activated:
    return shape.bn <= 128 && (e.type == bf16 || sums <= 96 || shape.bm > 128);
  case Epilogue::accumulate:
    return sums <= 96;
  case Epilogue::heavy:
  case Epilogue::chances:
    break;
  }
  return sums <= 64;
}

/// Registers of a thread.
static int64_t registersOf(const Shape2 &shape) {
  return std::min(mostRegisters, cdiv(shape.bm * shape.bn, 32 * shape.warps) + otherRegisters);
}

/// Modelled cycles to write the sums of each part, in f32, and to add them. They stay in the cache where they fit.
static double sumsOf(const GpuFacts &gpu, const SmRates &rates, const Product &e) {
  if (e.parts == 1)
    return 0;
  double elements = static_cast<double>(e.M) * static_cast<double>(e.N);
  for (const auto &[M, N] : e.beside)
    elements += static_cast<double>(M) * static_cast<double>(N);
  const double bytes = 4.0 * elements * static_cast<double>(e.parts);
  const double rate = bytes <= static_cast<double>(gpu.l2Bytes) ? rates.cache : rates.memory;
  return toLaunch + 2 * bytes / rate / gpu.sms;
}

/// Modelled cycles of a product, and the config with as many stages as fit.
static double cyclesOf(const GpuFacts &gpu, SmRates rates, const Product &e, const Shape2 &shape,
                       MatmulConfig &config) {
  const bool isGrouped = isForGroups(gpu, e.type, shape);
  if (isGrouped) {
    rates.multiplyAdds = 2027;
    rates.multiplyAddsEach = 32768;
  }
  const int64_t size = bytesOf(e.type), stage = (shape.bm + shape.bn) * config.bk * size;
  const int64_t byRegisters = std::max<int64_t>(1, gpu.registers / (registersOf(shape) * 32 * shape.warps));
  const auto sharedFor = [&](int64_t stages) { return stages * stage; };
  // The sums go through shared memory to the rows that are stored, in f32 where these are.
  if (int64_t{4} * shape.bm * shape.bn > gpu.ctaSharedBytes)
    return std::numeric_limits<double>::infinity();
  int64_t stages = 0, programs = 0;
  // Two programs hide each other's waits; then as many stages as fit, up to four.
  for (int64_t at : {byRegisters >= 2 ? int64_t{2} : int64_t{1}, int64_t{1}}) {
    const int64_t room = std::min(gpu.ctaSharedBytes, gpu.smSharedBytes / at - 1024);
    if (sharedFor(2) <= room) {
      programs = at;
      stages = std::min<int64_t>(4, room / stage);
      break;
    }
  }
  if (stages < 2)
    return std::numeric_limits<double>::infinity();
  const double products = static_cast<double>(shape.bm) * shape.bn * config.bk;
  // A warp's part of the tile is about as high as it is wide.
  const double down = shape.warps >= 4 ? 2 : 1, across = shape.warps / down;
  const double rowsRead = isGrouped ? shape.bm + shape.bn * (shape.bm / 64.0) : shape.bm * across + shape.bn * down;
  const double read = rowsRead * config.bk * static_cast<double>(size);
  const double round = std::max({products / rates.multiplyAdds, (read + static_cast<double>(stage)) / rates.shared,
                                 static_cast<double>(stage) / rates.cache,
                                 instructionsEach * products / rates.multiplyAddsEach / rates.instructions});
  // Of four stages or more a group uses one for the product of the round before, which it then need not wait for.
  const bool isOverlapped = isGrouped && stages >= 4;
  const double ahead = round * static_cast<double>((stages - (isOverlapped ? 2 : 1)) * programs);
  const double turn = isOverlapped ? toTurn / 2 : isGrouped ? 2 * toTurn : toTurn;
  const double exposed = std::max(0.0, latency - ahead) + turn / static_cast<double>(programs);
  // Groups are done so soon that what they store is still on its way to memory while the next tile is multiplied.
  const double sums = static_cast<double>(shape.bm) * shape.bn,
               work = isGrouped && e.epilogue >= Epilogue::activated ? workEach * sums / 128 : 0;
  const double written = 4 * sums / (isGrouped ? rates.cache : rates.memory) + work;
  const auto rounds = static_cast<double>(cdiv(cdiv(e.K, e.parts), config.bk));
  const double tile = rounds * (round + exposed) + (toBegin + written) / static_cast<double>(programs);
  const auto tilesOf = [&](int64_t M, int64_t N) { return cdiv(M, shape.bm) * cdiv(N, shape.bn) * e.parts; };
  int64_t tiles = tilesOf(e.M, e.N);
  for (const auto &[M, N] : e.beside)
    tiles += tilesOf(M, N);
  config.bm = shape.bm;
  config.bn = shape.bn;
  config.warps = shape.warps;
  config.stages = static_cast<int>(stages);
  return static_cast<double>(cdiv(tiles, gpu.sms)) * tile + sumsOf(gpu, rates, e);
}

double pickGpuTile(const GpuFacts &gpu, const Product &e, MatmulConfig &config) {
  const SmRates rates = ratesOf(gpu, e.type, config.precision);
  config.bk = static_cast<int>(rowBytes / bytesOf(e.type));
  double best = std::numeric_limits<double>::infinity();
  const bool isExact = config.precision == Precision::ieee;
  for (Shape2 shape : shapes) {
    // What follows the product, operands that no tensor core holds, or two numbers for each need registers, too.
    if ((e.type == f32 && (isExact || isSplit(config.precision))) ||
        !hasRegistersFor(e, shape, isForGroups(gpu, e.type, shape)))
      shape.warps *= 2;
    if (shape.warps > mostWarps || (shape.forGroups && !isForGroups(gpu, e.type, shape)))
      continue;
    MatmulConfig tile = config;
    const double cycles = cyclesOf(gpu, rates, e, shape, tile);
    if (cycles < best) {
      best = cycles;
      config = tile;
    }
  }
  return best;
}

/// Memory answers after so many clocks that an SM should have about 16 KB of B on their way. A program of 8 warps asks
/// for 16 bytes a thread up to eight times before it takes any: half as many programs as SMs will do. They have the
/// longest pieces of B's rows, down to a sector, of which there are as many. Where B lies turned, a warp has a row of
/// it, or two, and adds its lanes' sums by itself.
void pickFewRows(const GpuFacts &gpu, const Product &e, MatmulConfig &config) {
  constexpr int warps = 8, lanes = 32;
  constexpr int64_t vector = 16, line = 128, sector = 32;
  config.bm = static_cast<int>(std::bit_ceil(static_cast<uint64_t>(std::max<int64_t>(e.M, 1))));
  config.warps = warps;
  const int64_t size = bytesOf(e.type);
  if (config.tb) {
    config.bn = config.bm <= 2 ? 2 * warps : warps;
    config.kUnroll = static_cast<int>(lanes * vector / size);
  } else {
    int64_t piece = line;
    while (piece > sector && 2 * cdiv(e.N, piece / size) < gpu.sms)
      piece /= 2;
    config.bn = static_cast<int>(piece / size);
    config.kUnroll = static_cast<int>(warps * lanes * vector / piece);
  }
  // A thread holds bm sums of each number of a vector, and a number of each row for each of its vectors.
  const int64_t most = config.bm <= 4 ? 8 : 4;
  config.bk = static_cast<int>(std::clamp<int64_t>(cdiv(e.K, config.kUnroll), 1, most) * config.kUnroll);
}

} // namespace kiln
