// The arguments of --run and --tune: arrays in files, new tensors, and numbers.
//
// An argument is a .npy file, a new tensor `f32[64x128]`, or a number: `3` is i64, `2.5` f32, `true` boolean, and
// `bf16(2.5)` as it says. `->FILE` writes a tensor to a file after the launch. Arguments come in the order of the
// kernel's parameters, and `name=` gives one to the parameter of that name.

#pragma once

#include "runtime/Tensor.h"

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

/// Arguments in the memory of a device.
struct LaunchMemory {
  /// What a new tensor holds: zeros, or numbers from -1 to 1 where it has a floating-point type.
  enum class Fresh { zeros, numbers };
  LaunchMemory(const std::shared_ptr<Device> &device, const std::vector<RunArgument> &arguments, Fresh fresh);

  std::vector<Tensor> tensors; // those of numbers are unset
  std::vector<Arg> args;
};

/// Forgets, at its end, the kernels that were compiled: one out of a user's file must leave nothing behind when that is
/// unloaded.
struct Forgetting {
  ~Forgetting();
};

} // namespace kiln::tools
