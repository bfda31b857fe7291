// Which activations the backward pass makes again instead of finding them kept: less memory for more time, and the same
// bits, since the same launches make them. Chen et al., "Training deep nets with sublinear memory cost", 2016.

#pragma once

#include <array>
#include <cstdint>
#include <string>

namespace kiln {

/// What the forward pass of a block leaves for its backward pass, beside what came in and the statistics of norms.
enum class Site {
  norms,      // what norms give
  activation, // what an activation gives, where its derivative is taken of the argument
  qkv,        // queries, keys and values
  attention,  // attention's result before its projection, and its log-sum-exps or weights
  middle,     // sums behind projections
  mlp,        // the feed-forward layer's inner product, and what its activation gives
};
inline constexpr std::array<const char *, 6> siteNames = {"norms", "activation", "qkv", "attention", "middle", "mlp"};

struct Recompute {
  /// Of each site, of how many blocks it is made again, the first ones: those are needed last, when the others' memory
  /// is free.
  std::array<int64_t, siteNames.size()> blocks = {};

  bool makes(Site site, int64_t block) const { return block < blocks.at(static_cast<size_t>(site)); }
  bool operator==(const Recompute &) const = default;
};

/// `none`; or sites, `norms,activation`, each of all blocks or, `mlp:4`, of the first four; `block` is all of them.
/// Throws Error, which names `flag`, for another text.
Recompute recomputeNamed(const std::string &flag, const std::string &text);
/// The text that names it, the shortest.
std::string nameOf(const Recompute &recompute);

} // namespace kiln
