"""Runs the commands that a README shows, each as it stands there.

`commands.py ROOT BUILD README FOLDER [PART]` takes the lines of every ```sh block, and the inline code that calls one of the
programs with flags, in the README's order, and runs them in the new folder FOLDER, in which `build` and `tools` are the
real ones and the files that READMEs speak of exist: texts FILE and tinyshakespeare.txt, lines DE and EN, HELD_DE and
HELD_EN, HellaSwag's TASKS, a kernel FILE.cc, arrays a.npy, b.npy and x.npy, modules FILE.mlir and k.mlir, PTX FILE.ptx,
REPRODUCER; DIR and run are theirs to make. Long work is made short by flags that SHORTER adds; stub libraries
stand for two GPUs; nothing else is changed. Ends with a message at the first command that fails; a README without commands
is a failure, too.

PART is `ptxas` or `nvjitlink` for the commands that want this part of NVIDIA's CUDA Toolkit, which not every machine has;
without it the commands are all others. A README that shows such a command says so, by the word `Toolkit`.
"""

import os
import re
import shutil
import subprocess
import sys

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.join(os.path.dirname(__file__), "../../tools/inputs"))
import npy  # noqa: E402

PROGRAMS = ("kilnc", "kiln-opt", "gpt2", "bytelm", "tokens", "translate", "kiln-bench")
# The beginning of a command, and the flags that make it short. The first match counts, so special ones come first.
TINY = "--layers 1 --heads 2 --width 32 --context 16 --batch 2"
SHORTER = [
    (r"(gpt2|bytelm) train .*--resume", "--steps 3"),
    (r"(gpt2|bytelm) train .*", f"{TINY} --steps 2"),
    (r"translate train .*", "--encoder-layers 1 --layers 1 --heads 2 --width 32 --batch-tokens 500 --steps 2"),
    (r"gpt2 sample ", "--tokens 4"),
    (r"bytelm sample ", "--bytes 4"),
    (r"tokens encode .*--shard-tokens", "--shard-tokens 400"),
    (r"kiln-bench ", "--quick"),
]
# Scripts that build or test everything, this test included; the `readme` rule checks that they exist. Also commands of a
# minute that other tests run in a short form.
NOT_RUN = re.compile(r"tools/(train|test|build|bundle|check|setup|reference|fuzz|faults|gpu-matrix)\b|build/bin/kiln-(barriers|ulps)\b|"
                     r"kiln-gpu/run-gpu\b|tar xzf\b")
# Commands that need a part of the CUDA Toolkit.
WANTS = [(r"kiln-bench ptxas\b", "ptxas"), (r"--emit=cubin\b", "nvjitlink")]
SECONDS = 120
# Settings that mpirun needs as root, with fewer cores than ranks, or in a container.
MPIRUN = {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1", "OMPI_MCA_rmaps_base_oversubscribe": "1",
          "OMPI_MCA_hwloc_base_binding_policy": "none", "OMPI_MCA_btl_vader_single_copy_mechanism": "none"}
# Stub libraries below BUILD/lib that replace two GPUs and NCCL. They run launches in the simulator.
STUBS = {"KILN_CUDA_DRIVER": "libcuda_stub_simulating.so", "KILN_NCCL": "libnccl_stub.so"}
# The lines that make a module a reproducer.
PIPELINE = """
{-#
  external_resources: {
    mlir_reproducer: { pipeline: "builtin.module(tile-verify-kernels)", disable_threading: true, verify_each: true }
  }
#-}
"""


def commands(text):
    """The commands of a README, without their comments and with continued lines joined."""
    for block, inline in re.findall(r"^```sh\n(.*?)^```|(?<!`)`([^`\n]+)`(?!`)", text, re.S | re.M):
        if inline:
            words = inline.split()
            if os.path.basename(words[0]) in PROGRAMS and any(word.startswith("-") for word in words[1:]) and "…" not in inline:
                yield inline
            continue
        for line in block.splitlines():
            if line.endswith("\\") and line.count("'") % 2:
                raise SystemExit(f"expected no \\ at the end of a line inside quotes, where a shell keeps it, but got: {line}")
        for line in block.replace("\\\n", " ").splitlines():
            command = re.sub(r"\s+#.*$", "", line).strip()
            if command and not command.startswith("#"):
                yield command


