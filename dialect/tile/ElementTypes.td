// The element types of ElementTypes.def, as lists for the constraints of operations.

#ifndef KILN_DIALECT_TILE_ELEMENTTYPES_TD
#define KILN_DIALECT_TILE_ELEMENTTYPES_TD

include "mlir/IR/CommonTypeConstraints.td"

defvar Tile_Floats = [F8E4M3FN, F8E5M2, F8E8M0FNU, BF16, F16, F32, F64];
/// In memory, where a boolean is an i8.
defvar Tile_Stored = [I8, I16, I32, I64] # Tile_Floats;
defvar Tile_Elements = [I1] # Tile_Stored;
def Tile_Element : AnyTypeOf<Tile_Elements, "element type">;

#endif
