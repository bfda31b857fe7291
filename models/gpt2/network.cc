// The layers in order, forward and back.

#include "models/gpt2/network.h"
#include "kernels/cross_entropy.h"
#include "models/data/batches.h"
#include "models/gpt2/config_json.h"

#include <algorithm>
#include <cmath>
#include <fmt/format.h>
#include <nlohmann/json.hpp>

namespace kiln {

/// GPT-2's initialisation: 0.02, and 0.02 / √(2L) for what adds to the residual stream.
static constexpr double deviation = 0.02;

/// Hugging Face's names.
static const EmbeddingNames tables = {"wte.weight", "wpe.weight"};
static LayerNames layerNames(const std::string &layer) { return {layer + ".weight", layer + ".bias"}; }
static BlockNames blockNames(int64_t number) {
  const auto layer = [&](const char *name) { return layerNames(fmt::format("h.{}.{}", number, name)); };
  return {layer("ln_1"),
          {layer("attn.c_attn"), layer("attn.c_proj")},
          layer("ln_2"),
          {layer("mlp.c_fc"), layer("mlp.c_proj")}};
}

static std::vector<Block> makeBlocks(ParameterList &list, const Gpt2Config &c) {
  std::vector<Block> blocks;
  const double residual = deviation / std::sqrt(2.0 * static_cast<double>(c.layers));
  for (int64_t l = 0; l < c.layers; ++l)
    blocks.emplace_back(list, blockNames(l), BlockSettings{c.heads, c.width, c.epsilon, c.scaleOf(l)}, deviation,
                        residual);
  return blocks;
}

Network::Network(const Gpt2Config &config)
    : sizes(config), embedding(list, tables, config.vocab, config.context, config.width, deviation),
      blocks(makeBlocks(list, config)), last(list, layerNames("ln_f"), config.width, config.epsilon) {
  verify(config);
  list.place();
}

std::vector<Input> Network::inputs(const BatchShape &shape) const {
  const int64_t rows = shape.targets(), distinct = std::min(sizes.vocab, rows);
  return {{"tokens", i32, {rows}},
          {"targets", i32, {rows}},
          {"token index", i32, {distinct}},
          {"token starts", i32, {distinct + 1}},
          {"token positions", i32, {rows}}};
}

void Network::derive(HostBatch &batch, const BatchShape &) const {
  const HostEmbeddingIndex index = indexOf(batch.at("tokens").numbers<int32_t>(), sizes.vocab);
  batch["token index"] = index.tokens;
  batch["token starts"] = index.starts;
  batch["token positions"] = index.positions;
}

/// Logits (rows, vocab), taken from the arena: columns of a matrix whose rows begin at multiples of 64 elements, so
/// that vectors of them are aligned whatever the vocabulary.
static TensorRef takeLogits(Build &b, int64_t rows, int64_t vocab) {
  return b.take("logits", {rows, ceildiv(vocab, 64) * 64});
}

/// Of a block's launches.
static std::string blockLabel(size_t number) { return fmt::format("block {}", number); }

void Network::gradient(Build &b, const MicroBatch &micro) const {
  const auto [batch, time, source] = micro.shape;
  const int64_t rows = batch * time;
  const EmbeddingIndex index = {micro["token index"], micro["token starts"], micro["token positions"]};
  // Forward.
  TensorRef x = b.take("embedding", {rows, sizes.width});
  embedding.forward(b, micro["tokens"], time, x);
  std::vector<Block::Saved> saved(blocks.size());
  for (size_t l = 0; l < blocks.size(); ++l) {
    const Scope scope(b, blockLabel(l));
    x = blocks[l].forward(b, x, batch, time, saved[l]);
  }
  const LayerNorm::Saved statistics = last.take(b, rows);
  const TensorRef normed = b.take("last norm", {rows, sizes.width});
  const TensorRef padded = takeLogits(b, rows, sizes.vocab), logits = padded.slice(1, 0, sizes.vocab);
  head(b, x, statistics, normed, logits);
  // The loss; the logits become their gradient.
  b.plan += labelled(
      planCrossEntropy(b.target, logits, micro["targets"], micro.losses, sizes.vocab, 1, ignoredTarget, b.lossWeight),
      "loss");
  // Backward.
  const TensorRef dx = b.take("d block output", {rows, sizes.width});
  embedding.headBackward(b, logits, normed, dx);
  b.release(padded);
  {
    const Scope scope(b, "last backward");
    last.backward(b, dx, x, statistics, dx, /*add=*/false);
  }
  last.release(b, statistics);
  b.release(normed);
  b.release(x);
  for (size_t l = blocks.size(); l-- > 0;) {
    const Scope scope(b, blockLabel(l));
    blocks[l].backward(b, dx, saved[l]);
  }
  embedding.backward(b, index, dx, time);
  b.release(dx);
}

void Network::head(Build &b, const TensorRef &x, const LayerNorm::Saved &statistics, const TensorRef &normed,
                   const TensorRef &logits) const {
  {
    const Scope scope(b, "last");
    last.forward(b, x, statistics, normed);
  }
  embedding.head(b, normed, logits);
}

TensorRef Network::hidden(Build &b, const TensorRef &tokens, int64_t time) const {
  const TensorRef x = b.take("hidden", {tokens.count(), sizes.width});
  embedding.forward(b, tokens, time, x);
  for (size_t l = 0; l < blocks.size(); ++l) {
    const Scope scope(b, blockLabel(l));
    blocks[l].infer(b, x, tokens.count() / time, time);
  }
  return x;
}

void Network::logits(Build &b, const TensorRef &rows, const TensorRef &logits) const {
  const TensorRef normed = b.take("last norm", rows.extents);
  const LayerNorm::Saved statistics = last.take(b, rows.extents[0]);
  head(b, rows, statistics, normed, logits);
  last.release(b, statistics);
  b.release(normed);
}

void Network::losses(Build &b, const MicroBatch &micro) const {
  const TensorRef &tokens = micro["tokens"], &targets = micro["targets"];
  const TensorRef x = hidden(b, tokens, micro.shape.target);
  const TensorRef padded = takeLogits(b, tokens.count(), sizes.vocab), out = padded.slice(1, 0, sizes.vocab);
  logits(b, x, out);
  b.plan += labelled(
      planCrossEntropyLoss(b.target, out, targets, micro.losses, sizes.vocab, ignoredTarget, {.hits = micro.hits}),
      "loss");
  b.release(padded);
  b.release(x);
}

nlohmann::ordered_json Network::configJson(Type saved) const { return kiln::configJson(sizes, saved); }

} // namespace kiln
