// kilnc: compiles one kernel and prints a stage of it.
//
//     kilnc attention.cc --kernel=attention --config=bm=64,bn=64 --args='f32[?x64], f32[?x64], i64' --emit=asm
//     kilnc --kernel=layernorm --args='f32[?x768], …' --emit=obj -o layernorm.o     a built-in kernel
//     kilnc add.mlir --emit=llvm                                                   a module that was traced before
//     kilnc axpy.cc --run --grid=64 --args='x.npy, y.npy->y.npy, 0.5'              launches it (see Run.h)
//     kilnc axpy.cc --args='f32[?], f32[?], f32' --target=x86-64-v3,sm_90a --emit=archive -o DIR      for C (Archive.h)
//     kilnc axpy.cc --args='f32[?], f32[?], f32' --target=x86-64-v3,sm_80 --emit=image -o axpy.kiln
//     kilnc axpy.cc --tune --grid=y.0/block --args='f32[4096], f32[4096], 0.5'      its fastest config (see Tune.h)
//     kilnc axpy.cc --bench --sweep='N=4096:65536:*4' --args='f32[N], f32[N], 0.5' --grid=y.0/block     (see Run.h)
//     kilnc --list                                                                 the built-in kernels
//
// MLIR's flags work as in mlir-opt: --mlir-print-ir-after-all, --mlir-timing, --mlir-pass-pipeline-crash-reproducer=F.

#include "dialect/dsl/Nearest.h"
#include "kernels/Registry.h"
#include "lowering/Diagnostics.h"
#include "lowering/Driver.h"
#include "runtime/Files.h"
#include "runtime/Findings.h"
#include "runtime/Streams.h"
#include "runtime/Version.h"
#include "tools/files/Files.h"
#include "tools/kilnc/Archive.h"
#include "tools/kilnc/Arguments.h"
#include "tools/kilnc/Emit.h"
#include "tools/kilnc/Expression.h"
#include "tools/kilnc/Run.h"
#include "tools/kilnc/Trace.h"
#include "tools/kilnc/Tune.h"
#include "tools/kilnc/UserFile.h"
#include "tools/kilnc/report/Report.h"

#include "mlir/IR/AsmState.h"
#include "mlir/Parser/Parser.h"
#include "mlir/Pass/PassManager.h"
#include "mlir/Support/Timing.h"
#include "mlir/Transforms/Passes.h"
#include "llvm/Support/CommandLine.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/SourceMgr.h"

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include <cerrno>
#include <cstring>
#include <unistd.h>

