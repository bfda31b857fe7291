// What a layer needs to plan its part of a step: the machine, the arena, the parameters, and the plan to append to.
// Layers hold no tensors. forward() and backward() append launches; the caller owns the activations, takes them from
// the arena and releases them after their last use.

#pragma once

#include "models/nn/arena.h"
#include "models/nn/gathered.h"
#include "models/nn/parameters.h"
#include "models/nn/recompute.h"

#include <optional>

namespace kiln {

/// What an encoder made of the sequences that a build's are made from, for the layers that look at it.
struct EncoderMemory {
  TensorRef states;                           // (B · S, C), of S places each
  TensorRef ranges;                           // (B, 2) i32: which of these are there
  std::optional<TensorRef> columnRanges = {}; // (B, S, 2) i32: by which places of its sequence each of them is seen
  std::optional<TensorRef> gradient = {};     // by the states, (B · S, C), once a layer has one to add
};

struct Build {
  const Target &target;
  Arena &arena;
  const ParameterList &list;
  ParameterBuffers buffers;
  Type type;                 // of activations
  bool accumulate = false;   // parameter gradients are added to what their buffer holds
  TensorRef lossWeight = {}; // (1) f32, what the losses' sum is multiplied by before its gradient is taken
  /// Of dropout, (sites, siteNumbers) i64: a site's key, the number of the first sequence, and what fills a line of
  /// memory, so that all sites are aligned alike and one kernel serves them; evaluations: none.
  std::optional<TensorRef> sites = {};
  static constexpr int64_t siteNumbers = 8;
  int64_t time = 1; // places of a sequence, which dropout counts by
  /// Which places each place of the batch sees, and by which it is seen, (B, T, 2) i32 each, as attention takes them;
  /// none: those up to its own.
  std::optional<TensorRef> ranges = {}, columnRanges = {};
  std::optional<EncoderMemory> memory = {};
  Recompute recompute = {}; // what the backward pass makes again
  int64_t block = 0;        // number of the block whose launches are appended
  int64_t lossChunks = 1;   // parts of the rows whose logits are in memory one after the other
  Plan plan = {};
  Gathered gathered = {}; // gradients of parameters that wait

  TensorRef value(int parameter) const { return buffers.value(list[parameter]); }
  TensorRef gradient(int parameter) const { return buffers.gradient(list[parameter]); }
  TensorRef take(const std::string &name, Shape extents) { return arena.take(name, type, std::move(extents)); }
  TensorRef takeStatistics(const std::string &name, Shape extents) { return arena.take(name, f32, std::move(extents)); }
  /// Gives a buffer back, once no gradient that waits reads it.
  void release(const TensorRef &tensor) { gathered.reads(tensor) ? gathered.hold(tensor) : arena.release(tensor); }

  /// The gradients of a weight and its bias: now, or together with others.
  void weightGradient(const WeightGradient &gradient);
  /// Launches those of all weights that wait.
  void launchWeights();
  /// Launches all that waits: nothing does any more.
  void launchGathered();
};

/// Rows whose logits are in memory one after the other: where they begin and how many. These are `chunks`, of which the
/// last ones may be empty; where the target is not elastic, so that no other plan has to take as many buffers, empty
/// ones are left out.
std::vector<std::pair<int64_t, int64_t>> lossChunksOf(const Target &target, int64_t rows, int64_t chunks);

/// The plan with `name` before its launches' labels.
Plan labelled(Plan plan, const std::string &name);

/// While it lives, what is appended to the build's plan is a part of `name`: that word comes before the launches'
/// labels. Scopes within scopes make labels such as `block 3 attention backward`.
class Scope {
public:
  Scope(Build &build, std::string name) : build(build), name(std::move(name)), begin(build.plan.launches.size()) {}
  ~Scope();
  Scope(const Scope &) = delete;

private:
  Build &build;
  const std::string name;
  const size_t begin;
};

} // namespace kiln
