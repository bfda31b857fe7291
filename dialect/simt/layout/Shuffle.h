// Conversions of a layout inside each warp: registers renamed, selected by a bit of the lane, or moved between lanes.
//
// A conversion is planned once for the core and done for each repeat. Values are packed into words of 32 bits by units
// that both layouts have in registers, and words are moved in rounds. With ⊕ for the sum, and F, U, H and V linear, in
// round ρ of warp w
//
//     lane l receives from lane     roundLane(ρ) ⊕ U(l)       into its word ρ ⊕ F(l)
//     lane l sends its word         roundWord(ρ) ⊕ H(l ⊕ roundLane(ρ)) ⊕ V(w)
//
// where U sends each lane bit to a lane bit or to nothing. F, H and V that are not zero are selects between registers.
// If U is the identity a round is an exchange, `shfl.bfly`, and one with roundLane(ρ) = 0 moves nothing between lanes;
// all rounds are such unless the tier is Tier::shuffle.

#pragma once

#include "dialect/simt/layout/TileLayout.h"

namespace kiln::simt {

/// What converting one layout to another takes, by what it costs. The first that is possible.
enum class Tier : uint8_t {
  identity, // nothing
  rename,   // registers have other numbers
  select,   // some lanes or warps keep one half of their registers, others the other half
  shuffle,  // values go to other lanes of the warp
  shared,   // values go to other warps, or lanes hold too little of what the warp needs
};
llvm::StringRef nameOf(Tier tier);

/// The tier for layouts of one shape and one number of warps and blocks; bases of blocks are equal.
Tier tierOf(const TileLayout &from, const TileLayout &to);

/// How values move inside each warp.
struct ShufflePlan {
  /// Bits of the register number that count the elements of a word, and those that count the words.
  struct Registers {
    llvm::SmallVector<unsigned, 2> element;
    llvm::SmallVector<unsigned, 8> word;
    /// The register with an element of a word.
    unsigned of(unsigned word, unsigned element) const;
  };
  Registers source, target;

  F2Map roundLane, roundWord; // of a round
  F2Map fromLane;             // U, of a lane
  F2Map intoWord;             // F, of a lane
  F2Map givenWord;            // H, of a lane
  F2Map warpWord;             // V, of a warp

  unsigned rounds() const { return 1u << target.word.size(); }
  unsigned receivesFrom(unsigned round, unsigned lane) const;
  unsigned receivesInto(unsigned round, unsigned lane) const;
  unsigned sends(unsigned round, unsigned lane, unsigned warp) const;
  /// Whether every lane receives from itself, so that the round needs no shuffle.
  bool isLocal(unsigned round) const;
  /// Shuffle instructions of 32 bits a warp and core, for elements of `bits` bits.
  unsigned shuffles(unsigned bits) const;
  /// Those, and the selections: one of each word for each difference by which lanes or warps select.
  unsigned instructions(unsigned bits) const;
};

/// The plan with the fewest shuffles: with W words of the destination in a lane, m units that go from lanes to
/// registers, and T what registers of either layout span, it has W · (1 − 2⁻ᵐ) if each lane bit stands in both layouts
/// for the same up to T, else W. Nothing when the tier is Tier::shared. `bits`: of an element, 8 to 64.
std::optional<ShufflePlan> planShuffle(const TileLayout &from, const TileLayout &to, unsigned bits);

} // namespace kiln::simt
