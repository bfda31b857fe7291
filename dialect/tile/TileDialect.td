// The `tile` dialect: the meaning of a kernel, independent of the target.
//
// A value is a builtin tensor of static shape (a *tile*) or a builtin scalar (a tile of rank 0). Arithmetic is `arith`
// and `math`; loops and branches are `scf`. This dialect adds the program model (SPMD), shapes, memory through views,
// reductions, `dot` and random numbers. It also has the conversions and integer operations that are undefined in `arith`
// for some inputs.

#ifndef KILN_DIALECT_TILE_TILEDIALECT_TD
#define KILN_DIALECT_TILE_TILEDIALECT_TD

include "dialect/tile/ElementTypes.td"
include "mlir/IR/OpBase.td"
include "mlir/IR/EnumAttr.td"
include "mlir/Interfaces/InferIntRangeInterface.td"
include "mlir/Interfaces/InferTypeOpInterface.td"
include "mlir/Interfaces/SideEffectInterfaces.td"

def Tile_Dialect : Dialect {
  let name = "tile";
  let cppNamespace = "::kiln::tile";
  let summary = "tiles, views and programs, independent of the target";
  let dependentDialects = ["::mlir::arith::ArithDialect"];
  let hasConstantMaterializer = 1;
  let hasOperationAttrVerify = 1;
  let hasRegionArgAttrVerify = 1;
}

class Tile_Op<string mnemonic, list<Trait> traits = []> : Op<Tile_Dialect, mnemonic, traits> {
  let hasVerifier = 1;
}

/// Known ranges of the integers that an operation returns.
def Tile_HasRange : DeclareOpInterfaceMethods<InferIntRangeInterface, ["inferResultRanges"]>;

def Tile_Float : AnyTypeOf<Tile_Floats, "float">;
def Tile_Integer : AnyTypeOf<[I1, I8, I16, I32, I64], "integer">;

/// A tile of rank 1 to 5 whose extents are static and at least 1.
class Tile_TensorOf<list<Type> elements, string names> : Type<And<[
    StaticShapeTensorOf<elements>.predicate, HasAnyRankOfPred<[1, 2, 3, 4, 5]>,
    CPred<"!::llvm::is_contained(::llvm::cast<::mlir::ShapedType>($_self).getShape(), 0)">]>,
    "tile of rank 1 to 5 of " # names # " with extents of at least 1", "::mlir::RankedTensorType">;
def Tile_Tensor : Tile_TensorOf<Tile_Elements, "any element type">;
/// A tile of any rank; rank 0 is a builtin scalar.
def Tile_Value : AnyTypeOf<Tile_Elements # [Tile_Tensor], "tile or scalar">;
def Tile_IntegerValue : AnyTypeOf<[I8, I16, I32, I64, Tile_TensorOf<[I8, I16, I32, I64], "i8, i16, i32 or i64">],
                                  "integer tile or scalar">;
def Tile_IntegerTensor : Tile_TensorOf<[I32, I64], "i32 or i64">;
def Tile_BoolTensor : Tile_TensorOf<[I1], "i1">;
def Tile_BoolValue : AnyTypeOf<[I1, Tile_BoolTensor], "boolean tile or scalar">;
/// A kernel argument: memory with static or dynamic extents and strides. A boolean is stored as i8.
def Tile_View : StridedMemRefOf<Tile_Stored>;

#endif
