"""Rates the tuner: for typical kernels, compares the config that `kilnc --tune` finds with that of an exhaustive search.

    python3 tools/kiln-bench/tuning.py build/bin/kilnc [--device cpu] [--threads 1] [--repeat 15] [KERNEL…]

Each search begins with an empty cache of compilations. Then the two configs are measured in turn on the same memory. `quality`
is the median time of the exhaustive search's config divided by that of the tuner's: 0.97 means 3 % slower. `time` is the
tuner's time divided by that of the exhaustive search, both with compiling.
"""

import argparse
import csv
import os
import re
import shutil
import subprocess
import sys
import tempfile

USERS = os.path.join(os.path.dirname(os.path.abspath(__file__)), "users", "kernels.cc")

# Kernel: file (none: built in), arguments, grid.
PROBLEMS = {
    "rms_norm": (USERS, "f32[1024x1024], f32[1024], f32[1024x1024]", "y.0/rows"),
    "user_softmax": (USERS, "f32[1024x1000], f32[1024x1000]", "y.0/rows"),
    "dropout": (USERS, "f32[500000], f32[500000], 7, 0.1", "y.0/block"),
    "rope": (USERS, "f32[2x8x512x128], f32[512x64], f32[512x64], f32[2x8x512x128]", "y.2/bt, y.1, y.0"),
    "stencil": (USERS, "f32[1000x1000], f32[1000x1000], 0.5, 0.125", "y.0/bm, y.1/bn"),
    "convolve": (USERS, "f32[2x512x512], f32[4x512], f32[512], f32[2x512x512]", "y.2/bd, y.1/bt, y.0"),
    "bags": (USERS, "i32[512x32], f32[4096x256], f32[512x256]", "y.0/bags"),
    "selective_scan": (
        USERS,
        "f32[2x64x1024], f32[2x64x1024], f32[1024x16], f32[2x64x16], f32[2x64x16], f32[2x64x1024]",
        "y.2/bd, y.0",
    ),
    "running_sum": (USERS, "f32[2x256x8192], f32[2x256x8192]", "y.2/block, y.0"),
    "swiglu": (USERS, "f32[256x256], f32[256x256], f32[256x256], f32[256x256]", "y.0/bm, y.1/bn"),
    "persistent_product": (USERS, "f32[384x384], f32[384x384], f32[384x384]", "2"),
    "window_attention": (
        USERS,
        "f32[1x4x512x64], f32[1x1x512x64], f32[1x1x512x64], f32[4], f32[1x4x512x64], 0.125",
        "o.2/bm, o.1, o.0",
    ),
    "softmax": ("", "f32[1024x768], f32[1024x768]", "out.0/rows"),
    "layernorm": ("", "f32[1024x768], f32[768], f32[768], f32[1024x768], f32[1024], f32[1024], 0.00001", "out.0/rows"),
    "matmul": ("", "f32[256x384], f32[384x512], f32[256x512]", "c.0/bm, c.1/bn"),
}


def output(command, environment):
    result = subprocess.run(command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    if result.returncode:
        sys.exit(f"tuning.py: {' '.join(command)}\n{result.stdout}{result.stderr}")
    return result.stdout


def searched(command, flags, environment, libraries):
    """The config of a search, the number of configs measured, and its seconds. The cache has compiled files of C++ only."""
    with tempfile.TemporaryDirectory() as folder:
        cache = shutil.copytree(libraries, os.path.join(folder, "cache"))
        text = output(command + flags, {**environment, "KILN_CACHE": cache})
    number, config, seconds = re.search(r"^best of (\d+) configs: (\S+), .* in ([0-9.]+) s$", text, re.M).groups()
    return config, int(number), float(seconds)


def medians(command, configs, repeat, environment):
    """Microseconds of configs that are measured in turn."""
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "speed.csv")
        flags = [f"--config={configs[0]}", f"--against={configs[1]}", f"--repeat={repeat}", "--csv", path]
        output(command + ["--bench"] + flags, environment)
        with open(path, encoding="utf-8") as file:
            return [float(row["us"]) for row in csv.DictReader(file)]


def table(options, environment, libraries):
    print("kernel              quality   time  configs   s     exhaustive s  found  best", flush=True)
    for name in options.kernels or PROBLEMS:
        file, arguments, grid = PROBLEMS[name]
        command = [options.kilnc] + ([file] if file else [])
        command += [f"--kernel={name}", f"--args={arguments}", f"--grid={grid}", f"--device={options.device}"]
        search = ["--tune", "--vary-results", "--budget=240"]
        best, number, whole = searched(command, search + ["--exhaustive"], environment, libraries)
        found, _, seconds = searched(command, search, environment, libraries)
        ours, theirs = medians(command, [found, best], options.repeat, {**environment, "KILN_CACHE": libraries}) if found != best else (1, 1)
        print(
            f"{name:<19} {theirs / ours:>7.2f} {seconds / whole:>6.1%} {number:>8} {seconds:>5.1f} {whole:>13.1f}  {found}  {best}",
            flush=True,
        )


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("kilnc")
    parser.add_argument("kernels", nargs="*", metavar="KERNEL", help="default: all")
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--threads", default="1")
    parser.add_argument("--repeat", type=int, default=15, help="measurements of each of the two configs")
    options = parser.parse_args()
    environment = {**os.environ, "KILN_THREADS": options.threads}
    with tempfile.TemporaryDirectory() as libraries:
        output([options.kilnc, USERS, "--list"], {**environment, "KILN_CACHE": libraries})
        table(options, environment, libraries)


if __name__ == "__main__":
    main()
