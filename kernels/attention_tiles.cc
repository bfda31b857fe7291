// Tile sizes of flash attention: heuristics from shapes and the target's fixed properties. Results do not depend on the
// tiles, except for rounding and the order of sums.
//
// The constants are in structs, each with its unit. `kiln-bench attention` measures the tiles of a CPU and compares
// them with the rate of GEMMs. For the kernels of a step on a GPU, `kiln-bench ptxas` prints registers and spills, and
// `kiln-bench static` instructions and predicted times. `kiln-bench token` measures decoding.

#include "kernels/attention_plan.h"

#include <algorithm>

namespace kiln {

namespace {
/// Tiles on a CPU, in rows. With a larger tile, K and V are read less often. The backward pass keeps a block of keys,
/// so there Q and dO are read less often. The operands and results of a product should stay in L1. Measured by
/// `kiln-bench attention`.
struct CpuAttentionTiles {
  int64_t bm = 64, longBm = 128; // forward, up to and beyond `shortQueries`
  int64_t shortQueries = 512;    // queries
  int64_t bn = 64;               // forward
  int64_t backwardBm = 64;
  int64_t backwardBn = 64, longBackwardBn = 128; // up to and beyond `shortKeys`
  int64_t shortKeys = 128;                       // keys
  int64_t unit = 8;                              // rows that `dot` computes at a time
};
constexpr CpuAttentionTiles cpuTiling;

/// Tiles on a GPU with tensor cores, in rows. A warp has 16 rows, those of an MMA, so that scores and probabilities
/// stay in its registers. With 32 rows it multiplies each fragment of K and V twice. Measured by `kiln-bench ptxas` (no
/// spills) and `kiln-bench static` (instructions an iteration).
struct GpuAttentionTiles {
  int bm = 128, bn = 64;
  int wgmmaBm = 64;             // one warpgroup: it reads K and V from shared memory, and reuses no fragments
  int consumerBn = 32;          // consumer GPUs: their MMAs take so long that more iterations cost little
  int minRows = 16;             // rows of an MMA, the minimum of a warp
  int64_t wideRowBytes = 128;   // with longer rows, fragments and output leave registers for only 16 rows a warp
  int warps = 4, wideWarps = 8; // up to and beyond wideRowBytes
  int rowSumLanes = 8;          // a lane holds two of eight columns of scores, and adds its own
  int wgmmaCtas = 4;            // resident CTAs per SM: 128 registers a thread
  int wgmmaBackwardCtas = 3;    // of dQ: 168 registers a thread
  int wgmmaKeysStages = 3;      // of dK, dV: products that add to them overlap with the next iteration
  int tightRows = 32;           // rows of a block if masks, dropout or GQA need registers
  int tightestRows = 16;        // if several of them do, or each operand is split into two numbers
  int splitOperandKeys = 32;    // keys of a block with tf32x3, whose operands are two registers each
};
constexpr GpuAttentionTiles gpuTiling;

/// Tiles on a GPU for exact f32, without tensor cores: square, with several tiles live at once.
struct ExactAttentionTiles {
  int rows = 64, wideRows = 32; // up to and beyond `wideD`
  int64_t wideD = 64;           // elements of a row
  int64_t tiles = 6;            // f32 tiles of (rows, D) that fit shared memory
  int elements = 16;            // of a tile, a thread
};
constexpr ExactAttentionTiles exactTiling;

/// Decoding and split-KV. The constants of the CPU do not depend on the number of cores, so results do not either.
struct DecodeTiles {
  int bn = 64;                // keys of a block
  int64_t minBlocks = 4;      // CPU: minimum number of blocks of keys of a part
  int64_t enoughPrograms = 8; // CPU: target number of programs
  double blockCycles = 600;   // GPU, estimate: latency of memory and arithmetic of a block
  double launchCycles = 4000; // GPU, estimate: a second launch
  int64_t ctasPerSm = 4;      // GPU: resident CTAs per SM
  int64_t maxParts = 64;      // GPU: maximum number of parts
};
constexpr DecodeTiles decodeTiling;

/// If the keys of a block are a multiple of this, one Philox number gives the random bits of eight weights
/// (dropout_rng.h).
constexpr int philoxKeys = 16;
/// Maximum number of programs along the second and third axis of a GPU's grid.
constexpr int64_t maxPrograms = 65535;
} // namespace

//===-- Facts about a target ------------------------------------------------------------------------------------===//

/// Whether the products are exact f32, so that tensor cores are not used.
static bool isExact(Precision precision, Type type) { return type == f32 && precision == Precision::ieee; }

/// Whether products use warpgroups (wgmma), which read right operands with rows of `D` elements from shared memory.
static bool usesWarpgroups(const GpuFacts &gpu, int64_t D, Type type) {
  const auto isPowerOf2 = (D & (D - 1)) == 0;
  return gpu.architecture == 90 && bytesOf(type) == 2 && isPowerOf2 && D >= 16 && D <= 64;
}

/// Whether each warp uses tensor cores separately (mma), with all operands in registers. Registers for masks are then
/// scarce.
static bool usesWarps(const Target &target, const AttentionConfig &config, int64_t D, Type type) {
  return target.visit(
      [](const CpuFacts &) { return false; },
      [&](const GpuFacts &gpu) { return !isExact(config.precision, type) && !usesWarpgroups(gpu, D, type); });
}

/// Whether tensor cores are the bottleneck. More iterations then cost little, so blocks can be smaller and nothing is
/// spilled.
static bool hasSlowTensorCores(const Target &target, const AttentionConfig &config, Type type) {
  return target.visit([](const CpuFacts &) { return false; },
                      [&](const GpuFacts &gpu) { return gpu.isConsumer() && !isExact(config.precision, type); });
}

/// Keys of a block. tf32x3 takes fewer, because it splits each operand into two numbers, a register each.
static int keysPerBlock(const AttentionConfig &config) {
  return config.precision == Precision::tf32x3 ? std::min(config.bn, gpuTiling.splitOperandKeys) : config.bn;
}

/// CTAs start in order. If a long one starts last, other SMs are idle at the end. With the longest first, keys and
/// values of all heads are in use at the same time and must fit in the L2 cache. If they do not fit, there are so many
/// programs that the last ones take a small part of the time.
bool takesLongestFirst(const Target &target, const AttentionExtents &e, Type type, bool causal) {
  const int64_t bytes = 2 * e.B * e.Hk * e.Tk * e.D * bytesOf(type);
  return target.visit([](const CpuFacts &) { return false; },
                      [&](const GpuFacts &gpu) {
                        return causal && !target.elastic && bytes <= gpu.l2Bytes && e.B <= maxPrograms &&
                               e.Tq <= maxPrograms;
                      });
}

//===-- Tiles of one shape --------------------------------------------------------------------------------------===//

/// CPU: tiles of about bm queries and about bn keys that divide the sequences evenly, so that little of the last tile
/// is out of bounds. They are multiples of `unit`, unless the sequence is shorter.
static AttentionConfig cpuTiles(int64_t bm, int64_t bn, int64_t Tq, int64_t Tk) {
  const auto evenly = [](int64_t about, int64_t T) {
    if (T < cpuTiling.unit)
      return static_cast<int>(std::max<int64_t>(T, 1));
    const int64_t tiles = std::max<int64_t>(1, (T + about / 2) / about);
    return static_cast<int>(std::max<int64_t>(1, cdiv(cdiv(T, tiles), cpuTiling.unit)) * cpuTiling.unit);
  };
  AttentionConfig config;
  config.bm = evenly(bm, Tq);
  config.bn = evenly(bn, Tk);
  return config;
}

/// GPU, exact f32: square tiles of a power of two, no larger than the sequence.
static AttentionConfig exactTiles(const GpuFacts &gpu, int64_t T, int64_t D) {
  AttentionConfig config;
  config.bm = D <= exactTiling.wideD ? exactTiling.rows : exactTiling.wideRows;
  while (config.bm > gpuTiling.minRows &&
         (config.bm / 2 >= T || exactTiling.tiles * config.bm * D * bytesOf(f32) > gpu.ctaSharedBytes))
    config.bm /= 2;
  config.bn = config.bm;
  config.warps = config.bm * D > 32 * gpuTiling.warps * exactTiling.elements ? gpuTiling.wideWarps : gpuTiling.warps;
  return config;
}

/// GPU, forward: the queries and the stages of keys and values fit in shared memory.
static AttentionConfig forwardTiles(const GpuFacts &gpu, int64_t Tq, int64_t Tk, int64_t D, Type type) {
  AttentionConfig config{.bm = gpuTiling.bm,
                         .bn = gpuTiling.bn,
                         .warps = D * bytesOf(type) <= gpuTiling.wideRowBytes ? gpuTiling.warps : gpuTiling.wideWarps,
                         .rowSumLanes = gpuTiling.rowSumLanes};
  if (usesWarpgroups(gpu, D, type))
    config.bm = gpuTiling.wgmmaBm, config.minCtasPerSm = gpuTiling.wgmmaCtas;
  if (gpu.isConsumer())
    config.bn = gpuTiling.consumerBn;
  const auto bytes = [&] { return (config.bm + 2 * config.stages * config.bn) * D * bytesOf(type); };
  while (config.bm > gpuTiling.minRows && config.bm / 2 >= Tq)
    config.bm /= 2;
  while (config.bn > gpuTiling.minRows &&
         (config.bn / 2 >= Tk || (config.bn > gpuTiling.tightRows && bytes() > gpu.ctaSharedBytes)))
    config.bn /= 2;
  while (config.bm > gpuTiling.minRows && bytes() > gpu.ctaSharedBytes)
    config.bm /= 2;
  config.warps = std::min(config.warps, config.bm / gpuTiling.minRows);
  return config;
}

/// GPU, backward: blocks of 64 queries and 64 keys, 16 rows a warp. Scores and their gradients are left operands of the
/// next products, and then stay in registers. With wider rows, registers do not suffice for keys, values, both of their
/// gradients and so many queries. The block then has fewer queries.
static AttentionConfig backwardTiles(const GpuFacts &gpu, int64_t T, int64_t D, Type type) {
  AttentionConfig config;
  if (bytesOf(type) > 2 || D > 64) {
    config = exactTiles(gpu, T, D);
    config.bm = std::max(gpuTiling.minRows, config.bm / 2);
    config.warps = gpuTiling.wideWarps;
  } else {
    while (config.bm > gpuTiling.minRows && config.bm / 2 >= T)
      config.bm /= 2;
    config.bn = config.bm;
    config.warps = config.bm / gpuTiling.minRows;
    config.minCtasPerSm = usesWarpgroups(gpu, D, type) ? gpuTiling.wgmmaBackwardCtas : 1;
  }
  config.whole = false;
  return config;
}

/// A single query, without tensor cores: in a larger block, the other rows would be padding.
static AttentionConfig decodeTiles(int64_t Tk) {
  AttentionConfig config = {.bm = 1, .bn = decodeTiling.bn, .warps = gpuTiling.warps, .decode = true};
  while (config.bn > gpuTiling.minRows && config.bn / 2 >= Tk)
    config.bn /= 2;
  return config;
}

//===-- Forward -------------------------------------------------------------------------------------------------===//

AttentionConfig pickAttention(const Target &target, int64_t Tq, int64_t D, Type type,
                              const std::optional<int64_t> &keys) {
  int64_t Tk = keys.value_or(Tq);
  if (target.elastic) // dynamic shapes: one config for all pairs of lengths whose maximum is in one bucket
    Tk = Tq = target.lengthBucket(std::max(Tq, Tk));
  const Precision precision = target.precisionOf(type);
  const bool exactly = isExact(precision, type);
  AttentionConfig config = target.visit(
      [=](const CpuFacts &) {
        return Tq == 1 ? decodeTiles(Tk)
                       : cpuTiles(Tq <= cpuTiling.shortQueries ? cpuTiling.bm : cpuTiling.longBm, cpuTiling.bn, Tq, Tk);
      },
      [=](const GpuFacts &gpu) {
        if (Tq == 1 && exactly)
          return decodeTiles(Tk);
        return exactly ? exactTiles(gpu, std::max(Tq, Tk), D) : forwardTiles(gpu, Tq, Tk, D, type);
      });
  config.precision = precision;
  config.bn = keysPerBlock(config);
  config.unequalLengths = target.elastic;
  return config;
}

/// The number of parts with the fewest modelled cycles. Programs run in waves; a wave has as many programs as all SMs
/// hold, and takes the time of the blocks of one part. With more than one part there is a second launch.
static int gpuKvSplits(const GpuFacts &gpu, int64_t programs, int64_t blocks) {
  int best = 1;
  double fewest = 0;
  for (int64_t parts = 1; parts <= std::min(blocks, decodeTiling.maxParts); ++parts) {
    const int64_t waves = cdiv(programs * parts, gpu.sms * decodeTiling.ctasPerSm);
    const double cycles = static_cast<double>(waves * cdiv(blocks, parts)) * decodeTiling.blockCycles +
                          (parts > 1 ? decodeTiling.launchCycles : 0);
    if (fewest == 0 || cycles < fewest)
      fewest = cycles, best = static_cast<int>(parts);
  }
  return best;
}

int pickKvSplits(const Target &target, const AttentionConfig &config, int64_t heads, int64_t Tq, int64_t Tk) {
  if (target.elastic || 2 * Tq > Tk || heads < 1)
    return 1;
  const int64_t programs = cdiv(Tq, config.bm) * heads, blocks = cdiv(Tk, config.bn);
  return target.visit(
      [=](const CpuFacts &) {
        const int64_t maxSplits = std::max<int64_t>(1, blocks / decodeTiling.minBlocks);
        return static_cast<int>(std::clamp<int64_t>(cdiv(decodeTiling.enoughPrograms, programs), 1, maxSplits));
      },
      [=](const GpuFacts &gpu) { return gpuKvSplits(gpu, programs, blocks); });
}

//===-- Options -------------------------------------------------------------------------------------------------===//

void adaptToOptions(AttentionConfig &picked, DropoutMode drop, bool isMasked) {
  if (drop == DropoutMode::random)
    picked.bn = static_cast<int>(cdiv(picked.bn, philoxKeys)) * philoxKeys;
  // Dropout and byte masks take registers: a warp then has 16 rows, those of an MMA.
  if (drop == DropoutMode::random || isMasked)
    picked.warps = std::clamp(picked.bm / gpuTiling.minRows, picked.warps, 2 * picked.warps);
}

/// Fewer keys in a block if masks, dropout or GQA need registers, so that nothing is spilled (`kiln-bench ptxas`).
/// Two-byte types have the largest MMAs, and split operands take two registers each. With dropout, more keys in a block
/// are better, because several keys share a Philox number.
static void saveRegisters(AttentionConfig &config, Type type) {
  const bool drops = config.dropout == DropoutMode::random, isSmall = bytesOf(type) <= 2;
  if (drops)
    config.rowSumLanes = 1;
  if (drops && config.hasBounds && config.precision == Precision::tf32x3)
    config.bn = std::min(config.bn, gpuTiling.tightestRows);
  else if ((isSmall && !drops) || isSplit(config.precision))
    config.bn = std::min(config.bn, gpuTiling.tightRows);
}

void adaptForward(const Target &target, const AttentionExtents &extents, Type type, AttentionConfig &config) {
  config.longestFirst = takesLongestFirst(target, extents, type, config.causal);
  if (!config.isPlain())
    config.minCtasPerSm = 1;
  if (config.kvSplits == 1 && config.chooses() && usesWarps(target, config, extents.D, type))
    saveRegisters(config, type);
}

//===-- Backward ------------------------------------------------------------------------------------------------===//

AttentionConfig pickAttentionBackward(const Target &target, int64_t Tq, int64_t D, Type type,
                                      const std::optional<int64_t> &keys) {
  int64_t Tk = keys.value_or(Tq);
  if (target.elastic) // as in the forward pass
    Tk = Tq = target.lengthBucket(std::max(Tq, Tk));
  const int64_t longest = std::max(Tq, Tk);
  AttentionConfig config = target.visit(
      [=](const CpuFacts &) {
        return cpuTiles(cpuTiling.backwardBm,
                        Tk <= cpuTiling.shortKeys ? cpuTiling.backwardBn : cpuTiling.longBackwardBn, Tq, Tk);
      },
      [=](const GpuFacts &gpu) { return backwardTiles(gpu, longest, D, type); });
  config.precision = target.precisionOf(type);
  config.bn = keysPerBlock(config);
  if (isSplit(config.precision) && D <= 64) // registers limit the occupancy, so shared memory is left for a stage more
    config.stages = 3;
  config.unequalLengths = target.elastic;
  return config;
}

/// Ranges, dropout and a loop over heads take registers, so a block has fewer scores then (`kiln-bench ptxas`).
BackwardConfigs pickBackwardLaunches(const Target &target, const AttentionConfig &config, int64_t D, Type type) {
  BackwardConfigs launches = {config, config};
  auto &[queries, keys] = launches;
  keys.minCtasPerSm = 1;
  target.visit([](const CpuFacts &) {},
               [&, &keys = keys](const GpuFacts &gpu) {
                 if (config.isPlain() && usesWarpgroups(gpu, D, type))
                   keys.stages = gpuTiling.wgmmaKeysStages;
               });
  if (!config.isPlain())
    queries.minCtasPerSm = 1;
  const bool isFull = config.dropout == DropoutMode::random || config.group > 1,
             isSlow = hasSlowTensorCores(target, config, type),
             isTight = bytesOf(type) <= 2 && usesWarps(target, config, D, type) && config.chooses();
  if (isFull || isSlow || isTight)
    queries.bn = std::min(config.bn, gpuTiling.tightRows);
  if (isFull || isSlow || isTight || config.hasBounds)
    keys.bm = std::min(config.bm, gpuTiling.tightRows);
  if ((isSplit(config.precision) && (isFull || isSlow || config.hasBounds)) || (isSlow && config.group > 1) ||
      (isTight && isFull))
    keys.bm = std::min(config.bm, gpuTiling.tightestRows);
  if (config.group > 1) // the loop over heads leaves no registers for a third stage
    keys.stages = std::min(config.stages, 2);
  return launches;
}

} // namespace kiln
