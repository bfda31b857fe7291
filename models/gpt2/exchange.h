// The commands `import` and `export`: models and runs in the files of llm.c.

#pragma once

#include "models/gpt2/options.h"

namespace kiln {

/// Makes a run's folder of a model, and of its state: one checkpoint, from which training goes on and text is written.
/// Throws Error for files that are no such thing, and a folder that has checkpoints.
void importModel(const ImportOptions &options);

/// Writes the model of a run, a checkpoint or a folder in Hugging Face's layout, and the state of a checkpoint. Throws
/// Error for a model of a form that llm.c does not have.
void exportModel(const ExportOptions &options);

} // namespace kiln
