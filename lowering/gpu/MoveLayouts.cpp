// Analyses a move's map as sums of bits: the source's unit for each unit of the result.

#include "lowering/gpu/MoveLayouts.h"

#include "lowering/gpu/ThreadCode.h"

#include "llvm/Support/MathExtras.h"

using namespace mlir;

namespace kiln::lowering::gpu {

using simt::Extent;
using simt::TileShape;
using simt::Unit;
using simt::Vec;

namespace {

/// A part of a position in the result, from 0 to `most`, times a weight.
struct Term {
  std::optional<Unit> unit; // none: the repeat along a dimension
  int64_t most = 1, weight = 1;
};

/// An expression as a sum.
struct WeightedSum {
  SmallVector<Term, 8> terms;
  int64_t constant = 0;
};

/// The sums of a map's expressions, for positions of a result of `shape`, its padding included.
class WeightedSumOf {
public:
  explicit WeightedSumOf(const TileShape &shape) : shape(shape) {}

  std::optional<WeightedSum> operator()(AffineExpr expr) {
    if (auto dim = dyn_cast<AffineDimExpr>(expr))
      return ofDim(dim.getPosition());
    if (auto constant = dyn_cast<AffineConstantExpr>(expr))
      return constant.getValue() >= 0 ? std::optional(WeightedSum{{}, constant.getValue()}) : std::nullopt;
    auto binary = dyn_cast<AffineBinaryOpExpr>(expr);
    std::optional<WeightedSum> left = binary ? (*this)(binary.getLHS()) : std::nullopt;
    if (!left)
      return std::nullopt;
    if (expr.getKind() == AffineExprKind::Add)
      return plus(*left, (*this)(binary.getRHS()));
    auto number = dyn_cast<AffineConstantExpr>(binary.getRHS());
    if (!number || number.getValue() <= 0)
      return std::nullopt;
    if (expr.getKind() == AffineExprKind::Mul)
      return times(*left, number.getValue());
    return divided(*left, number.getValue(), expr.getKind());
  }

private:
  WeightedSum ofDim(unsigned dim) const {
    const Extent &extent = shape[dim];
    WeightedSum sum;
    for (unsigned bit = 0; bit < extent.coreBits; ++bit)
      sum.terms.push_back({Unit{dim, bit}, 1, int64_t{1} << bit});
    if (extent.repeats > 1)
      sum.terms.push_back({std::nullopt, extent.repeats - 1, extent.core()});
    return sum;
  }

  static std::optional<WeightedSum> plus(WeightedSum left, const std::optional<WeightedSum> &right) {
    if (!right)
      return std::nullopt;
    left.terms.append(right->terms);
    left.constant += right->constant;
    return left;
  }

  static WeightedSum times(WeightedSum sum, int64_t factor) {
    for (Term &term : sum.terms)
      term.weight *= factor;
    sum.constant *= factor;
    return sum;
  }

  /// Quotient or remainder, if the terms that are not multiples of `divisor` sum to less than it.
  static std::optional<WeightedSum> divided(const WeightedSum &sum, int64_t divisor, AffineExprKind kind) {
    WeightedSum quotient{{}, sum.constant / divisor}, remainder{{}, sum.constant % divisor};
    int64_t most = remainder.constant;
    for (Term term : sum.terms) {
      if (term.weight % divisor == 0) {
        term.weight /= divisor;
        quotient.terms.push_back(term);
      } else {
        most += term.most * term.weight;
        remainder.terms.push_back(term);
      }
    }
    if (most >= divisor)
      return std::nullopt;
    return kind == AffineExprKind::Mod        ? std::optional(remainder)
           : kind == AffineExprKind::FloorDiv ? std::optional(quotient)
                                              : std::nullopt;
  }

