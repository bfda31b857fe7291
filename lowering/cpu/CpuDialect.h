// The dialect of the attributes that record the decisions of CPU passes. It has no operations.

#pragma once

#include "mlir/IR/Dialect.h"

namespace kiln::lowering::cpu {

/// Attributes `cpu.…`:
///   cpu.view           unit, a load: its tile is read directly from the view  (cpu-forward-loads)
///   cpu.in_place       array of bools, a loop: carried tiles that are updated
///                      in place                                              (cpu-pin-carried-tiles)
///   cpu.epilogue       array of bools, a loop or product: accumulators that
///                      stores read directly from registers                   (cpu-fuse-epilogues, cpu-place-tiles)
///   cpu.scratch        unit, definition of a tile: it gets scratch memory     (cpu-place-tiles)
///   cpu.flushes        unit, a rounding to bf16: denormals may become 0      (cpu-select-products)
///   cpu.left           string, a product                                      (cpu-pack-operands)
///   cpu.right_transposed  unit, a product                                     (cpu-pack-operands)
///   cpu.right_before   i64 from 1, a product: loops that b's packing precedes (cpu-pack-operands)
///   cpu.scratch_bytes  i64 from 0, a function                                 (cpu-allocate-scratch)
class CpuDialect : public mlir::Dialect {
public:
  explicit CpuDialect(mlir::MLIRContext *context);
  static llvm::StringRef getDialectNamespace() { return "cpu"; }
  mlir::LogicalResult verifyOperationAttribute(mlir::Operation *op, mlir::NamedAttribute attribute) override;

  MLIR_DEFINE_EXPLICIT_INTERNAL_INLINE_TYPE_ID(CpuDialect)
};

} // namespace kiln::lowering::cpu
