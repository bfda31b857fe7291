// Creates and reuses MLIR contexts; writes a compilation's stages to files (KILN_DUMP).

#include "runtime/Compilation.h"
#include "dialect/dsl/Types.h"
#include "dialect/tile/TileDialect.h"
#include "lowering/Driver.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fmt/format.h>

namespace fs = std::filesystem;

namespace kiln {

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
