// Links a kernel's object with JITLink. Each object has its own symbol table, so that specialisations of a kernel may
// have equal names. Its memory is freed with the executable.

#include "runtime/cpu/ObjectLoader.h"

#include "dialect/dsl/Types.h"

#include "llvm/ExecutionEngine/Orc/AbsoluteSymbols.h"
#include "llvm/ExecutionEngine/Orc/Core.h"
#include "llvm/ExecutionEngine/Orc/ObjectLinkingLayer.h"
#include "llvm/ExecutionEngine/Orc/SelfExecutorProcessControl.h"
#include "llvm/Support/MemoryBuffer.h"

#include <fmt/format.h>

#include <atomic>
#include <mutex>

using namespace llvm;
using namespace llvm::orc;

namespace kiln {

/// The first error of linking; JITLink reports some errors to the session only.
struct ObjectLoader::Linker {
  Linker() : session(cantFail(SelfExecutorProcessControl::Create())), layer(session) {
    session.setErrorReporter([this](llvm::Error error) {
      const std::lock_guard lock(mutex);
      reported += (reported.empty() ? "" : "; ") + toString(std::move(error));
    });
    functions[session.intern(abi::checkFailed)] = {ExecutorAddr::fromPtr(&kiln_check_failed),
                                                   JITSymbolFlags::Exported | JITSymbolFlags::Callable};
    functions[session.intern(abi::printTile)] = {ExecutorAddr::fromPtr(&kiln_print),
                                                 JITSymbolFlags::Exported | JITSymbolFlags::Callable};
    functions[session.intern(abi::waits)] = {ExecutorAddr::fromPtr(&kiln_waits),
                                             JITSymbolFlags::Exported | JITSymbolFlags::Callable};
  }
  ~Linker() { consumeError(session.endSession()); }

  std::string takeReported() {
    const std::lock_guard lock(mutex);
    return std::exchange(reported, {});
  }

  ExecutionSession session;
  ObjectLinkingLayer layer;
  SymbolMap functions;
  std::atomic<int64_t> loaded = 0;
  std::mutex mutex;
  std::string reported;
};

namespace {
/// Removes its object from the linker on destruction.
struct LinkedObject : LoadedObject {
  LinkedObject(std::shared_ptr<ObjectLoader> loader, ExecutionSession &session, JITDylib &library)
      : loader(std::move(loader)), session(session), library(library) {}
  ~LinkedObject() override { consumeError(session.removeJITDylib(library)); }
  std::shared_ptr<ObjectLoader> loader;
  ExecutionSession &session;
  JITDylib &library;
};
} // namespace

ObjectLoader::ObjectLoader() : linker(std::make_unique<Linker>()) {}
ObjectLoader::~ObjectLoader() = default;

std::shared_ptr<const LoadedObject> ObjectLoader::load(const std::string &kernel, const std::vector<char> &object) {
  ExecutionSession &session = linker->session;
  JITDylib &library = session.createBareJITDylib(fmt::format("{}.{}", kernel, linker->loaded++));
  auto linked = std::make_shared<LinkedObject>(shared_from_this(), session, library);
  const auto expect = [&](llvm::Error error) {
    if (error)
      throw Error(fmt::format("kernel '{}': its object does not link: {} {}", kernel, toString(std::move(error)),
                              linker->takeReported()),
                  Fault::internal);
  };
  const auto address = [&](const std::string &symbol) {
    auto found = session.lookup({&library}, symbol);
    if (!found)
      expect(found.takeError());
    return found->getAddress();
  };
  expect(library.define(absoluteSymbols(linker->functions)));
  expect(linker->layer.add(library, MemoryBuffer::getMemBufferCopy(StringRef(object.data(), object.size()), kernel)));
  linked->function = address(kernel).toPtr<abi::CpuKernel>();
  linked->scratchBytes = *address(kernel + abi::scratchSuffix).toPtr<const int64_t *>();
  return linked;
}

} // namespace kiln
