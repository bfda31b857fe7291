// The driver's modules, and launches.

#include "test/runtime/cuda/stub/state.h"

#include <algorithm>
#include <cstring>

using namespace kiln::stub;

namespace {
/// A module; its one kernel's handle is the module's.
struct Module {
  std::shared_ptr<Code> code;
  int64_t dynamicShared = 48 << 10; // what a launch may ask for
};
} // namespace

static auto &modules = *new std::map<const void *, Module>;

Result cuModuleLoadDataEx(ModuleHandle *module, const void *image, unsigned count, JitOption *options, void **values) {
  return call(__func__, [&, name = __func__](State &all) {
    for (unsigned i = 0; i < count; ++i)
      all.note(name, {static_cast<uint64_t>(options[i])});
    std::string log;
    std::shared_ptr<Code> code = loadImage(static_cast<const char *>(image), log);
    const auto value = [&](JitOption wanted) -> void * {
      JitOption *const found = std::find(options, options + count, wanted);
      return found == options + count ? nullptr : values[found - options];
    };
    if (char *const to = static_cast<char *>(value(JitOption::errorLog)))
      to[log.copy(to, reinterpret_cast<size_t>(value(JitOption::errorLogBytes)) - 1)] = '\0';
    if (!code)
      return std::strncmp(static_cast<const char *>(image), "\177ELF", 4) == 0 ? Result::noBinaryForGpu
                                                                               : Result::invalidPtx;
    *module = all.make<ModuleHandle>("module");
    modules[*module] = {std::move(code)};
    return success;
  });
}

Result cuModuleUnload(ModuleHandle module) {
  return call(__func__, [&](State &all) {
    if (const auto found = modules.find(module); found != modules.end() && found->second.code.use_count() > 1)
      return invalidValue; // a launch or a graph of it is pending
    modules.erase(module);
    return all.destroy(module, "module");
  });
}

Result cuModuleGetFunction(FunctionHandle *function, ModuleHandle module, const char *name) {
  return call(__func__, [&](State &all) {
    if (!all.has(module, "module"))
      return invalidHandle;
    *function = reinterpret_cast<FunctionHandle>(module);
    return modules[module].code->hasKernel(name) ? success : Result::notFound;
  });
}

Result cuModuleGetGlobal_v2(Address *address, size_t *, ModuleHandle module, const char *name) {
  return call(__func__, [&](State &all) {
    if (!all.has(module, "module"))
      return invalidHandle;
    *address = reinterpret_cast<Address>(modules[module].code->variable(name));
    return *address ? success : Result::notFound;
  });
}

Result cuFuncSetAttribute(FunctionHandle function, FunctionAttribute, int value) {
  return call(__func__, [&](State &all) {
    if (!all.has(function, "module"))
      return invalidHandle;
    if (value > all.attributes[int(Attribute::ctaSharedBytes)])
      return invalidValue;
    modules[function].dynamicShared = value;
    return success;
  });
}

/// The bytes that `extra` gives for all parameters together.
static std::vector<char> parametersOf(void **extra) {
  const char *bytes = nullptr;
  size_t count = 0;
  for (; extra && *extra; extra += 2)
    if (extra[0] == launchParameterBuffer)
      bytes = static_cast<const char *>(extra[1]);
    else if (extra[0] == launchParameterBytes)
      count = *static_cast<const size_t *>(extra[1]);
  return {bytes, bytes + count};
}

Result cuLaunchKernel(FunctionHandle function, unsigned x, unsigned y, unsigned z, unsigned threads, unsigned rows,
                      unsigned layers, unsigned dynamicShared, StreamHandle stream, void **, void **extra) {
  return call(__func__, [&](State &all) {
    const auto found = modules.find(function);
    if (found == modules.end())
      return invalidHandle;
    const Module &module = found->second;
    const auto fits = [](int64_t wanted, int64_t got) { return wanted < 0 || wanted == got; };
    if (dynamicShared > module.dynamicShared || !fits(module.code->threads(), threads) || x == 0 || y == 0 || z == 0)
      return invalidValue;
    if (!module.code->doesRun())
      return success;
    std::vector<char> parameters = parametersOf(extra);
    if (!fits(module.code->parameterBytes(), static_cast<int64_t>(parameters.size())))
      return invalidValue;
    return all.ask(stream, "cuLaunchKernel",
                   [code = module.code, grid = std::array{x, y, z}, block = std::array{threads, rows, layers},
                    dynamicShared, bytes = std::move(parameters)] {
                     return code->run(grid, block, dynamicShared, bytes) ? success : Result::illegalAddress;
                   });
  });
}

// The driver is nvJitLink, too, which makes nothing: for tests of the code that a device asks for.
#define KILN_STUB_LINKER(name)                                                                                         \
  extern "C" int nvJitLink##name() { return 1; }
KILN_STUB_LINKER(Version)
KILN_STUB_LINKER(Create)
KILN_STUB_LINKER(Destroy)
KILN_STUB_LINKER(AddData)
KILN_STUB_LINKER(Complete)
KILN_STUB_LINKER(GetLinkedCubinSize)
KILN_STUB_LINKER(GetLinkedCubin)
KILN_STUB_LINKER(GetErrorLogSize)
KILN_STUB_LINKER(GetErrorLog)
