// Linear maps over F2 by columns: every operation handles one column at a time.

#include "dialect/simt/layout/F2Map.h"

#include "llvm/ADT/SmallVectorExtras.h"
#include "llvm/Support/MathExtras.h"

#include <cassert>

namespace kiln::simt {

F2Map F2Map::identity(unsigned size) {
  Vecs columns;
  for (unsigned bit = 0; bit < size; ++bit)
    columns.push_back(Vec{1} << bit);
  return {size, columns};
}

F2Map F2Map::then(const F2Map &outer) const {
  assert(outer.numInputs() == outputs && "expected a map of what this one gives");
  return {outer.outputs, llvm::map_to_vector(images, [&](Vec image) { return outer(image); })};
}

std::optional<F2Map> F2Map::solveInto(const F2Map &target) const {
  assert(target.outputs == outputs && "expected two maps to one space");
  const Span span(target.images);
  Vecs columns;
  for (const Vec image : images) {
    const std::optional<Vec> input = span.solve(image);
    if (!input)
      return std::nullopt;
    columns.push_back(*input);
  }
  return F2Map(target.numInputs(), columns);
}

F2Map F2Map::inverse() const {
  assert(isInjective() && isSurjective() && "expected a bijection");
  return *identity(outputs).solveInto(*this);
}

F2Map F2Map::sum(const F2Map &low, const F2Map &high) {
  Vecs columns = low.images;
  for (const Vec image : high.images)
    columns.push_back(image << low.outputs);
  return {low.outputs + high.outputs, columns};
}

std::optional<F2Map> F2Map::withoutLow(const F2Map &low) const {
  if (low.numInputs() > numInputs() || low.outputs > outputs)
    return std::nullopt;
  const F2Map high(outputs - low.outputs, llvm::map_to_vector(llvm::drop_begin(images, low.numInputs()),
                                                              [&](Vec image) { return image >> low.outputs; }));
  return sum(low, high) == *this ? std::optional(high) : std::nullopt;
}

std::optional<F2Map> F2Map::withoutHigh(const F2Map &high) const {
  if (high.numInputs() > numInputs() || high.outputs > outputs)
    return std::nullopt;
  const unsigned lowOutputs = outputs - high.outputs;
  const llvm::ArrayRef<Vec> columns = llvm::ArrayRef<Vec>(images).drop_back(high.numInputs());
  if (llvm::any_of(columns, [&](Vec image) { return image >> lowOutputs != 0; }))
    return std::nullopt;
  const F2Map low(lowOutputs, columns);
  return sum(low, high) == *this ? std::optional(low) : std::nullopt;
}

} // namespace kiln::simt
