// A kernel written as .mlir text, compiled and loaded into this process.

#include "test/lowering/Loaded.h"

#include "dialect/dsl/Types.h"
#include "lowering/Abi.h"

#include "mlir/IR/MLIRContext.h"
#include "mlir/Parser/Parser.h"
#include "llvm/ExecutionEngine/Orc/AbsoluteSymbols.h"
#include "llvm/ExecutionEngine/Orc/LLJIT.h"
#include "llvm/Support/MemoryBuffer.h"

#include <cstring>

namespace kiln::test {

std::vector<char> objectOf(const std::string &mlir, const std::string &target, const lowering::StageSink &sink) {
  mlir::DialectRegistry registry;
  lowering::registerDialects(registry);
  mlir::MLIRContext context(registry, mlir::MLIRContext::Threading::DISABLED);
  const auto module = mlir::parseSourceString<mlir::ModuleOp>(mlir, &context);
  if (!module)
    throw Error("expected a module that parses");
  return lowering::compile(*module, *lowering::openBackend(target), sink);
}

ArgumentBlock &ArgumentBlock::real(float value) {
  int64_t slot = 0;
  std::memcpy(&slot, &value, sizeof value);
  return integer(slot);
}

template <class T> static T valueOf(llvm::Expected<T> value) {
  if (!value)
    throw Error(llvm::toString(value.takeError()), Fault::internal);
  return std::move(*value);
}

Loaded::Loaded(const std::vector<char> &object, const std::string &kernel)
    : jit(valueOf(llvm::orc::LLJITBuilder().create())) {
  llvm::cantFail(
      jit->addObjectFile(llvm::MemoryBuffer::getMemBufferCopy(llvm::StringRef(object.data(), object.size()), kernel)));
  function = valueOf(jit->lookup(kernel)).toPtr<void (*)(const void *, int64_t, void *)>();
  bytes = *valueOf(jit->lookup(kernel + abi::scratchSuffix)).toPtr<const int64_t *>();
}

Loaded::~Loaded() = default;

void Loaded::run(const ArgumentBlock &block) const {
  const size_t room = (bytes + abi::scratchAlignment) / abi::scratchAlignment * abi::scratchAlignment;
  const std::unique_ptr<void, void (*)(void *)> scratch(std::aligned_alloc(abi::scratchAlignment, room), std::free);
  std::memset(scratch.get(), 0xa5, room);
  const int64_t programs = block.slots[0] * block.slots[1] * block.slots[2];
  for (int64_t program = 0; program < programs; ++program)
    function(block.slots.data(), program, scratch.get());
}

} // namespace kiln::test
