// The places of our tensors in llm.c's files (models/gpt2/llmc.h), after a header of 256 numbers. Each kind of a
// block's tensors is stored for all blocks, and matrices as (out, in), where ours are (in, out).

#pragma once

#include "models/nn/parameters.h"
#include "runtime/Files.h"

#include <array>
#include <string>
#include <vector>

namespace kiln::llmc {

inline constexpr int64_t headerNumbers = 256, headerBytes = headerNumbers * sizeof(int32_t);
using Header = std::array<int32_t, headerNumbers>;
/// Index in a model's header of the number of rows of its token table.
inline constexpr int rowsAt = 7;

/// Reads the header of the file in `path`, which errors call `what`. Throws Error if the file is too short.
Header readHeader(const InputFile &file, const std::string &path, const char *what);

/// One of our tensors in a file.
struct Piece {
  const Parameter *parameter;
  bool isTransposed; // relative to ours, which is (in, out)
  int64_t begin;     // its first number in the file
  int64_t count;     // with zero padding
};

struct FileLayout {
  std::vector<Piece> pieces;
  int64_t count = 0;
};

/// For token and position tables with this many rows in the file. Throws Error for a tensor that llm.c's model lacks.
FileLayout layoutOf(const ParameterList &list, int64_t layers, int64_t rows, int64_t positions);
/// For the model with that header.
FileLayout layoutOf(const Header &header, const ParameterList &list);

/// Transposes (rows, columns) of `from` to (columns, rows).
template <class Number> void transpose(const Number *from, int64_t rows, int64_t columns, Number *to) {
  for (int64_t r = 0; r < rows; ++r)
    for (int64_t c = 0; c < columns; ++c)
      to[c * rows + r] = from[r * columns + c];
}

/// Reads the numbers of `type` from byte `begin` on, as f32 in our layout.
std::vector<float> readAll(const InputFile &file, int64_t begin, Type type, const FileLayout &layout,
                           const ParameterList &list);

} // namespace kiln::llmc
