// The kernels that a piece of code registers, for programs that load such code while they run.
//
//     Registrations registrations;
//     void *library = dlopen(path, RTLD_NOW);     // its static initialisers call kernel()
//     registrations.kernels                       // what they made, in their order

#pragma once

#include "dialect/dsl/Kernel.h"

namespace kiln {

/// Receives a copy of every kernel that this thread's calls of kernel() make while it lives; of several the youngest
/// does. The copies call into the code that made them: they must go before it is unloaded.
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
