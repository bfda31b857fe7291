// Kernels of users' files, and built-in kernels.

#include "dialect/dsl/Nearest.h"
#include "kernels/Registry.h"
#include "tools/kilnc/UserFile.h"
#include "tools/libkiln/handles.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

using namespace kiln;
using namespace kiln::c;

struct kiln_library {
  std::unique_ptr<tools::UserFile> file; // null: the built-in kernels
  std::string name;
  std::vector<kiln_kernel> kernels;
};

kiln_status kiln_library_open(const char *path, kiln_library **library) {
  return guarded([&] {
    expectGiven(library, "a place for the library");
    auto made = std::make_unique<kiln_library>();
    made->name = path ? path : "Kiln";
    if (path)
      made->file = std::make_unique<tools::UserFile>(path, std::vector<std::string>{}, "");
    for (const Kernel *const kernel : made->file ? made->file->kernels() : kernels())
      made->kernels.push_back({kernel});
    *library = made.release();
  });
}

void kiln_library_close(kiln_library *library) { delete library; }

size_t kiln_library_size(const kiln_library *library) { return library ? library->kernels.size() : 0; }

const kiln_kernel *kiln_library_kernel(const kiln_library *library, size_t index) {
  return index < kiln_library_size(library) ? &library->kernels[index] : nullptr;
}

kiln_status kiln_library_find(const kiln_library *library, const char *name, const kiln_kernel **kernel) {
  return guarded([&] {
    expectGiven(library, "a library");
    expectGiven(name, "a kernel's name");
    expectGiven(kernel, "a place for the kernel");
    std::vector<std::string> names;
    for (const kiln_kernel &each : library->kernels) {
      if (each.kernel->name == name) {
        *kernel = &each;
        return;
      }
      names.push_back(each.kernel->name);
    }
    throw Error(fmt::format("'{}': {}", library->name, unknownName("kernel", name, names)));
  });
}

const char *kiln_kernel_name(const kiln_kernel *kernel) { return kernel ? kernel->kernel->name.c_str() : nullptr; }

size_t kiln_kernel_arguments(const kiln_kernel *kernel) { return kernel ? kernel->kernel->parameters.size() : 0; }

const char *kiln_kernel_argument(const kiln_kernel *kernel, size_t index, int *kind) {
  if (index >= kiln_kernel_arguments(kernel))
    return nullptr;
  const Kernel::Parameter &parameter = kernel->kernel->parameters[index];
  if (kind) {
    using Kind = Kernel::Parameter::Kind;
    *kind = parameter.kind == Kind::scalar     ? 0
            : parameter.kind == Kind::view     ? 1
            : parameter.kind == Kind::optional ? 2
                                               : 3;
  }
  return parameter.name.c_str();
}

kiln_status kiln_kernel_config(const kiln_kernel *kernel, const char *config, const char **full) {
  return guarded([&] {
    expectGiven(kernel, "a kernel");
    expectGiven(full, "a place for the config");
    static thread_local std::string made;
    made = kernel->kernel->configText(config ? config : "");
    *full = made.c_str();
  });
}

// --- Launches --------------------------------------------------------------------------------------------------------

/// The arguments of the calling thread's last launch, whose memory the next one uses.
static thread_local std::vector<Arg> spareArgs;

kiln_status kiln_launch(kiln_device *device, const kiln_kernel *kernel, const int64_t grid[3],
                        const kiln_argument *arguments, size_t count, const char *config) {
  return guarded([&] {
    expectGiven(device, "a device");
    expectGiven(kernel, "a kernel");
    expectGiven(grid, "a grid");
    const Kernel &function = *kernel->kernel;
    if (grid[1] == 0 || grid[2] == 0)
      throw Error(fmt::format("kernel '{}': expected at least 1 program on axes 1 and 2 of the grid, but got {}x{}x{}; "
                              "an axis that is not used has 1",
                              function.name, grid[0], grid[1], grid[2]));
    std::vector<Arg> args = std::exchange(spareArgs, {});
    setArgs(args, *device, arguments, count);
    const Grid programs(grid[0], grid[1], grid[2]);
    const auto launch = [&](const Kernel &form, const std::vector<Arg> &all) {
      const auto executable = compile(*device->device, form, all, config ? config : "");
      expectWritable(form.name, executable->signature(), arguments, count);
      const std::lock_guard lock(device->mutex);
      const Loan loan(*device, all);
      device->device->launch(*executable, programs, all);
    };
    if (function.isVariadic()) {
      const Expanded form = expanded(function, args);
      launch(*form.kernel, form.args);
    } else {
      launch(function, args);
    }
    spareArgs = std::move(args);
  });
}
