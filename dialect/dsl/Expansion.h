// The kernels that vmap() and expanded() make, and lists with an entry for each parameter of a variadic kernel.

#pragma once

#include "dialect/dsl/Kernel.h"

#include <map>
#include <mutex>

namespace kiln {

/// The kernels that were made of one kernel. They live as long as it.
struct MadeKernels {
  std::mutex mutex;
  std::map<std::vector<std::optional<int>>, Kernel> batches; // by the dimension of the examples of each argument
  std::map<std::vector<size_t>, Kernel> expanded;            // by the number of views of each optional view and list
};

/// A parameter's name as an identifier: `xs_0` for `xs[0]`.
std::string identifierOf(const std::string &name);

/// Repeats the entries of optional views and lists as often as there are views, out of a list with one entry for each
/// parameter.
template <class T>
std::vector<T> repeated(const std::vector<T> &entries, const std::vector<Kernel::Parameter> &parameters,
                        const std::vector<size_t> &counts) {
  std::vector<T> result;
  size_t next = 0; // in counts
  for (size_t i = 0; i < entries.size(); ++i)
    result.insert(result.end(), parameters[i].isVariadic() ? counts[next++] : 1, entries[i]);
  return result;
}

} // namespace kiln
