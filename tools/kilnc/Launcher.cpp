// Writes the launcher: macros and tables for the sources in launcher/, followed by these sources.

#include "tools/kilnc/Archive.h"

#include "lowering/Abi.h"
#include "runtime/cuda/PtxText.h"

#include <fmt/format.h>

#include <algorithm>

namespace kiln::tools {

std::string ArchivedKernel::symbolOf(const TargetCode &code) const {
  std::string symbol = name + "_" + code.target;
  std::replace_if(symbol.begin(), symbol.end(), [](char c) { return !std::isalnum(c) && c != '_'; }, '_');
  return symbol;
}

/// The bytes as a C string literal, broken at line ends.
static std::string quoted(std::string_view bytes) {
  std::string text = "\"";
  for (const char c : bytes) {
    if (c == '\n')
      text += "\\n\"\n\"";
    else if (c == '"' || c == '\\')
      text += std::string("\\") + c;
    else if (c < ' ' || c > '~' || c == '?') // avoids trigraphs
      text += fmt::format("\\{:03o}", static_cast<unsigned char>(c));
    else
      text += c;
  }
  return text + '"';
}

// --- Tables of arguments ---------------------------------------------------------------------------------------------

static std::string listOf(const Shape &values) {
  std::string text;
  for (const int64_t value : values)
    text += (text.empty() ? "" : ", ") + (value == Signature::dynamic ? "DYNAMIC" : fmt::format("{}", value));
  return text;
}

/// The tables of the code for `kind`, cpu or gpu.
static std::string parameterTables(const ArchivedKernel &kernel, const std::string &kind, const Signature &signature) {
  std::string text = fmt::format("static const struct parameter {}_parameters[] = {{\n", kind);
  for (size_t i = 0; i < signature.parameters.size(); ++i) {
    const Signature::Parameter &each = signature.parameters[i];
    text += fmt::format("  {{{}, \"{}\", offsetof({}_arguments, {}), {}, {}, ", quoted(kernel.kernel.called(i)),
                        nameOf(each.type), kernel.name, fieldOf(kernel.kernel, i), bytesOf(each.type),
                        each.isView ? static_cast<int>(each.extents.size()) : -1);
    text += each.isView ? fmt::format("{{{}}}, {{{}}}, {}, {:d}, {:d}, {:d}, {:d}}},\n", listOf(each.extents),
                                      listOf(each.strides), each.alignment, each.stridesBy16, each.extentBy16,
                                      each.fits32, each.written)
                        : "{0}, {0}, 1, 0, 0, 0, 0},\n";
  }
  text += fmt::format("}};\nstatic const struct slot {}_slots[] = {{\n", kind);
  static constexpr const char *kinds[] = {"SLOT_POINTER", "SLOT_EXTENT", "SLOT_STRIDE", "SLOT_SCALAR"};
  for (const abi::Slot &slot : signature.slots)
    text += fmt::format("  {{{}, {}, {}}},\n", kinds[slot.kind], slot.argument, slot.dimension);
  text += fmt::format("}};\nstatic const int {}_apart[][2] = {{\n", kind);
  for (const auto &[first, second] : signature.disjoint)
    text += fmt::format("  {{{}, {}}},\n", first, second);
  text += fmt::format("  {{0, 0}},\n}};\nstatic const int {}_equal[][4] = {{\n", kind);
  for (const auto &[first, firstAxis, second, secondAxis] : signature.equalExtents)
    text += fmt::format("  {{{}, {}, {}, {}}},\n", first, firstAxis, second, secondAxis);
  return text + fmt::format("  {{0, 0, 0, 0}},\n}};\nstatic const struct interface {0}_interface = {{{1}, {2}, {3}, "
                            "{4}, {0}_parameters, {0}_slots, {0}_apart, {0}_equal}};\n"
                            "enum {{ {5}_BLOCK = {6} }}; /* words */\n",
                            kind, signature.parameters.size(), signature.slots.size(), signature.disjoint.size(),
                            signature.equalExtents.size(), kind == "cpu" ? "CPU" : "GPU", signature.words());
}

// --- Tables of code --------------------------------------------------------------------------------------------------

static std::string cpuCodesOf(const ArchivedKernel &kernel) {
  std::string functions, table;
  for (const TargetCode &code : kernel.codes) {
    if (code.isGpu)
      continue;
    const std::string symbol = kernel.symbolOf(code);
    functions += fmt::format("extern void {0}(const void *, int64_t, void *);\nextern const int64_t {0}{1};\n"
                             "static const char *{0}_lacks(void) {{\n",
                             symbol, abi::scratchSuffix);
    bool usesTiles = false;
    for (const std::string &feature : code.features) {
      functions += fmt::format("  if (!__builtin_cpu_supports(\"{0}\"))\n    return \"{0}\";\n", feature);
      usesTiles |= feature == "amx-tile";
    }
    if (usesTiles) // requested from Linux: ARCH_REQ_XCOMP_PERM, XFEATURE_XTILEDATA
      functions += "  if (syscall(158, 0x1023, 18) != 0)\n    return \"leave of the system to use amx-tile\";\n";
    functions += "  return NULL;\n}\n";
    table += fmt::format("  {{\"{0}\", {1}_lacks, {1}, &{1}{2}}},\n", code.target, symbol, abi::scratchSuffix);
  }
  return functions + "static const struct cpu_code cpu_codes[] = {\n" + table + "};\n";
}

static std::string gpuImagesOf(const ArchivedKernel &kernel) {
  std::string images, table;
  for (const TargetCode &code : kernel.codes) {
    if (!code.isGpu)
      continue;
    const std::string_view bytes(code.code.data(), code.code.size());
    const cuda::PtxText ptx{std::string(bytes.substr(0, bytes.find('\0')))};
    const std::string symbol = kernel.symbolOf(code);
    images += fmt::format("static const unsigned char {}[] = {};\nstatic const char *const {}_texts[] = {{\n", symbol,
                          quoted(bytes), symbol);
    int count = 0;
    for (; ptx.whole().find(fmt::format(" {}{}[", abi::textPrefix, count)) != std::string::npos; ++count)
      images += "  " + quoted(ptx.bytes(abi::textPrefix + std::to_string(count))) + ",\n";
    images += "  NULL,\n};\n";
    table += fmt::format("  {{\"{}\", {}, {}, {}, {}, {}, {}_texts}},\n", code.target, symbol, bytes.size(),
                         ptx.threads(), ptx.constant(kernel.kernel.name + abi::sharedSuffix), count, symbol);
  }
  return images + "static const struct image gpu_images[] = {\n" + table + "};\n";
}

static std::string elementTypes() {
  std::string text = "static const struct {\n  char kind;\n  int bytes, mantissa;\n} element_types[] = {\n";
  for (const Type type : everyType) {
    const TypeInfo &info = infoOf(type);
    const int mantissa = type == f8e4m3   ? 3
                         : type == f8e5m2 ? 2
                         : type == bf16   ? 7
                         : type == f16    ? 10
                         : type == f32    ? 23
                         : type == f64    ? 52
                                          : 0;
    text += fmt::format("  {{'{}', {}, {}}}, /* {} */\n",
                        isPair(type)                           ? 'p'
                        : type == f8e8m0                       ? 's'
                        : info.kind == TypeInfo::floating      ? 'f'
                        : info.kind == TypeInfo::signedInteger ? 'i'
                                                               : 'u',
                        info.bytes, mantissa, info.spelling);
  }
  return text + "};\n";
}

// --- The whole -------------------------------------------------------------------------------------------------------

std::string launcherOf(const ArchivedKernel &kernel) {
  const auto has = [&](bool isGpu, std::string_view word) {
    return std::any_of(kernel.codes.begin(), kernel.codes.end(), [&](const TargetCode &code) {
      return code.isGpu == isGpu &&
             std::string_view(code.code.data(), code.code.size()).find(word) != std::string::npos;
    });
  };
  const auto signatureOf = [&](bool isGpu) {
    const auto found = std::find_if(kernel.codes.begin(), kernel.codes.end(),
                                    [&](const TargetCode &code) { return code.isGpu == isGpu; });
    return found == kernel.codes.end() ? nullptr : &found->signature;
  };
  const Signature *const cpu = signatureOf(false), *const gpu = signatureOf(true);
  const bool console = has(true, abi::consoleVariable);
  std::string text = "#define _GNU_SOURCE\n";
  for (const char *header : {"dlfcn.h", "inttypes.h", "pthread.h", "stdarg.h", "stddef.h", "stdint.h", "stdio.h",
                             "stdlib.h", "string.h", "unistd.h"})
    text += fmt::format("#include <{}>\n", header);
  text += headerOf(kernel);
  text += fmt::format("#define KERNEL \"{0}\"\n#define ARGUMENTS {1}_arguments\n#define RUN {1}_run\n"
                      "#define LAUNCH {1}_launch\n#define CHECK_FAILED {2}\n#define PRINT {3}\n"
                      "#define EXTENT_BITS {4}\n#define GRID_BITS {5}\n#define SMALL_EXTENT_BITS {6}\n"
                      "#define GPU_CONSOLE {7:d}\nenum {{ PARAMETERS = {8} }};\n",
                      kernel.kernel.name, kernel.name, kernel.checkFailed(), kernel.print(), abi::extentBits,
                      abi::gridBits, abi::smallExtentBits, console, kernel.kernel.parameters.size());
  text += launcherTables;
  if (cpu)
    text += parameterTables(kernel, "cpu", *cpu) + cpuCodesOf(kernel);
  if (gpu)
    text += parameterTables(kernel, "gpu", *gpu) + gpuImagesOf(kernel);
  text += launcherArguments;
  if (console || has(false, abi::printTile))
    text += elementTypes() + launcherPrint;
  if (has(false, abi::waits))
    text +=
        fmt::format("/* Waits are not watched. */\n__attribute__((visibility(\"hidden\"))) int64_t {0}(const char *, "
                    "int64_t, int64_t);\nint64_t {0}(const char *where, int64_t program, int64_t again) {{\n  "
                    "(void)where, (void)program, (void)again;\n  return 0;\n}}\n",
                    kernel.waits());
  if (cpu)
    text += launcherCpu;
  if (gpu)
    text += launcherGpu;
  return text;
}

} // namespace kiln::tools
