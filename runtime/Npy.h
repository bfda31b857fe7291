// Arrays in files, as NumPy's `np.save` writes and `np.load` reads them (.npy, versions 1 to 3): a header that is the
// text of a Python dictionary, then the elements.
//
// Kiln's types are NumPy's of the same name, `boolean` is `bool_`. NumPy has no bf16: its elements are raw pairs of
// bytes, `V2`, which is also what ml_dtypes saves; `np.load(f).view(ml_dtypes.bfloat16)` reads them. So it is with
// floats of 8 bits: f8e4m3 is `<V1`, as ml_dtypes saves it, and f8e5m2 `|V1`, which NumPy takes for the same, or `<f1`,
// which ml_dtypes saves. A file must be little-endian, row-major, and as long as its header says.

#pragma once

#include "dialect/dsl/Types.h"

#include <string>
#include <string_view>
#include <vector>

namespace kiln {

/// A dense row-major array in host memory.
struct NpyArray {
  Type type = Type::f32;
  Shape extents; // empty for a single number
  std::vector<char> data;
};

/// The array whose file's bytes are `file`. Throws Error, which begins with 'name', where they are no such file: with
/// what was expected there and what is.
NpyArray parseNpy(std::string_view file, const std::string &name);

/// The array in the file `path`. Throws Error: as parseNpy() and InputFile, and (device) when the machine has not the
/// memory for it.
NpyArray readNpy(const std::string &path);

/// The bytes of a file that holds the array; throws Error unless `data` is as long as the extents say.
std::string npyFile(const NpyArray &array);

} // namespace kiln
