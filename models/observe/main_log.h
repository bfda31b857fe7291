// Lines of llm.c's main.log, which its plotting scripts read:
//
//     s:0 tel:10.9891                           validation loss after this many steps
//     s:0 trl:10.9894 lr:0.000300 norm:15.91    loss, learning rate and gradient norm of step 0, counted from 0

#pragma once

#include "models/observe/row_sink.h"

namespace kiln {

/// The lines of a row.
std::string mainLogLines(const StepRow &row);

class MainLog : public RowSink {
public:
  /// Opens a log. Of an existing file it keeps the lines of the first `step` steps.
  MainLog(const std::string &path, int64_t step);
  ~MainLog() override;
  MainLog(const MainLog &) = delete;
  void write(const StepRow &row) override;

private:
  void put(const std::string &text);

  const std::string path;
  int file = -1;
};

} // namespace kiln
