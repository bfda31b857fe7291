"""Compiles a chain of each function of the language for three targets: `sweep.py SOURCE [FUNCTION...]`.

SOURCE is the root of the sources. Each step of a chain reads the result of the step before twice. Compiling it takes
less than a second of processor time; a compiler that follows each read separately would not end, and is stopped at LIMIT.
"""

import os
import pathlib
import re
import resource
import subprocess
import sys

TARGETS = {
    "cpu": ["--target=cpu", "--emit=obj"],
    "reference": ["--target=cpu", "--generic", "--emit=obj"],
    "sm_90a": ["--target=sm_90a", "--emit=ptx"],
}
# The steps of a chain: the first number whose kernel is not too long for the language.
LENGTHS = (32, 16)
TOO_LONG = ("has more than 4096 operations", "more than 64 deep")
LIMIT = 120  # seconds of the processor
HEADERS = ("Tile.h", "Functions.h", "Sorts.h", "Scaled.h")
# Functions that other functions' steps contain: accumulating products, and atomics of integers only.
ELSEWHERE = {"atomic_and", "atomic_or", "atomic_xor", "atomic_compare_exchange"}


def declared(source):
    """The names of the language's functions."""
    text = "".join((source / "dialect/dsl" / name).read_text() for name in HEADERS)
    return set(re.findall(r"^(?:Tile|void|Loop|std::array<Tile, \w+>) (?:\w+::)?([a-z]\w*)\(", text, re.M)) - {"operator"}


def failure(file, function, target):
    """What kilnc said about the longest chain that the language permits; None if it compiled."""
    for length in LENGTHS:
        done = subprocess.run(["kilnc", file, f"--kernel=step_{function}", f"--config=times={length}", "--args=f32[?], f32[?]",
                               *TARGETS[target], "-o", os.devnull], capture_output=True, text=True,
                              preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_CPU, (LIMIT, LIMIT)))
        if done.returncode == 0:
            return None
        said = f"{function}, {length} times, {target}: ended with {done.returncode}: {done.stderr}"
        if not any(reason in done.stderr for reason in TOO_LONG):
            break
    return said


def main():
    source, functions = pathlib.Path(sys.argv[1]), sys.argv[2:]
    file = pathlib.Path(__file__).with_name("sweep.cc")
    listed = set(re.findall(r"^step_(\w+)", subprocess.run(["kilnc", file, "--list"], check=True, capture_output=True,
                                                            text=True).stdout, re.M))
    wrong = [f"expected a step of '{name}' in sweep.cc" for name in sorted(declared(source) - listed - ELSEWHERE)]
    wrong += filter(None, (failure(file, function, target) for function in functions or sorted(listed) for target in TARGETS))
    if wrong:
        sys.exit("\n".join(wrong))


main()
