// Where each of our tensors lies in llm.c's files (models/gpt2/llmc.h says which these are), behind a header of 256
// numbers: each kind of a block's tensors for all blocks, and matrices as (out, in), where ours are (in, out).

#pragma once

#include "models/nn/parameters.h"
#include "runtime/InputFile.h"

#include <array>
#include <string>
#include <vector>

namespace kiln::llmc {

inline constexpr int64_t headerNumbers = 256, headerBytes = headerNumbers * sizeof(int32_t);
using Header = std::array<int32_t, headerNumbers>;
/// Of a model's header, the number that says how many rows its table of tokens has in the file.
inline constexpr int rowsAt = 7;

/// The header of the file in `path`, which is to be `what`. Throws Error where it is too short for one.
Header readHeader(const InputFile &file, const std::string &path, const char *what);

/// A tensor of ours in a file.
struct Piece {
  const Parameter *parameter;
  bool isTransposed; // of ours, which is (in, out)
  int64_t begin;     // its place among the numbers of the file
  int64_t count;     // with zeros behind it
};

struct FileLayout {
  std::vector<Piece> pieces;
  int64_t count = 0;
};

/// For tables of tokens and of positions that have so many rows in the file.
FileLayout layoutOf(const ParameterList &list, int64_t layers, int64_t rows, int64_t positions);
/// Of the model with that header.
FileLayout layoutOf(const Header &header, const ParameterList &list);

/// (rows, columns) of `from` as (columns, rows).
template <class Number> void transpose(const Number *from, int64_t rows, int64_t columns, Number *to) {
  for (int64_t r = 0; r < rows; ++r)
    for (int64_t c = 0; c < columns; ++c)
      to[c * rows + r] = from[r * columns + c];
}

/// The numbers of `type` from byte `begin` on, as f32 in our layout.
std::vector<float> readAll(const InputFile &file, int64_t begin, Type type, const FileLayout &layout,
                           const ParameterList &list);

} // namespace kiln::llmc
