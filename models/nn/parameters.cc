// Placing parameters in flat buffers.

#include "models/nn/parameters.h"

namespace kiln {

int64_t Parameter::count() const {
  int64_t n = 1;
  for (int64_t extent : shape)
    n *= extent;
  return n;
}

int ParameterList::add(std::string name, Shape shape, Init init) {
  const bool decays = shape.size() >= 2;
  list.push_back({std::move(name), std::move(shape), init, decays});
  return static_cast<int>(list.size()) - 1;
}

void ParameterList::place() {
  total = 0;
  for (const bool decays : {true, false}) {
    for (Parameter &p : list)
      if (p.decays == decays) {
        p.offset = total;
        total += ceildiv(p.count(), 64) * 64;
      }
    if (decays)
      decayed = total;
  }
}

static TensorRef part(const TensorRef &flat, const Parameter &p) {
  const uintptr_t address =
      reinterpret_cast<uintptr_t>(flat.data) + static_cast<uintptr_t>(p.offset * bytesOf(flat.type));
  return TensorRef::dense(reinterpret_cast<void *>(address), flat.type, p.shape);
}

TensorRef ParameterBuffers::value(const Parameter &p) const { return part(values, p); }
TensorRef ParameterBuffers::gradient(const Parameter &p) const { return part(gradients, p); }

} // namespace kiln