def shortened(command):
    for pattern, flags in SHORTER:
        if re.match(r"(\w+=\S+ )*(mpirun .*?)?(build/bin/)?" + pattern, command):
            # Before a pipe, because later words belong to other commands.
            head, pipe, tail = command.partition(" | ")
            return f"{head} {flags}{pipe}{tail}"
    return command


def wanted(command):
    """The part of the CUDA Toolkit that a command wants, or None."""
    return next((part for pattern, part in WANTS if re.search(pattern, command)), None)


def prepare(root, build, folder):
    """Makes the folder that the commands run in."""
    shutil.rmtree(folder, ignore_errors=True)
    os.makedirs(folder)
    os.symlink(build, os.path.join(folder, "build"))
    os.symlink(os.path.join(root, "tools"), os.path.join(folder, "tools"))
    with open(os.path.join(root, "README.md"), encoding="utf-8") as stream:
        kernel = re.search(r"^```cpp\n(.*?)^```", stream.read(), re.S | re.M)[1]
    text = "To be, or not to be, that is the question.\n" * 60
    files = {"FILE": text, "DE": "ein Mann sieht einen Hund\n" * 30, "EN": "a man sees a dog\n" * 30,
             "HELD_DE": "ein Hund\n", "HELD_EN": "a dog\n", "tinyshakespeare.txt": text, "FILE.cc": kernel,
             "TASKS": "To be, or not\n1\nis\nto be\nquestion\nthat that\n"}
    for name, content in files.items():
        with open(os.path.join(folder, name), "w", encoding="utf-8") as stream:
            stream.write(content)
    with open(os.path.join(root, "test/lowering/centre.mlir"), encoding="utf-8") as stream:
        module = stream.read()
    for name in ("a.npy", "b.npy"):
        npy.write(os.path.join(folder, name), "<f4", "256x256", *range(256 * 256))
    npy.write(os.path.join(folder, "x.npy"), "<f4", "5", *range(5))
    shutil.copy(os.path.join(root, "test/tools/inputs/scale.ptx"), os.path.join(folder, "FILE.ptx"))
    for name, tail in {"FILE.mlir": "", "k.mlir": "", "REPRODUCER": PIPELINE}.items():
        with open(os.path.join(folder, name), "w", encoding="utf-8") as stream:
            stream.write(module + tail)


def environment_of(build):
    """The variables that commands run with."""
    environment = dict(os.environ)
    environment["PATH"] = os.pathsep.join([os.path.join(build, "bin"), environment["PATH"]])
    environment.update(MPIRUN)
    environment.update({name: os.path.join(build, "lib", library) for name, library in STUBS.items()}, CUDA_VISIBLE_DEVICES="0,1")
    return environment


def run(command, folder, environment):
    """Runs one command and returns its output, standard error included; ends with a message if the command fails."""
    print("$", command, flush=True)
    done = subprocess.run(["bash", "-o", "pipefail", "-c", command], cwd=folder, env=environment, timeout=SECONDS,
                          stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False)
    output = done.stdout.decode(errors="replace")
    if done.returncode != 0:
        sys.exit(f"'{command}' ended with status {done.returncode}:\n{output[-4000:]}")
    return output


def main():
    root, build, readme, folder, *part = sys.argv[1:]
    part = part[0] if part else None
    prepare(root, build, folder)
    environment = environment_of(build)
    ran = 0
    with open(os.path.join(root, readme), encoding="utf-8") as stream:
        text = stream.read()
    for command in commands(text):
        if wanted(command) and "Toolkit" not in text:
            sys.exit(f"{readme}: expected a word about the CUDA Toolkit, which '{command}' wants")
        if NOT_RUN.search(command) or wanted(command) != part:
            continue
        if command.startswith("mpirun ") and shutil.which("mpirun") is None:
            print("no MPI for", command)
            continue
        run(shortened(command), folder, environment)
        ran += 1
    if not ran:
        sys.exit(f"{readme}: expected commands, but found none")
    print(f"{readme}: {ran} commands ran")


if __name__ == "__main__":
    main()
