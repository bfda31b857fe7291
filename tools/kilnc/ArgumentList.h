// The flag --args: what a kernel is specialised for, without memory.
//
//     --args='f32[?x64], bf16[768], i64'
//     --args='x=f32[?x64], bias=bf16[768], n=i64'      by the parameters' names, in any order
//
// `?` is an extent known only at launch. A number is the real extent: it is fixed in the code only if the kernel asks
// for it. The tensors are taken to be dense, 64-byte aligned and apart from each other, and their offsets to fit 32
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
