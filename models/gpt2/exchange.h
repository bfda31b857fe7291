// The commands `import` and `export` for llm.c's files.

#pragma once

#include "models/gpt2/options.h"

namespace kiln {

/// Makes a run's folder with one checkpoint from a model and its state, for further training and sampling. Throws Error
/// for files of another form, and for a folder that has checkpoints.
void importModel(const ImportOptions &options);

/// Writes the model of a run, a checkpoint or a Hugging Face folder, and the state of a checkpoint. Throws Error for a
/// model that llm.c does not support.
void exportModel(const ExportOptions &options);

} // namespace kiln
