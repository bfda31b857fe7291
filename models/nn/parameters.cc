// Lays out parameters in flat buffers.

#include "models/nn/parameters.h"

#include <cmath>
#include <fmt/format.h>

namespace kiln {

int64_t Parameter::count() const {
  int64_t n = 1;
  for (int64_t extent : shape)
    n *= extent;
  return n;
}

/// Row t has the sine and cosine of t / 10000^(2i / columns) at columns 2i and 2i + 1.
static std::vector<float> sinusoids(int64_t rows, int64_t columns) {
  std::vector<float> numbers;
  for (int64_t t = 0; t < rows; ++t)
    for (int64_t c = 0; c < columns; ++c) {
      const double angle =
          static_cast<double>(t) * std::pow(10000.0, -static_cast<double>(c / 2 * 2) / static_cast<double>(columns));
      numbers.push_back(static_cast<float>(c % 2 == 0 ? std::sin(angle) : std::cos(angle)));
    }
  return numbers;
}

std::vector<float> firstNumbers(const Parameter &p, const Random &random, uint32_t lane) {
  switch (p.init.kind) {
  case Init::Kind::zeros:
    break;
  case Init::Kind::ones:
    return std::vector<float>(p.count(), 1.0f);
  case Init::Kind::normal:
    return random.normals(p.count(), p.init.size, lane);
  case Init::Kind::uniform:
    return random.uniforms(p.count(), p.init.size, lane);
  case Init::Kind::constant:
    return std::vector<float>(p.count(), static_cast<float>(p.init.size));
  case Init::Kind::sinusoids:
    return sinusoids(p.shape[0], p.shape[1]);
  }
  return std::vector<float>(p.count());
}

bool decays(Role role, DecayOn policy) {
  return role == Role::matrix || role == Role::table || (role == Role::gain && policy != DecayOn::matrices) ||
         (role == Role::bias && policy == DecayOn::all);
}

LinearInit Inits::of(int64_t in, double deviation) const {
  if (!byWidth)
    return {{Init::Kind::normal, lecun ? 1 / std::sqrt(static_cast<double>(in)) : deviation}};
  const Init uniform = {Init::Kind::uniform, 1 / std::sqrt(static_cast<double>(in))};
  return {uniform, uniform};
}

LinearInit Inits::attentionInput(int64_t in, int64_t out) const {
  if (!xavierAttention)
    return inner(in);
  return {{Init::Kind::uniform, std::sqrt(6 / static_cast<double>(in + out))}};
}

LinearInit Inits::attentionOutput(int64_t in) const {
  LinearInit init = residual(in);
  if (xavierAttention)
    init.bias = {};
  return init;
}

int ParameterList::add(std::string name, Shape shape, Init init, Role role) {
  list.push_back({std::move(name), std::move(shape), init, role});
  return static_cast<int>(list.size()) - 1;
}

void ParameterList::place(DecayOn policy) {
  total = 0;
  for (const bool first : {true, false}) {
    for (Parameter &p : list)
      if (decays(p.role, policy) == first) {
        p.offset = total;
        total += cdiv(p.count(), 64) * 64;
      }
    if (first)
      decayed = total;
  }
}

std::string textOf(const ParameterList &list) {
  std::string text;
  int64_t total = 0;
  for (const Parameter &p : list.all()) {
    if (p.role == Role::fixed)
      continue;
    text += fmt::format("{:12}  {:<12} {}\n", p.count(), textOf(p.shape), p.name);
    total += p.count();
  }
  return text + fmt::format("{:12}  parameters\n", total);
}

static TensorRef part(const TensorRef &flat, const Parameter &p) {
  const uintptr_t address =
      reinterpret_cast<uintptr_t>(flat.data) + static_cast<uintptr_t>(p.offset * bytesOf(flat.type));
  return TensorRef::dense(reinterpret_cast<void *>(address), flat.type, p.shape);
}

TensorRef ParameterBuffers::value(const Parameter &p) const { return part(values, p); }
TensorRef ParameterBuffers::gradient(const Parameter &p) const { return part(gradients, p); }

} // namespace kiln
