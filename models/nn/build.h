// The context in which layers plan their part of a step: the target, the arena, the parameters, and the plan to append
// to. Layers hold no tensors. forward() and backward() append launches. The caller owns the activations, takes them
// from the arena and releases them after their last use.

#pragma once

#include "kernels/matmul.h"
#include "models/nn/arena.h"
#include "models/nn/parameters.h"
#include "models/nn/recompute.h"

#include <optional>
#include <utility>

namespace kiln {

//===-- Deferred gradients --------------------------------------------------------------------------------------===//
// Deferred parameter gradients. Nothing reads them before the end of a step, and a GPU computes many together in less
// time and fewer launches. Their operands stay in the arena until then.

class DeferredGradients {
public:
  /// Whether gradients are deferred: on a GPU, from begin() until takeSums().
  bool isOn() const { return on; }
  void begin(const Target &target);
  /// Stops deferring until resume(), which takes the value returned here.
  bool pause() { return std::exchange(on, false); }
  void resume(bool wasOn) { on = wasOn; }

  void add(const WeightGradient &gradient) { weights.push_back(gradient); }
  /// Defers launches that add partial sums from a buffer of the arena.
  void add(const std::vector<Launch> &launches, const TensorRef &parts);
  /// Whether a deferred gradient reads this buffer, which must then stay unchanged.
  bool reads(const TensorRef &buffer) const;
  /// Keeps a buffer until the gradients that read it are launched.
  void hold(const TensorRef &buffer) { held.push_back(buffer); }

  /// Whether enough weights are deferred: more would use memory without making launches faster.
  bool isFull() const { return weights.size() >= mostWeights; }
  /// The launches of all deferred weights, and the buffers that are free after them.
  Plan takeWeights(const Target &target, bool accumulate, std::vector<TensorRef> &released);
  /// The launches of all deferred sums, and the buffers that are free after them.
  Plan takeSums(std::vector<TensorRef> &released);

private:
  /// The weights of four blocks: their tiles fill any GPU many times.
  static constexpr size_t mostWeights = 16;

  bool on = false;
  std::vector<WeightGradient> weights;
  std::vector<Launch> sums;
  std::vector<TensorRef> parts, held;
};

//===-- The build -----------------------------------------------------------------------------------------------===//

/// The encoder's output for the sequences of a build, for cross-attention.
struct EncoderMemory {
  TensorRef states;                          // (B · S, C), S positions a sequence
  TensorRef ranges;                          // (B, 2) i32: the range of existing positions of each sequence
  std::optional<TensorRef> queryRanges = {}; // (B, S, 2) i32: the range of decoder positions that see each position
  std::optional<TensorRef> gradient = {};    // of the states, (B · S, C), once a layer has added to it
};

struct Build {
  const Target &target;
  Arena &arena;
  const ParameterList &list;
  ParameterBuffers buffers;
  Type type;                 // of activations
  bool accumulate = false;   // adds parameter gradients to their buffer (gradient accumulation)
  TensorRef lossWeight = {}; // (1) f32, multiplies the sum of the losses before the backward pass
  /// Dropout sites, (sites, siteNumbers) i64: the key of a site, and the index of the first sequence. A row is padded
  /// to a cache line, so that all sites have equal alignment and one kernel serves them. None in evaluation.
  std::optional<TensorRef> sites = {};
  static constexpr int64_t siteNumbers = 8;
  int64_t time = 1; // positions of a sequence, for the numbering of dropout
  /// Visible ranges of each position of the batch, and the ranges of positions that see it, (B, T, 2) i32 each, as
  /// attention takes them. None: causal.
  std::optional<TensorRef> ranges = {}, queryRanges = {};
  std::optional<EncoderMemory> memory = {};
  Recompute recompute = {}; // activations that the backward pass recomputes
  int64_t block = 0;        // index of the block whose launches are appended
  int64_t lossChunks = 1;   // chunks of the rows; the logits of one are in memory at a time
  Plan plan = {};
  DeferredGradients deferred = {}; // deferred parameter gradients

  TensorRef value(int parameter) const { return buffers.value(list[parameter]); }
  TensorRef gradient(int parameter) const { return buffers.gradient(list[parameter]); }
  TensorRef take(const std::string &name, Shape extents) { return arena.take(name, type, std::move(extents)); }
  TensorRef takeStatistics(const std::string &name, Shape extents) { return arena.take(name, f32, std::move(extents)); }
  /// Releases a buffer, once no deferred gradient reads it.
  void release(const TensorRef &tensor) { deferred.reads(tensor) ? deferred.hold(tensor) : arena.release(tensor); }

  /// The gradients of a weight and its bias: now, or deferred.
  void weightGradient(const WeightGradient &gradient);
  /// Launches all deferred weight gradients.
  void launchWeights();
  /// Launches all deferred work.
  void launchDeferred();
};

/// Chunks of rows whose logits are in memory one after the other: begin and count of each. There are `chunks`, of which
/// the last ones may be empty. Empty ones are left out unless the target is elastic, where all plans must take equally
/// many buffers.
std::vector<std::pair<int64_t, int64_t>> cutLossRows(const Target &target, int64_t rows, int64_t chunks);

/// The plan with `name` in front of its launches' labels.
Plan labelled(Plan plan, const std::string &name);

/// While it lives, launches appended to the build's plan belong to `name`: the word is put in front of their labels.
/// Nested scopes make labels such as `block 3 attention backward`.
class LaunchScope {
public:
  LaunchScope(Build &build, std::string name)
      : build(build), name(std::move(name)), begin(build.plan.launches.size()) {}
  ~LaunchScope();
  LaunchScope(const LaunchScope &) = delete;

private:
  Build &build;
  const std::string name;
  const size_t begin;
};

//===-- Saved activations ---------------------------------------------------------------------------------------===//
// A saved activation: kept from the forward pass on, or recomputed when the backward pass needs it. The launches that
// recompute it are the original ones, or others with bit-equal results.

class SavedActivation {
public:
  /// Appends the launches that write it; they get() their own inputs. It refers to the layer and to its saved
  /// activations, which must not move while a plan is built.
  using Fill = std::function<void(Build &)>;

  SavedActivation() = default;
  SavedActivation(const SavedActivation &) = delete; // because fills refer to it

  /// Takes memory for the launches that follow. If the build recomputes `site`, drop() releases it, and get() takes
  /// memory again and has `fill` write it.
  const TensorRef &take(Build &build, Site site, const std::string &name, Shape extents, Fill fill) {
    return take(build, site, name, build.type, std::move(extents), std::move(fill));
  }
  const TensorRef &take(Build &build, Site site, const std::string &name, Type type, Shape extents, Fill fill);
  /// To be called after its last reader in the forward pass.
  void drop(Build &build);
  /// Its contents, recomputed if it was dropped.
  const TensorRef &get(Build &build);
  /// Takes memory again if it was dropped, for another activation's fill that writes both.
  const TensorRef &place(Build &build);
  /// Its memory, which must be present.
  const TensorRef &operator*() const;
  void release(Build &build);

private:
  std::string name;
  TensorRef memory;
  Fill fill;
  bool isThere = false, isMadeAgain = false;
};

/// A function that gives a layer its input, recomputed if needed.
using Reader = std::function<TensorRef(Build &)>;

} // namespace kiln
