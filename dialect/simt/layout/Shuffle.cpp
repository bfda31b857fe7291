// Shuffles: exchanges of units between registers and lanes.

#include "dialect/simt/layout/Shuffle.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/Sequence.h"
#include "llvm/Support/MathExtras.h"

#include <cassert>

namespace kiln::simt {

// --- Tiers ---------------------------------------------------------------------------------------------------------

llvm::StringRef nameOf(Tier tier) {
  static constexpr llvm::StringRef names[] = {"identity", "rename", "select", "shuffle", "shared"};
  return names[static_cast<size_t>(tier)];
}

/// Whether each bit of a part has the same meaning in both layouts, modulo `span`.
static bool agree(const TileLayout &from, const TileLayout &to, Hw part, const Span &span) {
  return llvm::all_of_zip(from.bases(part), to.bases(part), [&](Vec a, Vec b) { return span.has(a ^ b); });
}

Tier tierOf(const TileLayout &from, const TileLayout &to) {
  assert(from.shape() == to.shape() && from.numWarps() == to.numWarps() &&
         from.bases(Hw::block) == to.bases(Hw::block));
  if (from == to)
    return Tier::identity;
  const Span nothing, regs(from.bases(Hw::reg));
  const auto isIn = [](const Span &span) { return [&](Vec basis) { return span.has(basis); }; };
  if (agree(from, to, Hw::warp, regs) && llvm::all_of(to.bases(Hw::reg), isIn(regs)) && agree(from, to, Hw::lane, regs))
    return agree(from, to, Hw::lane, nothing) && agree(from, to, Hw::warp, nothing) ? Tier::rename : Tier::select;
  Vecs held(from.bases(Hw::reg));
  held.append(from.bases(Hw::lane).begin(), from.bases(Hw::lane).end());
  const Span threads(held);
  if (agree(from, to, Hw::warp, regs) && llvm::all_of(to.bases(Hw::reg), isIn(threads)) &&
      llvm::all_of(to.bases(Hw::lane), isIn(threads)))
    return Tier::shuffle;
  return Tier::shared;
}

// --- Words and rounds ----------------------------------------------------------------------------------------------

/// The bit of `part` for a unit.
static std::optional<unsigned> indexOf(const TileLayout &layout, Hw part, Vec unit) {
  const auto *const found = llvm::find(layout.bases(part), unit);
  if (unit == 0 || found == layout.bases(part).end())
    return std::nullopt;
  return static_cast<unsigned>(found - layout.bases(part).begin());
}

/// Chooses units in registers of both layouts to fill words, the destination's lowest first.
static void chooseWords(const TileLayout &from, const TileLayout &to, unsigned bits, ShufflePlan &plan) {
  for (const auto [index, unit] : llvm::enumerate(to.bases(Hw::reg))) {
    const std::optional<unsigned> there = indexOf(from, Hw::reg, unit);
    if (there && bits << plan.target.element.size() < 32) {
      plan.target.element.push_back(static_cast<unsigned>(index));
      plan.source.element.push_back(*there);
    } else {
      plan.target.word.push_back(static_cast<unsigned>(index));
    }
  }
  for (const unsigned index : llvm::seq(from.regBits()))
    if (!llvm::is_contained(plan.source.element, index))
      plan.source.word.push_back(index);
}

/// The bit of the word number for a unit, if any.
static Vec wordBit(const TileLayout &layout, const ShufflePlan::Registers &registers, Vec unit) {
  for (const auto [bit, reg] : llvm::enumerate(registers.word))
    if (layout.bases(Hw::reg)[reg] == unit)
      return Vec{1} << bit;
  return 0;
}

static Vec laneBit(const TileLayout &layout, Vec unit) {
  const std::optional<unsigned> index = indexOf(layout, Hw::lane, unit);
  return index ? Vec{1} << *index : 0;
}

/// Chooses, for each lane bit of the destination, the lane bit of the source from which it is read; 0: none. If the
/// bit's unit is in the source's registers, it needs a lane bit that no other bit uses, so that no lane sends two words
/// at once. Enough lane bits are unused; the one with the bit's own number is preferred.
static Vecs chooseLanes(const TileLayout &from, const TileLayout &to) {
  Vecs through(laneBits, 0);
  Vec taken = 0;
  for (const auto [index, unit] : llvm::enumerate(to.bases(Hw::lane)))
    taken |= through[index] = laneBit(from, unit);
  const auto wantsOwn = [&](unsigned index) { return indexOf(from, Hw::reg, to.bases(Hw::lane)[index]).has_value(); };
  for (const bool onlyItself : {true, false})
    for (const unsigned index : llvm::make_filter_range(llvm::seq(laneBits), wantsOwn))
      for (const unsigned other : llvm::seq(laneBits))
        if (through[index] == 0 && !(taken >> other & 1) && (!onlyItself || other == index))
          taken |= through[index] = Vec{1} << other;
  return through;
}

std::optional<ShufflePlan> planShuffle(const TileLayout &from, const TileLayout &to, unsigned bits) {
  if (tierOf(from, to) == Tier::shared)
    return std::nullopt;
  ShufflePlan plan;
  chooseWords(from, to, bits, plan);
  const auto sourceBit = [&](Vec unit) { return wordBit(from, plan.source, unit); };

  Vecs roundLane, roundWord;
  for (const unsigned reg : plan.target.word) {
    const Vec unit = to.bases(Hw::reg)[reg];
    roundLane.push_back(laneBit(from, unit));
    roundWord.push_back(sourceBit(unit));
  }

  Vecs registers(from.bases(Hw::reg));
  registers.append(to.bases(Hw::reg).begin(), to.bases(Hw::reg).end());
  const bool isExchange = agree(from, to, Hw::lane, Span(registers));
  const F2Map fromLane = isExchange ? F2Map::identity(laneBits) : F2Map(laneBits, chooseLanes(from, to));
  Vecs intoWord(laneBits, 0), givenWord(laneBits, 0), warpWord;
  for (const unsigned lane : llvm::seq(laneBits)) {
    const Vec wanted = to.bases(Hw::lane)[lane], source = fromLane.columns()[lane];
    if (source == 0)
      continue;
    // The source may have another unit at this bit. If the destination has that unit, it is in a register, and selects
    // the received word. The required unit is in a register of the source, and selects the sent word.
    const unsigned index = llvm::Log2_64(source);
    const Vec has = from.bases(Hw::lane)[index];
    if (has != wanted) {
      intoWord[lane] = wordBit(to, plan.target, has);
      givenWord[index] = sourceBit(wanted);
    }
  }
  for (const auto [has, wanted] : llvm::zip_equal(from.bases(Hw::warp), to.bases(Hw::warp)))
    warpWord.push_back(has == wanted ? 0 : sourceBit(wanted));

  const auto sourceWords = static_cast<unsigned>(plan.source.word.size());
  const auto targetWords = static_cast<unsigned>(plan.target.word.size());
  plan.roundLane = F2Map(laneBits, roundLane);
  plan.roundWord = F2Map(sourceWords, roundWord);
  plan.fromLane = fromLane;
  plan.intoWord = F2Map(targetWords, intoWord);
  plan.givenWord = F2Map(sourceWords, givenWord);
  plan.warpWord = F2Map(sourceWords, warpWord);
  return plan;
}

// --- Properties of a plan ------------------------------------------------------------------------------------------

unsigned ShufflePlan::Registers::of(unsigned word, unsigned element) const {
  return static_cast<unsigned>(depositBits(word, this->word) | depositBits(element, this->element));
}

unsigned ShufflePlan::receivesFrom(unsigned round, unsigned lane) const {
  return static_cast<unsigned>(roundLane(round) ^ fromLane(lane));
}

unsigned ShufflePlan::receivesInto(unsigned round, unsigned lane) const {
  return static_cast<unsigned>(round ^ intoWord(lane));
}

unsigned ShufflePlan::sends(unsigned round, unsigned lane, unsigned warp) const {
  return static_cast<unsigned>(roundWord(round) ^ givenWord(lane ^ roundLane(round)) ^ warpWord(warp));
}

bool ShufflePlan::isLocal(unsigned round) const {
  return roundLane(round) == 0 && fromLane == F2Map::identity(laneBits);
}

unsigned ShufflePlan::shuffles(unsigned bits) const {
  const auto remote = llvm::count_if(llvm::seq(rounds()), [&](unsigned round) { return !isLocal(round); });
  return static_cast<unsigned>(remote) * std::max(1u, bits / 32);
}

unsigned ShufflePlan::instructions(unsigned bits) const {
  const auto differences = [](std::initializer_list<const F2Map *> maps) {
    Vecs all;
    for (const F2Map *map : maps)
      for (const Vec difference : map->columns())
        if (difference && !llvm::is_contained(all, difference))
          all.push_back(difference);
    return static_cast<unsigned>(all.size());
  };
  const unsigned given = differences({&givenWord, &warpWord}) << source.word.size();
  const unsigned taken = differences({&intoWord}) * rounds();
  return shuffles(bits) + (given + taken) * std::max(1u, bits / 32);
}

} // namespace kiln::simt
