// Why the compiler chose nothing better: what passes decided by, told to people.

#pragma once

#include "dialect/tile/TileDialect.h"

namespace kiln::lowering::gpu {

/// What keeps an access of memory from moving 16 bytes at a time (CoalesceAccesses.cpp); empty when it does.
std::string whyNarrow(tile::AccessOp access);

/// Why tensor cores do not compute a product (SelectInstructions.cpp); empty when they can.
std::string whyNoTensorCore(tile::DotOp op);

} // namespace kiln::lowering::gpu
