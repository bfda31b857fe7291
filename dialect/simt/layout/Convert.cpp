// The choice between shuffles and shared memory.

#include "dialect/simt/layout/Convert.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/Sequence.h"
#include "llvm/Support/MathExtras.h"

#include <cassert>
#include <tuple>

namespace kiln::simt {

// --- Through shared memory -------------------------------------------------------------------------------------------

// Enumerates candidates for the contiguous units, with the best lines for each, and chooses by simulated wavefronts.

namespace {
/// Contiguous units, and the instructions that write and read them.
struct Candidate {
  Vecs side; // V: units, lowest first
  SharedOp store = SharedOp::vector, load = SharedOp::vector;
};

/// Builds plans for two layouts.
class Planner {
public:
  Planner(const TileLayout &from, const TileLayout &to, unsigned bits, const SharedLimits &limits);
  SharedPlan best() const;

private:
  void addVectors();
  void addMatrices();
  std::optional<SharedPlan> plan(const Candidate &candidate) const;
  Vecs roundsOf(llvm::ArrayRef<Vec> kept) const;

  const TileLayout &from, &to;
  const unsigned bits;
  const SharedLimits &limits;
  Vecs units;  // of the core, as far as it is in one block
  Vecs common; // those in registers of both layouts, in the destination's order
  std::vector<Candidate> candidates;
};
} // namespace

// --- Candidates ----------------------------------------------------------------------------------------------------

Planner::Planner(const TileLayout &from, const TileLayout &to, unsigned bits, const SharedLimits &limits)
    : from(from), to(to), bits(bits), limits(limits) {
  for (const unsigned bit : llvm::seq(from.shape().coreBits()))
    if (const Vec unit = Vec{1} << bit; !llvm::is_contained(from.bases(Hw::block), unit))
      units.push_back(unit);
  for (const Vec unit : to.bases(Hw::reg))
    if (llvm::is_contained(from.bases(Hw::reg), unit))
      common.push_back(unit);
  addVectors();
  addMatrices();
}

/// Appends missing units of `more`, up to a size.
static void fill(Vecs &side, llvm::ArrayRef<Vec> more, size_t size) {
  for (const Vec unit : more)
    if (side.size() < size && unit != 0 && !llvm::is_contained(side, unit))
      side.push_back(unit);
}

/// Vectors of every length: units in registers of both layouts, then of one side, so that the other has shorter
/// vectors. Vectors shorter than a bank are extended, because lanes that write parts of one word do not conflict.
void Planner::addVectors() {
  const auto bitsOfWord = bits < 32 ? llvm::Log2_32(32 / bits) : 0;
  for (unsigned size = llvm::Log2_32(128 / bits) + 1; size-- > 0;)
    for (const TileLayout *first : {&to, &from}) {
      Vecs side;
      fill(side, common, size);
      fill(side, first->bases(Hw::reg), size);
      if (side.size() < size)
        continue;
      candidates.push_back({side});
      if (size >= bitsOfWord)
        continue;
      for (const Hw part : {Hw::warp, Hw::lane}) {
        Vecs padded = side;
        fill(padded, first->bases(part), bitsOfWord);
        candidates.push_back({padded});
      }
    }
}

namespace {
/// A row of 16 bytes that a matrix instruction moves for a layout: its units, lowest first.
struct MatrixRow {
  SharedOp op;
  Vecs units;
};
} // namespace

/// All such rows of a layout's lanes and registers; registers within a word may be in any order.
static llvm::SmallVector<MatrixRow> matrixRowsOf(const TileLayout &layout, unsigned bits) {
  const llvm::ArrayRef<Vec> regs = layout.bases(Hw::reg), lanes = layout.bases(Hw::lane);
  if (bits > 32 || llvm::is_contained(lanes, Vec{0}))
    return {};
  constexpr size_t maxTried = 6; // 30 choices for 8-bit elements
  llvm::SmallVector<Vecs> words = {{}};
  for (unsigned wordBits = llvm::Log2_32(32 / bits); wordBits > 0; --wordBits) {
    llvm::SmallVector<Vecs> longer;
    for (const Vecs &word : words)
      for (const Vec reg : regs.take_front(maxTried))
        if (!llvm::is_contained(word, reg)) {
          longer.push_back(word);
          longer.back().push_back(reg);
        }
    words = std::move(longer);
  }
  llvm::SmallVector<MatrixRow> rows;
  for (Vecs &word : words) {
    word.append({lanes[0], lanes[1]});
    rows.push_back({SharedOp::rows, word});
  }
  if (bits == 16)
    rows.push_back({SharedOp::columns, Vecs(lanes.drop_front(2))});
  return rows;
}

void Planner::addMatrices() {
  llvm::SmallVector<MatrixRow> stores, loads;
  if (limits.hasStoreMatrix)
    stores = matrixRowsOf(from, bits);
  if (limits.hasLoadMatrix)
    loads = matrixRowsOf(to, bits);
  for (const MatrixRow &load : loads) {
    candidates.push_back({load.units, SharedOp::vector, load.op});
    for (const MatrixRow &store : stores)
      if (store.units == load.units)
        candidates.push_back({load.units, store.op, load.op});
  }
  for (const MatrixRow &store : stores)
    candidates.push_back({store.units, store.op, SharedOp::vector});
}

// --- A plan for a candidate ----------------------------------------------------------------------------------------

/// The units in which simultaneously served lanes differ.
static Vecs phaseOf(const TileLayout &layout, SharedOp op, llvm::ArrayRef<Vec> side, unsigned bits) {
  const llvm::ArrayRef<Vec> regs = layout.bases(Hw::reg), lanes = layout.bases(Hw::lane);
  Vecs phase;
  switch (op) {
  case SharedOp::rows:
    phase = Vecs(lanes.drop_front(2));
    break;
  case SharedOp::columns:
    phase = {regs.empty() ? 0 : regs.front(), lanes[0], lanes[1]};
    break;
  case SharedOp::vector: {
    unsigned vectorBits = bits; // of one lane's access
    for (const Vec unit : side) {
      if (!llvm::is_contained(regs, unit))
        break;
      vectorBits *= 2;
    }
    phase = Vecs(lanes.take_front(std::min(laneBits, llvm::Log2_32(1024 / std::max(vectorBits, 32u)))));
  }
  }
  llvm::erase_if(phase, [&](Vec unit) { return unit == 0 || llvm::is_contained(side, unit); });
  return phase;
}

/// The fewest units that reduce a round's memory to the limit, among those in registers of both layouts and not in
/// `kept`.
Vecs Planner::roundsOf(llvm::ArrayRef<Vec> kept) const {
  Vecs rounds;
  for (const Vec unit : llvm::reverse(common)) {
    const int64_t bytes = (int64_t{bits} << (units.size() - rounds.size())) / 8;
    if (bytes <= limits.bytes)
      break;
    if (!llvm::is_contained(kept, unit))
      rounds.push_back(unit);
  }
  return rounds;
}

/// The bits of the register number for these units.
static llvm::SmallVector<unsigned, 8> registersOf(const TileLayout &layout, llvm::ArrayRef<Vec> units) {
  llvm::SmallVector<unsigned, 8> bits;
  for (const Vec unit : units)
    bits.push_back(static_cast<unsigned>(llvm::find(layout.bases(Hw::reg), unit) - layout.bases(Hw::reg).begin()));
  return bits;
}

std::optional<SharedPlan> Planner::plan(const Candidate &candidate) const {
  const Vecs &side = candidate.side;
  Vecs p = phaseOf(from, candidate.store, side, bits), q = phaseOf(to, candidate.load, side, bits);
  Vecs kept = side;
  kept.append(p);
  kept.append(q);
  SharedPlan plan;
  plan.rounds = roundsOf(kept);

  // `whole`: the placed units outside V. `size`: the number of them that select banks. P and Q are truncated or
  // extended to that size, first with each other's units.
  Vecs whole;
  for (const Vec unit : units)
    if (!llvm::is_contained(side, unit) && !llvm::is_contained(plan.rounds, unit))
      whole.push_back(unit);
  const size_t bankBits = llvm::Log2_32(1024 / bits);
  const size_t size = std::min(whole.size(), bankBits - std::min(bankBits, side.size()));
  p.resize(std::min(p.size(), size));
  q.resize(std::min(q.size(), size));
  fill(p, q, size);
  fill(q, p, size);
  fill(p, whole, size);
  fill(q, p, size);

  Vecs columns = side;
  columns.append(p);
  columns.append(commonComplement(p, q, whole));
  const auto outputs = static_cast<unsigned>(columns.size());
  Vecs images;
  const Span placed(columns);
  for (const unsigned bit : llvm::seq(from.shape().coreBits()))
    images.push_back(placed.solve(Vec{1} << bit).value_or(0));
  plan.offset = F2Map(outputs, images);
  plan.bytes = (int64_t{bits} << outputs) / 8;

  const auto access = [&](const TileLayout &layout, SharedOp op) {
    return op == SharedOp::vector ? vectorAccess(layout, plan.offset, bits)
                                  : matrixAccess(layout, plan.offset, bits, op);
  };
  const std::optional<SharedAccess> store = access(from, candidate.store), load = access(to, candidate.load);
  if (!store || !load)
    return std::nullopt;
  plan.store = *store;
  plan.load = *load;
  plan.store.round = registersOf(from, plan.rounds);
  plan.load.round = registersOf(to, plan.rounds);
  return plan;
}

SharedPlan Planner::best() const {
  const auto cost = [&](const SharedPlan &plan) {
    const int64_t excess = std::max<int64_t>(plan.bytes - limits.bytes, 0);
    return std::tuple(excess, plan.wavefronts(), plan.store.instructions() + plan.load.instructions(), plan.bytes);
  };
  std::optional<SharedPlan> best;
  decltype(cost(*best)) costOfBest;
  for (const Candidate &candidate : candidates) {
    std::optional<SharedPlan> next = plan(candidate);
    if (!next)
      continue;
    const auto costOfNext = cost(*next);
    if (!best || costOfNext < costOfBest) {
      best = std::move(next);
      costOfBest = costOfNext;
    }
  }
  best->isWithinWarps = from.bases(Hw::warp) == to.bases(Hw::warp) && from.replicated(Hw::warp) == 0;
  return *best;
}

SharedPlan planShared(const TileLayout &from, const TileLayout &to, unsigned bits, const SharedLimits &limits) {
  assert(from.shape() == to.shape() && from.numWarps() == to.numWarps() &&
         from.bases(Hw::block) == to.bases(Hw::block) && "expected layouts of one tile, whose blocks keep their parts");
  return Planner(from, to, bits, limits).best();
}

// --- By the cheapest means -------------------------------------------------------------------------------------------

ConvertPlan planConvert(const TileLayout &from, const TileLayout &to, unsigned bits, const SharedLimits &limits) {
  std::optional<ShufflePlan> shuffle = planShuffle(from, to, bits);
  const bool fillsWords = shuffle && bits << shuffle->target.element.size() >= 32;
  const unsigned instructions = shuffle ? shuffle->instructions(bits) : 0;
  const unsigned words = shuffle ? shuffle->rounds() * std::max(1u, bits / 32) : 0;
  if (shuffle && (shuffle->shuffles(bits) == 0 || (fillsWords && instructions <= 2 * words + barriersWorth)))
    return {tierOf(from, to), std::move(*shuffle)};
  SharedPlan shared = planShared(from, to, bits, limits);
  if (shuffle && (fillsWords ? instructions <= shared.wavefronts() + barriersWorth
                             : shuffle->shuffles(bits) <= shared.wavefronts()))
    return {Tier::shuffle, std::move(*shuffle)};
  return {Tier::shared, std::move(shared)};
}

} // namespace kiln::simt
