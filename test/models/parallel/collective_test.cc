// Collective operations, on ranks that are threads.

#include "test/expect_error.h"
#include "test/models/parallel/thread_ranks.h"

#include <gtest/gtest.h>

using namespace kiln;
using kiln::test::ThreadRanks;

namespace {

// A single rank exchanges with itself, and gathers its own value.
TEST(Collective, OneIsAlone) {
  const std::shared_ptr<Collective> one = aloneCollective();
  const std::vector<int> sent = {1, 2, 3};
  std::vector<int> received(3, 0);
  one->exchange(sent.data(), received.data(), sizeof(int) * 3);
  EXPECT_EQ(received, sent);
  EXPECT_EQ(one->sum(2.5), 2.5);
  EXPECT_FALSE(one->any(false));
  EXPECT_EQ(one->broadcast("text"), "text");
  one->expectSame("model", "any");
}

// A sum adds the ranks in order, with equal bits on all of them, for any cancellation.
TEST(Collective, SumsAreInTheOrderOfRanks) {
  const std::vector<double> numbers = {1e16, 1, -1e16, 3};
  double want = 0;
  for (const double number : numbers)
    want += number;
  ThreadRanks::run(4, [&](const std::shared_ptr<Collective> &ranks) {
    EXPECT_EQ(ranks->gathered(numbers[ranks->rank()]), numbers);
    EXPECT_EQ(ranks->sum(numbers[ranks->rank()]), want);
  });
}

TEST(Collective, WhatOneSaysAllKnow) {
  ThreadRanks::run(3, [](const std::shared_ptr<Collective> &ranks) {
    EXPECT_TRUE(ranks->any(ranks->rank() == 2));
    EXPECT_FALSE(ranks->any(false));
    EXPECT_EQ(ranks->broadcast(std::string(ranks->rank() + 1, 'x')), "x");
  });
}

// If ranks disagree, the error names the rank and both values.
TEST(Collective, UnequalRanksAreNamed) {
  ThreadRanks::run(3, [](const std::shared_ptr<Collective> &ranks) {
    ranks->expectSame("data", "7 bytes");
    expectError([&] { ranks->expectSame("data", ranks->rank() == 1 ? "8 bytes" : "7 bytes"); },
                {"expected all 3 ranks to have the same data, but rank 0 has 7 bytes and rank 1 has 8 bytes"});
  });
}

// A rank that ends with an error ends those that wait for it.
TEST(Collective, NobodyWaitsForOneThatEnded) {
  EXPECT_THROW(ThreadRanks::run(3,
                                [](const std::shared_ptr<Collective> &ranks) {
                                  if (ranks->rank() == 1)
                                    throw std::runtime_error("ended");
                                  ranks->barrier();
                                }),
               std::runtime_error);
}

} // namespace
