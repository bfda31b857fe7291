// Sampling: the next token from a model's logits, on the host.

#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace kiln {

/// Sampling parameters, applied in this order, as in Hugging Face's generate().
struct SamplingParams {
  double repetitionPenalty = 1; // logits of tokens in the text are divided by it, or multiplied if negative
  double temperature = 0.8;     // divides the logits; 0: greedy, the lowest number on a tie
  int64_t topK = 0;             // keeps the k most likely tokens, and those tied with the last of them (0: all)
  double topP = 1;              // nucleus: keeps tokens until their probability reaches this, at least one
  double minP = 0;              // keeps tokens of at least this share of the largest probability
};

/// Throws Error for parameters out of range.
void verify(const SamplingParams &choice);

/// The token drawn by `uniform`, in [0, 1), from the softmax of the logits that the filters keep; `seen` are the tokens
/// of the text. There is at least one logit. Infinite logits share the probability, and NaN is never chosen. Throws
/// Error if no other logit is left.
int64_t sampleToken(std::span<const float> logits, std::span<const int32_t> seen, const SamplingParams &choice,
                    double uniform);

/// The tokens that the filters keep, with their probabilities, most likely first, lowest number first on a tie.
struct LikelyToken {
  int64_t token;
  double probability;
};
std::vector<LikelyToken> likelyTokens(std::span<const float> logits, std::span<const int32_t> seen,
                                      const SamplingParams &choice);

} // namespace kiln
