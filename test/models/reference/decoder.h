// Language models of all options on a tape: the forward pass alone.

#pragma once

#include "models/nn/decoder.h"
#include "test/models/reference/tape.h"

#include <map>

namespace kiln::test {

/// Names as the tests give them to a decoder: tokens, places, 0.norm1.weight, …, last.weight, head.bias.
DecoderNames plainNames();

/// What a decoder is given, and what it drops.
struct DecoderBatch {
  int64_t sequences, time;
  std::vector<int32_t> tokens, targets, positions; // the last where the options say that it gives them
  /// What the numbers (rows, columns) of site number `site`, in the order of their making, are multiplied by.
  std::function<std::vector<double>(int64_t site, int64_t rows, int64_t columns)> mask = {};
  std::vector<int32_t> ranges = {}; // (sequences, time, 2): the places that each one sees, where the options say so
};

/// The mean loss over the targets that are there.
Value decoderLoss(Tape &tape, const DecoderOptions &options, std::map<std::string, Value> &parameters,
                  const DecoderBatch &batch);

} // namespace kiln::test
