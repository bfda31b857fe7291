// The arguments of --run, --tune and --bench: arrays in files, new tensors, and numbers.
//
// An argument is a .npy file, a new tensor, or a number: `3` is i64, `2.5` f32, `true` boolean, and `bf16(2.5)` as it
// says. With --run, `->FILE` writes a tensor to a file after the launch. Arguments come in the order of the kernel's
// parameters, and `name=` gives one to the parameter of that name.
//
// A new tensor, with fixed seeds:
//
//     f32[64x128]            random numbers from -1 to 1, or zeros if `->` writes the tensor to a file
//     i32[64]                random positions, if the kernel uses the integers as such; small random integers if they
//                            only decide values; else zeros
//     f32[64](0)             this number everywhere
//     i32[64](0..128)        random numbers from 0 to below 128

#pragma once

#include "runtime/Tensor.h"

#include <optional>

namespace kiln::tools {

/// The numbers of a new tensor: `low` everywhere, or random ones from `low` to below `high`. Of the tensor's type.
struct Fill {
  Arg low;
  std::optional<Arg> high;
};

/// An argument as the flag spells it: one of the first three.
struct RunArgument {
  struct Fresh {
    Type type;
    Shape extents;
    std::optional<Fill> fill;
  };
  std::string file; // to read
  std::optional<Fresh> fresh;
  std::optional<Arg> number;
  std::string output; // to write; empty for none
};

/// The arguments of `kernel` in the order of its parameters. Throws Error with the part that is wrong.
std::vector<RunArgument> parseRunArguments(const Kernel &kernel, const std::string &text);

/// Arguments in the memory of a device.
struct LaunchMemory {
  /// Reads files and fills new tensors as the list above has it; `config` is one of the kernel's. Notes go to stderr
  /// unless `quiet`.
  LaunchMemory(const std::shared_ptr<Device> &device, const Kernel &kernel, const std::string &config,
               const std::vector<RunArgument> &arguments, bool quiet = false);

  std::vector<Tensor> tensors; // those of numbers are unset
  std::vector<Arg> args;
};

/// Forgets, at its end, the kernels that were compiled: one out of a user's file must leave nothing behind when that is
/// unloaded.
struct Forgetting {
  ~Forgetting();
};

} // namespace kiln::tools
