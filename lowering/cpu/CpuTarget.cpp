// The CPU that code is generated for: LLVM's name and features of the host or of a named CPU, and the parameters of
// block sizes. Kiln requires AVX2, FMA and F16C (x86-64-v3).

#include "lowering/cpu/CpuTarget.h"

#include "dialect/dsl/Types.h"
#include "lowering/cpu/CpuBackend.h"

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
    throw Error("expected the name of an x86-64 CPU as LLVM spells it (\"native\", \"x86-64-v3\", \"znver4\", …) "
                "or of a GPU (\"sm_90a\", …), but got '" +
                target.cpu + "'");
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
  // Intel's cores execute bf16 pairs at half the rate of FMAs, AMD's at twice that rate.
  target.bf16Pairs = target.bf16Rounding && target.cpu.starts_with("znver");
  // Skylake's cores need two micro-operations for 512 bits.
  target.fastPermutes = !avx512 || info->checkFeatures("+avx512vbmi2");
  target.i8Quads = avx512 && info->checkFeatures("+avx512vnni");
  target.tiles = avx512 && info->checkFeatures("+amx-tile,+amx-bf16,+amx-int8");
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

CpuTarget cpuNamed(const std::string &name) {
  if (name == "native")
    return hostCpu();
  CpuTarget target;
  target.cpu = name;
  deriveNumbers(target, Fault::user);
  return target;
}

} // namespace kiln::lowering::cpu
