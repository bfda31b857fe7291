// Suggestions for misspelt words.

#include "dialect/dsl/Nearest.h"

#include <gtest/gtest.h>

namespace kiln::testing {
namespace {

const std::vector<std::string> flags = {"--data", "--out", "--batch", "--steps", "--evaluate-every", "--bm"};

/// An additional letter, a missing one, a wrong one, and two swapped letters are one mistake each.
TEST(Nearest, OneSlipLeadsToTheWord) {
  for (const char *word : {"--stepss", "--stps", "--stepz", "--setps"})
    EXPECT_EQ(nearest(word, flags), "--steps") << word;
  EXPECT_EQ(nearest("trian", {"sample", "train"}), "train");
}

/// A long word may have several mistakes, a short one has one.
TEST(Nearest, LongerWordsMayHaveMoreSlips) {
  EXPECT_EQ(nearest("--evalute-evry", flags), "--evaluate-every");
  EXPECT_EQ(nearest("--bn", flags), "--bm");
  EXPECT_EQ(nearest("--stpz", flags), std::nullopt);
}

/// A word that is far from every candidate has no suggestion, even if one candidate is nearer than the others.
TEST(Nearest, FarWordsLeadNowhere) {
  for (const char *word : {"--batch-size", "--learning-rate", "--dropout", "--cat", "-x", "-", ""})
    EXPECT_EQ(nearest(word, flags), std::nullopt) << word;
}

/// Of several candidates the one with the fewest mistakes is chosen, and of equal ones the first.
TEST(Nearest, TheNearestWins) {
  EXPECT_EQ(nearest("layer", {"layers", "player"}), "layers");
  EXPECT_EQ(nearest("layers", {"layout", "layers"}), "layers");
}

/// The name of another library for the same thing, and a name's beginning or end, are nearer than a slip.
TEST(Nearest, SynonymsAndPartsLeadToTheWord) {
  EXPECT_EQ(nearest("float16", {"bf16", "f16"}), "f16");
  EXPECT_EQ(nearest("float16", {"fp32", "bf16", "fp16"}), "fp16");
  EXPECT_EQ(nearest("cuda", {"cpu", "cuda:0"}), "cuda:0");
  EXPECT_EQ(nearest("sm_90", {"sm_80", "sm_90a"}), "sm_90a");
  EXPECT_EQ(nearest("ad", {"adamw", "add"}), "add");
  EXPECT_EQ(nearest("sm_90", {"simulator:sm_80", "simulator:sm_90a"}), "simulator:sm_90a");
}

/// Messages end with the guess, or with nothing.
TEST(Nearest, MessagesEndWithTheGuess) {
  EXPECT_EQ(didYouMean("--stepz", flags), "; did you mean '--steps'?");
  EXPECT_EQ(didYouMean("--dropout", flags), "");
}

/// A message about an unknown name begins with the name, so that a long list does not hide it.
TEST(Nearest, UnknownNamesStandInFrontOfTheKnownOnes) {
  EXPECT_EQ(unknownName("device", "cpuu", {"cpu", "cuda:0"}),
            "unknown device 'cpuu'; did you mean 'cpu'? (known: cpu, cuda:0)");
  EXPECT_EQ(unknownName("device", "tpu:0", {"cpu", "cuda:0"}), "unknown device 'tpu:0' (known: cpu, cuda:0)");
  EXPECT_EQ(unknownName("kernel", "add", {}), "unknown kernel 'add'; there is none");
}

} // namespace
} // namespace kiln::testing
