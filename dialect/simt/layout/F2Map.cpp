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

} // namespace kiln::simt