namespace kiln::tools {

namespace {
/// The command line.
struct Options {
  std::string file, kernel, config, args, emit = "tile", target = "cpu", output = "-", picture, name, findings;
  std::vector<std::string> includes;
  RunOptions launch;
  TuneOptions tuning;
  BenchOptions bench;
  std::vector<std::string> against;
  std::string report;
  bool generic = false, list = false, run = false, tune = false, variesResults = false, isBench = false,
       explain = false;
};
} // namespace

// --- Flags -----------------------------------------------------------------------------------------------------------

/// Passes MLIR's flags to MLIR; throws Error for an unknown flag.
static void parseRemaining(const CLI::App &app, const std::vector<std::string> &remaining, const std::string &file,
                           const char *program) {
  std::vector<std::string> known;
  for (const CLI::Option *option : app.get_options())
    for (const std::string &name : option->get_lnames())
      known.push_back("--" + name);
  const auto &theirs = llvm::cl::getRegisteredOptions();
  for (const auto &entry : theirs)
    if (entry.first.starts_with("mlir-"))
      known.push_back("--" + entry.first.str());
  std::vector<const char *> argv = {program};
  bool areFlags = true; // until `--`
  for (const std::string &word : remaining) {
    if (areFlags && word == "--") {
      areFlags = false;
      continue;
    }
    if (!areFlags)
      throw Error(fmt::format("expected one file, but got '{}' and '{}'", word, file));
    const llvm::StringRef name = llvm::StringRef(word).take_until([](char c) { return c == '='; });
    if (name == "--num-warps" || name == "--num-stages")
      throw Error(fmt::format("unknown flag '{}'; use --config={}=N, if the kernel's config has that field", name.str(),
                              name.drop_front(6).str()));
    if (!name.starts_with("--mlir-") || !theirs.contains(name.drop_front(2)))
      throw Error(fmt::format("unknown {} '{}'{}", name.starts_with("-") ? "flag" : "argument", name.str(),
                              didYouMean(name.str(), known)));
    argv.push_back(word.c_str());
  }
  if (!llvm::cl::ParseCommandLineOptions(static_cast<int>(argv.size()), argv.data(), "", &llvm::errs()))
    throw Error("MLIR does not accept the flag above");
}

/// Lets flags such as --mlir-print-ir-after name the passes of the pipelines.
static void registerPassNames() {
  lowering::registerPasses();
  mlir::registerTransformsPasses();
}

// --- Kernels ---------------------------------------------------------------------------------------------------------

/// The kernel `name`, or the only one without a name.
static const Kernel &choose(const std::vector<const Kernel *> &kernels, const std::string &name,
                            const std::string &place) {
  if (name.empty() && kernels.size() == 1)
    return *kernels[0];
  std::vector<std::string> names;
  const Kernel *found = nullptr;
  for (const Kernel *kernel : kernels) {
    if (std::find(names.begin(), names.end(), kernel->name) != names.end())
      throw Error(
          fmt::format("expected kernels with different names in {}, but two are called '{}'", place, kernel->name));
    if (kernel->name == name)
      found = kernel;
    names.push_back(kernel->name);
  }
  if (found)
    return *found;
  if (name.empty())
    throw Error(fmt::format("expected --kernel to name one of the kernels of {}: {}", place, fmt::join(names, ", ")));
  throw Error(unknownName("kernel", name, names) + " in " + place);
}

/// The file of the command line; null without one.
static std::unique_ptr<UserFile> userFileOf(const Options &options) {
  return options.file.empty() ? nullptr : std::make_unique<UserFile>(options.file, options.includes, options.kernel);
}

namespace {
/// The kernel that the command line names.
struct ChosenKernel {
  explicit ChosenKernel(const Options &options) : args(options.args) {
    if (options.file.ends_with(".mlir"))
      return;
    user = userFileOf(options);
    registered = user ? &choose(user->kernels(), options.kernel, "'" + options.file + "'")
                      : &choose(kernels(), options.kernel, "kilnc");
    ExpandedText expanded = expandArguments(*registered, args);
    kernel = expanded.kernel;
    args = std::move(expanded.args);
  }

