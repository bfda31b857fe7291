// Assembles PTX by NVIDIA's nvJitLink ("nvJitLink" in the CUDA Toolkit's documentation). Its functions are declared
// here, so that the toolkit is not needed for building.

#include "lowering/gpu/GpuTarget.h"

#include "dialect/dsl/Types.h"
#include "lowering/Crashes.h"

#include "llvm/ADT/ScopeExit.h"
#include "llvm/ADT/StringExtras.h"

#include <cstdint>
#include <cstdlib>
#include <dlfcn.h>

namespace kiln::lowering::gpu {

namespace {
/// The library. A function returns 0 on success.
struct Linker {
  using Handle = struct nvJitLink *;
  static constexpr int ptxInput = 2; // NVJITLINK_INPUT_PTX

  int (*version)(unsigned *major, unsigned *minor) = nullptr;
  int (*create)(Handle *, uint32_t optionCount, const char **options) = nullptr;
  int (*destroy)(Handle *) = nullptr;
  int (*addData)(Handle, int kind, const void *data, size_t bytes, const char *name) = nullptr;
  int (*complete)(Handle) = nullptr;
  int (*cubinSize)(Handle, size_t *) = nullptr;
  int (*cubin)(Handle, void *) = nullptr;
  int (*errorLogSize)(Handle, size_t *) = nullptr;
  int (*errorLog)(Handle, char *) = nullptr;
};
} // namespace

/// Possible names of the library; none if CUDA_PATH says that there is no toolkit.
static std::vector<std::string> candidates() {
  std::vector<std::string> folders = {"", "/usr/local/cuda/lib64/"};
  if (const char *const toolkit = std::getenv("CUDA_PATH")) {
    if (!*toolkit)
      return {};
    if (*toolkit != '/')
      throw Error("expected CUDA_PATH to be an absolute path, or empty, but got '" + std::string(toolkit) + "'",
                  Fault::device);
    folders.insert(folders.begin() + 1, std::string(toolkit) + "/lib64/");
  }
  std::vector<std::string> names;
  for (const std::string &folder : folders)
    for (const char *const name : {"libnvJitLink.so.13", "libnvJitLink.so.12"})
      names.push_back(folder + name);
  return names;
}

/// Whether the library has all functions.
static bool lookUp(void *library, Linker &linker) {
  const auto find = [&]<class F>(F *&function, const char *name) {
    function = reinterpret_cast<F *>(dlsym(library, name));
    return function != nullptr;
  };
  return find(linker.version, "nvJitLinkVersion") && find(linker.create, "nvJitLinkCreate") &&
         find(linker.destroy, "nvJitLinkDestroy") && find(linker.addData, "nvJitLinkAddData") &&
         find(linker.complete, "nvJitLinkComplete") && find(linker.cubinSize, "nvJitLinkGetLinkedCubinSize") &&
         find(linker.cubin, "nvJitLinkGetLinkedCubin") && find(linker.errorLogSize, "nvJitLinkGetErrorLogSize") &&
         find(linker.errorLog, "nvJitLinkGetErrorLog");
}

/// The library, or null; searched once.
static const Linker *openLinker() {
  static const Linker *const found = []() -> const Linker * {
    static Linker linker;
    for (const std::string &name : candidates())
      if (void *const library = dlopen(name.c_str(), RTLD_NOW | RTLD_LOCAL); library && lookUp(library, linker))
        return &linker;
    return nullptr;
  }();
  return found;
}

static const Linker &theLinker() {
  if (const Linker *const linker = openLinker())
    return *linker;
  const std::vector<std::string> sought = candidates();
  throw Error("expected NVIDIA's nvJitLink, which makes cubins, but found none; looked for " +
                  (sought.empty() ? "nothing, since CUDA_PATH is empty" : llvm::join(sought, ", ")),
              Fault::device);
}

bool hasCubinLinker() { return openLinker() != nullptr; }

std::string cubinLinkerVersion() {
  unsigned major = 0, minor = 0;
  theLinker().version(&major, &minor);
  return "nvJitLink " + std::to_string(major) + "." + std::to_string(minor);
}

std::vector<char> emitCubin(const std::vector<char> &ptx, const GpuTarget &target) {
  const Linker &linker = theLinker();
  const std::string architecture = "-arch=" + target.architecture, text(ptx.begin(), ptx.end());
  const char *options[] = {architecture.c_str(), "-lineinfo"};
  Linker::Handle handle = nullptr;
  if (linker.create(&handle, std::size(options), options) != 0)
    throw BackendError("nvJitLink does not take " + architecture);
  const auto destroy = llvm::scope_exit([&] { linker.destroy(&handle); });
  size_t size = 0;
  if (linker.addData(handle, Linker::ptxInput, text.c_str(), text.size() + 1, "kernel.ptx") != 0 ||
      linker.complete(handle) != 0 || linker.cubinSize(handle, &size) != 0) {
    linker.errorLogSize(handle, &size);
    std::string log(size, '\0');
    linker.errorLog(handle, log.data());
    throw BackendError("nvJitLink: " + log.substr(0, log.find('\0')));
  }
  std::vector<char> cubin(size);
  if (linker.cubin(handle, cubin.data()) != 0)
    throw BackendError("nvJitLink made a cubin and does not give it");
  return cubin;
}

} // namespace kiln::lowering::gpu
