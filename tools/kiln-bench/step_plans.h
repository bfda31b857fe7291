// The launches of a GPT-2 trainer, for benchmarks that examine kernels and run none or few.

#pragma once

#include "models/gpt2/network.h"
#include "models/train/settings.h"

#include <functional>

namespace kiln::bench {

/// Returns the first byte of a region of memory, given the region's number and its size.
using Regions = std::function<void *(int region, int64_t bytes)>;
/// Memory that is never read, for plans whose kernels are only compiled: regions are 2⁴⁰ bytes apart.
void *imaginedRegion(int region, int64_t bytes);
/// The region of workspaces.
inline constexpr int workspaceRegion = 1;
/// The regions of the step's record, of the distinct tokens, and of the starts of their positions.
inline constexpr int recordRegion = 4, distinctRegion = 12, startsRegion = 13;

/// GPT-2 124M with this number of layers, and with weights and activations of `type`.
Gpt2Config config124M(Type type, int64_t layers = 12, int64_t context = 1024);

/// A small model for --quick.
Gpt2Config tinyModel(Type type);

/// The launches of a trainer with these settings: the gradient, written and accumulated; the losses, if it evaluates;
/// the update.
Plan stepPlan(const Target &target, const Model &model, const TrainSettings &settings, const Regions &regions,
              bool evaluates = true);
/// The launches of all ways to train on `sequences` sequences in the model's type: with one micro-batch and with
/// several; for a narrow type, with and without master weights.
Plan stepPlans(const Target &target, const Model &model, int64_t sequences);

} // namespace kiln::bench
