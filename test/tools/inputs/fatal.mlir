// A kernel, and a function that LLVM has no instruction for on this processor.

llvm.func @unselectable() {
  %0 = llvm.mlir.constant(0 : i32) : i32
  llvm.call_intrinsic "llvm.nvvm.barrier.cta.sync.aligned.all"(%0) : (i32) -> ()
  llvm.return
}
func.func @fatal(%x: memref<?xf32, strided<[1]>>) attributes {tile.kernel} {
  return
}
