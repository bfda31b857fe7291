// Creates the sinks that the options name.

#include "models/observe/row_sink.h"
#include "models/observe/main_log.h"
#include "models/observe/tensorboard.h"

namespace kiln {

std::vector<std::unique_ptr<RowSink>> rowSinks(const RunOptions &options, int64_t step) {
  std::vector<std::unique_ptr<RowSink>> sinks;
  if (options.tensorboard)
    sinks.push_back(std::make_unique<TensorBoardLog>(*options.tensorboard, step));
  if (options.mainLog)
    sinks.push_back(std::make_unique<MainLog>(options.out + "/main.log", step));
  return sinks;
}

} // namespace kiln
