// `gpt2 eval`: what a trained model makes of a text that it has not seen, and of HellaSwag's tasks.

#pragma once

#include "models/data/hellaswag.h"
#include "models/gpt2/evaluator.h"
#include "models/gpt2/options.h"
#include "models/tokens/tokenizer.h"

namespace kiln {

/// How many tasks a model answers rightly. Its answer is the ending whose tokens have the smallest loss behind the
/// context: in all, or on average, which long endings do not lose by.
struct HellaSwagScore {
  int64_t tasks = 0, bySum = 0, byMean = 0;
  int64_t cut = 0, skipped = 0; // endings that lost their beginning; tasks without a context, which are not counted
  std::vector<std::array<double, 4>> sums = {};    // of each task's endings, in order
  std::vector<std::array<int64_t, 4>> judged = {}; // so many tokens each sum is of
};
/// The model sees the last tokens of context and ending, as many as it has places for, and the one behind them: a
/// context that is too long loses its beginning, and so does an ending.
HellaSwagScore scoreHellaSwag(Evaluator &evaluator, const Tokenizer &tokenizer,
                              const std::vector<HellaSwagTask> &tasks);

/// A line of JSON for each task that has a context: the sum of each ending's losses, and how many tokens it is of.
std::string scoresOf(const HellaSwagScore &score);

/// Prints what the options ask for, and writes the file of scores. Throws Error.
void evaluate(const EvalOptions &options);

} // namespace kiln
