// The printed form of layouts: `4x768, rep 1x3, reg [d1:1 d1:2 d1:4], lane [d1:8 …], warp [d0:1 *]`. It has weights,
// not bit numbers, so that positions are easy to add up. `rep` follows from the extents; it is printed if it is not 1,
// and verified when parsed.

#include "dialect/simt/layout/TileLayout.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/MathExtras.h"

namespace kiln::simt {

using llvm::StringRef;
using llvm::Twine;

// --- Printing ------------------------------------------------------------------------------------------------------

void TileLayout::print(llvm::raw_ostream &os) const {
  if (rank() == 0)
    os << "scalar";
  llvm::interleave(tile.sizes(), os, "x");
  if (tile.repeats() != 1) {
    os << ", rep ";
    llvm::interleave(tile.dims(), os, [&](const Extent &extent) { os << extent.repeats; }, "x");
  }
  for (const Hw part : everyHw) {
    if (part == Hw::block && bases(part).empty())
      continue;
    os << ", " << nameOf(part) << " [";
    llvm::interleave(
        bases(part), os,
        [&](Vec basis) {
          if (basis == 0)
            os << '*';
          else
            os << 'd' << tile.unitOf(basis).dim << ':' << tile.unitOf(basis).weight();
        },
        " ");
    os << ']';
  }
}

std::string TileLayout::text() const {
  std::string text;
  llvm::raw_string_ostream os(text);
  print(os);
  return text;
}

// --- Parsing -------------------------------------------------------------------------------------------------------

namespace {
/// Parses words from the front of a text. A function that fails has reported an error.
class Reader {
public:
  Reader(StringRef text, Complain complain) : rest(text.ltrim()), complain(complain) {}

  bool atEnd() const { return rest.empty(); }
  bool take(StringRef word) {
    if (!rest.consume_front(word))
      return false;
    rest = rest.ltrim();
    return true;
  }
  llvm::LogicalResult expect(StringRef word) { return take(word) ? llvm::success() : refuse("'" + word + "'"); }
  llvm::LogicalResult number(int64_t &value) {
    if (rest.consumeInteger(10, value) || value < 0)
      return refuse("a number");
    rest = rest.ltrim();
    return llvm::success();
  }
  /// Numbers separated by `x`.
  llvm::LogicalResult extents(llvm::SmallVectorImpl<int64_t> &sizes) {
    do {
      if (failed(number(sizes.emplace_back())))
        return llvm::failure();
    } while (take("x"));
    return llvm::success();
  }
  llvm::LogicalResult refuse(const Twine &expected) {
    return refuse(expected, rest.empty() ? Twine("the end") : "'" + rest.take_front(12) + "'");
  }
  llvm::LogicalResult refuse(const Twine &expected, const Twine &got) {
    complain("expected " + expected + ", but got " + got);
    return llvm::failure();
  }

private:
  StringRef rest;
  Complain complain;
};
} // namespace

/// `*` or `d1:8`, as a vector of the core.
static llvm::LogicalResult readBasis(Reader &reader, const TileShape &tile, Vec &basis) {
  if (reader.take("*")) {
    basis = 0;
    return llvm::success();
  }
  int64_t dim = 0, weight = 0;
  if (failed(reader.expect("d")) || failed(reader.number(dim)) || failed(reader.expect(":")) ||
      failed(reader.number(weight)))
    return llvm::failure();
  if (dim >= tile.rank())
    return reader.refuse("a dimension below " + Twine(tile.rank()), "'d" + Twine(dim) + "'");
  const Extent &extent = tile[static_cast<unsigned>(dim)];
  if (!llvm::isPowerOf2_64(static_cast<uint64_t>(weight)) || weight >= extent.core())
    return reader.refuse("a power of two below " + Twine(extent.core()) + " as the weight of 'd" + Twine(dim) + "'",
                         Twine(weight));
  basis = tile.vectorOf({static_cast<unsigned>(dim), llvm::Log2_64(static_cast<uint64_t>(weight))});
  return llvm::success();
}

/// `reg [d1:1 *]`.
static llvm::LogicalResult readBases(Reader &reader, const TileShape &tile, StringRef name, Vecs &bases) {
  if (failed(reader.expect(name)) || failed(reader.expect("[")))
    return llvm::failure();
  while (!reader.take("]"))
    if (failed(readBasis(reader, tile, bases.emplace_back())))
      return llvm::failure();
  return llvm::success();
}

llvm::FailureOr<TileLayout> TileLayout::parse(StringRef text, Complain complain) {
  Reader reader(text, complain);
  llvm::SmallVector<int64_t> sizes, repeats;
  if (!reader.take("scalar") && failed(reader.extents(sizes)))
    return llvm::failure();
  if (failed(checkShape(sizes, complain)))
    return llvm::failure();
  const TileShape tile(sizes);
  if (failed(reader.expect(",")))
    return llvm::failure();
  if (reader.take("rep")) {
    if (failed(reader.extents(repeats)))
      return llvm::failure();
    if (!llvm::equal(repeats, llvm::map_range(tile.dims(), [](const Extent &extent) { return extent.repeats; })))
      return reader.refuse("the repeats that follow from the extents", "others");
    if (failed(reader.expect(",")))
      return llvm::failure();
  }
  Bases bases;
  for (const Hw part : everyHw) {
    if (part == Hw::block && reader.atEnd())
      break;
    if ((part != Hw::reg && failed(reader.expect(","))) ||
        failed(readBases(reader, tile, nameOf(part), bases[static_cast<size_t>(part)])))
      return llvm::failure();
  }
  if (!reader.atEnd())
    return reader.refuse("the end");
  return get(sizes, bases, complain);
}

} // namespace kiln::simt
