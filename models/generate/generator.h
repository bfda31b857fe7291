// Incremental decoding: a language model with a KV cache, so that a token costs one pass over the weights and one over
// the cache.
//
//     Generator generator(device, network, weights, {.sequences = 1});
//     generator.append(0, prompt);
//     const std::vector<float> logits = generator.next()[0];

#pragma once

#include "models/nn/decoder.h"
#include "runtime/Compile.h"
#include "runtime/Tensor.h"

#include <map>
#include <span>

namespace kiln {

/// The launches of an inference pass, planned and prepared once, with their memory.
struct ReadyPlan {
  ReadyPlan() = default;
  /// `plan` is called twice: first to record its buffers, then with their addresses.
  ReadyPlan(const std::shared_ptr<Device> &device, const std::function<Plan(Arena &)> &plan);
  Tensor arena, workspace;
  PreparedPlan launches;
};

class Generator {
public:
  struct Options {
    int64_t sequences = 1; // texts that are generated as a batch
    std::optional<int32_t> front =
        {}; // a token put in front of every text, and of every continuation after an overflow
    std::function<void()> restarts = {};        // called when a text has become longer than the context
    std::vector<CrossKvCache> crossCaches = {}; // encoder keys and values of blocks with cross-attention, for all texts
  };

  /// `weights` is the flat buffer of the network's parameters, on the device. Weights and network must outlive the
  /// generator.
  Generator(std::shared_ptr<Device> device, const DecoderNetwork &network, const TensorRef &weights, Options options);

  /// Appends tokens to a text.
  void append(int64_t sequence, std::span<const int32_t> tokens);
  /// Logits (vocab) of the next token of each text that has grown since the last call or has none yet; empty for the
  /// others. A text that has become longer than the context continues from its last half, which is read again. One that
  /// starts longer than the context continues from the end that fits. Throws Error for an empty text.
  std::vector<std::vector<float>> next();
  /// Forgets a text, so that another may start.
  void clear(int64_t sequence);

  /// Size of the KV cache in bytes.
  int64_t cacheBytes() const { return cache.bytes(); }

private:
  /// A text: tokens, and the number that the cache holds.
  struct Text {
    std::vector<int32_t> tokens; // all tokens that belong into the cache
    int64_t cached = 0;
  };
  /// The launches that read `places` tokens of each text, prepared once.
  struct Pass {
    int64_t places;
    Tensor numbers; // i32: tokens, positions, ranges, starts
    ReadyPlan ready;
  };

  /// Number of tokens that are not in the cache yet.
  static int64_t pending(const Text &text) { return std::ssize(text.tokens) - text.cached; }
  /// Makes room for the pending tokens.
  void fit(Text &text);
  /// The pass for this many positions. Only the one for a single position computes logits.
  Pass &pass(int64_t places);
  Plan plan(Arena &arena, int64_t places, const TensorRef &numbers) const;
  /// Reads as many positions of each text as `of` says, at most `places`.
  void read(int64_t places, const std::function<int64_t(const Text &)> &of);

  std::shared_ptr<Device> device;
  const DecoderNetwork &network;
  TensorRef weights;
  Options options;
  Tensor cache, logits; // (layers, 2, B, H, T, D); (B, vocab)
  std::vector<Text> texts;
  std::map<int64_t, Pass> passes;
};

} // namespace kiln
