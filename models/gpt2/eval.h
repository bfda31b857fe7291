// HellaSwag scores of a trained model, for `gpt2 eval`.

#pragma once

#include "models/data/hellaswag.h"
#include "models/gpt2/evaluator.h"
#include "models/tokens/tokenizer.h"

namespace kiln {

/// HellaSwag score of a model. Its answer is the ending whose tokens have the smallest loss after the context: by sum,
/// or by mean, which does not favour short endings.
struct HellaSwagScore {
  int64_t tasks = 0, bySum = 0, byMean = 0;
  int64_t cut = 0, skipped = 0; // endings that lost their beginning; tasks without a context, which are not counted
  std::vector<std::array<double, 4>> sums = {};    // sums of the losses of each task's endings, in order
  std::vector<std::array<int64_t, 4>> judged = {}; // number of tokens of each sum
};
/// The model sees the last `context` tokens of context and ending, and predicts the token after them. A long context
/// loses its beginning, and so does a long ending.
HellaSwagScore scoreHellaSwag(Evaluator &evaluator, const Tokenizer &tokenizer,
                              const std::vector<HellaSwagTask> &tasks);

/// A line of JSON for each task with a context: the sum of each ending's losses, and its number of tokens.
std::string scoresOf(const HellaSwagScore &score);

} // namespace kiln
