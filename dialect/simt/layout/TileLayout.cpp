// Layouts: validity, the map to positions, and layouts of slices, transposes and reshapes.

#include "dialect/simt/layout/TileLayout.h"

#include "llvm/ADT/Sequence.h"
#include "llvm/ADT/SmallVectorExtras.h"
#include "llvm/ADT/bit.h"
#include "llvm/Support/MathExtras.h"

#include <cassert>

namespace kiln::simt {

using llvm::Twine;

llvm::StringRef nameOf(Hw part) {
  static constexpr llvm::StringRef names[] = {"reg", "lane", "warp", "block"};
  return names[static_cast<size_t>(part)];
}

/// The most bases that a part may have: 1024 threads a block, 16 blocks a cluster.
static constexpr unsigned maxWarpBits = 5, maxBlockBits = 4, maxCoreBits = 20;

// --- Validity ------------------------------------------------------------------------------------------------------

/// `d0:8`.
static std::string textOf(const TileShape &tile, Vec unit) {
  const Unit at = tile.unitOf(unit);
  return ("d" + Twine(at.dim) + ":" + Twine(at.weight())).str();
}

/// The error in the numbers of bases, or an empty text.
static std::string faultOfCounts(const TileLayout::Bases &bases) {
  const auto count = [&](Hw part) { return bases[static_cast<size_t>(part)].size(); };
  if (count(Hw::lane) != laneBits)
    return ("expected 5 lane bases, but got " + Twine(count(Hw::lane))).str();
  if (count(Hw::warp) > maxWarpBits)
    return ("expected at most 5 warp bases, but got " + Twine(count(Hw::warp))).str();
  if (count(Hw::block) > maxBlockBits)
    return ("expected at most 4 block bases, but got " + Twine(count(Hw::block))).str();
  return {};
}

/// The error in the bases as a placement of the core, or an empty text.
static std::string faultOfBases(const TileShape &tile, const TileLayout::Bases &bases) {
  const unsigned coreBits = tile.coreBits();
  Vec placed = 0;
  for (const Hw part : everyHw)
    for (const Vec basis : bases[static_cast<size_t>(part)]) {
      if (basis == 0 && part == Hw::reg)
        return "expected a unit as each basis of 'reg', but got '*'";
      if (basis == 0)
        continue;
      if (!llvm::has_single_bit(basis) || basis >> coreBits != 0)
        return (Twine("expected one unit of the core as a basis of '") + nameOf(part) + "', but got " + Twine(basis))
            .str();
      if (placed & basis)
        return (Twine("expected each unit once, but got '") + textOf(tile, basis) + "' twice").str();
      placed |= basis;
    }
  const Vec missing = llvm::maskTrailingOnes<Vec>(coreBits) & ~placed;
  if (missing)
    return (Twine("expected a basis for every unit, but got none for '") + textOf(tile, missing & -missing) + "'")
        .str();
  return {};
}

llvm::LogicalResult TileLayout::checkShape(llvm::ArrayRef<int64_t> sizes, Complain complain) {
  unsigned coreBits = 0;
  for (const int64_t size : sizes) {
    if (size < 1 || size > int64_t{1} << maxCoreBits) {
      complain("expected extents from 1 to 1048576, but got " + Twine(size));
      return llvm::failure();
    }
    coreBits += Extent::of(size).coreBits;
  }
  if (coreBits > maxCoreBits) {
    complain("expected a core of at most 1048576 elements, but got 2^" + Twine(coreBits));
    return llvm::failure();
  }
  return llvm::success();
}

llvm::FailureOr<TileLayout> TileLayout::get(llvm::ArrayRef<int64_t> sizes, const Bases &bases, Complain complain) {
  if (failed(checkShape(sizes, complain)))
    return llvm::failure();
  TileShape tile(sizes);
  std::string fault = faultOfCounts(bases);
  if (fault.empty())
    fault = faultOfBases(tile, bases);
  if (!fault.empty()) {
    complain(fault);
    return llvm::failure();
  }
  return TileLayout(std::move(tile), bases);
}

TileLayout TileLayout::get(llvm::ArrayRef<int64_t> sizes, const Bases &bases) {
  std::string fault;
  const llvm::FailureOr<TileLayout> layout = get(sizes, bases, [&](const Twine &reason) { fault = reason.str(); });
  assert(llvm::succeeded(layout) && "expected bases of a layout");
  return *layout;
}

llvm::hash_code hash_value(const TileLayout &layout) {
  llvm::hash_code hash = llvm::hash_value(layout.rank());
  for (const Extent &extent : layout.tile.dims())
    hash = llvm::hash_combine(hash, extent.size);
  for (const Vecs &bases : layout.images)
    hash = llvm::hash_combine(hash, llvm::hash_combine_range(bases));
  return hash;
}

// --- Places and positions ------------------------------------------------------------------------------------------

F2Map TileLayout::core() const {
  Vecs columns;
  for (const Hw part : everyHw)
    columns.append(bases(part).begin(), bases(part).end());
  return {tile.coreBits(), columns};
}

int64_t TileLayout::repeatOf(int64_t stored, unsigned dim) const {
  int64_t repeat = stored >> regBits();
  for (const Extent &inner : llvm::drop_begin(tile.dims(), dim + 1))
    repeat /= inner.repeats;
  return repeat % tile[dim].repeats;
}

llvm::SmallVector<int64_t> TileLayout::positionOf(int64_t stored, Thread thread) const {
  const auto reg = static_cast<unsigned>(stored & llvm::maskTrailingOnes<uint64_t>(regBits()));
  const Vec core = sumOf(bases(Hw::reg), reg) ^ sumOf(bases(Hw::lane), thread.lane) ^
                   sumOf(bases(Hw::warp), thread.warp) ^ sumOf(bases(Hw::block), thread.block);
  llvm::SmallVector<int64_t> position;
  for (unsigned dim = 0; dim < rank(); ++dim)
    position.push_back(repeatOf(stored, dim) * tile[dim].core() + tile.positionIn(dim, core));
  return position;
}

std::optional<int64_t> TileLayout::storedAt(llvm::ArrayRef<int64_t> position) const {
  assert(position.size() == rank() && "expected a position in every dimension");
  int64_t repeat = 0;
  Vec core = 0;
  for (const auto [dim, extent] : llvm::enumerate(tile.dims())) {
    if (position[dim] < 0 || position[dim] >= extent.padded)
      return std::nullopt;
    repeat = repeat * extent.repeats + position[dim] / extent.core();
    core |= tile.vectorAt(static_cast<unsigned>(dim), position[dim] % extent.core());
  }
  int64_t reg = 0;
  for (const auto [bit, basis] : llvm::enumerate(bases(Hw::reg)))
    if (core & basis) {
      reg |= int64_t{1} << bit;
      core ^= basis;
    }
  if (core != 0)
    return std::nullopt;
  return repeat << regBits() | reg;
}

std::pair<int64_t, int64_t> TileLayout::rangeOf(int64_t stored, unsigned dim) const {
  const int64_t first = positionOf(stored)[dim];
  Vec threads = 0;
  for (const Hw part : {Hw::lane, Hw::warp, Hw::block})
    for (const Vec basis : bases(part))
      threads |= basis;
  return {first, first + tile.positionIn(dim, threads)};
}

bool TileLayout::isDead(int64_t stored) const {
  return llvm::any_of(llvm::seq(rank()), [&](unsigned dim) { return rangeOf(stored, dim).first >= tile[dim].size; });
}

bool TileLayout::isRagged(int64_t stored, unsigned dim) const { return rangeOf(stored, dim).second >= tile[dim].size; }

llvm::SmallVector<BitField> TileLayout::fieldsOf(Hw part, unsigned dim) const {
  llvm::SmallVector<BitField> fields;
  for (const AxisBit &axis : axisBits(dim)) {
    if (axis.part != part)
      continue;
    BitField *last = fields.empty() ? nullptr : &fields.back();
    if (last && last->from + last->width == axis.index && last->to + last->width == axis.bit)
      ++last->width;
    else
      fields.push_back({axis.index, axis.bit, 1});
  }
  return fields;
}

Vec TileLayout::replicated(Hw part) const {
  Vec zeros = 0;
  for (const auto [bit, basis] : llvm::enumerate(bases(part)))
    if (basis == 0)
      zeros |= Vec{1} << bit;
  return zeros;
}

llvm::SmallVector<AxisBit> TileLayout::axisBits(unsigned dim) const {
  llvm::SmallVector<AxisBit> found;
  for (const Hw part : everyHw)
    for (const auto [index, basis] : llvm::enumerate(bases(part)))
      if (basis != 0 && tile.unitOf(basis).dim == dim)
        found.push_back({tile.unitOf(basis).bit, part, static_cast<unsigned>(index)});
  llvm::sort(found, [](const AxisBit &a, const AxisBit &b) { return a.bit < b.bit; });
  return found;
}

// --- Layouts from layouts ------------------------------------------------------------------------------------------

/// The bases with every unit mapped by `move` to a vector of another shape's core; 0: removed.
static TileLayout::Bases moved(const TileLayout &layout, llvm::function_ref<Vec(Unit)> move) {
  TileLayout::Bases bases;
  for (const Hw part : everyHw)
    for (const Vec basis : layout.bases(part)) {
      const Vec image = basis == 0 ? 0 : move(layout.shape().unitOf(basis));
      if (image != 0 || part != Hw::reg)
        bases[static_cast<size_t>(part)].push_back(image);
    }
  return bases;
}

TileLayout TileLayout::slice(unsigned dim) const {
  llvm::SmallVector<int64_t> sizes = tile.sizes();
  sizes.erase(sizes.begin() + dim);
  const TileShape target(sizes);
  return get(sizes, moved(*this, [&](Unit unit) -> Vec {
               return unit.dim == dim ? 0 : target.vectorOf({unit.dim - (unit.dim > dim), unit.bit});
             }));
}

TileLayout TileLayout::expand(unsigned dim) const {
  llvm::SmallVector<int64_t> sizes = tile.sizes();
  sizes.insert(sizes.begin() + dim, 1);
  return get(sizes, images); // extent 1 has no units
}

TileLayout TileLayout::transpose(llvm::ArrayRef<unsigned> order) const {
  assert(order.size() == rank() && "expected every dimension in the order");
  const llvm::SmallVector<int64_t> sizes =
      llvm::map_to_vector(order, [&](unsigned source) { return tile[source].size; });
  const TileShape target(sizes);
  return get(sizes, moved(*this, [&](Unit unit) {
               const auto dim = llvm::find(order, unit.dim) - order.begin();
               return target.vectorOf({static_cast<unsigned>(dim), unit.bit});
             }));
}

std::optional<TileLayout> TileLayout::half(unsigned dim, unsigned bit) const {
  llvm::SmallVector<int64_t> sizes = tile.sizes();
  if (bit >= tile[dim].coreBits || sizes[dim] % (int64_t{2} << bit) != 0 ||
      !llvm::is_contained(bases(Hw::reg), tile.vectorOf({dim, bit})))
    return std::nullopt;
  sizes[dim] /= 2;
  const TileShape target(sizes);
  if (target[dim].coreBits + 1 != tile[dim].coreBits)
    return std::nullopt;
  return get(sizes, moved(*this, [&](Unit unit) -> Vec {
               const bool isAlong = unit.dim == dim;
               return isAlong && unit.bit == bit ? 0
                                                 : target.vectorOf({unit.dim, unit.bit - (isAlong && unit.bit > bit)});
             }));
}

/// Splits the dimensions of two shapes, without extents of 1, into the smallest groups with equal numbers of elements,
/// and calls `visit` with the dimensions of each. False if the numbers of elements differ, or if `visit` returns false.
static bool allGroups(const TileShape &from, const TileShape &to,
                      llvm::function_ref<bool(llvm::ArrayRef<Extent>, llvm::ArrayRef<Extent>)> visit) {
  const auto big = [](const TileShape &tile) {
    return llvm::SmallVector<Extent>(llvm::make_filter_range(tile.dims(), [](const Extent &e) { return e.size > 1; }));
  };
  const llvm::SmallVector<Extent> a = big(from), b = big(to);
  size_t i = 0, j = 0;
  while (i < a.size() && j < b.size()) {
    const size_t firstOfA = i, firstOfB = j;
    int64_t left = a[i++].size, right = b[j++].size;
    while (left != right) {
      if (left < right ? i == a.size() : j == b.size())
        return false;
      (left < right ? left : right) *= left < right ? a[i++].size : b[j++].size;
    }
    if (!visit(llvm::ArrayRef(a).slice(firstOfA, i - firstOfA), llvm::ArrayRef(b).slice(firstOfB, j - firstOfB)))
      return false;
  }
  return i == a.size() && j == b.size();
}

std::optional<TileLayout> TileLayout::reshape(llvm::ArrayRef<int64_t> sizes) const {
  // Within a group, a row-major index is repeat · core + core index as long as only the outermost dimension repeats.
  // Then the index keeps its low bits (the unit vectors) and its repeat.
  const auto isPadded = [](const Extent &extent) { return extent.isPadded(); };
  const auto isSplit = [](llvm::ArrayRef<Extent> dims) {
    return llvm::any_of(llvm::drop_begin(dims), [](const Extent &inner) { return inner.repeats != 1; });
  };
  const TileShape target(sizes);
  const bool isFree = allGroups(tile, target, [&](llvm::ArrayRef<Extent> from, llvm::ArrayRef<Extent> to) {
    return from == to ||
           (llvm::none_of(from, isPadded) && llvm::none_of(to, isPadded) && !isSplit(from) && !isSplit(to));
  });
  return isFree ? std::optional(get(sizes, images)) : std::nullopt;
}

// --- Scans -----------------------------------------------------------------------------------------------------------

std::optional<ScanPlan> planScan(const TileLayout &layout, unsigned dim) {
  const Extent &extent = layout.shape()[dim];
  ScanPlan plan;
  bool isBelowWarps = true;
  for (const AxisBit &bit : layout.axisBits(dim)) {
    if (bit.part == Hw::block || (bit.part == Hw::lane && !isBelowWarps))
      return std::nullopt;
    if (bit.part == Hw::warp && isBelowWarps) {
      isBelowWarps = false;
      plan.partBits = bit.bit;
      plan.parts = extent.padded >> bit.bit;
    }
  }
  if (isBelowWarps)
    plan.partBits = extent.coreBits;
  plan.strides.assign(layout.rank(), 1);
  int64_t stride = plan.parts;
  for (unsigned other = layout.rank(); other-- > 0;)
    if (other != dim) {
      plan.strides[other] = stride;
      stride *= layout.shape()[other].size;
    }
  plan.totals = stride;
  return plan;
}

llvm::SmallVector<int64_t> ScanPlan::offsets(llvm::ArrayRef<int64_t> bytes) const {
  llvm::SmallVector<int64_t> begins = {0};
  for (const int64_t each : bytes)
    begins.push_back(static_cast<int64_t>(llvm::alignTo(begins.back() + totals * each, 16)));
  return begins;
}

} // namespace kiln::simt
