// The reference model against itself: its gradient must be the slope of its loss.

#include "test/models/gpt2/reference.h"

#include <cmath>
#include <gtest/gtest.h>
#include <random>

namespace {

reference::Tensors randomParameters(const reference::Shape &shape, uint32_t seed) {
  std::mt19937 engine(seed);
  std::normal_distribution<double> normal(0, 0.3);
  reference::Tensors p = reference::zeros(shape);
  for (auto &[key, tensor] : p)
    for (double &value : tensor)
      value = normal(engine) + (key.find("ln_") != std::string::npos && key.find("weight") != std::string::npos);
  return p;
}

std::vector<int> randomTokens(int64_t count, int64_t vocab, uint32_t seed) {
  std::mt19937 engine(seed);
  std::vector<int> tokens(count);
  for (int &token : tokens)
    token = engine() % vocab;
  return tokens;
}

// Every entry of the gradient equals the central difference of the loss. With a step of 3e-5 the difference's own error
// is about h² f''' = 1e-9, up to 2e-8 where scores are not scaled, and 1e-16 / h = 3e-12 of rounding, on entries of the
// order 1e-3 … 1; 1e-7 leaves a factor of five.
void expectSlope(const reference::Shape &shape) {
  const int64_t batch = 2, time = 5;
  reference::Tensors p = randomParameters(shape, 1), g;
  const std::vector<int> tokens = randomTokens(batch * time, shape.vocab, 2),
                         targets = randomTokens(batch * time, shape.vocab, 3);
  reference::gradient(shape, p, tokens, targets, batch, time, g);
  for (auto &[key, tensor] : p)
    for (size_t i = 0; i < tensor.size(); i += 1 + tensor.size() / 40) {
      const double value = tensor[i], h = 3e-5;
      tensor[i] = value + h;
      const double above = reference::loss(shape, p, tokens, targets, batch, time);
      tensor[i] = value - h;
      const double below = reference::loss(shape, p, tokens, targets, batch, time);
      tensor[i] = value;
      EXPECT_NEAR(g.at(key)[i], (above - below) / (2 * h), 1e-7) << key << "[" << i << "]";
    }
}

TEST(ReferenceModel, GradientIsTheSlopeOfTheLoss) { expectSlope({}); }

TEST(ReferenceModel, GradientIsTheSlopeWithOtherScalings) {
  expectSlope({.epsilon = 0.5, .scalesByLayer = true});
  expectSlope({.scalesScores = false});
}

// A model whose weights are zero except for the gains predicts every token with equal probability: its loss is
// log(vocab).
TEST(ReferenceModel, AnEmptyModelPredictsUniformly) {
  const reference::Shape shape;
  reference::Tensors p = reference::zeros(shape);
  const std::vector<int> tokens = randomTokens(6, shape.vocab, 2);
  EXPECT_NEAR(reference::loss(shape, p, tokens, tokens, 1, 6), std::log(double(shape.vocab)), 1e-12);
}

// The first update of Adam moves every parameter by the learning rate, against the gradient's sign, for any gradient.
TEST(ReferenceModel, FirstAdamStepHasTheSizeOfTheRate) {
  reference::Tensors p = {{"ln_f.bias", {1, 2, 3}}};
  reference::AdamW adam;
  adam.update(p, {{"ln_f.bias", {1e-2, -5, 0.3}}}, 0.1);
  EXPECT_NEAR(p["ln_f.bias"][0], 0.9, 1e-6);
  EXPECT_NEAR(p["ln_f.bias"][1], 2.1, 1e-6);
  EXPECT_NEAR(p["ln_f.bias"][2], 2.9, 1e-6);
}

} // namespace
