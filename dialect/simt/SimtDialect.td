// The `simt` dialect: what the threads of one program of a GPU do.
//
// A tile of the `tile` dialect belongs to all threads of a program together. Here it gets a *layout*, the encoding of
// its tensor type, which says where each element is: in which register of which lane of which warp. Operations on tiles
// move elements between threads; operations on scalars and small vectors are what one thread does, an instruction or a
// few. Passes above choose layouts and exchanges; `gpu-distribute` goes from tiles to threads, `gpu-spell-ptx` from
// threads to PTX.

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
  let summary = "tiles spread over the threads of a GPU's program, and what each thread does";
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
    A linear map over bits: each bit of a register's, lane's and warp's number stands for one bit of a coordinate
    (`d1:8` is bit 3 of dimension 1), or for none (`*`), when threads that differ in it hold the same elements. Extents
    that are no power of two are an odd number of repeats of a core that is one; repeats lie in registers.
    dialect/simt/layout/README.md has the whole of it.

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
    /// The layout itself, which computes.
    ::kiln::simt::TileLayout getLayout() const;
  }];
}

def Simt_ImageAttr : AttrDef<Simt_Dialect, "Image"> {
  let mnemonic = "image";
  let summary = "where the elements of a tile lie in shared memory";
  let description = [{
    For each bit of a coordinate the bytes that it moves an element by, lowest bit first; the place of an element is the
    exclusive or of those of the bits that are set. So rows can begin where their banks do not meet those of other rows,
    which others call a swizzle. What the layout of the tile repeats comes core by core, one after the other in row-major
    order. Here row 1 begins in byte 64 with its pieces of 16 bytes in another order than row 0's:

    ```mlir
    #simt.image<8x32xbf16, d0 [80, 160, 256], d1 [2, 4, 8, 16, 32]>
    ```
  }];
  let parameters = (ins ArrayRefParameter<"int64_t">:$shape, "::mlir::Type":$element,
                        ArrayRefParameter<"uint64_t">:$offsets);
  let hasCustomAssemblyFormat = 1;
  let genVerifyDecl = 1;
  let extraClassDeclaration = [{
    /// The image of a tile of this shape and type whose core lies as `offset` says, a map from its positions to numbers
    /// of elements.
    static ImageAttr of(::mlir::RankedTensorType tile, const ::kiln::simt::F2Map &offset);
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
