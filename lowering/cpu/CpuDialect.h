// The namespace of the attributes in which passes of the CPU write down what they decided. It has no operation.

#pragma once

#include "mlir/IR/Dialect.h"

namespace kiln::lowering::cpu {

/// Attributes `cpu.…`:
///   cpu.view           unit, a load: it stays a view of the memory            (cpu-forward-loads)
///   cpu.in_place       array of bools, a loop: carried tiles that are updated (cpu-pin-carried-tiles)
///   cpu.epilogue       array of bools, a loop or product: sums that stores
///                      take straight from registers                          (cpu-fuse-epilogues, cpu-place-tiles)
///   cpu.placed         unit, what makes a tile: it lies in scratch memory     (cpu-place-tiles)
///   cpu.flushes        unit, a rounding to bf16: denormals may become 0      (cpu-select-products)
///   cpu.left           string, a product                                      (cpu-pack-operands)
///   cpu.right_turned   unit, a product                                        (cpu-pack-operands)
///   cpu.right_before   i64 from 1, a product: so many loops                   (cpu-pack-operands)
///   cpu.scratch_bytes  i64 from 0, a function                                 (cpu-allocate-scratch)
class CpuDialect : public mlir::Dialect {
public:
  explicit CpuDialect(mlir::MLIRContext *context);
  static llvm::StringRef getDialectNamespace() { return "cpu"; }
  mlir::LogicalResult verifyOperationAttribute(mlir::Operation *op, mlir::NamedAttribute attribute) override;

  MLIR_DEFINE_EXPLICIT_INTERNAL_INLINE_TYPE_ID(CpuDialect)
};

} // namespace kiln::lowering::cpu
