// Collectives built on exchanges of bytes.

#include "models/parallel/collective.h"
#include "dialect/dsl/Types.h"

#include <algorithm>
#include <cstring>
#include <fmt/format.h>

namespace kiln {

std::vector<double> Collective::gathered(double mine) {
  std::vector<double> all(size());
  all[rank()] = mine;
  gather(all.data(), sizeof(double));
  return all;
}

double Collective::sum(double mine) {
  double total = 0;
  for (const double each : gathered(mine))
    total += each;
  return total;
}

std::string Collective::broadcast(const std::string &text) {
  int64_t bytes = std::ssize(text);
  broadcast(&bytes, sizeof(bytes));
  std::string all = isFirst() ? text : std::string(bytes, ' ');
  broadcast(all.data(), bytes);
  return all;
}

void Collective::expectSame(const std::string &name, const std::string &mine) {
  const std::string first = broadcast(mine);
  const std::vector<double> same = gathered(mine == first ? 1 : 0);
  const auto other = std::find(same.begin(), same.end(), 0);
  if (other == same.end())
    return;
  // All ranks need the other rank's text: they gather texts of equal size, one per rank.
  const auto which = static_cast<int>(other - same.begin());
  constexpr size_t most = 4096;
  std::vector<char> texts(size() * most, 0);
  std::memcpy(texts.data() + rank() * most, mine.data(), std::min(mine.size(), most - 1));
  gather(texts.data(), most);
  throw Error(fmt::format("expected all {} ranks to have the same {}, but rank 0 has {} and rank {} has {}", size(),
                          name, first, which, std::string(texts.data() + which * most)));
}

namespace {
class Alone : public Collective {
public:
  int rank() const override { return 0; }
  int size() const override { return 1; }
  int localRank() const override { return 0; }
  int localSize() const override { return 1; }
  void exchange(const void *from, void *to, int64_t bytes) override { std::memmove(to, from, bytes); }
  void gather(void *, int64_t) override {}
  void broadcast(void *, int64_t) override {}
};
} // namespace

std::shared_ptr<Collective> aloneCollective() { return std::make_shared<Alone>(); }

} // namespace kiln
