// The flag --args has one part for each parameter of a kernel. Parts are by position, by name, or the first ones by
// position and the others by name.
//
//     --args='f32[?x64], out=f32[?x64], factor=f32'
//
// With --run, --tune and --bench an argument is a .npy file, a new tensor, or a number. `3` is i64, `2.5` f32, `true`
// boolean, and `bf16(2.5)` bf16. With --run, `->FILE` writes a tensor to a file after the launch.
//
// A new tensor, with fixed seeds:
//
//     f32[64x128]            random numbers from -1 to 1, or zeros if `->` writes the tensor to a file
//     i32[64]                random positions, if the kernel uses the integers as such; small random integers if they
//                            only decide values; else zeros
//     f32[64](0)             this number everywhere
//     i32[64](0..128)        random numbers from 0 to below 128

#pragma once

#include "dialect/dsl/Kernel.h"
#include "runtime/Tensor.h"

#include <optional>

namespace kiln::tools {

/// The parts, without names, in the order of the parameters; nothing for a parameter that has none. Without names there
/// are as many as the flag has, even if the kernel takes another number. Throws Error for an unknown name, for a
/// parameter that has two parts, and for a part by position after one by name.
std::vector<std::optional<std::string>> argumentParts(const Kernel &kernel, const std::string &text);

/// A kernel and its arguments, each view on its own.
struct ExpandedText {
  const Kernel *kernel;
  std::string args;
};
/// A kernel in its form for the views of --args, where `none` is an absent view, and a list of views stands in
/// brackets: `f32[?], none, [f32[8], f32[?]]`. A kernel that is not variadic is its own form. Throws Error for a part
/// that does not fit its parameter.
ExpandedText expandArguments(const Kernel &kernel, const std::string &text);

/// ` (x, y, alpha)`, the parameters' names for messages; empty if the registration names none.
std::string parameterNames(const Kernel &kernel);

// --- With --run, --tune and --bench (RunArguments.cpp) --------------------------------------------------------------

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

/// Its destructor removes the compiled kernels from the cache in memory: when a user's file is unloaded, none of its
/// kernels may remain there.
struct Forgetting {
  ~Forgetting();
};

} // namespace kiln::tools
