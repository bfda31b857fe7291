// Operations in which values decide positions, on tiles with layouts, and the operations of one thread that they need.

#ifndef KILN_DIALECT_SIMT_SORTOPS_TD
#define KILN_DIALECT_SIMT_SORTOPS_TD

include "dialect/simt/SimtDialect.td"
include "dialect/tile/ElementTypes.td"

def Simt_SortedTile : Type<And<[StaticShapeTensorOf<[Tile_Element]>.predicate,
    CPred<"::llvm::isa_and_present<::kiln::simt::LayoutAttr>(::llvm::cast<::mlir::RankedTensorType>($_self).getEncoding())">]>,
    "tile with a layout", "::mlir::RankedTensorType">;
def Simt_SortedBuffer : Type<And<[MemRefRankOf<[I8], [1]>.predicate,
    CPred<"::llvm::cast<::mlir::MemRefType>($_self).getMemorySpaceAsInt() == 3">]>, "buffer in shared memory",
    "::mlir::MemRefType">;

def Simt_SortOp : Simt_Op<"sort", [Pure]> {
  let summary = "stages of a bitonic sort along an axis, within each warp";
  let description = [{
    The extent along the axis is a power of two, 2^m. A stage has a level l, from 1 to m, and a bit b, from l − 1 down to 0. Its number is
    `l · (l − 1) / 2 + l − 1 − b`. It compares each element with the one whose position differs in bit b. The smaller one goes to the position
    whose bit b equals bit l. After all stages, `stages [0, m · (m + 1) / 2]`, elements are ascending. With a second tile of numbers, equal
    elements are in the order of these numbers, which move with them. No stage uses a bit that stands for warps.

    ```mlir
    #row = #simt.layout<64, reg [d0:1], lane [d0:2 d0:4 d0:8 d0:16 d0:32], warp [* *]>
    func.func @example(%x: tensor<64xi64, #row>, %y: tensor<64xi32, #row>) -> tensor<64xi32, #row> {
      %0:2 = simt.sort %x, %y axis 0 stages [0, 21]
          : (tensor<64xi64, #row>, tensor<64xi32, #row>) -> (tensor<64xi64, #row>, tensor<64xi32, #row>)
      return %0#1 : tensor<64xi32, #row>
    }
    ```
  }];
  let arguments = (ins Variadic<Simt_SortedTile>:$sources, I64Attr:$axis, DenseI64ArrayAttr:$stages);
  let results = (outs Variadic<Simt_SortedTile>:$results);
  let assemblyFormat = [{
    $sources `axis` $axis `stages` $stages attr-dict `:` functional-type($sources, $results)
  }];
  let extraClassDeclaration = [{
    /// Level and bit of a stage.
    static std::pair<unsigned, unsigned> stageOf(int64_t number);
    /// The stages of a sort of 2^bits elements.
    static int64_t numStages(int64_t bits) { return bits * (bits + 1) / 2; }
  }];
}

def Simt_LookUpOp : Simt_Op<"look_up"> {
  let summary = "gather from shared memory: each thread reads elements at the byte offsets of a tile";
  let description = [{
    An offset is a multiple of the element's size. A negative offset reads 0.

    ```mlir
    #row = #simt.layout<64, reg [d0:32], lane [d0:1 d0:2 d0:4 d0:8 d0:16], warp []>
    func.func @example(%buffer: memref<256xi8, 3>, %places: tensor<64xi32, #row>) -> tensor<64xf32, #row> {
      %0 = simt.look_up %buffer[%places] : memref<256xi8, 3>, tensor<64xi32, #row> -> tensor<64xf32, #row>
      return %0 : tensor<64xf32, #row>
    }
    ```
  }];
  let arguments = (ins Arg<Simt_SortedBuffer, "", [MemRead]>:$buffer, Simt_SortedTile:$places);
  let results = (outs Simt_SortedTile:$result);
  let assemblyFormat = "$buffer `[` $places `]` attr-dict `:` type($buffer) `,` type($places) `->` type($result)";
}

def Simt_CountOp : Simt_Op<"count"> {
  let summary = "histogram in shared memory: each element of a tile adds 1 to its counter";
  let description = [{
    The counter is the i32 number at the byte offset that the tile gives; a negative offset counts nothing. Each addition is
    indivisible, and the order of threads is unspecified.

    ```mlir
    #row = #simt.layout<64, reg [d0:32], lane [d0:1 d0:2 d0:4 d0:8 d0:16], warp []>
    func.func @example(%buffer: memref<256xi8, 3>, %places: tensor<64xi32, #row>) {
      simt.count %buffer[%places] : memref<256xi8, 3>, tensor<64xi32, #row>
      return
    }
    ```
  }];
  let arguments = (ins Arg<Simt_SortedBuffer, "", [MemRead, MemWrite]>:$buffer, Simt_SortedTile:$places);
  let assemblyFormat = "$buffer `[` $places `]` attr-dict `:` type($buffer) `,` type($places)";
}

def Simt_IncrementOp : Simt_Op<"increment", [MemoryEffects<[MemRead, MemWrite]>]> {
  let summary = "atomically adds 1 to a 32-bit number in shared memory";
  let description = [{
    It is done at the address, if the predicate is true.

    ```mlir
    func.func @example(%address: i32, %p: i1) {
      simt.increment %address if %p
      return
    }
    ```
  }];
  let arguments = (ins I32:$address, I1:$predicate);
  let assemblyFormat = "$address `if` $predicate attr-dict";
  let hasVerifier = 0;
}

#endif
