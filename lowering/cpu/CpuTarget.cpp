// The CPU that code is generated for: LLVM's name and features of the host or of a named CPU, and the parameters of
// block sizes. Kiln requires AVX2, FMA and F16C (x86-64-v3).

#include "lowering/cpu/CpuTarget.h"

#include "dialect/dsl/Types.h"
#include "lowering/cpu/CpuBackend.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/MC/MCSubtargetInfo.h"
#include "llvm/MC/TargetRegistry.h"
#include "llvm/TargetParser/Host.h"
#include "llvm/TargetParser/Triple.h"

#include <algorithm>
#include <memory>
#include <sys/syscall.h>
#include <unistd.h>

namespace kiln::lowering::cpu {

/// Requests the use of AMX tiles from Linux, once for all threads of the process. Returns whether it is granted.
static bool mayUseTiles() {
  constexpr long requestPermission = 0x1023, tileData = 18; // ARCH_REQ_XCOMP_PERM, XFEATURE_XTILEDATA
  return syscall(SYS_arch_prctl, requestPermission, tileData) == 0;
}

namespace {
/// Rates of a core: products per cycle by each kind of instruction on 512 bits or tiles, and permutations of 16-bit
/// elements per cycle. 0: it has no such instruction.
struct CoreRates {
  llvm::StringLiteral cpus; // the beginning of LLVM's names
  double multiplyAdds, bf16Pairs, i8Quads, bf16Tiles, permutations;
};
} // namespace

/// `kiln-bench matmul --dtype i8 --threads 1` measures the first three on Zen 5 (280, 480 and 1040 GFLOP/s). On Emerald
/// Rapids the first two were measured on two threads (320 and 163). The others follow from the vendors' descriptions.
static constexpr CoreRates coreRates[] = {
    {"znver4", 16, 32, 64, 0, 1},         // its units have 256 bits
    {"znver", 32, 64, 128, 0, 2},         // Zen 5
    {"skylake-avx512", 32, 0, 0, 0, 0.5}, // a permutation is two micro-operations
    {"cascadelake", 32, 0, 128, 0, 0.5},  // Skylake with VNNI
    {"cooperlake", 32, 16, 128, 0, 0.5},  // Skylake with VNNI and BF16
    {"x86-64-v4", 32, 0, 0, 0, 0.5},      // as Skylake
    {"", 32, 16, 128, 512, 1},            // Intel's from Ice Lake on, and CPUs that are not listed
};

static const CoreRates &ratesOf(llvm::StringRef cpu) {
  return *llvm::find_if(coreRates, [&](const CoreRates &rates) { return cpu.starts_with(rates.cpus); });
}

static std::string hostFeatures() {
  std::vector<std::string> features;
  const auto host = llvm::sys::getHostCPUFeatures();
  const bool refusesTiles = host.lookup("amx-tile") && !mayUseTiles();
  for (const auto &feature : host) {
    const bool isThere = feature.second && !(refusesTiles && feature.first().starts_with("amx-"));
    features.push_back((isThere ? "+" : "-") + feature.first().str());
  }
  std::sort(features.begin(), features.end());
  std::string text;
  for (const std::string &feature : features)
    text += (text.empty() ? "" : ",") + feature;
  return text;
}

/// Sets the properties that follow from name and features. Throws an error for an unknown CPU, and one of kind `whose`
/// for a CPU that is too old.
static void deriveNumbers(CpuTarget &target, Fault whose) {
  const llvm::Target &backend = x86Backend();
  // Checked with an unnamed CPU first, because LLVM prints a warning for an unknown one.
  const std::unique_ptr<llvm::MCSubtargetInfo> any(backend.createMCSubtargetInfo(cpuTriple(), "", ""));
  if (!any->isCPUStringValid(target.cpu))
    throw Error(
        "unknown CPU '" + target.cpu +
        "'; expected an x86-64 CPU as LLVM spells it, such as native, x86-64-v3 or znver4, or a GPU such as sm_90a");
  const std::unique_ptr<llvm::MCSubtargetInfo> info(
      backend.createMCSubtargetInfo(cpuTriple(), target.cpu, target.features));
  std::string missing;
  for (const char *feature : {"avx2", "fma", "f16c", "bmi2"})
    if (!info->checkFeatures(std::string("+") + feature))
      missing += (missing.empty() ? "" : ", ") + std::string(feature);
  if (!missing.empty())
    throw Error("expected a CPU with AVX2, FMA, F16C and BMI2 (x86-64-v3 or newer), but '" + target.cpu + "' lacks " +
                    missing,
                whose);
  const bool avx512 = info->checkFeatures("+avx512f,+avx512bw,+avx512dq,+avx512vl");
  target.vectorBits = avx512 ? 512 : 256;
  target.registers = avx512 ? 32 : 16;
  target.bf16Rounding = avx512 && info->checkFeatures("+avx512bf16");
  // A unit is used if it is faster than widened operands, and permutations if they are as fast as an extension and a
  // shift. 32-bit products of integers, instead of quads, are no faster than multiply-adds of floats.
  const CoreRates &rates = ratesOf(target.cpu);
  target.bf16Pairs = target.bf16Rounding && rates.bf16Pairs > rates.multiplyAdds;
  target.i8Quads = avx512 && info->checkFeatures("+avx512vnni") && rates.i8Quads > rates.multiplyAdds;
  target.tiles = avx512 && info->checkFeatures("+amx-tile,+amx-bf16,+amx-int8") &&
                 rates.bf16Tiles > std::max(rates.bf16Pairs, rates.multiplyAdds);
  target.fastPermutes = !avx512 || rates.permutations >= 1;
}

/// The size that sysconf has for `name`, or `otherwise`, because virtual machines often return 0.
static int64_t cacheBytes(int name, int64_t otherwise) {
  const long bytes = sysconf(name);
  return bytes > 0 ? bytes : otherwise;
}

CpuTarget hostCpu() {
  static const CpuTarget host = [] {
    CpuTarget target;
    target.cpu = llvm::sys::getHostCPUName().str();
    target.features = hostFeatures();
    target.l1Bytes = cacheBytes(_SC_LEVEL1_DCACHE_SIZE, target.l1Bytes);
    target.l2Bytes = cacheBytes(_SC_LEVEL2_CACHE_SIZE, target.l2Bytes);
    deriveNumbers(target, Fault::device);
    return target;
  }();
  return host;
}

CpuTarget cpuNamed(const std::string &name, const std::string &features) {
  if (name == "native")
    return hostCpu();
  CpuTarget target;
  target.cpu = name;
  target.features = features;
  deriveNumbers(target, Fault::user);
  return target;
}

} // namespace kiln::lowering::cpu
