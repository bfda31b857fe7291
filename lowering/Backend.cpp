// The list of backends, their common lowering from the upstream dialects to the LLVM dialect, and the order of
// arguments.

#include "lowering/Backend.h"

#include "lowering/cpu/CpuBackend.h"
#include "lowering/gpu/GpuBackend.h"

#include "mlir/Conversion/ArithToLLVM/ArithToLLVM.h"
#include "mlir/Conversion/ControlFlowToLLVM/ControlFlowToLLVM.h"
#include "mlir/Conversion/ConvertToLLVM/ToLLVMPass.h"
#include "mlir/Conversion/FuncToLLVM/ConvertFuncToLLVM.h"
#include "mlir/Conversion/MathToLLVM/MathToLLVM.h"
#include "mlir/Conversion/MemRefToLLVM/MemRefToLLVM.h"
#include "mlir/Conversion/UBToLLVM/UBToLLVM.h"
#include "mlir/Conversion/VectorToLLVM/ConvertVectorToLLVM.h"
#include "mlir/Dialect/ControlFlow/IR/ControlFlow.h"
#include "mlir/Dialect/UB/IR/UBOps.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "mlir/IR/BuiltinTypes.h"
#include "mlir/IR/TypeRange.h"

using namespace mlir;

namespace kiln::lowering {

std::shared_ptr<const Backend> openBackend(const std::string &name) {
  const std::shared_ptr<const Backend> gpu = gpu::openBackend(name);
  return gpu ? gpu : cpu::openBackend(name);
}

std::vector<std::shared_ptr<const Backend>> allBackends() {
  return {cpu::openBackend("cpu"), gpu::openBackend("sm_80")};
}

void registerLlvmConversions(mlir::DialectRegistry &registry) {
  registry.insert<mlir::vector::VectorDialect, mlir::cf::ControlFlowDialect, mlir::ub::UBDialect>();
  mlir::arith::registerConvertArithToLLVMInterface(registry);
  mlir::cf::registerConvertControlFlowToLLVMInterface(registry);
  mlir::registerConvertFuncToLLVMInterface(registry);
  mlir::registerConvertMathToLLVMInterface(registry);
  mlir::registerConvertMemRefToLLVMInterface(registry);
  mlir::ub::registerConvertUBToLLVMInterface(registry);
  mlir::vector::registerConvertVectorToLLVMInterface(registry);
}

void addConvertToLlvm(mlir::OpPassManager &pm) {
  mlir::ConvertToLLVMPassOptions options;
  options.allowPatternRollback = false; // no rollback, so no log of changes
  pm.addPass(mlir::createConvertToLLVMPass(options));
}

std::vector<abi::Slot> slotsOf(TypeRange arguments) {
  std::vector<abi::Slot> slots;
  for (const auto [number, type] : llvm::enumerate(arguments)) {
    const int argument = static_cast<int>(number);
    const auto view = dyn_cast<MemRefType>(type);
    if (!view) {
      slots.push_back({abi::Slot::scalar, argument});
      continue;
    }
    slots.push_back({abi::Slot::pointer, argument});
    const auto addDynamic = [&](abi::Slot::Kind kind, ArrayRef<int64_t> values) {
      for (const auto [dimension, value] : llvm::enumerate(values))
        if (ShapedType::isDynamic(value))
          slots.push_back({kind, argument, static_cast<int>(dimension)});
    };
    addDynamic(abi::Slot::extent, view.getShape());
    addDynamic(abi::Slot::stride, view.getStridesAndOffset().first);
  }
  return slots;
}

} // namespace kiln::lowering
