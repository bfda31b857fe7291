// Formats the compiler's errors, and writes reproducers of failed compilations, for `--run-reproducer`.

#include "lowering/Diagnostics.h"

#include "lowering/TemporaryPath.h"

#include "mlir/IR/AsmState.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/raw_ostream.h"
#include "llvm/Support/xxhash.h"

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <fcntl.h>
#include <filesystem>
#include <map>
#include <mutex>
#include <optional>
#include <sys/stat.h>
#include <unistd.h>
#include <utility>

namespace fs = std::filesystem;

namespace kiln::lowering {

static constexpr llvm::StringLiteral userErrorMark = "kiln.user";

/// The location of the first operation with a source line, among this one and, transitively, its users.
static mlir::Location lineNear(mlir::Operation *op) {
  llvm::SmallVector<mlir::Operation *> found = {op};
  for (size_t next = 0; next < found.size() && next < 64; ++next) {
    if (hasLine(found[next]->getLoc()))
      return found[next]->getLoc();
    // getUsers lists the last user first.
    for (mlir::Operation *user : llvm::reverse(llvm::to_vector(found[next]->getUsers())))
      if (!llvm::is_contained(found, user))
        found.push_back(user);
  }
  return op->getLoc();
}

mlir::InFlightDiagnostic emitUserError(mlir::Operation *op) {
  mlir::InFlightDiagnostic diagnostic = mlir::emitError(lineNear(op));
  diagnostic.getUnderlyingDiagnostic()->getMetadata().push_back(mlir::DiagnosticArgument(userErrorMark));
  return diagnostic;
}

std::string sourceLine(mlir::Location loc) {
  std::optional<mlir::FileLineColRange> found;
  loc->walk([&](mlir::Location part) {
    found = llvm::dyn_cast<mlir::FileLineColRange>(llvm::cast<mlir::LocationAttr>(part));
    return found && *found ? mlir::WalkResult::interrupt() : mlir::WalkResult::advance();
  });
  if (!found || !*found)
    return "?";
  return (*found).getFilename().str() + ":" + std::to_string((*found).getStartLine());
}

bool hasLine(mlir::Location loc) { return sourceLine(loc) != "?"; }

ErrorCollector::ErrorCollector(mlir::MLIRContext *context)
    : context(context), printedOps(context->shouldPrintOpOnDiagnostic()),
      handler(context, [this](mlir::Diagnostic &diagnostic) { collect(diagnostic); }) {
  context->printOpOnDiagnostic(false);
}

ErrorCollector::~ErrorCollector() { context->printOpOnDiagnostic(printedOps); }

void ErrorCollector::collect(mlir::Diagnostic &diagnostic) {
  if (diagnostic.getSeverity() == mlir::DiagnosticSeverity::Warning)
    warned += sourceLine(diagnostic.getLocation()) + ": warning: " + diagnostic.str() + "\n";
  if (diagnostic.getSeverity() != mlir::DiagnosticSeverity::Error)
    return;
  const bool user = llvm::any_of(diagnostic.getMetadata(), [](mlir::DiagnosticArgument &argument) {
    return argument.getKind() == mlir::DiagnosticArgument::DiagnosticArgumentKind::String &&
           argument.getAsString() == userErrorMark;
  });
  ++(user ? userErrors : internalErrors);
  std::string text = sourceLine(diagnostic.getLocation()) + ": error: " + diagnostic.str() + "\n";
  for (mlir::Diagnostic &note : diagnostic.getNotes())
    text += sourceLine(note.getLocation()) + ": note: " + note.str() + "\n";
  if (collected.find(text) == std::string::npos) // a line may make a mistake twice
    collected += text;
}

// --- Reproducers -----------------------------------------------------------------------------------------------------

/// The prefix of the file's name, by which the files in a folder are counted.
static constexpr llvm::StringLiteral prefix = "kiln-reproducer-";

/// The module followed by the pipeline.
static std::string textOf(mlir::PassManager &pm, mlir::ModuleOp original) {
  std::string pipeline;
  llvm::raw_string_ostream passes(pipeline);
  pm.printAsTextualPipeline(passes);
  mlir::AsmState state(original);
  state.attachResourcePrinter("mlir_reproducer", [&](mlir::Operation *, mlir::AsmResourceBuilder &builder) {
    builder.buildString("pipeline", pipeline);
    builder.buildBool("disable_threading", true);
    builder.buildBool("verify_each", true);
  });
  std::string text;
  llvm::raw_string_ostream stream(text);
  original->print(stream, state);
  return text;
}

/// A kernel's name, which may have any character, as part of a file name.
static std::string plain(llvm::StringRef kernel) {
  constexpr size_t most = 40;
  std::string name = kernel.take_front(most).str();
  for (char &c : name)
    if (!llvm::isAlnum(c) && c != '_')
      c = '_';
  return name;
}

static int countIn(const fs::path &folder) {
  int count = 0;
  std::error_code failure;
  for (fs::directory_iterator it(folder, failure), end; !failure && it != end; it.increment(failure))
    count += llvm::StringRef(it->path().filename().string()).starts_with(prefix);
  return count;
}

/// Creates a file; returns 0 or errno. A partial file is removed.
static int writeNew(const fs::path &path, llvm::StringRef text) {
  const int file = ::open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
  if (file < 0)
    return errno;
  int failure = 0;
  while (!text.empty() && !failure) {
    const ssize_t wrote = ::write(file, text.data(), text.size());
    if (wrote > 0)
      text = text.drop_front(wrote);
    else if (errno != EINTR)
      failure = errno;
  }
  if (::close(file) != 0 && !failure)
    failure = errno;
  if (failure)
    ::unlink(path.c_str());
  return failure;
}

/// The folder for reproducers; on failure, `failure` is set.
static fs::path reproducerFolder(std::error_code &failure) {
  const char *const dump = std::getenv("KILN_DUMP");
  if (!dump || !*dump)
    return temporaryPath();
  fs::create_directories(dump, failure);
  return dump;
}

/// Whether an existing file was written by this user.
static bool isOurs(const fs::path &path) {
  struct stat status;
  return ::lstat(path.c_str(), &status) == 0 && S_ISREG(status.st_mode) && status.st_uid == ::geteuid();
}

/// Writes the file and returns its path; on failure, `why` has the reason.
static std::string writeOne(const fs::path &folder, const std::string &name, const std::string &text,
                            std::string &why) {
  const fs::path path = folder / name;
  if (isOurs(path)) // the name contains a hash of the content
    return path;
  if (static_cast<int64_t>(text.size()) > maxReproducerBytes)
    why = "the module takes " + std::to_string(text.size()) + " bytes, more than " + std::to_string(maxReproducerBytes);
  else if (countIn(folder) >= maxReproducersInAFolder)
    why = "'" + folder.string() + "' has " + std::to_string(maxReproducersInAFolder) +
          " of them; remove those called " + prefix.str() + "*";
  else if (const int failure = writeNew(path, text))
    why = "'" + path.string() + "': " + std::strerror(failure);
  return path;
}

/// An error text without addresses, which vary from run to run.
static std::string withoutAddresses(llvm::StringRef error) {
  std::string text;
  while (!error.empty()) {
    const auto [before, after] = error.split("0x");
    text += before;
    error = after.drop_while(llvm::isHexDigit);
  }
  return text;
}

std::string writeReproducer(mlir::PassManager &pm, mlir::ModuleOp original, const std::string &kernel,
                            const std::string &error) {
  static std::mutex mutex;
  static std::map<std::pair<std::string, std::string>, std::string> written; // files by folder and error
  static constexpr llvm::StringLiteral none = "no reproducer was written: ",
                                       run = "run it again with: kiln-opt --run-reproducer ";
  std::error_code failure;
  const fs::path folder = reproducerFolder(failure);
  if (failure)
    return (none + "'" + folder.string() + "': " + failure.message()).str();
  const std::lock_guard lock(mutex);
  const auto key = std::pair(folder.string(), withoutAddresses(error));
  const auto found = written.find(key);
  if (found != written.end() && isOurs(found->second))
    return (run + found->second).str();
  if (found == written.end() && written.size() >= maxReproducersOfAProcess)
    return (none + "this process has written " + llvm::Twine(maxReproducersOfAProcess)).str();
  const std::string text = textOf(pm, original);
  const std::string hash = llvm::utohexstr(llvm::xxh3_64bits(text), /*LowerCase=*/true, /*Width=*/16);
  std::string why;
  const std::string path = writeOne(folder, (prefix + plain(kernel) + "-" + hash + ".mlir").str(), text, why);
  if (!why.empty())
    return (none + why).str();
  written[key] = path;
  return (run + path).str();
}

} // namespace kiln::lowering
