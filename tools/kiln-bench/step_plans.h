// The launches of a GPT-2 trainer, for benchmarks that examine kernels and run none or few.

#pragma once

#include "models/gpt2/network.h"
#include "models/train/settings.h"

#include <functional>

namespace kiln::bench {

/// The first byte of a region of memory that plans name by a number, given how many bytes they want.
using Regions = std::function<void *(int region, int64_t bytes)>;
/// Memory that is never read, for plans whose kernels are only compiled: regions are 2⁴⁰ bytes apart.
void *imaginedRegion(int region, int64_t bytes);
/// Where workspaces of such plans begin.
inline constexpr int workspaceRegion = 1;
/// The record of the step; the tokens that differ, and where the positions of each begin.
inline constexpr int recordRegion = 4, distinctRegion = 12, startsRegion = 13;

/// GPT-2 124M, of so many layers, whose weights and activations are of a type.
Gpt2Config config124M(Type type, int64_t layers = 12, int64_t context = 1024);

/// A model for a quick look.
Gpt2Config tinyModel(Type type);

/// What a trainer with these settings launches: the gradient, replaced and added to; the losses, if it evaluates; the
/// update.
Plan stepPlan(const Target &target, const Model &model, const TrainSettings &settings, const Regions &regions,
              bool evaluates = true);
/// The ways to train on so many sequences in the model's type: with one micro-batch and with several, and without
/// masters where there can be some.
Plan stepPlans(const Target &target, const Model &model, int64_t sequences);

} // namespace kiln::bench
