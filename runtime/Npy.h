// Reads and writes NumPy files (.npy, versions 1 to 3), like `np.load` and `np.save`. A file is a header with the text
// of a Python dictionary, then the elements. It must be little-endian, row-major, and as long as its header says.
//
// Types have their NumPy names; `boolean` is `bool_`. NumPy lacks some types, so their elements are raw bytes, as in
// files of ml_dtypes:
// - bf16 is `V2`; `np.load(f).view(ml_dtypes.bfloat16)` reads it.
// - f8e4m3 is `<V1`.
// - f8e5m2 is `|V1`, which NumPy does not distinguish from `<V1`, or `<f1`, which ml_dtypes writes.
// - f8e8m0 is `>V1`, and f4e2m1x2 `=V1`. ml_dtypes writes `<V1` for e8m0, that is f8e4m3; save such scales as bytes,
//   `x.view(np.uint8)`.

#pragma once

#include "dialect/dsl/Types.h"

#include <string>
#include <string_view>
#include <vector>

namespace kiln {

/// A dense row-major array in host memory.
struct NpyArray {
  Type type = Type::f32;
  Shape extents; // empty for a scalar
  std::vector<char> data;
};

/// Parses the bytes of a file. Throws Error that begins with 'name' for an invalid file, with the expected and the
/// actual content.
NpyArray parseNpy(std::string_view file, const std::string &name);

/// Reads the file `path`. Throws Error as parseNpy() and InputFile do, and (device) if there is not enough memory.
NpyArray readNpy(const std::string &path);

/// The bytes of a file with the array. Throws Error unless the size of `data` matches the extents.
std::string npyFile(const NpyArray &array);

} // namespace kiln
