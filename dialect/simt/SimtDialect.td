// The `simt` dialect: the operations of the threads of one GPU program.
//
// A tile of the `tile` dialect belongs to all threads of a program together. Here it has a *layout*, the encoding of its
// tensor type, which says in which register of which lane of which warp each element is. Operations on tiles move
// elements between threads. Operations on scalars and small vectors are the work of one thread, an instruction or a few.
// Earlier passes choose layouts and exchanges; `gpu-distribute` goes from tiles to threads, `gpu-lower-to-ptx` from threads
// to PTX.

#ifndef KILN_DIALECT_SIMT_SIMTDIALECT_TD
#define KILN_DIALECT_SIMT_SIMTDIALECT_TD

include "mlir/IR/AttrTypeBase.td"
include "mlir/IR/EnumAttr.td"
include "mlir/IR/OpBase.td"
include "mlir/IR/TensorEncoding.td"
include "mlir/Interfaces/InferIntRangeInterface.td"
include "mlir/Interfaces/SideEffectInterfaces.td"

def Simt_Dialect : Dialect {
  let name = "simt";
  let cppNamespace = "::kiln::simt";
  let summary = "tiles distributed over the threads of a GPU program, and operations of one thread";
  let useDefaultAttributePrinterParser = 1;
  let hasOperationAttrVerify = 1;
}

class Simt_Op<string mnemonic, list<Trait> traits = []> : Op<Simt_Dialect, mnemonic, traits> {
  let hasVerifier = 1;
}

def Simt_LayoutAttr : AttrDef<Simt_Dialect, "Layout", [DeclareAttrInterfaceMethods<VerifiableTensorEncoding>]> {
  let mnemonic = "layout";
  let summary = "which register of which lane of which warp holds an element";
  let description = [{
    A linear map over bits. Each bit of the number of a register, lane or warp stands for one bit of a coordinate (`d1:8` is bit 3
    of dimension 1). A bit that stands for none (`*`) means that threads hold copies. An extent that is not a power of two is an
    odd number of repeats of a core, whose extent is a power of two. Repeats are in registers. dialect/simt/layout/README.md has
    the details.

    ```mlir
    #simt.layout<64x96, rep 1x3, reg [d1:1 d0:8 d1:8 d1:16], lane [d1:2 d1:4 d0:1 d0:2 d0:4], warp [d0:16 d0:32]>
    ```
  }];
  let parameters = (ins ArrayRefParameter<"int64_t">:$shape, ArrayRefParameter<"uint64_t">:$registers,
                        ArrayRefParameter<"uint64_t">:$lanes, ArrayRefParameter<"uint64_t">:$warps,
                        ArrayRefParameter<"uint64_t">:$blocks);
  let hasCustomAssemblyFormat = 1;
  let builders = [AttrBuilder<(ins "const ::kiln::simt::TileLayout &":$layout), [{
    const auto words = [](::llvm::ArrayRef<::kiln::simt::Vec> bases) { return ::llvm::ArrayRef<uint64_t>(bases); };
    return $_get($_ctxt, layout.shape().sizes(), words(layout.bases(Hw::reg)), words(layout.bases(Hw::lane)),
                 words(layout.bases(Hw::warp)), words(layout.bases(Hw::block)));
  }]>];
  let extraClassDeclaration = [{
    /// The layout as an object with its algebra.
    ::kiln::simt::TileLayout getLayout() const;
  }];
}

def Simt_SharedLayoutAttr : AttrDef<Simt_Dialect, "SharedLayout"> {
  let mnemonic = "shared_layout";
  let summary = "layout of a tile in shared memory";
  let description = [{
    Each bit of a coordinate moves an element by some bytes, lowest bit first. The place of an element is the exclusive or of
    those of the bits that are set. So rows can begin in different banks (a swizzle). Repeats of the tile's layout follow core by
    core, in row-major order. In the example row 1 begins at byte 64, with its 16-byte pieces in another order than those of row
    0:

    ```mlir
    #simt.shared_layout<8x32xbf16, d0 [80, 160, 256], d1 [2, 4, 8, 16, 32]>
    ```
  }];
  let parameters = (ins ArrayRefParameter<"int64_t">:$shape, "::mlir::Type":$element,
                        ArrayRefParameter<"uint64_t">:$offsets);
  let hasCustomAssemblyFormat = 1;
  let genVerifyDecl = 1;
  let extraClassDeclaration = [{
    /// The layout of a tile of this shape and type. `offset` maps the positions of its core to offsets in elements.
    static SharedLayoutAttr of(::mlir::RankedTensorType tile, const ::kiln::simt::F2Map &offset);
    /// That map.
    ::kiln::simt::F2Map getMap() const;
    /// Bits of an element; a bool takes a byte.
    unsigned getBits() const;
    /// Bytes of one core, and of all.
    int64_t getCoreBytes() const;
    int64_t getBytes() const;
  }];
}

#endif
