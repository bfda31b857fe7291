// The laws of linear algebra over F2, on random vectors of up to 12 bits.

#include "dialect/simt/layout/F2.h"
#include "test/dialect/simt/layout/Random.h"

#include <gtest/gtest.h>

using namespace kiln::simt;
using kiln::simt::test::Random;

namespace {

constexpr unsigned numRounds = 2000, maxBits = 12;

F2Map randomMap(Random &random, unsigned inputs, unsigned outputs) {
  return F2Map(outputs, random.vectors(inputs, outputs));
}

/// All sums of a few vectors.
std::vector<bool> everySum(llvm::ArrayRef<Vec> vectors, unsigned bits) {
  std::vector<bool> is(size_t{1} << bits);
  for (Vec input = 0; input < Vec{1} << vectors.size(); ++input)
    is[F2Map(bits, vectors)(input)] = true;
  return is;
}

// A span has just the sums of its vectors, and says how each is made.
TEST(F2, ASpanHasTheSumsOfItsVectors) {
  Random random(1);
  for (unsigned round = 0; round < 200; ++round) {
    const unsigned bits = 1 + random.below(8);
    const Vecs vectors = random.vectors(random.below(8), bits);
    const Span span(vectors);
    const std::vector<bool> is = everySum(vectors, bits);
    for (Vec vector = 0; vector < is.size(); ++vector) {
      const std::optional<Vec> sum = span.solve(vector);
      ASSERT_EQ(sum.has_value(), is[vector]);
      ASSERT_EQ(span.has(vector), is[vector]);
      if (sum) {
        ASSERT_EQ(F2Map(bits, vectors)(*sum), vector);
      }
    }
    EXPECT_EQ(size_t{1} << span.rank(), std::count(is.begin(), is.end(), true));
  }
}

// Of equal vectors the first is the one that sums use.
TEST(F2, SumsUseTheEarliestVectors) {
  const Span span({0b01, 0b01, 0b10, 0b11});
  EXPECT_EQ(span.solve(0b01), 0b0001u);
  EXPECT_EQ(span.solve(0b11), 0b0101u);
  EXPECT_EQ(span.count(), 4u);
  EXPECT_EQ(span.rank(), 2u);
}

// The kernel maps to zero, is independent, and with the rank makes the number of inputs.
TEST(F2, KernelMapsToZeroAndHasItsDimension) {
  Random random(2);
  for (unsigned round = 0; round < numRounds; ++round) {
    const F2Map map = randomMap(random, random.below(maxBits), 1 + random.below(maxBits));
    const Vecs kernel = map.kernel();
    for (const Vec input : kernel)
      ASSERT_EQ(map(input), 0u);
    ASSERT_EQ(Span(kernel).rank(), kernel.size());
    ASSERT_EQ(kernel.size() + map.rank(), map.numInputs());
  }
}

// dim P + dim Q = dim (P + Q) + dim (P ∩ Q), and the intersection lies in both.
TEST(F2, IntersectionObeysTheLawOfDimensions) {
  Random random(3);
  for (unsigned round = 0; round < numRounds; ++round) {
    const unsigned bits = 1 + random.below(maxBits);
    const Vecs p = random.vectors(random.below(bits + 1), bits), q = random.vectors(random.below(bits + 1), bits);
    const Vecs common = intersectionOf(p, q);
    Vecs both = p;
    both.append(q);
    for (const Vec vector : common)
      ASSERT_TRUE(Span(p).has(vector) && Span(q).has(vector));
    ASSERT_EQ(Span(common).rank(), common.size());
    ASSERT_EQ(Span(p).rank() + Span(q).rank(), Span(both).rank() + common.size());
  }
}

// The common complement completes either subspace to a basis of the whole.
TEST(F2, CommonComplementCompletesBoth) {
  Random random(4);
  for (unsigned round = 0; round < numRounds; ++round) {
    const unsigned bits = 1 + random.below(maxBits), size = random.below(bits + 1);
    const Vecs p = random.basis(size, bits), q = random.basis(size, bits), whole = random.basis(bits, bits);
    const Vecs complement = commonComplement(p, q, whole);
    ASSERT_EQ(complement.size(), bits - size);
    ASSERT_EQ(extensionOf(p, complement).size(), bits - size);
    ASSERT_EQ(extensionOf(q, complement).size(), bits - size);
  }
}

// A map is linear.
TEST(F2, MapsAreLinear) {
  Random random(5);
  for (unsigned round = 0; round < numRounds; ++round) {
    const F2Map map = randomMap(random, maxBits, maxBits);
    const Vec a = random.vector(maxBits), b = random.vector(maxBits);
    ASSERT_EQ(map(a ^ b), map(a) ^ map(b));
  }
}

// Composition applies one map after the other, and so does not care how three are bracketed.
TEST(F2, CompositionIsAssociative) {
  Random random(6);
  for (unsigned round = 0; round < numRounds; ++round) {
    const F2Map f = randomMap(random, 5, 7), g = randomMap(random, 7, 4), h = randomMap(random, 4, 9);
    ASSERT_EQ(f.then(g).then(h), f.then(g.then(h)));
    const Vec input = random.vector(5);
    ASSERT_EQ(f.then(g)(input), g(f(input)));
  }
}

// Sums are associative.
TEST(F2, SumsAreAssociative) {
  Random random(7);
  for (unsigned round = 0; round < numRounds; ++round) {
    const F2Map f = randomMap(random, 3, 4), g = randomMap(random, 2, 2), h = randomMap(random, 4, 3);
    ASSERT_EQ(F2Map::sum(F2Map::sum(f, g), h), F2Map::sum(f, F2Map::sum(g, h)));
  }
}

// target(C(x)) = L(x) whenever L reaches only what the target does.
TEST(F2, SolvingGivesAMapIntoTheTarget) {
  Random random(8);
  for (unsigned round = 0; round < numRounds; ++round) {
    const F2Map target = randomMap(random, 8, 6), inner = randomMap(random, 5, 8);
    const std::optional<F2Map> solved = inner.then(target).solveInto(target);
    ASSERT_TRUE(solved);
    ASSERT_EQ(solved->then(target), inner.then(target));
  }
  EXPECT_EQ(F2Map::identity(2).solveInto(F2Map(2, {0b01})), std::nullopt);
}

// The inverse of a bijection undoes it from both sides.
TEST(F2, InverseUndoes) {
  Random random(9);
  for (unsigned round = 0; round < numRounds; ++round) {
    const unsigned bits = 1 + random.below(maxBits);
    const F2Map map(bits, random.basis(bits, bits)), identity = F2Map::identity(bits);
    ASSERT_EQ(map.then(map.inverse()), identity);
    ASSERT_EQ(map.inverse().then(map), identity);
  }
}

} // namespace
