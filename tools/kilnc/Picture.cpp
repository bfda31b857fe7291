// Parses layouts for --picture.

#include "tools/kilnc/Picture.h"

#include "dialect/dsl/Types.h"
#include "dialect/simt/layout/Picture.h"

#include "llvm/ADT/StringExtras.h"

#include <fmt/format.h>

namespace kiln::tools {

/// A tile in shared memory, after the word `shared`.
static std::string pictureOfShared(llvm::StringRef text) {
  const auto wrong = [&] {
    return Error(
        fmt::format("expected a tile for --picture as 'shared 64x64xbf16', with ' columns' when its columns are "
                    "contiguous, but got 'shared {}'",
                    text.str()));
  };
  auto [tile, order] = text.trim().split(' ');
  const auto [sizes, type] = tile.rsplit('x');
  const auto [rows, columns] = sizes.split('x');
  int64_t extents[2];
  order = order.trim();
  if (rows.getAsInteger(10, extents[0]) || columns.getAsInteger(10, extents[1]) ||
      (!order.empty() && order != "columns"))
    throw wrong();
  const int64_t bytes = bytesOf(typeNamed(type.str()));
  for (const int64_t extent : extents)
    if (extent < 1 || extent > 1024)
      throw Error(fmt::format("expected extents from 1 to 1024 for --picture, but got {}", extent));
  const unsigned inner = order.empty() ? 1 : 0;
  const auto swizzled = simt::swizzledLayout(extents, inner, static_cast<unsigned>(8 * bytes));
  if (!swizzled || swizzled->width < 16)
    throw Error(
        fmt::format("expected rows of at least 16 bytes for --picture, at least 8 of them or a power of two, but "
                    "got 'shared {}'",
                    text.str()));
  return simt::picture(*swizzled);
}

std::string pictureOf(const std::string &text) {
  llvm::StringRef rest = llvm::StringRef(text).trim();
  if (rest.consume_front("shared "))
    return pictureOfShared(rest);
  std::string reason;
  const auto layout = simt::TileLayout::parse(rest, [&](const llvm::Twine &why) { reason = why.str(); });
  if (llvm::failed(layout))
    throw Error(fmt::format("for --picture: {}", reason));
  return simt::picture(*layout);
}

} // namespace kiln::tools
