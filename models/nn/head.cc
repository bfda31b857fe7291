// The head's launches.

#include "models/nn/head.h"
#include "kernels/column_sums.h"
#include "kernels/matmul.h"

namespace kiln {

Head::Head(ParameterList &list, const LayerNames &names, int64_t vocab, int64_t width, int tokenTable,
           const HeadOptions &options, const LinearInit &init)
    : weight(options.tied ? tokenTable : list.add(names.weight, {vocab, width}, init.weight, Role::matrix)) {
  if (options.bias)
    bias = list.add(names.bias, {vocab}, init.bias, Role::bias);
}

void Head::forward(Build &b, const TensorRef &x, const TensorRef &logits) const {
  const LaunchScope scope(b, "head");
  b.plan += planLinear(b.target, Layout::nt, x, b.value(weight), logits,
                       {.bias = bias ? std::optional(b.value(*bias)) : std::nullopt});
}

void Head::backward(Build &b, const TensorRef &dlogits, const TensorRef &x, const TensorRef &dx, bool add) const {
  const LaunchScope scope(b, "head backward");
  b.plan += planMatmul(b.target, Layout::nn, dlogits, b.value(weight), dx);
  b.plan += planWeightGradient(b.target, dlogits, x, b.gradient(weight), {}, b.accumulate || add);
  if (bias)
    b.plan += planColumnSums(b.target, dlogits, b.gradient(*bias), b.accumulate || add);
}

} // namespace kiln
