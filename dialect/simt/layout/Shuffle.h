// Layout conversions within each warp: registers are renamed, selected by a bit of the lane, or moved between lanes.
//
// A conversion is planned once for the core and executed for each repeat. Values are packed into 32-bit words along
// units that are in registers in both layouts. The words are moved in rounds. Let ⊕ be the sum, and F, U, H and V
// linear maps. In round ρ of warp w,
//
//     lane l receives from lane     roundLane(ρ) ⊕ U(l)       into its word ρ ⊕ F(l)
//     lane l sends its word         roundWord(ρ) ⊕ H(l ⊕ roundLane(ρ)) ⊕ V(w)
//
// where U maps each lane bit to a lane bit or to 0. If F, H or V is not zero, registers are selected. If U is the
// identity, a round is an exchange, `shfl.bfly`; with roundLane(ρ) = 0 it moves nothing between lanes. All rounds are
// of this last kind unless the tier is Tier::shuffle.

#pragma once

#include "dialect/simt/layout/TileLayout.h"

namespace kiln::simt {

/// The kinds of layout conversions, in ascending order of cost. A conversion has the first kind that is possible.
enum class Tier : uint8_t {
  identity, // nothing
  rename,   // registers have other numbers
  select,   // some lanes or warps keep one half of their registers, others the other half
  shuffle,  // values move to other lanes of the warp
  shared,   // values move to other warps, or the lanes of a warp do not hold all values that the warp needs
};
llvm::StringRef nameOf(Tier tier);

/// The tier of a conversion between layouts with equal shapes, numbers of warps and block bases.
Tier tierOf(const TileLayout &from, const TileLayout &to);

/// The moves of a conversion within each warp.
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
  /// The number of 32-bit shuffle instructions per warp and core, for elements of `bits` bits.
  unsigned shuffles(unsigned bits) const;
  /// The number of shuffles and selects: one select per word for each bit by which lanes or warps select.
  unsigned instructions(unsigned bits) const;
};

/// The plan with the fewest shuffles. Let W be the number of destination words in a lane, m the number of units that
/// move from lanes to registers, and T the span of the registers of both layouts. The plan has W · (1 − 2⁻ᵐ) shuffles
/// if each lane bit has equal units in both layouts up to T, otherwise W. Nothing if the tier is Tier::shared. `bits`
/// is the size of an element, 8 to 64.
std::optional<ShufflePlan> planShuffle(const TileLayout &from, const TileLayout &to, unsigned bits);

} // namespace kiln::simt
