// Pictures of layouts: grids of coloured cells.

#include "dialect/simt/layout/Picture.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/MathExtras.h"

#include <algorithm>
#include <cmath>

namespace kiln::simt {

/// `#f4b8b8`: a colour of that hue (degrees) and lightness, 70 % saturated, as CSS's hsl(). SVG viewers that lack hsl()
/// in attributes would draw black.
static std::string colourOf(unsigned hue, double lightness) {
  const auto channel = [&](double n) {
    const double k = std::fmod(n + hue / 30.0, 12);
    const double reach = 0.7 * std::min(lightness, 1 - lightness);
    return static_cast<int>(std::lround(255 * (lightness - reach * std::clamp(std::min(k - 3, 9 - k), -1.0, 1.0))));
  };
  return llvm::formatv("#{0:x-2}{1:x-2}{2:x-2}", channel(0), channel(8), channel(4));
}

namespace {
/// A picture made of cells, with a caption. Its text is in monospaced fonts, with a character width of about 0.6 of the
/// size.
class Grid {
public:
  /// Cells have texts of at most `characters`.
  explicit Grid(size_t characters) : cellWidth(std::max<size_t>(44, (61 * characters + 10) / 10)), os(cells) {}

  /// A cell with a text and a longer tooltip. `hue` in degrees, `light` from 0 to 1.
  void add(int64_t row, int64_t column, unsigned hue, double light, const std::string &text,
           const std::string &explanation) {
    rows = std::max(rows, row + 1);
    columns = std::max(columns, column + 1);
    const int64_t x = column * cellWidth, y = top + row * cellHeight;
    os << llvm::formatv("<g><title>{0}</title><rect x=\"{1}\" y=\"{2}\" width=\"{3}\" height=\"{4}\" "
                        "fill=\"{5}\" stroke=\"#888888\"/><text x=\"{6}\" y=\"{7}\">{8}</text></g>\n",
                        explanation, x, y, cellWidth, cellHeight, colourOf(hue, light), x + cellWidth / 2, y + 13,
                        text);
  }
  std::string finish(const std::string &caption) const {
    const int64_t ofCaption = (static_cast<int64_t>(caption.size()) * 73 + 80) / 10; // from 4 on, of size 12
    const int64_t width = std::max(columns * cellWidth, ofCaption) + 2, height = top + rows * cellHeight + 2;
    return llvm::formatv("<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{0}\" height=\"{1}\" "
                         "viewBox=\"-1 -1 {0} {1}\" "
                         "font-family=\"monospace\" font-size=\"10\" text-anchor=\"middle\">\n"
                         "<path d=\"M-1 -1h{0}v{1}h-{0}z\" fill=\"#ffffff\"/>\n"
                         "<text x=\"4\" y=\"16\" font-size=\"12\" text-anchor=\"start\">{2}</text>\n{3}</svg>\n",
                         width, height, caption, cells)
        .str();
  }

private:
  static constexpr int64_t top = 24, cellHeight = 18;

  int64_t cellWidth;
  int64_t rows = 0, columns = 0;
  std::string cells;
  llvm::raw_string_ostream os;
};
} // namespace

/// `(3, 4)`.
static std::string textOf(llvm::ArrayRef<int64_t> position) {
  std::string text;
  llvm::raw_string_ostream os(text);
  os << '(';
  llvm::interleaveComma(position, os);
  os << ')';
  return text;
}

LayoutCells cellsOf(const TileLayout &layout) {
  const llvm::SmallVector<int64_t> sizes = layout.shape().sizes();
  const Vec copyLanes = layout.replicated(Hw::lane), copyWarps = layout.replicated(Hw::warp);
  LayoutCells result{{}, 1u << (llvm::popcount(copyLanes) + llvm::popcount(copyWarps))};
  const auto addPlace = [&](int64_t stored, unsigned lane, unsigned warp) {
    const llvm::SmallVector<int64_t> position = layout.positionOf(stored, {lane, warp});
    int64_t row = 0, column = 0;
    for (const auto [dim, at, size] : llvm::enumerate(position, sizes)) {
      if (at >= size)
        return; // padding
      const bool isLast = dim + 1 == layout.rank();
      row = isLast ? row : row * size + at;
      column = isLast ? at : 0;
    }
    result.cells.push_back({row, column, lane, warp, stored, position});
  };
  for (unsigned warp = 0; warp < layout.numWarps(); ++warp)
    for (unsigned lane = 0; lane < numLanes; ++lane)
      for (int64_t stored = 0; stored < layout.numStored(); ++stored)
        if (!(lane & copyLanes) && !(warp & copyWarps))
          addPlace(stored, lane, warp);
  return result;
}

std::string picture(const TileLayout &layout) {
  const auto cellText = [](int64_t thread, int64_t stored) { return llvm::formatv("{0}:{1}", thread, stored).str(); };
  Grid grid(cellText(layout.numWarps() * numLanes - 1, layout.numStored() - 1).size());
  const LayoutCells all = cellsOf(layout);
  for (const auto &[row, column, lane, warp, stored, position] : all.cells)
    grid.add(row, column, 360 * lane / numLanes, 0.88 - 0.4 * warp / layout.numWarps(),
             cellText(warp * numLanes + lane, stored),
             llvm::formatv("{0}: lane {1} of warp {2}, stored value {3}", textOf(position), lane, warp, stored));
  return grid.finish(layout.text() +
                     (all.holders == 1 ? "" : llvm::formatv("; {0} threads hold each", all.holders).str()));
}

std::string picture(const SwizzledLayout &swizzled) {
  const unsigned perPiece = 128 / swizzled.bits, perLine = 8; // pieces in 32 banks
  const unsigned rowDim = 1 - swizzled.inner;
  Grid grid(/*characters=*/7); // of 1024 × 1024 elements of 8 bytes
  for (int64_t row = 0; row < swizzled.tile[rowDim].padded; ++row)
    for (int64_t column = 0; column < swizzled.tile[swizzled.inner].padded; column += perPiece) {
      llvm::SmallVector<int64_t, 2> position = {row, row};
      position[swizzled.inner] = column;
      const int64_t offset = swizzled.offsetOf(position) * swizzled.bits / 8;
      const auto banks = static_cast<unsigned>(offset / 16 % perLine);
      grid.add(row, column / perPiece, 360 * banks / perLine, 0.8, std::to_string(offset),
               llvm::formatv("{0}: bytes {1} to {2}, banks {3} to {4}", textOf(position), offset, offset + 15,
                             4 * banks, 4 * banks + 3));
    }
  return grid.finish(llvm::formatv("{0}x{1} of {2} bits, rows along dimension {3}, swizzled by {4} bytes",
                                   swizzled.tile[0].size, swizzled.tile[1].size, swizzled.bits, swizzled.inner,
                                   swizzled.width));
}

} // namespace kiln::simt
