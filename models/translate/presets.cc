// Presets: models and training settings.

#include "models/train/flags.h"
#include "models/translate/network.h"

#include <cmath>

namespace kiln {

/// Common settings: learning rate proportional to 1 / √step, no clipping, no weight decay.
static TrainSettings noam(double rate, int64_t warmup) {
  TrainSettings s;
  s.schedule = Schedule::noam;
  s.rate = rate;
  s.warmup = warmup;
  s.steps = 2 * warmup;
  s.decay = 0;
  s.beta1 = 0.9;
  s.beta2 = 0.98;
  s.clip = 0;
  s.dropout = 0.1;
  return s;
}

static NamedTranslation small() {
  TrainSettings s = noam(1e-3, 400);
  s.batch = 1024;
  s.batchTokens = 2048;
  s.epsilon = 1e-9;
  s.dropoutActivation = 0.1;
  s.smoothing = 0.1;
  return {"small",
          {.encoderLayers = 3,
           .layers = 3,
           .heads = 8,
           .width = 256,
           .inner = 1024,
           .context = 128,
           .form = {.sharesTable = true, .tied = true, .start = TranslationStart::xavier}},
          s,
          10};
}

/// Vaswani et al. 2017: the base model and its learning rate, equation (3), with d_model 512; at most 50 tokens.
static NamedTranslation aiayn() {
  TrainSettings s = noam(1 / std::sqrt(512.0 * 4000.0), 4000);
  s.batch = 512;
  s.accumulate = 8;
  s.steps = 100000;
  return {"aiayn",
          {.encoderLayers = 6,
           .layers = 6,
           .heads = 8,
           .width = 512,
           .inner = 2048,
           .context = 51,
           .form = {.norms = NormPlace::post,
                    .norm = {.epsilon = 0},
                    .attentionBias = false,
                    .sharesTable = true,
                    .tied = true}},
          s};
}

static NamedTranslation annotated() {
  TrainSettings s = noam(3e-4, 0);
  s.schedule = Schedule::constant;
  s.steps = 1;
  s.beta2 = 0.999;
  s.batch = 32;
  s.dropoutActivation = s.dropoutAttention = 0.1;
  return {"annotated",
          {.encoderLayers = 2,
           .layers = 2,
           .heads = 8,
           .width = 512,
           .inner = 2048,
           .context = 128,
           .form = {.norm = {.ddof = 1, .epsilon = 1e-6, .epsOutsideSqrt = true}, .start = TranslationStart::pytorch}},
          s,
          10};
}

const std::vector<NamedTranslation> &translations() {
  static const std::vector<NamedTranslation> all = {small(), aiayn(), annotated()};
  return all;
}

const NamedTranslation &translationNamed(const std::string &name) { return presetNamed(translations(), name); }

} // namespace kiln
