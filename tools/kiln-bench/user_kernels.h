// Kernels such as users write who unroll on the host: every iteration of a C++ loop is traced again, and the compiler
// gets a long kernel of many like parts. `kiln-bench compile` compiles them.

#pragma once

#include "dialect/dsl/Kernel.h"

namespace kiln::bench {

/// The 8 largest elements of each row, one after the other. x (M, 1024), values (M, 8), places (M, 8) i32.
extern const Kernel topKKernel;

/// Fourier transform of each row, by Stockham's algorithm. re, im (M, 64), their results (M, 64).
extern const Kernel fftKernel;

/// One step of an LSTM's cell. x (M, X), h (M, H), cell (M, H), wx (4, X, H), wh (4, H, H), bias (4, H); the next h and
/// cell (M, H).
extern const Kernel lstmKernel;

/// Each row in ascending order, by Batcher's bitonic network. x (M, 256), y (M, 256).
extern const Kernel sortKernel;

} // namespace kiln::bench
