// The commands of `translate`. Each throws Error.

#pragma once

#include "models/translate/options.h"

namespace kiln::translate {

/// Trains a model, from the first step or from a run's newest checkpoint.
void train(const TrainOptions &options);
/// Prints a translation of each line.
void translate(const TranslateOptions &options);
/// Prints the BLEU of translations.
void eval(const EvalOptions &options);
/// Prints each parameter with its size, and the memory of a micro-batch.
void info(const InfoOptions &options);

} // namespace kiln::translate
