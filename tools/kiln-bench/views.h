// What the parts of `kiln-bench views` share.

#pragma once

#include "tools/kiln-bench/bench.h"

namespace kiln::bench {

/// A kernel's launch, often enough that the host's part of it does not count.
Runner repeated(const Setting &setting, const Kernel &kernel, int64_t count, const std::vector<Arg> &args);
/// How often.
int64_t repeats(const Setting &setting);

/// The elements of a tensor as dense rows of other extents, from its beginning on.
TensorRef shaped(const Tensor &memory, const Shape &extents);

/// The time of the first, and that of what stands beside it; `ratio` is the second's share of it.
void addRow(Setting &setting, const std::string &shape, const std::vector<double> &seconds, const char *peer,
            Type type);

/// Masks, additions, running sums and turns of elements of a type, beside a copy of as many bytes.
void measureAccesses(Setting &setting, Type type);
/// Time for an element that a tile of positions names.
void measureTakes(Setting &setting);

} // namespace kiln::bench
