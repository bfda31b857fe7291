// Tensors in llm.c's order, and reading them.

#include "models/gpt2/llmc_layout.h"
#include "runtime/Tensor.h"

#include <algorithm>
#include <fmt/format.h>
#include <map>
#include <optional>

namespace kiln::llmc {

/// A block's tensors, in the file's order.
static constexpr std::array blockTensors = {
    "ln_1.weight", "ln_1.bias", "attn.c_attn.weight", "attn.c_attn.bias", "attn.c_proj.weight", "attn.c_proj.bias",
    "ln_2.weight", "ln_2.bias", "mlp.c_fc.weight",    "mlp.c_fc.bias",    "mlp.c_proj.weight",  "mlp.c_proj.bias"};

FileLayout layoutOf(const ParameterList &list, int64_t layers, int64_t rows, int64_t positions) {
  std::map<std::string, const Parameter *> named;
  for (const Parameter &p : list.all())
    named[p.name] = &p;
  FileLayout layout;
  const auto add = [&](const std::string &name, std::optional<int64_t> rows = {}) {
    const Parameter *const p = named.at(name);
    const bool isTransposed = p->shape.size() == 2 && name.starts_with("h.");
    const int64_t count = rows ? *rows * p->shape[1] : p->count();
    layout.pieces.push_back({p, isTransposed, layout.count, count});
    layout.count += count;
  };
  add("wte.weight", rows);
  add("wpe.weight", positions);
  for (const char *kind : blockTensors)
    for (int64_t i = 0; i < layers; ++i)
      add(fmt::format("h.{}.{}", i, kind));
  add("ln_f.weight");
  add("ln_f.bias");
  for (const Parameter &p : list.all())
    if (std::none_of(layout.pieces.begin(), layout.pieces.end(),
                     [&](const Piece &piece) { return piece.parameter == &p; }))
      throw Error(
          fmt::format("expected a model of llm.c's tensors, but got '{}', which its files do not have", p.name));
  return layout;
}

FileLayout layoutOf(const Header &header, const ParameterList &list) {
  return layoutOf(list, header[4], header[rowsAt], header[2]);
}

Header readHeader(const InputFile &file, const std::string &path, const char *what) {
  Header header = {};
  if (file.size() < headerBytes)
    throw Error(fmt::format("expected {} of llm.c in '{}', but it has {} bytes", what, path, file.size()));
  file.read(0, header.data(), headerBytes);
  return header;
}

std::vector<float> readAll(const InputFile &file, int64_t begin, Type type, const FileLayout &layout,
                           const ParameterList &list) {
  std::vector<float> all(list.count());
  std::vector<char> raw;
  for (const Piece &piece : layout.pieces) {
    const Parameter &p = *piece.parameter;
    raw.resize(p.count() * bytesOf(type));
    file.read(begin + piece.begin * bytesOf(type), raw.data(), std::ssize(raw));
    std::vector<float> numbers(p.count());
    const std::vector<double> wide = toDoubles(raw.data(), type, p.count());
    std::copy(wide.begin(), wide.end(), numbers.begin());
    float *const to = all.data() + p.offset;
    if (piece.isTransposed)
      transpose(numbers.data(), p.shape[1], p.shape[0], to);
    else
      std::copy(numbers.begin(), numbers.end(), to);
  }
  return all;
}

} // namespace kiln::llmc