  const TileShape &shape;
};

/// The source's unit for each unit of the result, which is given as a bit vector; 0: none.
using UnitMap = SmallVector<Vec, 24>;

unsigned bitOf(Vec unit) { return llvm::Log2_64(unit); }

/// Adds the units of one dimension of the source. Sums have no carries, because weights are distinct powers of two, and
/// repeats count whole cores.
bool addUnits(const WeightedSum &sum, unsigned dim, const TileShape &from, const TileShape &to, UnitMap &units) {
  const Extent &extent = from[dim];
  Vec seen = sum.constant & (extent.core() - 1);
  for (const Term &term : sum.terms) {
    if (!term.unit) {
      if (term.weight % extent.core() != 0)
        return false;
      continue;
    }
    Vec &unit = units[bitOf(to.vectorOf(*term.unit))];
    const auto weight = static_cast<Vec>(term.weight);
    if (!llvm::isPowerOf2_64(weight) || term.weight >= extent.core() || (seen & weight) || unit)
      return false;
    seen |= weight;
    unit = from.vectorOf({dim, bitOf(weight)});
  }
  return true;
}

std::optional<UnitMap> unitsOf(tile::MoveOp move, const TileShape &from, const TileShape &to) {
  UnitMap units(to.coreBits(), 0);
  WeightedSumOf sumOf(to);
  for (const auto [dim, expr] : llvm::enumerate(move.getMoveMap().getResults())) {
    const std::optional<WeightedSum> sum = sumOf(expr);
    if (!sum || !addUnits(*sum, static_cast<unsigned>(dim), from, to, units))
      return std::nullopt;
  }
  return units;
}

/// The bases with every unit replaced by its `image`; 0: removed.
TileLayout::Bases mapBases(const TileLayout &layout, function_ref<Vec(Vec)> image) {
  TileLayout::Bases bases;
  for (const Hw part : simt::everyHw)
    for (const Vec basis : layout.bases(part)) {
      const Vec mapped = basis ? image(basis) : 0;
      if (mapped || part != Hw::reg)
        bases[static_cast<size_t>(part)].push_back(mapped);
    }
  return bases;
}

ArrayRef<int64_t> shapeOf(Value tile) { return cast<RankedTensorType>(tile.getType()).getShape(); }

} // namespace

std::optional<TileLayout> sourceLayout(tile::MoveOp move, const TileLayout &result) {
  const TileShape from(shapeOf(move.getMoved()));
  const std::optional<UnitMap> units = unitsOf(move, from, result.shape());
  if (!units)
    return std::nullopt;
  TileLayout::Bases bases = mapBases(result, [&](Vec unit) { return (*units)[bitOf(unit)]; });
  constexpr size_t maxMore = 2; // bits: at most four times the result's registers
  size_t more = 0;
  for (unsigned bit = 0; bit < from.coreBits(); ++bit) // units that the result lacks
    if (const Vec unit = Vec{1} << bit; !llvm::is_contained(*units, unit)) {
      bases[static_cast<size_t>(Hw::reg)].push_back(unit);
      ++more;
    }
  return more <= maxMore ? std::optional(TileLayout::get(from.sizes(), bases)) : std::nullopt;
}

std::optional<TileLayout> resultLayout(tile::MoveOp move, const TileLayout &source) {
  const TileShape to(shapeOf(move->getResult(0)));
  const std::optional<UnitMap> units = unitsOf(move, source.shape(), to);
  if (!units || llvm::is_contained(*units, Vec{0}) ||
      llvm::product_of(to.sizes()) > llvm::product_of(source.shape().sizes()))
    return std::nullopt;
  bool staysInThread = true;
  TileLayout::Bases bases = mapBases(source, [&](Vec unit) -> Vec {
    const auto found = llvm::find(*units, unit);
    if (found != units->end())
      return Vec{1} << (found - units->begin());
    staysInThread &= llvm::is_contained(source.bases(Hw::reg), unit); // the result lacks it
    return 0;
  });
  return staysInThread ? std::optional(TileLayout::get(to.sizes(), bases)) : std::nullopt;
}

std::optional<TileLayout> spreadLayout(tile::MoveOp move, const TileLayout &source) {
  constexpr size_t maxRegisters = 2; // bits
  const TileShape to(shapeOf(move->getResult(0)));
  const std::optional<UnitMap> units = unitsOf(move, source.shape(), to);
  if (!units)
    return std::nullopt;
  SmallVector<Vec> repeats; // units of the result that the source lacks, lowest first
  for (const auto [bit, unit] : llvm::enumerate(*units))
    if (!unit)
      repeats.push_back(Vec{1} << bit);
  bool isWhole = true;
  TileLayout::Bases bases = mapBases(source, [&](Vec unit) -> Vec {
    const auto found = llvm::find(*units, unit);
    isWhole &= found != units->end();
    return found != units->end() ? Vec{1} << (found - units->begin()) : 0;
  });
  if (!isWhole)
    return std::nullopt;
  auto next = repeats.begin();
  for (const Hw part : {Hw::lane, Hw::warp})
    for (Vec &basis : bases[static_cast<size_t>(part)])
      if (!basis && next != repeats.end())
        basis = *next++;
  if (static_cast<size_t>(repeats.end() - next) > maxRegisters)
    return std::nullopt;
  bases[static_cast<size_t>(Hw::reg)].append(next, repeats.end());
  return TileLayout::get(to.sizes(), bases);
}

bool isRenaming(tile::MoveOp move, const TileLayout &from, const TileLayout &to) {
  const std::optional<TileLayout> held = sourceLayout(move, to);
  return held && isRenaming(from, *held);
}

} // namespace kiln::lowering::gpu
