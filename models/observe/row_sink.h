// Who takes the rows of a run's log besides the log itself.

#pragma once

#include "models/train/log.h"
#include "models/train/options.h"

#include <memory>

namespace kiln {

class RowSink {
public:
  virtual ~RowSink() = default;
  /// Throws Error (device) where the row cannot be written.
  virtual void write(const StepRow &row) = 0;
};

/// Those that the options ask for, of a run that goes on from `step`. Throws Error (device) where one cannot write.
std::vector<std::unique_ptr<RowSink>> rowSinks(const RunOptions &options, int64_t step);

} // namespace kiln
