// Receivers of the rows of a run's log, in addition to the log itself.

#pragma once

#include "models/train/log.h"
#include "models/train/options.h"

#include <memory>

namespace kiln {

class RowSink {
public:
  virtual ~RowSink() = default;
  /// Throws Error (device) if the row cannot be written.
  virtual void write(const StepRow &row) = 0;
};

/// The sinks that the options ask for, for a run that continues from `step`. Throws Error (device) if one cannot write.
std::vector<std::unique_ptr<RowSink>> rowSinks(const RunOptions &options, int64_t step);

} // namespace kiln
