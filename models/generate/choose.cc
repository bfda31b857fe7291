// Choosing among logits.

#include "models/generate/choose.h"

#include <algorithm>
#include <cmath>
#include <numeric>

namespace kiln {

int64_t choose(const std::vector<float> &logits, double temperature, int64_t topK, double uniform) {
  std::vector<int64_t> order(logits.size());
  std::iota(order.begin(), order.end(), int64_t{0});
  std::stable_sort(order.begin(), order.end(), [&](int64_t a, int64_t b) { return logits[a] > logits[b]; });
  if (temperature == 0)
    return order.front();
  if (topK > 0 && topK < static_cast<int64_t>(order.size()))
    order.resize(topK);
  std::vector<double> weights;
  for (int64_t i : order)
    weights.push_back(std::exp((logits[i] - logits[order.front()]) / temperature));
  double left = uniform * std::accumulate(weights.begin(), weights.end(), 0.0);
  for (size_t i = 0; i < order.size(); ++i)
    if ((left -= weights[i]) < 0)
      return order[i];
  return order.back();
}

} // namespace kiln
