"""Runs the two kernels of chapter 10 on a simulated GPU, and compares the lines that are reported with the race's lines.

`races.py FILE` takes the chapter's C++ file; kilnc is found in PATH.
"""

import os
import re
import subprocess
import sys

ACCESSES = ("Tile before = load(count", "store(count")
ORDERS = ("forward", "reverse", "random")


def main():
    (path,) = sys.argv[1:]
    with open(path, encoding="utf-8") as stream:
        lines = stream.read().splitlines()
    expected = {number for number, line in enumerate(lines, 1) if line.strip().startswith(ACCESSES)}
    for order in ORDERS:
        for kernel, wanted in (("count_zeros_wrong", expected), ("count_zeros", set())):
            done = subprocess.run(["kilnc", path, f"--kernel={kernel}", "--run", "--grid=3", "--device=simulator:sm_90a",
                                   "--args=f32[150](0), i32[1]"], env=dict(os.environ, KILN_SIM=f"order={order}"),
                                  stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False)
            reported = {int(number) for number in re.findall(r"\.cc:(\d+): race-programs:", done.stdout)}
            if reported != wanted or (done.returncode == 0) != (not wanted):
                sys.exit(f"{kernel}, order={order}: expected races at lines {sorted(wanted)}, but got {sorted(reported)}, "
                         f"status {done.returncode}:\n{done.stdout}")
    if len(expected) != len(ACCESSES):
        sys.exit(f"{path}: expected a load and a store that race, but found lines {sorted(expected)}")


if __name__ == "__main__":
    main()
