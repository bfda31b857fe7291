// Collects the kernels that a piece of code registers, for programs that load code at run time.
//
//     Registrations registrations;
//     void *library = dlopen(path, RTLD_NOW);     // its static initialisers call kernel()
//     registrations.kernels                       // these kernels, in order

#pragma once

#include "dialect/dsl/Kernel.h"

namespace kiln {

/// Receives a copy of every kernel that this thread registers with kernel() during its lifetime. If several exist, the
/// youngest receives it. The copies call into the loaded code: destroy them before it is unloaded.
class Registrations {
public:
  Registrations();
  ~Registrations();
  Registrations(const Registrations &) = delete;

  std::vector<Kernel> kernels;

private:
  Registrations *outer;
};

} // namespace kiln
