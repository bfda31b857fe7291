// Computes the facts of a launch's arguments that a specialisation may use.

#include "runtime/Facts.h"

namespace kiln {

uint64_t Fact::encode() const {
  const uint64_t alignmentClass = alignment >= 64 ? 2 : alignment >= 16 ? 1 : 0;
  return uint64_t(isView) | uint64_t(type) << 1 | alignmentClass << 10 | uint64_t(stridesBy16) << 12 |
         uint64_t(fits32) << 13 | uint64_t(extentBy16) << 14 | uint64_t(rank) << 16 | uint64_t(innerStride) << 24;
}

Fact Fact::decode(uint64_t word) {
  static constexpr int64_t alignments[] = {1, 16, 64, 64};
  Fact fact;
  fact.isView = word & 1;
  fact.type = static_cast<Type>(word >> 1 & 0xff);
  fact.alignment = alignments[word >> 10 & 3];
  fact.stridesBy16 = word >> 12 & 1;
  fact.fits32 = word >> 13 & 1;
  fact.extentBy16 = word >> 14 & 1;
  fact.rank = static_cast<int>(word >> 16 & 0xff);
  fact.innerStride = static_cast<int64_t>(word >> 24);
  return fact;
}

bool fits32(const std::vector<int64_t> &extents, const std::vector<int64_t> &strides, int64_t elementBytes) {
  for (size_t i = 0; i < extents.size(); ++i) {
    const int64_t maxStride = std::numeric_limits<int32_t>::max() / elementBytes;
    if (extents[i] > int64_t{1} << abi::smallExtentBits ||
        (extents[i] > 1 && (strides[i] < 0 || strides[i] > maxStride)))
      return false;
  }
  return true;
}

Range rangeOf(const Arg &arg, void *workspace) {
  uintptr_t low = reinterpret_cast<uintptr_t>(dataOf(arg, workspace)), high = low;
  const int64_t size = bytesOf(arg.ref.type);
  for (size_t i = 0; i < arg.ref.extents.size(); ++i) {
    if (arg.ref.extents[i] == 0)
      return {};
    const int64_t span = (arg.ref.extents[i] - 1) * arg.ref.strides[i] * size;
    (span < 0 ? low : high) += span;
  }
  return {low, high + size};
}

Fact factOf(const Arg &arg, void *workspace, const lowering::FactKinds &kinds) {
  Fact fact;
  fact.isView = arg.kind != Arg::Kind::scalar;
  fact.type = fact.isView ? arg.ref.type : arg.scalarType;
  if (!fact.isView)
    return fact;
  const TensorRef &ref = arg.ref;
  const size_t rank = ref.extents.size();
  fact.rank = static_cast<int>(rank);
  if (kinds.alignment) {
    const uintptr_t address = reinterpret_cast<uintptr_t>(dataOf(arg, workspace));
    fact.alignment = address % 64 == 0 ? 64 : address % 16 == 0 ? 16 : 1;
  }
  // The stride of a dimension of extent 0 or 1 is not used.
  const int64_t inner = rank == 0 || ref.extents[rank - 1] <= 1 ? 1 : ref.strides[rank - 1];
  fact.innerStride = inner >= 1 && inner <= kinds.innerStrides ? inner : 0;
  fact.stridesBy16 = kinds.stridesBy16 && arg.specialised;
  for (size_t i = 0; i + 1 < rank; ++i)
    fact.stridesBy16 &= ref.strides[i] % 16 == 0;
  fact.extentBy16 = kinds.extentBy16 && arg.specialised && rank > 0 && ref.extents[rank - 1] % 16 == 0;
  fact.fits32 = kinds.fits32 && fits32(ref.extents, ref.strides, bytesOf(ref.type));
  return fact;
}

/// Calls `visit(i, j, disjoint)` for each pair of views.
template <class Visit> static void forPairs(const std::vector<Arg> &args, void *workspace, Visit visit) {
  llvm::SmallVector<std::pair<int, Range>, 16> views;
  for (size_t i = 0; i < args.size(); ++i)
    if (args[i].kind != Arg::Kind::scalar)
      views.push_back({static_cast<int>(i), rangeOf(args[i], workspace)});
  for (size_t a = 0; a < views.size(); ++a)
    for (size_t b = a + 1; b < views.size(); ++b)
      visit(views[a].first, views[b].first, !views[a].second.overlaps(views[b].second));
}

FactWords factsOf(const std::vector<Arg> &args, void *workspace, const lowering::FactKinds &kinds) {
  FactWords words;
  for (const Arg &arg : args)
    words.push_back(factOf(arg, workspace, kinds).encode());
  uint64_t bits = 0;
  int used = 0;
  forPairs(args, workspace, [&](int, int, bool disjoint) {
    bits |= uint64_t(disjoint) << used;
    if (++used == 64) {
      words.push_back(bits);
      bits = 0, used = 0;
    }
  });
  if (used)
    words.push_back(bits);
  return words;
}

FactWords commonFacts(const FactWords &a, const FactWords &b, size_t count) {
  FactWords common;
  for (size_t i = 0; i < std::min(a.size(), b.size()); ++i) {
    if (i >= count) {
      common.push_back(a[i] & b[i]); // facts of pairs
      continue;
    }
    Fact fact = Fact::decode(a[i]);
    const Fact other = Fact::decode(b[i]);
    fact.innerStride = fact.innerStride == other.innerStride ? fact.innerStride : 0;
    fact.alignment = std::min(fact.alignment, other.alignment);
    fact.stridesBy16 &= other.stridesBy16;
    fact.extentBy16 &= other.extentBy16;
    fact.fits32 &= other.fits32;
    common.push_back(fact.encode());
  }
  return common;
}

/// Calls `visit(i, j, bit)` for each pair of views, with the number of the pair's bit after the words of `count`
/// arguments.
template <class Visit> static void forBits(const FactWords &facts, size_t count, Visit visit) {
  size_t bit = 0;
  for (size_t i = 0; i < count; ++i)
    for (size_t j = i + 1; j < count; ++j)
      if (Fact::decode(facts[i]).isView && Fact::decode(facts[j]).isView)
        visit(static_cast<int>(i), static_cast<int>(j), bit++);
}

std::vector<std::pair<int, int>> disjointPairs(const FactWords &facts, size_t count) {
  std::vector<std::pair<int, int>> pairs;
  forBits(facts, count, [&](int i, int j, size_t bit) {
    if (facts[count + bit / 64] >> bit % 64 & 1)
      pairs.emplace_back(i, j);
  });
  return pairs;
}

/// Calls `visit(first, extent, bit)` for each extent of a name except the name's first.
template <class Visit> static void forNamed(const Kernel &kernel, Visit visit) {
  size_t bit = 0;
  for (const Kernel::NamedExtent &extents : kernel.namedExtents)
    for (const auto &extent : llvm::drop_begin(extents))
      visit(extents.front(), extent, bit++);
}

FactWords equalityBits(const Kernel &kernel, const std::vector<Arg> &args) {
  const auto numberOf = [&](const std::pair<int, int> &place) -> int64_t {
    const Shape &extents = args[place.first].ref.extents;
    return place.second < std::ssize(extents) ? extents[place.second] : -1;
  };
  FactWords bits;
  forNamed(kernel, [&](const auto &first, const auto &extent, size_t bit) {
    if (bit % 64 == 0)
      bits.push_back(0);
    const int64_t number = numberOf(first);
    bits.back() |= uint64_t(number >= 0 && number == numberOf(extent)) << bit % 64;
  });
  return bits;
}

std::vector<Kernel::NamedExtent> equalExtents(const Kernel &kernel, const FactWords &bits) {
  std::vector<Kernel::NamedExtent> equal;
  forNamed(kernel, [&](const auto &first, const auto &extent, size_t bit) {
    if (!(bits[bit / 64] >> bit % 64 & 1))
      return;
    if (equal.empty() || equal.back().front() != first)
      equal.push_back({first});
    equal.back().push_back(extent);
  });
  return equal;
}

/// The first word of the equalityBits().
static size_t equalityBegin(const FactWords &facts, size_t count) {
  size_t pairs = 0;
  forBits(facts, count, [&](int, int, size_t bit) { pairs = bit + 1; });
  return count + (pairs + 63) / 64;
}

FactWords relevantBits(const Kernel &kernel, const FactWords &facts, size_t count, const std::set<int> &used,
                       const std::set<int> &written) {
  FactWords bits(facts.size(), ~uint64_t{0});
  forBits(facts, count, [&](int i, int j, size_t bit) {
    if (!written.count(i) && !written.count(j))
      bits[count + bit / 64] &= ~(uint64_t{1} << bit % 64);
  });
  const size_t begin = equalityBegin(facts, count);
  forNamed(kernel, [&](const auto &first, const auto &extent, size_t bit) {
    if (!used.count(first.first) || !used.count(extent.first))
      bits[begin + bit / 64] &= ~(uint64_t{1} << bit % 64);
  });
  return bits;
}

bool serves(const Kernel &kernel, const FactWords &known, const FactWords &facts, size_t count) {
  if (known.size() != facts.size())
    return false;
  size_t equalities = 0;
  forNamed(kernel, [&](const auto &, const auto &, size_t bit) { equalities = bit + 1; });
  const size_t begin = equalityBegin(facts, count), end = begin + (equalities + 63) / 64;
  for (size_t i = 0; i < facts.size(); ++i)
    if (i >= begin && i < end ? (known[i] & ~facts[i]) != 0 : known[i] != facts[i])
      return false;
  return true;
}

uint64_t hashOf(const FactWords &words) {
  uint64_t hash = 0x9e3779b97f4a7c15;
  for (uint64_t word : words) {
    hash = (hash ^ word) * 0xff51afd7ed558ccd;
    hash ^= hash >> 32;
  }
  return hash;
}

} // namespace kiln
