"""Compiles chains of each function of the language, of some length and of eight times that: `sweep.py SOURCE [FUNCTION...]`.

SOURCE is the root of the sources. Only the time that the processor works counts, without that of a chain of one step.
It may grow with the length to the power of 1.3. The length is the first of LENGTHS with which a chain of eight times
that takes a second; shorter compilations are not compared. Half a second more is allowed, for the scatter of short times.
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
LENGTHS = (16, 48)
FACTOR, POWER = 8, 1.3
# Functions whose compilation grows faster, and its power.
SLOWER = {
    ("cpu", "dot"): 1.6,
    ("reference", "atomic_exchange"): 1.6,
    ("reference", "atomic_load"): 1.6,
    ("reference", "atomic_max"): 1.6,
    ("reference", "atomic_min"): 1.6,
    ("reference", "dot_scaled"): 1.6,
    ("reference", "random"): 1.6,
    ("reference", "random_bits"): 1.6,
    ("reference", "random_normal"): 1.6,
    ("reference", "random_words"): 1.6,
    ("sm_90a", "dot"): 1.6,
    ("sm_90a", "dot_scaled"): 1.6,
    ("sm_90a", "sort_at"): 1.6,
}
SHORT, SLACK, LIMIT = 1.0, 0.5, 120  # seconds
HEADERS = ("Tile.h", "Functions.h", "Sorts.h", "Scaled.h")
# Functions that other functions' steps contain: accumulating products, and atomics of integers only.
ELSEWHERE = {"atomic_and", "atomic_or", "atomic_xor", "atomic_compare_exchange"}


def declared(source):
    """The names of the language's functions."""
    text = "".join((source / "dialect/dsl" / name).read_text() for name in HEADERS)
    return set(re.findall(r"^(?:Tile|void|Loop|std::array<Tile, \w+>) (?:\w+::)?([a-z]\w*)\(", text, re.M)) - {"operator"}


def seconds(file, function, times, target):
    """The time that one compilation takes; None if the kernel would be too long for the language."""
    process = subprocess.Popen(["kilnc", file, f"--kernel=step_{function}", f"--config=times={times}", "--args=f32[?], f32[?]",
                                *TARGETS[target], "-o", os.devnull], stderr=subprocess.PIPE, text=True,
                               preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_CPU, (LIMIT, LIMIT)))
    with process.stderr:
        said = process.stderr.read()
    _, status, usage = os.wait4(process.pid, 0)
    if "has more than 4096 operations" in said or "more than 64 deep" in said:
        return None
    if status:
        raise ValueError(f"{function}, {times} times, {target}: ended with {os.waitstatus_to_exitcode(status)}: {said}")
    return usage.ru_utime + usage.ru_stime


def growth(file, function, target):
    """The lengths that are compared and their times."""
    one = seconds(file, function, 1, target)
    length, long = 0, None
    for more in LENGTHS:
        took = seconds(file, function, FACTOR * more, target)
        if took is None and long is None:
            more, took = more // 4, seconds(file, function, FACTOR * more // 4, target)
        if took is None:
            break
        length, long = more, took
        if long >= SHORT:
            return length, seconds(file, function, length, target) - one, long - one
    return length, None, long - one


def main():
    source, functions = pathlib.Path(sys.argv[1]), sys.argv[2:]
    file = pathlib.Path(__file__).with_name("sweep.cc")
    listed = set(re.findall(r"^step_(\w+)", subprocess.run(["kilnc", file, "--list"], check=True, capture_output=True,
                                                            text=True).stdout, re.M))
    wrong = [f"expected a step of '{name}' in sweep.cc" for name in sorted(declared(source) - listed - ELSEWHERE)]
    for function in functions or sorted(listed):
        for target in TARGETS:
            try:
                length, few, many = growth(file, function, target)
            except ValueError as error:
                wrong.append(str(error))
                print(error, flush=True)
                continue
            found = f"{function}, {target}: {FACTOR * length} times {many:.2f} s"
            if few is not None:
                found += f", {length} times {few:.2f} s"
                most = FACTOR ** SLOWER.get((target, function), POWER)
                if many > most * few + SLACK:
                    wrong.append(f"{found}; expected at most {most:.0f} times as long")
            print(found, flush=True)
    if wrong:
        sys.exit("\n".join(wrong))


main()
