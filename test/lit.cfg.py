"""How lit runs Kiln's text tests: files with RUN lines that call kiln-opt, kilnc and gpt2 and check what they print.

The generated lit.site.cfg.py of the build folder sets kiln_source, kiln_build and llvm_bin and then loads this file, so
lit is pointed at the build folder: `lit -v build/test/dialect/round-trip.mlir`. Substitutions beside lit's own (%s, %t):
%source is the root of the sources, %build that of the build, %python a Python that finds the package `kiln`. Programs come from build/bin, then LLVM's own.
"""

import ctypes
import os
import shutil
import subprocess

import lit.formats

config.name = "kiln"
config.test_format = lit.formats.ShTest(execute_external=False)
config.suffixes = [".mlir", ".test", ".cc"]
config.excludes = ["inputs"]
config.test_source_root = os.path.join(config.kiln_source, "test")
config.test_exec_root = os.path.join(config.kiln_build, "test", "lit")

config.substitutions.append(("%source", config.kiln_source))
config.substitutions.append(("%build", config.kiln_build))
# A sanitizer's runtime comes before all libraries, and Python is built without one.
config.substitutions.append(("%python", " ".join([
    "env", *([f"LD_PRELOAD={config.kiln_preload}"] if config.kiln_preload else []), "PYTHONDONTWRITEBYTECODE=1",
    f"PYTHONPATH={config.kiln_source}/tools/python", f"LD_LIBRARY_PATH={config.kiln_build}/lib", "python3"])))

config.environment["PATH"] = os.pathsep.join(
    [os.path.join(config.kiln_build, "bin"), config.llvm_bin, config.environment["PATH"]]
)
config.environment["FILECHECK_OPTS"] = "--dump-input-filter=error --dump-input-context=8"
config.environment["KILN_CACHE"] = os.environ.get("KILN_CACHE", os.path.join(config.kiln_build, "test-cache"))
config.environment["KILN_CACHE_BYTES"] = os.environ.get("KILN_CACHE_BYTES", str(4 << 30))

for name in ("KILN_THREADS", "KILN_TEST_DATA", "KILN_VERIFY", "ASAN_OPTIONS", "UBSAN_OPTIONS"):
    if name in os.environ:
        config.environment[name] = os.environ[name]

# Tests with `REQUIRES: all` are built and run by `tools/test --all` only.
if os.environ.get("KILN_TEST_TURN") == "all":
    config.available_features.add("all")

# Programs that not every machine can run: `// REQUIRES: avx512`.
with open("/proc/cpuinfo", encoding="utf-8") as info:
    flags = set(info.read().split())
if "avx512vl" in flags:
    config.available_features.add("avx512")
if "avx512_bf16" in flags:
    config.available_features.add("avx512-bf16")

# The requirements of the reference site: Sphinx, a Markdown parser and a theme, in the Python of sphinx-build.
sphinx = shutil.which("sphinx-build")
if sphinx:
    with open(sphinx, encoding="utf-8") as script:
        python = script.readline().removeprefix("#!").split()
    looked = "import importlib.util as u, sys; sys.exit(not (u.find_spec('myst_parser') and u.find_spec('furo')))"
    if subprocess.run([*python, "-c", looked], check=False).returncode == 0:
        config.available_features.add("sphinx")

# A headless browser (`REQUIRES: chromium`, and the substitution %chromium).
chromium = next(filter(None, map(shutil.which, ["chromium-headless-shell", "chromium", "google-chrome"])), None)
if chromium:
    config.available_features.add("chromium")
    config.substitutions.append(("%chromium", chromium))


def is_loaded(library):
    try:
        return bool(ctypes.CDLL(library))
    except OSError:
        return False


# NVIDIA's CUDA Toolkit, as Kiln finds it: its linker (`REQUIRES: nvjitlink`), and its assembler from PATH or from the
# toolkit (`REQUIRES: ptxas`, and the substitution %ptxas). With an empty CUDA_PATH there is none.
named = os.environ.get("CUDA_PATH")
toolkits = [] if named == "" else [*filter(None, [named]), "/usr/local/cuda"]
if named is not None:
    config.environment["CUDA_PATH"] = named
if any(os.path.exists(os.path.join(toolkit, "lib64", f"libnvJitLink.so.{version}"))
       for toolkit in toolkits for version in (12, 13)):
    config.available_features.add("nvjitlink")
elif not any(is_loaded(f"libnvJitLink.so.{version}") for version in (12, 13)):
    config.available_features.add("no-nvjitlink")
ptxas = toolkits and shutil.which("ptxas", path=os.pathsep.join(
    [os.environ["PATH"], *(os.path.join(toolkit, "bin") for toolkit in toolkits)]))
if ptxas:
    config.available_features.add("ptxas")
    config.substitutions.append(("%ptxas", ptxas))
