// Looks up executables by the words of their keys; creates and reuses MLIR contexts; writes a compilation's stages to
// files (KILN_DUMP).

#include "runtime/Compilation.h"

#include "dialect/dsl/Types.h"
#include "dialect/tile/TileDialect.h"
#include "lowering/Driver.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fmt/format.h>

namespace fs = std::filesystem;

namespace kiln {

static int64_t extentOf(const std::vector<Arg> &args, std::pair<int, int> place) {
  return args[place.first].ref.extents[place.second];
}

/// The facts selected by these bits; all facts if the bits are of other kinds of arguments.
static FactWords masked(FactWords facts, const FactWords &bits) {
  for (size_t i = 0; facts.size() == bits.size() && i < bits.size(); ++i)
    facts[i] &= bits[i];
  return facts;
}

FactWords Source::keyOf(const FactWords &given, const std::vector<Arg> &args) const {
  FactWords facts = masked(given, relevant);
  for (const std::pair<int, int> &place : staticExtents)
    facts.push_back(extentOf(args, place));
  return facts;
}

PendingExecutable Source::find(const FactWords &facts, const std::vector<Arg> &args) {
  const std::lock_guard lock(mutex);
  if (variants.empty())
    return {};
  // Arguments of another number or other ranks may lack one of the extents, and then have no key. findAmong() compares
  // the facts, which include number and ranks, before it reads extents.
  for (const std::pair<int, int> &place : staticExtents)
    if (place.first >= static_cast<int>(args.size()) || place.second >= args[place.first].ref.rank())
      return findAmong(facts, args);
  const FactWords key = keyOf(facts, args);
  if (const auto found = known.find(key); found != known.end())
    return found->second;
  const PendingExecutable found = findAmong(facts, args);
  if (!found)
    return found;
  constexpr size_t maxKnown = 1024;
  if (known.size() >= maxKnown) // many extents of which only another variant asks; find() enters the used ones again
    known.clear();
  known.emplace(key, found);
  return found;
}

PendingExecutable Source::findGeneral(const Kernel &kernel, const FactWords &facts, const std::vector<Arg> &args) {
  if (const PendingExecutable found = find(facts, args))
    return found;
  const std::lock_guard lock(mutex);
  for (const Variant &variant : variants)
    if (serves(kernel, variant.facts, masked(facts, variant.relevant), args.size()) &&
        std::all_of(variant.extents.begin(), variant.extents.end(),
                    [&](const auto &extent) { return extentOf(args, extent.first) == extent.second; }))
      return variant.pending;
  return {};
}

PendingExecutable Source::findAmong(const FactWords &facts, const std::vector<Arg> &args) const {
  for (const Variant &variant : variants)
    if (variant.facts == masked(facts, variant.relevant) &&
        std::all_of(variant.extents.begin(), variant.extents.end(),
                    [&](const auto &extent) { return extentOf(args, extent.first) == extent.second; }))
      return variant.pending;
  return {};
}

void Source::add(const Kernel &kernel, const FactWords &facts, const std::vector<Arg> &args, const ArgumentUses &uses,
                 PendingExecutable pending) {
  const std::lock_guard lock(mutex);
  Variant variant{relevantBits(kernel, facts, args.size(), uses.used, uses.written), {}, {}, std::move(pending)};
  variant.facts = masked(facts, variant.relevant);
  const StaticExtents extentsBefore = staticExtents;
  const FactWords relevantBefore = relevant;
  staticExtents.insert(uses.staticExtents.begin(), uses.staticExtents.end());
  if (relevant.size() != variant.relevant.size()) // other kinds of arguments than before: all bits
    relevant.assign(variant.relevant.size(), variants.empty() ? 0 : ~uint64_t{0});
  for (size_t i = 0; i < relevant.size(); ++i)
    relevant[i] |= variant.relevant[i];
  if (staticExtents != extentsBefore || relevant != relevantBefore)
    known.clear(); // the keys have changed; find() enters the variants again when they are needed
  for (const std::pair<int, int> &place : uses.staticExtents)
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
  std::vector<std::vector<std::shared_ptr<Source>>> unused; // freed without the lock: a GPU first ends its launches
  const std::unique_lock lock(mutex);
  if (std::shared_ptr<Source> source = find())
    return source;
  std::erase_if(sources, [&](auto &entry) {
    auto &[identity, ofKernel] = entry;
    const bool isUnused = ofKernel.front()->kernel.use_count() == std::ssize(ofKernel); // by any kernel
    if (isUnused)
      unused.push_back(std::move(ofKernel));
    return isUnused;
  });
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

// --- Contexts -------------------------------------------------------------------------------------------------------

/// Compilations before a context is replaced.
static constexpr int maxServed = 64;

static mlir::DialectRegistry registryOfDialects() {
  mlir::DialectRegistry registry;
  lowering::registerDialects(registry);
  return registry;
}

ContextPool::Context::Context() : context(registryOfDialects(), mlir::MLIRContext::Threading::DISABLED) {
  context.loadDialect<tile::TileDialect, mlir::arith::ArithDialect, mlir::math::MathDialect, mlir::scf::SCFDialect,
                      mlir::func::FuncDialect, mlir::memref::MemRefDialect>();
}

std::unique_ptr<ContextPool::Context> ContextPool::take() {
  const std::lock_guard lock(mutex);
  if (idle.empty())
    return std::make_unique<Context>();
  std::unique_ptr<Context> context = std::move(idle.back());
  idle.pop_back();
  return context;
}

void ContextPool::give(std::unique_ptr<Context> context) {
  if (++context->served >= maxServed)
    return;
  const std::lock_guard lock(mutex);
  idle.push_back(std::move(context));
}

// --- Stages ---------------------------------------------------------------------------------------------------------

/// Digits of the key in file names, which distinguish a kernel's specialisations.
static constexpr size_t shortKey = 12;

std::string dumpFolder() {
  const char *folder = std::getenv("KILN_DUMP");
  return folder ? folder : "";
}

/// Replaces a file of that name. A link planted there is replaced, not followed.
static void writeText(const fs::path &path, const std::string &text) {
  std::error_code ignored;
  fs::remove(path, ignored);
  std::FILE *const file = std::fopen(path.c_str(), "wxe");
  const bool isWhole = file && std::fwrite(text.data(), 1, text.size(), file) == text.size();
  if ((file && std::fclose(file) != 0) || !isWhole)
    throw Error(
        fmt::format("expected to write '{}' for KILN_DUMP, but could not: {}", path.string(), std::strerror(errno)),
        Fault::device);
}

static const char *extensionOf(const std::string &stage) {
  return stage == "llvm" ? "ll" : stage == "asm" ? "s" : stage == "ptx" || stage == "cubin" ? stage.c_str() : "mlir";
}

lowering::StageSink dumpStages(const std::string &kernel, const std::string &key) {
  const fs::path folder = fs::path(dumpFolder()) / fmt::format("{}-{}", kernel, key.substr(0, shortKey));
  std::error_code failure;
  fs::create_directories(folder, failure);
  if (failure)
    throw Error(fmt::format("expected KILN_DUMP to name a folder to write to, but got '{}': {}", dumpFolder(),
                            failure.message()),
                Fault::device);
  if (fs::is_symlink(folder))
    throw Error(fmt::format("expected '{}' to be a folder for KILN_DUMP, but it is a link", folder.string()),
                Fault::device);
  return [folder, number = 0](const std::string &stage, const std::string &text) mutable {
    writeText(folder / fmt::format("{:02}-{}.{}", number++, stage, extensionOf(stage)), text);
  };
}

} // namespace kiln
