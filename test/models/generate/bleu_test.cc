// BLEU compared with sacrebleu's, for corpora of one line and of many.

#include "models/generate/bleu.h"
#include "test/expect_error.h"
#include "test/paths.h"
#include "test/temporary_folder.h"

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

using namespace kiln;

namespace {

// Scores, precisions, brevity penalties and lengths are those that test/oracles/bleu.py recorded, to 1e-9.
TEST(Bleu, IsSacrebleus) {
  for (const nlohmann::json &corpus :
       nlohmann::json::parse(readText(kiln::test::sourcePath("test/models/generate/bleu.json"))))
    for (const nlohmann::json &want : corpus.at("scores")) {
      SCOPED_TRACE(want.dump() + " of " + corpus.at("lines").dump().substr(0, 200));
      const Bleu got =
          computeBleu(corpus.at("lines"), corpus.at("references"),
                      {want.at("tokens") == "13a" ? BleuWords::v13a : BleuWords::spaces, want.at("lower")});
      EXPECT_EQ(got.length, want.at("length").get<int64_t>());
      EXPECT_EQ(got.referenceLength, want.at("reference_length").get<int64_t>());
      EXPECT_NEAR(got.score, want.at("score").get<double>(), 1e-9);
      EXPECT_NEAR(got.brevity, got.score > 0 ? want.at("brevity").get<double>() : got.brevity, 1e-9);
      for (size_t n = 0; n < 4 && got.score > 0; ++n)
        EXPECT_NEAR(got.precisions[n], want.at("precisions")[n].get<double>(), 1e-9);
    }
}

// A corpus of nothing has a score of 0, and no reference is left out.
TEST(Bleu, OfNothingIsNothing) {
  EXPECT_EQ(computeBleu({}, {}).score, 0);
  EXPECT_EQ(computeBleu({"", ""}, {"a", "b"}).score, 0);
  expectError([] { computeBleu({"a"}, {}); }, {"expected a reference for each of 1 lines, but got 0"});
}

} // namespace