  std::unique_ptr<UserFile> user;     // lives as long as its kernel
  const Kernel *registered = nullptr; // null for a .mlir file
  const Kernel *kernel = nullptr;     // expanded for the views of --args
  std::string args;                   // of the expanded kernel
};
} // namespace

static mlir::OwningOpRef<mlir::ModuleOp> parseModule(mlir::MLIRContext &context, const Options &options) {
  for (const auto &[flag, text] : {std::pair("--kernel", options.kernel), std::pair("--config", options.config),
                                   std::pair("--args", options.args)})
    if (!text.empty())
      throw Error(
          fmt::format("{} is not supported with '{}', because a module is specialised already", flag, options.file));
  const std::string text = readInput(options.file, lowering::maxModuleBytes);
  lowering::checkModuleText(text, options.file);
  llvm::SourceMgr source;
  source.AddNewSourceBuffer(llvm::MemoryBuffer::getMemBuffer(text, options.file), llvm::SMLoc());
  const lowering::ErrorCollector errors(&context);
  mlir::OwningOpRef<mlir::ModuleOp> module = mlir::parseSourceFile<mlir::ModuleOp>(source, &context);
  if (!module)
    throw Error(errors.text());
  return module;
}

/// Throws Error for flags that a mode does not allow; `takes` says which it does.
static void allowOnly(const CLI::App &app, const std::string &mode, const std::vector<std::string> &allowed,
                      const std::string &takes) {
  for (const CLI::Option *option : app.get_options())
    if (option->count() > 0 && !option->get_positional() && !llvm::is_contained(allowed, option->get_name()))
      throw Error(fmt::format("{} is not supported with {}, which takes {}", option->get_name(), mode, takes));
}

static void list(const CLI::App &app, const Options &options) {
  allowOnly(app, "--list", {"--list", "--kernel", "--include"}, "a file, --kernel and --include");
  if (options.file.ends_with(".mlir"))
    throw Error(fmt::format("--list requires a C++ file, but got '{}'", options.file));
  const std::unique_ptr<UserFile> user = userFileOf(options);
  std::vector<const Kernel *> listed = user ? user->kernels() : kernels();
  if (!options.kernel.empty())
    listed = {&choose(listed, options.kernel, user ? "'" + options.file + "'" : "kilnc")};
  writeResult(listOf(listed));
}

/// Throws Error for flags of --run, --tune and --bench without these, and for flags of compiling with them.
static void checkRun(const CLI::App &app, const Options &options) {
  const bool launches = options.run || options.tune || options.isBench;
  const std::string mode = options.tune ? "--tune" : options.isBench ? "--bench" : "--run";
  const auto expect = [&](bool fine, const std::string &what, const std::vector<std::string> &flags) {
    for (const CLI::Option *option : app.get_options())
      if (!fine && option->count() > 0 && llvm::is_contained(flags, option->get_name()))
        throw Error(fmt::format("{} {}", option->get_name(), what));
  };
  const std::string device = (options.target.starts_with("sm_")   ? "simulator:"
                              : options.target.starts_with("cpu") ? ""
                                                                  : "cpu:") +
                             options.target;
  expect(!launches, fmt::format("is not supported with {}; use --device={}", mode, device), {"--target"});
  expect(!launches, "is not supported with " + mode, {"--emit", "--generic", "--explain", "--name"});
  expect(!options.run, "is not supported with --run", {"-o", "--tune", "--bench"});
  expect(!options.tune, "is not supported with --tune", {"--report", "--bench"});
  expect(!options.isBench, "is not supported with --bench", {"--report", "-o"});
  expect(launches, "requires --run, --tune or --bench", {"--grid", "--device"});
  expect(options.run || options.isBench, "requires --run or --bench", {"--repeat", "--flops"});
  expect(options.isBench, "requires --bench",
         {"--sweep", "--against", "--peer", "--peer-tolerance", "--python", "--csv", "--svg"});
  expect(options.tune, "requires --tune", {"--budget", "--bucket", "--vary-results", "--exhaustive"});
  if (launches && !options.run && options.args.find("->") != std::string::npos)
    throw Error(fmt::format("'->' requires --run, but got '{}' with {}", options.args, mode));
  if (launches && !options.file.empty() && ::access(options.file.c_str(), F_OK) != 0)
    throw Error(fmt::format("expected to read '{}', but could not: {}", options.file, std::strerror(errno)),
                Fault::device);
  if (launches && options.launch.grid.empty())
    throw Error(fmt::format("{} requires --grid, the numbers of programs, such as --grid=8,4", mode));
  if (launches && options.file.ends_with(".mlir"))
    throw Error(fmt::format("{} requires a C++ file or --kernel, but got '{}'", mode, options.file));
}

namespace {
/// A line of --against, in parts with `:` between them: a file, a kernel's name, a config, `grid=…`, each at most once.
struct Peer {
  explicit Peer(const std::string &text) {
    for (const llvm::StringRef part : llvm::split(text, ':')) {
      llvm::StringRef piece = part.trim();
      std::string &place = piece.consume_front("grid=") ? grid
                           : piece.contains('=')        ? config
                           : piece.contains('.')        ? file
                                                        : kernel;
      if (piece.empty() || !place.empty())
        throw Error(
            fmt::format("'{}' is no peer for --against; expected at most one file, kernel, config and grid, none of "
                        "them empty, such as 'other.cc:norm:rows=8,warps=4:grid=out.0/rows'",
                        text));
      place = piece.str();
    }
  }
  std::string file, kernel, config, grid;
};
} // namespace

/// Measures the kernel next to those of --against.
static void bench(const Options &options) {
  const ChosenKernel chosen(options);
  std::vector<std::unique_ptr<UserFile>> files; // of the peers; they live as long as their kernels
  std::vector<BenchLine> lines = {{options.against.empty() ? chosen.kernel->name : options.config, chosen.kernel,
                                   options.config, options.launch.grid}};
  for (const std::string &text : options.against) {
    const Peer peer(text);
    BenchLine line{text, chosen.kernel, peer.config, peer.grid.empty() ? options.launch.grid : peer.grid};
    if (!peer.file.empty()) {
      const UserFile &file = *files.emplace_back(std::make_unique<UserFile>(peer.file, options.includes, peer.kernel));
      const std::vector<const Kernel *> found = file.kernels();
      const bool hasSame = llvm::any_of(found, [&](const Kernel *each) { return each->name == chosen.kernel->name; });
      line.kernel =
          &choose(found, peer.kernel.empty() && hasSame ? chosen.kernel->name : peer.kernel, "'" + peer.file + "'");
    } else if (!peer.kernel.empty()) {
      line.kernel = chosen.user ? &choose(chosen.user->kernels(), peer.kernel, "'" + options.file + "'")
                                : &choose(kernels(), peer.kernel, "kilnc");
    }
    // A finding names a kernel and no file. It is for the kernel that comes first, not for its namesake in another
    // file.
    line.usesFindings = peer.file.empty() || line.kernel->name != chosen.registered->name;
    line.kernel = expandArguments(*line.kernel, options.args).kernel;
    lines.push_back(std::move(line));
  }
  BenchOptions settings = options.bench;
  settings.device = options.launch.device;
  settings.args = chosen.args;
  settings.isNamed = options.args.find('=') != std::string::npos;
  settings.flops = options.launch.flops;
  settings.repeat = options.launch.repeat ? options.launch.repeat : settings.repeat;
  const BenchReport report = benchmark(lines, settings);
  writeResult(report.table);
  if (report.error)
    throw Error(*report.error);
}

/// Tunes the kernel with new tensors.
static void tune(const Kernel &kernel, const std::string &args, const Options &options) {
  const Forgetting forgetting;
  const std::shared_ptr<Device> device = Device::open(options.launch.device);
  const LaunchMemory memory(device, kernel, options.config, parseRunArguments(kernel, args));
  const Candidates found = candidatesOf(kernel, options.config, device->target(), options.variesResults);
  std::vector<Trial> trials;
  for (const std::string &config : found.configs)
    trials.push_back({config, evaluateGrid(options.launch.grid, kernel, memory.args, config)});
  TuneOptions settings = options.tuning;
  settings.output = options.output == "-" ? "" : options.output;
  settings.refused = found.refused;
  settings.variesResults = options.variesResults;
  settings.showsProgress = true;
  const TuneReport report = tuneKernel(*device, kernel, memory.args, trials, settings);
  writeResult(report.table);
  if (!report.faults.empty())
    throw Error(report.faults.substr(0, report.faults.size() - 1));
}

/// Launches or tunes.
static void launch(const Options &options) {
  const ChosenKernel chosen(options);
  const Kernel &kernel = *chosen.kernel;
  if (options.run) {
    RunOptions settings = options.launch;
    settings.args = chosen.args;
    settings.config = options.config;
    settings.report = options.report;
    settings.isBuiltIn = options.file.empty();
    return writeResult(runKernel(kernel, settings));
  }
  tune(kernel, chosen.args, options);
}

/// Compares a file of findings with the built-in kernels and those of the file.
static void checkFindings(const Options &options) {
  const std::unique_ptr<UserFile> user = userFileOf(options);
  std::vector<const Kernel *> known = kernels();
  if (user) {
    const std::vector<const Kernel *> more = user->kernels();
    known.insert(known.begin(), more.begin(), more.end());
  }
  FindingsFile::load(options.findings).check(known);
}

// --- The program -----------------------------------------------------------------------------------------------------

/// Builds a shared object of all kernels of a C++ file, which libkiln compiles when they are launched.
static void makeLibrary(const CLI::App &app, const Options &options) {
  allowOnly(app, "--emit=library", {"--emit", "-o", "--include"}, "a C++ file, -o and --include");
  if (options.file.empty() || options.file.ends_with(".mlir") || options.output == "-")
    throw Error("--emit=library requires a C++ file and -o FILE.so");
  buildLibrary(options.file, options.includes, options.output);
}

/// Writes a header and an archive for programs that link without Kiln.
static void makeArchive(const CLI::App &app, const Options &options) {
  allowOnly(app, "--emit=archive",
            {"--emit", "-o", "--include", "--kernel", "--args", "--config", "--target", "--name"},
            "a kernel, --args, --config, --target, --name, --include and -o");
  if (options.file.ends_with(".mlir") || options.output == "-")
    throw Error("--emit=archive requires a C++ file or --kernel, and -o FOLDER");
  const ChosenKernel chosen(options);
  const std::string name = options.name.empty() ? chosen.kernel->name : options.name;
  writeArchive(*chosen.kernel, {name, chosen.args, options.config, options.target}, options.output);
}

/// Writes compiled kernels for programs that launch them without their source.
static void makeImage(const CLI::App &app, const Options &options) {
  allowOnly(app, "--emit=image", {"--emit", "-o", "--include", "--kernel", "--args", "--config", "--target"},
            "a kernel, --args, --config, --target, --include and -o");
  if (options.file.ends_with(".mlir") || !options.output.ends_with(".kiln"))
    throw Error("--emit=image requires a C++ file or --kernel, and -o FILE.kiln");
  const ChosenKernel chosen(options);
  writeImage(*chosen.registered, *chosen.kernel, {"", chosen.args, options.config, options.target}, options.output);
}

/// The module to compile: traced from the kernel, or read from a .mlir file.
static mlir::OwningOpRef<mlir::ModuleOp> moduleOf(mlir::MLIRContext &context, const ChosenKernel &chosen,
                                                  const Options &options, const lowering::Backend &backend) {
  if (!chosen.kernel)
    return parseModule(context, options);
  return std::move(traceKernel(context, *chosen.kernel, chosen.args, options.config, backend.facts()).traced.module);
}

/// Writes the page about a kernel that is compiled and not launched.
static void reportCompilation(const Options &options) {
  expectWritable(options.report);
  const auto backend = backendFor(options.target, "tile", options.generic);
  const std::unique_ptr<mlir::MLIRContext> context = createContext();
  const ChosenKernel chosen(options);
  Report::Head head{.kernel = options.file, .target = options.target, .arguments = options.args};
  if (chosen.kernel) {
    head.kernel = chosen.kernel->name;
    head.config = chosen.kernel->configText(options.config);
    head.isBuiltIn = options.file.empty();
  }
  const mlir::OwningOpRef<mlir::ModuleOp> module = moduleOf(*context, chosen, options, *backend);
  Report report(head);
  report.add(lowering::record(*module, *backend));
  writeOutput(options.report, report.page());
}

static void compile(const Options &options) {
  if (!options.name.empty())
    throw Error("--name requires --emit=archive");
  const auto backend = backendFor(options.target, options.emit, options.generic);
  if (isBinary(options.emit) && options.output == "-" && ::isatty(1))
    throw Error(fmt::format("--emit={} requires -o FILE; it is not printed to a terminal", options.emit));
  const std::unique_ptr<mlir::MLIRContext> context = createContext();
  const ChosenKernel chosen(options);
  const mlir::OwningOpRef<mlir::ModuleOp> module = moduleOf(*context, chosen, options, *backend);
  const std::string config = chosen.kernel ? chosen.kernel->configText(options.config) : "";
  writeOutput(options.output,
              options.explain ? explained(*module, *backend) : emit(*module, options.emit, *backend, config));
}

static void addCompileFlags(CLI::App &app, Options &options) {
  app.add_option(
         "--emit", options.emit,
         fmt::format("the stage to print: on CPUs {}; on GPUs {}; library, a shared object of the file's kernels for "
                     "libkiln; archive, a C header and a library that needs no Kiln; or image, compiled "
                     "kernels for libkiln and Python without their source",
                     stageNames(false), stageNames(true)))
      ->capture_default_str();
  app.add_flag(
         "--explain", options.explain,
         "describe the target's code for each line of the kernel: on GPUs layouts, accesses, products, conversions, "
         "barriers; on CPUs loops, vectors, masks")
      ->excludes("--emit");
  app.add_option("--picture", options.picture,
                 "draw a layout as --explain prints it, or a tile in shared memory ('shared 64x64xbf16'), as SVG");
  app.add_flag("--generic", options.generic,
               "compile with the reference backend: plain loops; --emit=linalg implies it");
  app.add_option("--target", options.target,
                 "the target: cpu (this machine), a CPU by LLVM's name, or a GPU such as sm_80; with "
                 "--emit=archive and image a list")
      ->capture_default_str();
  app.add_option("-o", options.output, "output file, '-' is standard output; with --emit=archive a folder")
      ->capture_default_str();
  app.add_option("--name", options.name,
                 "with --emit=archive: name of functions and files (default: the kernel's name)");
  app.add_option("--report", options.report,
                 "write an HTML page: the source with the code of each line, layouts, all stages; with --run on a "
                 "simulator also counts, findings and a predicted time")
      ->excludes("--emit")
      ->excludes("--explain")
      ->excludes("--picture")
      ->excludes("-o")
      ->excludes("--name");
}

static void addLaunchFlags(CLI::App &app, Options &options) {
  app.add_flag(
      "--run", options.run,
      "launch the kernel and print its time; --args are then .npy files ('a.npy'), new tensors ('f32[64x128]' of "
      "random numbers, '…(0)' of zeros, 'i32[64](0..128)'), numbers ('3', '0.5', 'bf16(2)'); '->c.npy' writes a "
      "tensor afterwards");
  app.add_option("--grid", options.launch.grid,
                 "with --run, --tune and --bench: the numbers of programs, such as 8,4; or 'out.0/bm', the extent 0 of "
                 "argument out by the field bm, rounded up");
  app.add_option("--device", options.launch.device, "with --run, --tune and --bench: the device")
      ->capture_default_str();
  app.add_option("--repeat", options.launch.repeat,
                 "with --run: number of launches whose median time is printed, after a first one; with --bench: "
                 "measurements (20)")
      ->check(CLI::Range(0, 1000000).description(""));
  app.add_option("--flops", options.launch.flops,
                 "with --repeat and --bench: floating-point operations of a launch, such as '2*c.0*c.1*a.1'");
}

static void addBenchFlags(CLI::App &app, Options &options) {
  app.add_flag("--bench", options.isBench,
               "measure the kernel over sizes, compared with other configs or kernels, as a table");
  app.add_option("--sweep", options.bench.sweep,
                 "with --bench: sizes for a name in --args, --grid and --flops: 'M=256:4096:*2', 'M=128:1024:+128' or "
                 "'M,N,K=512,1000,2048'");
  app.add_option(
         "--against", options.against,
         "with --bench: another line, repeatable: a config ('rows=8'), a kernel of the file, or a file; with ':' "
         "between them ('other.cc:rows=8:grid=out.0/rows')")
      ->allow_extra_args(false);
  app.add_option("--peer", options.bench.peers.expressions,
                 "with --bench: another line, repeatable: an expression of Python with the kernel's arguments, such as "
                 "'torch.softmax(x, -1)', whose results are compared with the kernel's")
      ->allow_extra_args(false);
  app.add_option("--peer-tolerance", options.bench.peers.tolerance,
                 "with --peer: the greatest difference, relative to the largest element (f32: 1e-4)")
      ->check(CLI::NonNegativeNumber.description(""));
  app.add_option("--python", options.bench.peers.python, "with --peer: the Python to run (python3)");
  app.add_option("--csv", options.bench.csv, "with --bench: write the table as CSV, too");
  app.add_option("--svg", options.bench.picture, "with --bench: draw TFLOP/s or GB/s over the sizes, as SVG");
}

static void addTuneFlags(CLI::App &app, Options &options) {
  app.add_flag(
      "--tune", options.tune,
      "find the fastest config among the candidates of the kernel's fields; -o FILE receives it, for KILN_FINDINGS");
  app.add_option("--budget", options.tuning.budget, "with --tune: seconds for the whole search")
      ->check(CLI::Range(0.1, 1e6).description(""))
      ->capture_default_str();
  app.add_option("--bucket", options.tuning.buckets,
                 "with --tune: extents that are buckets (powers of two) in the finding, such as 'x.0, out.0'");
  app.add_flag("--exhaustive", options.tuning.exhaustive,
               "with --tune: drop no config after few measurements, and print all");
  app.add_flag("--vary-results", options.variesResults,
               "with --tune: also vary fields that change results, and allow other roundings");
  app.add_option("--check-findings", options.findings,
                 "compare a file of findings with the kernels of the file and the built-in ones");
}

static void addFlags(CLI::App &app, Options &options) {
  app.add_option("file", options.file,
                 "a C++ file that registers kernels, a file of images (.kiln), or a .mlir file; without a file: a "
                 "built-in kernel");
  app.add_option("--kernel", options.kernel, "the kernel's name; not needed when the file has one");
  app.add_option("--config", options.config, "config fields that differ from their defaults: bm=64,bn=64");
  app.add_option("--args", options.args,
                 "the arguments: 'f32[?x64], i64'; '?' is an extent known only at launch; 'name=' may precede each");
  app.add_option("-I,--include", options.includes,
                 "folders of headers; the language's headers are kilnc's own unless one of these folders has them");
  app.add_flag("--list", options.list,
               "list the built-in kernels, or those of the file, with a description of each argument and field");
  app.set_version_flag("--version", versionText("kilnc"), "print the version of Kiln");
  const std::pair<const char *, void (*)(CLI::App &, Options &)> modes[] = {
      {"Compile", addCompileFlags}, {"Launch", addLaunchFlags}, {"Benchmark", addBenchFlags}, {"Tune", addTuneFlags}};
  for (const auto &[heading, add] : modes) {
    app.option_defaults()->group(heading);
    add(app, options);
  }
}

/// Does what the flags ask for.
static void execute(const CLI::App &app, const Options &options) {
  if (!options.picture.empty())
    writeOutput(options.output, drawLayout(options.picture));
  else if (!options.findings.empty())
    checkFindings(options);
  else if (options.list)
    list(app, options);
  else if (options.emit == "library")
    makeLibrary(app, options);
  else if (options.file.empty() && options.kernel.empty())
    throw Error("expected a file or --kernel (kilnc --list names the built-in ones); kilnc --help says more");
  else if (options.isBench)
    bench(options);
  else if (options.run || options.tune)
    launch(options);
  else if (options.emit == "archive")
    makeArchive(app, options);
  else if (options.emit == "image")
    makeImage(app, options);
  else if (!options.report.empty())
    reportCompilation(options);
  else
    compile(options);
}

static void run(int argc, char **argv) {
  Options options;
  CLI::App app(
      "Compiles a kernel out of a C++ file, a .mlir file, or one of the built-in ones, and prints a stage of it.\n"
      "MLIR's flags (--mlir-print-ir-after-all, --mlir-timing, ...) work too.",
      "kilnc");
  addFlags(app, options);
  app.allow_extras();
  registerPassNames();
  mlir::registerMLIRContextCLOptions();
  mlir::registerPassManagerCLOptions();
  mlir::registerAsmPrinterCLOptions();
  mlir::registerDefaultTimingManagerCLOptions();
  try {
    app.parse(argc, argv);
    parseRemaining(app, app.remaining(), options.file, argv[0]);
    checkRun(app, options);
    execute(app, options);
  } catch (const CLI::CallForHelp &) {
    writeResult(app.help());
  } catch (const CLI::CallForVersion &version) {
    writeResult(version.what() + std::string("\n"));
  } catch (const CLI::ParseError &error) {
    throw Error(error.what());
  }
}

} // namespace kiln::tools

/// The program as a function: of kilnc, and of the command that pip installs, for which it is in a wheel's libkiln.so.
extern "C" int kiln_command(int argc, char **argv) {
  return kiln::runProgram("kilnc", [=] {
    kiln::tools::run(argc, argv);
    return 0;
  });
}
