// The flag --run: launches a kernel on arrays in files, so that trying one needs no program.
//
//     kilnc axpy.cc --run --grid=64 --args='x.npy, y.npy->y.npy, 0.5'
//     kilnc --kernel=matmul --run --grid=2,4 --args='c=f32[256x512]->c.npy, a=a.npy, b=b.npy' --repeat=20
//
// An argument is a .npy file, a new tensor of zeros `f32[64x128]`, or a number: `3` is i64, `2.5` f32, `true` boolean,
// and `bf16(2.5)` what it says. `->FILE` writes a tensor to a file after the launch. Arguments come in the order of the
// kernel's parameters, and `name=` gives one to the parameter of that name.

#pragma once

#include "dialect/dsl/Plan.h"

#include <optional>

namespace kiln::tools {

/// An argument as the flag spells it: one of the first three.
struct RunArgument {
  std::string file; // to read
  std::optional<std::pair<Type, Shape>> zeros;
  std::optional<Arg> number;
  std::string output; // to write; empty for none
};

/// The arguments of `kernel` in the order of its parameters. Throws Error with the part that is wrong.
std::vector<RunArgument> parseRunArguments(const Kernel &kernel, const std::string &text);

/// What --run is told besides the kernel.
struct RunOptions {
  std::string device = "cpu", grid, args, config;
  int repeat = 0; // launches to time after the first, whose result the files get
};

/// Launches the kernel once and writes what is to be written, then `repeat` times more; a line with the time of the
/// launch, or the median of the repeated ones. Compiling is not part of it. Throws Error; nothing is written when the
/// launch or one of its checks fails.
std::string runKernel(const Kernel &kernel, const RunOptions &options);

} // namespace kiln::tools
