// Gaussian elimination over F2 that records the sums.

#include "dialect/simt/layout/F2.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/SmallVectorExtras.h"
#include "llvm/ADT/bit.h"
#include "llvm/Support/MathExtras.h"

#include <cassert>

namespace kiln::simt {

Span::Span(llvm::ArrayRef<Vec> vectors) {
  for (const Vec vector : vectors)
    add(vector);
}

Span::Row Span::reduce(Vec vector) const {
  Row rest{vector, 0};
  for (const Row &row : rows)
    if (rest.vector & llvm::bit_floor(row.vector))
      rest = {rest.vector ^ row.vector, rest.sum ^ row.sum};
  return rest;
}

bool Span::add(Vec vector) {
  const Vec own = Vec{1} << added++;
  Row rest = reduce(vector);
  if (rest.vector == 0)
    return false;
  rest.sum ^= own;
  const Vec highest = llvm::bit_floor(rest.vector);
  for (Row &row : rows)
    if (row.vector & highest)
      row = {row.vector ^ rest.vector, row.sum ^ rest.sum};
  rows.push_back(rest);
  return true;
}

std::optional<Vec> Span::solve(Vec vector) const {
  const Row rest = reduce(vector);
  if (rest.vector != 0)
    return std::nullopt;
  return rest.sum;
}

Vec sumOf(llvm::ArrayRef<Vec> vectors, Vec which) {
  Vec sum = 0;
  for (const auto [index, vector] : llvm::enumerate(vectors))
    if (which >> index & 1)
      sum ^= vector;
  return sum;
}

Vecs kernelOf(llvm::ArrayRef<Vec> vectors) {
  Vecs kernel;
  Span span;
  for (const auto [index, vector] : llvm::enumerate(vectors)) {
    if (const std::optional<Vec> sum = span.solve(vector))
      kernel.push_back(*sum | Vec{1} << index);
    span.add(vector);
  }
  return kernel;
}

Vecs extensionOf(llvm::ArrayRef<Vec> base, llvm::ArrayRef<Vec> candidates) {
  Vecs taken;
  Span span(base);
  for (const Vec candidate : candidates)
    if (span.add(candidate))
      taken.push_back(candidate);
  return taken;
}

Vecs intersectionOf(llvm::ArrayRef<Vec> p, llvm::ArrayRef<Vec> q) {
  // A sum of p's that equals a sum of q's corresponds to a zero sum over both lists.
  const Vecs basisOfP = extensionOf({}, p), basisOfQ = extensionOf({}, q);
  Vecs both = basisOfP;
  both.append(basisOfQ);
  Vecs common;
  for (const Vec zero : kernelOf(both))
    common.push_back(sumOf(basisOfP, zero));
  return common;
}

Vecs commonComplement(llvm::ArrayRef<Vec> p, llvm::ArrayRef<Vec> q, llvm::ArrayRef<Vec> whole) {
  assert(p.size() == q.size() && "expected bases of equal size");
  const Vecs common = intersectionOf(p, q), onlyP = extensionOf(common, p), onlyQ = extensionOf(common, q);
  Vecs both(p);
  both.append(onlyQ);
  Vecs complement = extensionOf(both, whole);
  for (const auto [a, b] : llvm::zip_equal(onlyP, onlyQ))
    complement.push_back(a ^ b);
  return complement;
}

Vec depositBits(Vec value, llvm::ArrayRef<unsigned> places) {
  Vec result = 0;
  for (const auto [bit, place] : llvm::enumerate(places))
    result |= (value >> bit & 1) << place;
  return result;
}

// --- Linear maps, by columns: every operation handles one column at a time -------------------------------------------

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
