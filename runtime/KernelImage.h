// Kernels that are compiled ahead of time, in a file that programs load and launch without the kernels' source.
//
//     kilnc axpy.cc --args='f32[?], f32[?], f32' --target=x86-64-v3,sm_80 --emit=image -o axpy.kiln
//
//     const std::vector<Kernel> kernels = loadKernels("axpy.kiln");
//     launch(*device, kernels[0], grid, {x, y, 0.5f});
//
// An image is a kernel for one target, config and list of arguments. A file has one or several, each a record
// (Record.h). The files of several kernels, configs or lists of arguments can be concatenated.

#pragma once

#include "dialect/dsl/Kernel.h"
#include "runtime/Device.h"
#include "runtime/Signature.h"

#include <memory>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace kiln {

/// A hash of the sources that fix the form of an image and the conventions of its code. Files with another one are
/// refused.
extern const char *const imageIdentity;

struct KernelImage {
  /// A field of the config and its value.
  struct Setting {
    std::string name, value, about;
  };
  std::string key;                           // of the compile cache: the module, the compiler and the backend
  std::string kernel;                        // its name
  std::string target;                        // as `kilnc --target` spells it
  std::vector<std::string> features;         // that a CPU must have: cpuFeatures(target)
  std::vector<Setting> config;               // every field
  std::vector<Kernel::Parameter> parameters; // of the registered kernel
  std::vector<size_t> counts;                // the numbers of views of its optional views and lists
  Signature signature;                       // the facts about arguments that the code relies on
  std::vector<char> code;                    // in the form of lowering/Abi.h, with texts and launch facts

  bool isGpu() const { return target.starts_with("sm_"); }
  std::string configText() const;
  /// The arguments in messages: `(x f32[?], y f32[?], alpha f32 scalar)`.
  std::string argumentText() const;
};

/// The features of CPUs that a target's code may use, by the names of __builtin_cpu_supports.
std::vector<std::string> cpuFeatures(const std::string &target);

/// The content of a file with these images.
std::string formatImages(const std::vector<KernelImage> &images);

/// Reads the content of a file. Throws Error (user) with the file's name and the reason, if it is damaged, cut off,
/// from another version of Kiln, or not a file of images.
std::vector<KernelImage> readImages(std::string_view bytes, const std::string &path);

/// The kernels of a file of images, in its order, for compile(), launch() and plans. The default of a config field is
/// the value of the kernel's first image. A launch takes the newest code that the device runs and that is compiled for
/// its config and arguments. Without one it throws an Error that names the file. Throws Error as readImages() does.
std::vector<Kernel> loadKernels(const std::string &path);

/// The executable of a kernel that loadKernels() returned, or of one that expanded() made from it.
struct FoundImage {
  std::shared_ptr<const Executable> executable;
  ArgumentUses uses; // by any of the kernel's images
};
/// The images of a kernel that loadKernels() gave, in the file's order; none for other kernels.
std::vector<const KernelImage *> findImages(const Kernel &kernel);
/// Whether loadKernels() gave the kernel, so that it has no function to trace.
bool isLoaded(const Kernel &kernel);
FoundImage findImage(Device &device, const Kernel &kernel, const std::string &config, const std::vector<Arg> &args,
                     void *workspace);

} // namespace kiln
