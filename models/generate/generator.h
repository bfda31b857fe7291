// Texts that grow token by token: a language model with a cache of the keys and values of all places so far, so that a
// token costs one pass over the weights and one over the cache.
//
//     Generator generator(device, network, weights, {.sequences = 1});
//     generator.append(0, prompt);
//     const std::vector<float> logits = generator.next()[0];

#pragma once

#include "models/nn/decoder_network.h"
#include "runtime/Compile.h"
#include "runtime/Tensor.h"

#include <map>
#include <span>

namespace kiln {

class Generator {
public:
  struct Options {
    int64_t sequences = 1;                  // texts that grow side by side
    std::optional<int32_t> front = {};      // a token that stands in front of every text, and at each new beginning
    std::function<void()> restarts = {};    // called where a text has become longer than the context
    std::vector<CrossPast> crossPasts = {}; // what blocks know that look at an encoder's memory, for all texts
  };

  /// `weights` is the flat buffer of the network's parameters, on the device. It and the network must outlive it.
  Generator(std::shared_ptr<Device> device, const DecoderNetwork &network, const TensorRef &weights, Options options);

  /// Puts tokens behind a text.
  void append(int64_t sequence, std::span<const int32_t> tokens);
  /// Logits (vocab) of what may come next in each text, of one that has grown since the last time, or has none yet; of
  /// the others nothing. A text that has become longer than the context goes on from its last half, which is read anew;
  /// one that begins longer than the context, from the end that fits. Throws Error for a text without any token.
  std::vector<std::vector<float>> next();
  /// Forgets a text, so that another may begin.
  void clear(int64_t sequence);

  /// Bytes of the cache.
  int64_t cacheBytes() const { return cache.bytes(); }

private:
  /// A text: what is not in the cache yet, and how much is.
  struct Text {
    std::vector<int32_t> tokens; // all that the cache holds or should
    int64_t cached = 0;
  };
  /// The launches that read `places` tokens of each text, made ready once.
  struct Pass {
    int64_t places;
    Tensor numbers; // i32: tokens, positions, ranges, starts
    Tensor arena, workspace;
    PreparedPlan run;
  };

  /// Tokens of a text that are not in the cache.
  static int64_t pending(const Text &text) { return std::ssize(text.tokens) - text.cached; }
  /// Makes room for what is pending.
  void fit(Text &text);
  /// The pass of so many places, which gives logits where there is but one.
  Pass &pass(int64_t places);
  Plan plan(Arena &arena, int64_t places, const TensorRef &numbers) const;
  /// Reads up to as many places of each text as `of` says.
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
