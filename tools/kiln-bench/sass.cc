// Parses SASS line by line. Its structure is given by labels and branches.

#include "tools/kiln-bench/assembly.h"

#include <algorithm>
#include <map>
#include <optional>
#include <sstream>

namespace kiln::bench {

// --- Classes -------------------------------------------------------------------------------------------------------

/// Opcodes of each class; others count as integer arithmetic. A leading U (the uniform datapath) is ignored.
static const std::map<std::string_view, Class, std::less<>> &classesByOpcode() {
  static const std::pair<Class, const char *> lists[] = {
      {Class::mma, "HMMA IMMA DMMA BMMA QMMA OMMA HGMMA IGMMA QGMMA BGMMA UTCHMMA UTCIMMA UTCQMMA UTCOMMA"},
      {Class::ldmatrix, "LDSM"},
      {Class::lds, "LDS"},
      {Class::sts, "STS STSM"},
      {Class::asyncCopy, "LDGSTS UTMALDG UBLKCP"},
      {Class::ldg, "LDG LD"},
      {Class::stg, "STG ST UTMASTG"},
      {Class::atomic, "RED REDG ATOM ATOMG ATOMS UTMAREDG UBLKRED"},
      {Class::mufu, "MUFU"},
      {Class::fp,
       "FADD FMUL FFMA FMNMX FMNMX3 FADD2 FMUL2 FFMA2 FCHK FSWZADD FADD32I FMUL32I FFMA32I HADD2 HMUL2 HFMA2 "
       "HMNMX2 HADD2_32I HMUL2_32I HFMA2_32I VHMNMX DADD DMUL DFMA DMNMX"},
      {Class::convert, "F2F F2FP F2I F2IP I2F I2FP I2I I2IP FRND PRMT"},
      {Class::predicate, "ISETP FSETP HSETP2 DSETP PSETP FSET HSET2 ISET SEL FSEL PLOP3 P2R R2P  VOTE VOTEU"},
      {Class::barrier, "BAR"},
      {Class::shuffle, "SHFL REDUX CREDUX MATCH MOVM"},
      {Class::branch,
       "BRA BRX BRXU JMP JMX JMXU CALL RET EXIT BSSY BSYNC BREAK BMOV WARPSYNC KILL NANOSLEEP YIELD ELECT"},
      {Class::local, "LDL STL"},
      {Class::other, "NOP DEPBAR LDGDEPBAR MEMBAR ERRBAR FENCE CCTL SYNCS ARRIVES WARPGROUP WARPGROUPSET USETMAXREG "
                     "B2R R2B UTMACMDFLUSH UTMACCTL PREEXIT ACQBULK UCGABAR_ARV UCGABAR_WAIT"},
  };
  static const auto table = [] {
    std::map<std::string_view, Class, std::less<>> all;
    for (const auto &[kind, list] : lists)
      for (std::string_view rest = list; !rest.empty();) {
        const size_t end = std::min(rest.find(' '), rest.size());
        all[rest.substr(0, end)] = kind;
        rest.remove_prefix(std::min(end + 1, rest.size()));
      }
    return all;
  }();
  return table;
}

Class classOf(const SassInstruction &instruction) {
  const std::string_view opcode = std::string_view(instruction.opcode).substr(0, instruction.opcode.find('.'));
  const auto &table = classesByOpcode();
  auto at = table.find(opcode);
  if (at == table.end() && opcode.starts_with('U'))
    at = table.find(opcode.substr(1)); // USEL, UISETP, …
  return at == table.end() ? Class::integer : at->second;
}

// --- What an instruction asks for ----------------------------------------------------------------------------------

static bool hasModifier(const std::string &opcode, std::string_view modifier) {
  for (size_t at = opcode.find('.'); at != std::string::npos; at = opcode.find('.', at + 1))
    if (opcode.compare(at + 1, opcode.find('.', at + 1) - at - 1, modifier) == 0)
      return true;
  return false;
}

/// The bytes of a lane's access.
static double bytesOfLane(const std::string &opcode) {
  for (const auto &[modifier, bytes] : {std::pair("128", 16), {"64", 8}, {"U8", 1}, {"S8", 1}, {"U16", 2}, {"S16", 2}})
    if (hasModifier(opcode, modifier))
      return bytes;
  return 4;
}

/// Operations of an instruction such as HMMA.16816 or HGMMA.64x128x16, two a product.
static double operationsOf(const std::string &opcode) {
  const size_t dot = opcode.find('.');
  if (dot == std::string::npos)
    return 0;
  const std::string shape = opcode.substr(dot + 1, opcode.find('.', dot + 1) - dot - 1);
  if (shape.find('x') != std::string::npos) {
    double m = 0, n = 0, k = 0;
    char x = 0;
    std::istringstream(shape) >> m >> x >> n >> x >> k; // a warp's quarter of a warpgroup's product
    return 2 * m * n * k / 4;
  }
  static const std::map<std::string, double> products = {
      {"16816", 16. * 8 * 16}, {"1688", 16. * 8 * 8}, {"1684", 16. * 8 * 4}, {"16832", 16. * 8 * 32},
      {"16864", 16. * 8 * 64}, {"8816", 8. * 8 * 16}, {"884", 8. * 8 * 4},   {"16128", 16. * 8 * 128}};
  const auto at = products.find(shape);
  return at == products.end() ? 0 : 2 * at->second;
}

/// The type of its operands.
static std::string operandType(const std::string &opcode) {
  for (const auto &[modifier, type] :
       {std::pair("BF16", "bf16"), {"TF32", "tf32"}, {"S8", "s8"}, {"U8", "s8"}, {"E4M3", "f8"}, {"E5M2", "f8"}})
    if (hasModifier(opcode, modifier))
      return type;
  return opcode.starts_with("DMMA") ? "f64" : opcode.starts_with("I") ? "s8" : "f16";
}

static Work workOf(const SassInstruction &instruction) {
  Work work;
  const std::string &opcode = instruction.opcode;
  const Class kind = classOf(instruction);
  work.counts[kind] = 1;
  switch (kind) {
  case Class::mma:
    work.mmaOperations = operationsOf(opcode);
    work.groupOperations = opcode.find("GMMA.") == 1 ? work.mmaOperations : 0;
    work.mmaType = operandType(opcode);
    break;
  case Class::ldmatrix:
    work.wavefronts = hasModifier(opcode, "4") ? 4 : hasModifier(opcode, "2") ? 2 : 1;
    break;
  case Class::lds:
  case Class::sts:
    work.wavefronts = std::max(1.0, bytesOfLane(opcode) / 4);
    break;
  case Class::asyncCopy:
    work.bytes = 32 * bytesOfLane(opcode);
    work.wavefronts = work.bytes / 128;
    break;
  case Class::ldg:
  case Class::stg:
    work.bytes = 32 * bytesOfLane(opcode);
    break;
  default:
    break;
  }
  return work;
}

Work SassKernel::workOf(size_t begin, size_t end) const {
  Work all;
  for (size_t i = begin; i < end; ++i)
    all.add(bench::workOf(code[i]));
  return all;
}

const SassLoop *SassKernel::mainLoop() const {
  const SassLoop *best = nullptr;
  double most = -1;
  for (const SassLoop &loop : loops) {
    const Work work = workOf(loop.begin, loop.end);
    const double products = work.counts[Class::mma];
    const bool isShorter = best && loop.end - loop.begin < best->end - best->begin;
    if (!best || products > most || (products == most && isShorter == (products > 0))) {
      best = &loop;
      most = products;
    }
  }
  return best;
}

// --- The text ------------------------------------------------------------------------------------------------------

static std::string_view trimmed(std::string_view text) {
  const size_t begin = text.find_first_not_of(" \t");
  if (begin == std::string_view::npos)
    return {};
  return text.substr(begin, text.find_last_not_of(" \t\r") + 1 - begin);
}

/// `/*0a10*/  @!P0 BRA `(.L_x_0) ;`, or none if the line is not an instruction that can be executed.
static std::optional<SassInstruction> instructionOf(std::string_view line) {
  line = trimmed(line);
  const size_t close = line.find("*/");
  const auto isHexadecimal = [](char c) { return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f'); };
  if (!line.starts_with("/*") || close == std::string_view::npos || close == 2 ||
      !std::all_of(line.begin() + 2, line.begin() + static_cast<std::ptrdiff_t>(close), isHexadecimal))
    return {};
  line = trimmed(line.substr(close + 2));
  line = trimmed(line.substr(0, line.rfind(';') == std::string_view::npos ? line.size() : line.rfind(';')));
  if (line.starts_with('{'))
    line = trimmed(line.substr(1)); // a dual-issued pair
  if (line.starts_with("@!PT "))
    return {}; // never executed: padding
  if (line.starts_with('@'))
    line = trimmed(line.substr(std::min(line.find(' '), line.size())));
  if (line.empty())
    return {};
  const size_t space = std::min(line.find(' '), line.size());
  return SassInstruction{std::string(line.substr(0, space)), std::string(trimmed(line.substr(space)))};
}

/// `.L_x_12` of an operand `(.L_x_12)`.
static std::string_view labelIn(std::string_view operands) {
  const size_t begin = operands.find("(.L");
  const size_t end = operands.find(')', begin == std::string_view::npos ? 0 : begin);
  return begin == std::string_view::npos || end == std::string_view::npos ? std::string_view()
                                                                          : operands.substr(begin + 1, end - begin - 1);
}

namespace {
/// A kernel during parsing.
struct Reading {
  SassKernel kernel;
  std::map<std::string, size_t, std::less<>> labels;

  /// The kernel with its loops.
  SassKernel done() {
    std::vector<SassLoop> all;
    for (size_t i = 0; i < kernel.code.size(); ++i) {
      if (!kernel.code[i].opcode.starts_with("BRA"))
        continue;
      const auto at = labels.find(labelIn(kernel.code[i].operands));
      if (at != labels.end() && at->second < i)
        all.push_back({at->second, i + 1});
    }
    for (const SassLoop &loop : all)
      if (std::none_of(all.begin(), all.end(), [&](const SassLoop &other) {
            return other.begin >= loop.begin && other.end <= loop.end &&
                   other.end - other.begin < loop.end - loop.begin;
          }))
        kernel.loops.push_back(loop);
    return std::move(kernel);
  }
};
} // namespace

std::vector<SassKernel> readSass(std::string_view text) {
  std::vector<SassKernel> kernels;
  std::optional<Reading> reading;
  const auto finish = [&] {
    if (reading)
      kernels.push_back(reading->done());
    reading.reset();
  };
  constexpr std::string_view section = ".section\t.text.";
  for (size_t at = 0; at < text.size();) {
    const size_t end = std::min(text.find('\n', at), text.size());
    const std::string_view line = trimmed(text.substr(at, end - at));
    at = end + 1;
    if (line.starts_with(section)) {
      finish();
      reading.emplace();
      const std::string_view name = line.substr(section.size());
      reading->kernel.name = name.substr(0, name.find_first_of(",\""));
    } else if (line.starts_with(".section\t")) {
      finish();
    } else if (!reading) {
      continue;
    } else if (line.starts_with(".L") && line.ends_with(':')) {
      reading->labels[std::string(line.substr(0, line.size() - 1))] = reading->kernel.code.size();
    } else if (std::optional<SassInstruction> instruction = instructionOf(line)) {
      reading->kernel.code.push_back(std::move(*instruction));
    }
  }
  finish();
  return kernels;
}

} // namespace kiln::bench
