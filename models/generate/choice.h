// Choosing the next token from a model's logits, on the host: it is no arithmetic of a training step.

#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace kiln {

/// How a token is chosen, in this order, as Hugging Face's generate() has it.
struct Choice {
  double repetitionPenalty = 1; // logits of tokens that are there already are divided by it, or multiplied below 0
  double temperature = 0.8;     // logits are divided by it; 0: the likeliest token, the lowest of several alike
  int64_t topK = 0;             // the k likeliest, and those as likely as the last of them, are left (0: all)
  double topP = 1;              // those are left before which less than so much probability lies, one at least
  double minP = 0;              // those are left that are at least so likely as this share of the likeliest
};

/// Throws Error for a choice that makes no sense.
void verify(const Choice &choice);

/// A token drawn by `uniform`, in [0, 1), from the softmax of the logits that the choice leaves; `seen` are the tokens
/// that are there already. There is at least one logit. Infinite ones share alike, and NaN is never chosen; throws
/// Error where there is nothing else.
int64_t choose(std::span<const float> logits, std::span<const int32_t> seen, const Choice &choice, double uniform);

/// The tokens that the choice leaves with their probabilities, the likeliest first, the lowest first of several alike.
struct Likely {
  int64_t token;
  double probability;
};
std::vector<Likely> likely(std::span<const float> logits, std::span<const int32_t> seen, const Choice &choice);

} // namespace kiln
