// Evaluation of a trained model, for `gpt2 eval`: losses of tokens, and HellaSwag scores.

#pragma once

#include "models/generate/generator.h"
#include "models/gpt2/network.h"
#include "models/tokens/tokenizer.h"

#include <array>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace kiln {

//===-- HellaSwag's tasks ---------------------------------------------------------------------------------------===//
// HellaSwag tasks: a context, four endings, and the index of the right one. Zellers et al., "HellaSwag: Can a Machine
// Really Finish Your Sentence?", 2019.

struct HellaSwagTask {
  std::string context;
  std::array<std::string, 4> endings;
  int right = 0; // from 0
};

/// Reads tasks. A task is six lines (the context, the number of the right ending, four endings), or a line of JSON
/// (.jsonl: ctx, label, endings). Files may be compressed (.gz, .bz2). Throws Error for a file of another form.
std::vector<HellaSwagTask> readHellaSwag(const std::string &path);

//===-- Losses --------------------------------------------------------------------------------------------------===//
// Losses of single tokens with a trained model, and whether each was the most likely token.

class Evaluator {
public:
  /// Uploads `weights`, which have the network's type and layout, for batches of `sequences` of full context. The
  /// network must outlive it.
  Evaluator(std::shared_ptr<Device> device, const Network &network, const std::vector<char> &weights,
            int64_t sequences);

  struct Result {
    std::vector<float> losses, hits; // (sequences · context), 0 for missing targets
  };
  /// For batches of this many sequences. A batch has all inputs of the network's losses.
  Result evaluate(const HostBatch &batch);

  int64_t sequences() const { return shape.sequences; }
  int64_t length() const { return shape.target; }

private:
  Plan plan(Arena &placed) const;

  std::shared_ptr<Device> device;
  const Network &network;
  BatchShape shape;
  Tensor value, losses, hits;
  std::map<std::string, Tensor> inputs;
  ReadyPlan ready;
};

//===-- HellaSwag's scores --------------------------------------------------------------------------------------===//

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
std::string formatScores(const HellaSwagScore &score);

} // namespace kiln
