// Looks executables up by the words of their key.

#include "runtime/MemoryCache.h"

#include <algorithm>

namespace kiln {

static int64_t extentOf(const std::vector<Arg> &args, std::pair<int, int> place) {
  return args[place.first].ref.extents[place.second];
}

FactWords Source::keyOf(FactWords facts, const std::vector<Arg> &args) const {
  for (const std::pair<int, int> &place : asked)
    facts.push_back(extentOf(args, place));
  return facts;
}

PendingExecutable Source::find(const FactWords &facts, const std::vector<Arg> &args) {
  const std::lock_guard lock(mutex);
  if (variants.empty())
    return {};
  // The places asked for exist in these arguments only if their number and ranks, which the facts tell, agree with some
  // variant's: a launch with other ranks must not be asked for an extent that it has not.
  for (const std::pair<int, int> &place : asked)
    if (place.first >= static_cast<int>(args.size()) || place.second >= args[place.first].ref.rank())
      return findAmong(facts, args);
  const FactWords key = keyOf(facts, args);
  if (const auto found = known.find(key); found != known.end())
    return found->second;
  const PendingExecutable found = findAmong(facts, args);
  if (found)
    known.emplace(key, found);
  return found;
}

PendingExecutable Source::findAmong(const FactWords &facts, const std::vector<Arg> &args) const {
  for (const Variant &variant : variants)
    if (variant.facts == facts && std::all_of(variant.extents.begin(), variant.extents.end(), [&](const auto &extent) {
          return extentOf(args, extent.first) == extent.second;
        }))
      return variant.pending;
  return {};
}

void Source::add(const FactWords &facts, const std::vector<Arg> &args, const Asked &more, PendingExecutable pending) {
  const std::lock_guard lock(mutex);
  const size_t before = asked.size();
  asked.insert(more.begin(), more.end());
  if (asked.size() != before)
    known.clear(); // keys have become longer; find() enters the variants again as they are wanted
  Variant variant{facts, {}, std::move(pending)};
  for (const std::pair<int, int> &place : more)
    variant.extents.emplace_back(place, extentOf(args, place));
  variants.push_back(std::move(variant));
}

void Source::remove(const PendingExecutable &pending) {
  const std::lock_guard lock(mutex);
  variants.remove_if([&](const Variant &variant) { return variant.pending == pending; });
  std::erase_if(known, [&](const auto &entry) { return entry.second == pending; });
}

std::shared_ptr<Source> MemoryCache::source(const std::string &device, const Kernel &kernel,
                                            const std::string &config) {
  const auto find = [&]() -> std::shared_ptr<Source> {
    const auto found = sources.find(kernel.identity.get());
    if (found != sources.end())
      for (const std::shared_ptr<Source> &source : found->second)
        if (source->config == config && source->device == device)
          return source;
    return nullptr;
  };
  {
    const std::shared_lock lock(mutex);
    if (std::shared_ptr<Source> source = find())
      return source;
  }
  const std::unique_lock lock(mutex);
  if (std::shared_ptr<Source> source = find())
    return source;
  auto source = std::make_shared<Source>();
  source->kernel = kernel.identity;
  source->device = device;
  source->config = config;
  sources[kernel.identity.get()].push_back(source);
  return source;
}

void MemoryCache::clear() noexcept {
  const std::unique_lock lock(mutex);
  sources.clear();
}

} // namespace kiln
