"""Every variable of runtime/README's table with values that it cannot have, for every program that could read it: whatever the
value is, a program ends with 0, 2 or 3 and a message, soon, and never by a signal.
"""

import os
import re

from process import faults_of, run

FOLDER = os.path.dirname(os.path.abspath(__file__))
VALUES = ("abc", "-1", "", "9" * 30, "/dev/null", "/dev/null/folder", "x" * 5000, "1 ", "=", "order=nosuch", "\udcff\udcfe",
          "%s%n", "0x10", "1e3", ".")
ADD = """
#include "dialect/dsl/Kernel.h"
using namespace kiln;
static void add(View x, View out) { store(out, {0}, load(x, {0}, {4}) + 1.0); }
const Kernel addKernel = kernel("add", add, {"x", "out"});
"""


def table():
    """The variables that README names."""
    with open(FOLDER + "/../../runtime/README.md", encoding="utf-8") as readme:
        return re.findall(r"^\| `([A-Z_]+)` \|", readme.read(), re.M)


class Variables:
    name = "variables"

    def __init__(self, setting):
        self.setting = setting
        lines = self.make_lines()
        self.chosen = []
        for i, variable in enumerate(table()):
            for j, line in enumerate(lines):
                if line[-1].endswith(".cc") and variable not in ("CXX", "TMPDIR"):  # which takes a compiler's time
                    continue
                values = VALUES if not setting.quick else (VALUES[(i * len(lines) + j) % len(VALUES)],)
                self.chosen += [(variable, value, line) for value in values]
        self.cases = len(self.chosen)

    def make_lines(self):
        """A command line for each program and each kind of device, of tiny work."""
        program, path = self.setting.program, self.setting.path
        training = self.setting.training(4)
        gelu, run_gelu = ["--kernel=gelu"], ["--run", "--grid=1", "--args=f32[4], f32[4]"]
        with open(path("variables.cc"), "w", encoding="utf-8") as source:
            source.write(ADD)
        for name, words in (("variables.mlir", ["--args=f32[?], f32[?]"]),
                            ("variables.ptx", ["--args=f32[?], f32[?]", "--target=sm_80", "--emit=ptx"])):
            made = run([program("kilnc"), *gelu, *words, "-o", path(name)], self.setting.environment())
            if made.status != 0:
                raise SystemExit(f"faults: {made.err}")
        sample = ["sample", "--out", training.undisturbed, "--tokens", "1"]
        bundled = program("kiln-gpu") # built on request
        return [
            *([[bundled, "gpt2", *sample]] if os.path.exists(bundled) else []),
            [program("gpt2"), *sample],
            [program("gpt2"), "info", "--layers", "1", "--device", "simulator:sm_80"],
            [program("kilnc"), *gelu, *run_gelu],
            [program("kilnc"), *gelu, *run_gelu, "--device=simulator:sm_80"],
            [program("kilnc"), *gelu, *run_gelu, "--device=cuda:0"],
            [program("kilnc"), *gelu, "--args=f32[?], f32[?]", "--target=sm_90a", "--emit=cubin", "-o", "OUT"],
            [program("kilnc"), "--kernel=add", *run_gelu, path("variables.cc")],
            [program("kiln-opt"), path("variables.mlir"), "--kiln=until=asm"],
            [program("kiln-sim"), path("variables.ptx"), "--grid=1", "--block=128", "--args=1, 1, 1, f32[4], 4, f32[4], 4"],
            [program("kiln-bench"), "launch", "--quick"],
        ]

    def run(self, case, folder):
        """Runs one command line; what was found, and one."""
        variable, value, line = self.chosen[case]
        words = [folder + "/out" if word == "OUT" else word for word in line]
        what = f"{os.path.basename(words[0])} {' '.join(words[1:])[:80]} with {variable}={value[:20]!r}"
        outcome = run(words, self.setting.environment({variable: value}), folder=folder)
        return list(faults_of(outcome, (0, 1, 2, 3) if "kiln-sim" in words[0] else (0, 2, 3), what)), 1
