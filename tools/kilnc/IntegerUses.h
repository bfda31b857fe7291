// For what a kernel uses the integers that it loads from each of its views: whether random ones can stand for them, and
// in which bounds.
//
//     Tile row = load(rows, {n}, {16});        rows: indices below the extent 0 of table
//     out = load(table, {row, 0}, {64});

#pragma once

#include "dialect/dsl/Trace.h"

#include <optional>
#include <vector>

namespace kiln::tools {

/// The use of a view's integers.
struct IntegerUse {
  enum class Kind {
    none,    // they are not read
    data,    // they only decide values: no position, no number of iterations, no lock
    index,   // they are positions themselves, at best below `bound`
    counter, // the kernel changes them in place: a sum, a counter, a lock
    unknown, // anything else
  } kind = Kind::none;
  std::optional<int64_t> bound; // the least extent that they index
};

/// The use of each argument; `none` for scalars and floating-point views. Nothing if the kernel does not trace, whose
/// errors compiling reports.
std::optional<std::vector<IntegerUse>> integerUses(const Kernel &kernel, const std::vector<ArgFacts> &args,
                                                   const std::string &config);

} // namespace kiln::tools
