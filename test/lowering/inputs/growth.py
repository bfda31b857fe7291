"""Compiles kernels of growth.cc with so many and with four times as many operations: `growth.py FILE TIMES KERNEL...`.

Only the time that the processor works counts. Four times as much work is four times as long and a little more; up to
seven times as long are taken, a growth by n^1.4. What takes less than a second is not compared.
"""

import os
import subprocess
import sys

TARGETS = (["--target=cpu", "--emit=obj"], ["--target=cpu", "--generic", "--emit=obj"], ["--target=sm_90a", "--emit=ptx"])


def seconds(file, kernel, times, target):
    """The time that one compilation takes; ends the test where it fails."""
    process = subprocess.Popen(["kilnc", file, f"--kernel={kernel}", f"--config=times={times}", "--args=f32[?], f32[?]", *target,
                                "-o", os.devnull])
    _, status, usage = os.wait4(process.pid, 0)
    if status:
        sys.exit(f"{kernel}, {times} times, {' '.join(target)}: ended with {os.waitstatus_to_exitcode(status)}")
    return usage.ru_utime + usage.ru_stime


def main():
    file, times, *kernels = sys.argv[1:]
    seconds(file, kernels[0], 1, TARGETS[0])  # which compiles the C++ file
    for kernel in kernels:
        for target in TARGETS:
            few, many = (seconds(file, kernel, count * int(times), target) for count in (1, 4))
            print(f"{kernel}, {times} times, {' '.join(target)}: {few:.2f} s, four times as many {many:.2f} s")
            if many > 1 + 7 * few:
                sys.exit("expected four times as many operations to take at most seven times as long")


main()
