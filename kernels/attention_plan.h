// Functions that the plans and registrations of flash and plain attention share: checks of operands, configs, the order
// of programs, and the texts of arguments and fields.

#pragma once

#include "kernels/attention.h"
#include "kernels/operands.h"

namespace kiln {

/// Extents of an attention problem.
struct AttentionExtents {
  int64_t B, H, Hk, Tq, Tk, D;
  Shape queries() const { return {B, H, Tq, D}; }
  Shape keys() const { return {B, Hk, Tk, D}; }
};

//===-- Checks and configs (attention_plan.cc) ------------------------------------------------------------------===//

/// Checks the operands of attention and of the mask, and the scale. `lse` is `{}` if a plan has none. Throws Error.
AttentionExtents expectHeads(const char *plan, const TensorRef &q, const TensorRef &k, const TensorRef &v,
                             const TensorRef &o, const Operand &lse, const AttentionMask &mask, float scale);

/// The config of a problem: the given tile sizes, or else the picked ones, with the flags set for mask and extents.
AttentionConfig configFor(const std::optional<AttentionConfig> &given, AttentionConfig picked,
                          const AttentionExtents &extents, const AttentionMask &mask);

/// Appends the dropout arguments to a launch. `unused` stands for the tensor if the kernel does not read it.
void appendDropout(std::vector<Arg> &args, const AttentionMask &mask, const Arg &unused);

//===-- Masks on the host (attention_mask.cc) -------------------------------------------------------------------===//

/// Throws Error unless `dropout` fits attention weights of these extents.
void expectWeights(const char *plan, const Dropout &dropout, const AttentionExtents &extents);

/// The mask broadcast to (B, H, Tq, Tk); `other` without a mask.
TensorRef wholeMask(const AttentionMask &mask, const AttentionExtents &extents, const TensorRef &other);

//===-- Tile sizes (attention_tiles.cc) -------------------------------------------------------------------------===//

/// Adapts picked tiles to dropout and to a byte mask.
void adaptToOptions(AttentionConfig &picked, DropoutMode drop, bool isMasked);

/// Adapts a picked forward config, with its flags set, to the options: order of programs, occupancy, and registers.
void adaptForward(const Target &target, const AttentionExtents &extents, Type type, AttentionConfig &config);

/// Whether a GPU launches the blocks of queries with the most keys first, for all heads.
bool takesLongestFirst(const Target &target, const AttentionExtents &extents, Type type, bool causal);

/// Configs of the two launches of the backward pass.
struct BackwardConfigs {
  AttentionConfig queries, keys;
};
/// The configs of both launches, from a config that was picked and completed.
BackwardConfigs pickBackwardLaunches(const Target &target, const AttentionConfig &config, int64_t D, Type type);

//===-- The order of programs -----------------------------------------------------------------------------------===//

/// The tile of a program: a block of queries of one head.
struct TilePosition {
  Tile block, h, b; // scalars
};

/// The position of this program in attentionGrid(). With `longestFirst`, the last blocks of all heads are launched
/// first, because they see the most keys. Otherwise all blocks of a head are launched before the next head.
inline TilePosition tilePosition(const AttentionConfig &cfg) {
  if (!cfg.longestFirst)
    return {program_id(0), program_id(1), program_id(2)};
  return {max(num_programs(2) - 1 - program_id(2), 0), program_id(0), program_id(1)};
}

/// The grid with a program for each block of each head.
inline Grid attentionGrid(const AttentionConfig &cfg, int64_t blocks, int64_t H, int64_t B) {
  return cfg.longestFirst ? programs(H, B, blocks) : programs(blocks, H, B);
}

//===-- Registrations -------------------------------------------------------------------------------------------===//

/// Texts of arguments.
inline constexpr const char
    *aboutRanges = "ranges (B, Tq, 2) i32, read with has_bounds: a query attends to keys from [0] and below [1]",
    *aboutMask = "mask (B, H, Tq, Tk) i8, or broadcast along B and H, read when masked: a query attends to the keys "
                 "that are not 0",
    *aboutRngState =
        "rng_state (2) i64, read with random dropout: Philox key of the dropout layer, index of the first sequence",
    *aboutMaxLength = "max_length i64, the maximum number of queries and keys of a sequence",
    *aboutKeptScale = "kept_scale f32, the factor of kept weights";

/// The fields of the config.
std::vector<Field> attentionFields();

} // namespace kiln
