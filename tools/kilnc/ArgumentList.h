// The flag --args without memory: the types and facts for which a kernel is specialised.
//
//     --args='f32[?x64], bf16[768], i64'
//     --args='x=f32[?x64], bias=bf16[768], n=i64'      by the parameters' names, in any order
//
// `?` is an extent known only at launch. A number is the real extent; it is static only if the kernel reads it by
// View::extent. Tensors are assumed to be dense, 64-byte aligned and not to overlap, and their offsets to fit in 32
// bits.

#pragma once

#include "dialect/dsl/Trace.h"
#include "lowering/Backend.h"

namespace kiln::tools {

/// Arguments as the flag spells them.
struct ArgumentList {
  Specialisation facts;
  std::set<std::pair<int, int>> unknown; // (argument, dimension) spelt `?`

  /// Reads the flag's text for a kernel. Throws Error with the part that is wrong, and unless the arguments are those
  /// of the kernel. Facts of other kinds than these are left out.
  static ArgumentList parse(const Kernel &kernel, const std::string &text, const lowering::FactKinds &kinds);

private:
  void check(const Kernel &kernel) const;
};

} // namespace kiln::tools
