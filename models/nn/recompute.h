// Activation checkpointing: selects the activations that the backward pass recomputes instead of saving them. It trades
// time for memory. Results are equal to the bit, because the launches are those of the forward pass. Chen et al.,
// "Training deep nets with sublinear memory cost", 2016.

#pragma once

#include <array>
#include <cstdint>
#include <string>

namespace kiln {

/// Groups of saved activations of a block, apart from its input and the statistics of norms.
enum class Site {
  norms,      // outputs of norms
  activation, // output of the activation, if its derivative needs the pre-activation
  qkv,        // queries, keys and values
  attention,  // attention's output before its projection, and its log-sum-exps or weights
  middle,     // residual sums between the layers
  mlp,        // the first GEMM of the MLP, and the output of its activation
};
inline constexpr std::array<const char *, 6> siteNames = {"norms", "activation", "qkv", "attention", "middle", "mlp"};

struct Recompute {
  /// For each group, the number of blocks that recompute it. These are the first blocks. The backward pass needs them
  /// last, when the memory of the others is free.
  std::array<int64_t, siteNames.size()> blocks = {};

  bool makes(Site site, int64_t block) const { return block < blocks.at(static_cast<size_t>(site)); }
  bool operator==(const Recompute &) const = default;
};

/// Parses `none`, or groups such as `norms,activation`, each for all blocks or, as in `mlp:4`, for the first four;
/// `block` is all groups. Throws Error, which names `flag`, for another text.
Recompute recomputeNamed(const std::string &flag, const std::string &text);
/// The shortest text that recomputeNamed() reads back.
std::string nameOf(const Recompute &recompute);

} // namespace kiln
