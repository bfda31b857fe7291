"""The faults that Kiln must stand, one kind a module: `faults.py --build FOLDER [--quick] [KIND…]`.

A kind is a class with a name, the cases there are, and `run`, which runs one of them in a folder of its own and returns
what it found and how many it counts for. Every case depends on nothing but the seed and its number. Prints the counts,
and for each case that failed the line that runs it again; the exit status is 1 when there is one.
"""

import argparse
import concurrent.futures
import functools
import glob
import os
import shutil
import sys
import tempfile
import time

from flags import Flags
from injections import Injections
from kills import Kills
from mutations import Mutations
from ranks import Ranks
from rivals import Rivals
from streams import Streams
from training import Training
from variables import Variables

KINDS = (Kills, Injections, Mutations, Flags, Variables, Streams, Rivals, Ranks)
FOUND = ("lost", "signals", "hangs", "wrong")


class Setting:
    """What all kinds share: where the programs are, the seed, and folders of their own."""

    def __init__(self, arguments, folder):
        self.build, self.quick, self.seed = os.path.abspath(arguments.build), arguments.quick, arguments.seed
        self.sanitized = os.path.abspath(arguments.sanitized or arguments.build)
        self.folder = folder
        self.cache = self.path("cache")
        self.runs = {}

    def path(self, name):
        return f"{self.folder}/{name}"

    def program(self, name):
        return f"{self.build}/bin/{name}"

    def training(self, steps, seed=1):
        """The undisturbed run of so many steps."""
        if (steps, seed) not in self.runs:
            self.runs[steps, seed] = Training(self, steps, seed)
        return self.runs[steps, seed]

    def environment(self, *more):
        """A plain environment: nothing of the user's changes what a program does."""
        plain = {"PATH": "/usr/bin:/bin", "HOME": self.folder, "KILN_CACHE": self.cache, "KILN_THREADS": "1",
                 "TMPDIR": self.folder}
        for variables in more:
            plain.update(variables)
        return plain

    def failing(self, folders, at=0, what="", trace=None):
        """The environment in which a program's system calls on `folders` fail; see failing_calls.c."""
        variables = {"LD_PRELOAD": f"{self.build}/lib/libfailing_calls.so", "FAULT_FOLDERS": folders,
                     "FAULT_AT": str(at), "FAULT_WHAT": str(what)}
        if trace:
            variables["FAULT_TRACE"] = trace
        return variables

    def copy_cache(self, folder, chance, missing=2):
        """Makes `folder` a copy of the compile cache without some of its entries."""
        shutil.copytree(self.cache, folder)
        os.chmod(folder, 0o700)
        entries = sorted(path for path in glob.glob(folder + "/**", recursive=True) if os.path.isfile(path))
        for path in chance.sample(entries, missing):
            os.unlink(path)


def parse(words):
    parser = argparse.ArgumentParser(prog="tools/faults", description="Runs Kiln's programs under faults.")
    parser.add_argument("kind", nargs="*", help=" ".join(kind.name for kind in KINDS))
    parser.add_argument("--build", required=True, help="the build folder")
    parser.add_argument("--sanitized", help="the build folder with sanitizers, for the mutated inputs")
    parser.add_argument("--quick", action="store_true", help="a few cases of each kind")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--case", type=int, help="this case alone")
    parser.add_argument("--jobs", type=int, default=1, help="cases at once")
    arguments = parser.parse_args(words)
    known = [kind.name for kind in KINDS]
    for kind in arguments.kind:
        if kind not in known:
            parser.error(f"expected a kind out of {', '.join(known)}, but got '{kind}'")
    return arguments


def run_case(kind, case):
    """Runs one case in a folder of its own."""
    folder = kind.setting.path(f"{kind.name}-case-{case}")
    os.mkdir(folder)
    try:
        return kind.run(case, folder)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def run_kind(kind, arguments, tally):
    """Runs one kind; the number of its cases."""
    count = 0
    cases = range(kind.cases) if arguments.case is None else [arguments.case]
    with concurrent.futures.ProcessPoolExecutor(arguments.jobs) as pool:
        for case, (found, number) in zip(cases, pool.map(functools.partial(run_case, kind), cases)):
            count += number
            for fault in found:
                tally[fault.kind] += 1
                print(f"{kind.name} {case}: {fault.kind}: {fault.text}")
            if found:
                again = f"tools/faults {kind.name} --seed {arguments.seed} --case {case}"
                print(f"  again: {again}{' --quick' if arguments.quick else ''}", flush=True)
    return count


def main():
    arguments = parse(sys.argv[1:])
    tally, counts = dict.fromkeys(FOUND, 0), []
    with tempfile.TemporaryDirectory(prefix="kiln-faults-", ignore_cleanup_errors=True) as folder:
        setting = Setting(arguments, os.path.realpath(folder))
        for kind in KINDS:
            if not arguments.kind or kind.name in arguments.kind:
                begin = time.monotonic()
                counts.append(f"{kind.name} {run_kind(kind(setting), arguments, tally)}")
                print(f"{counts[-1]} in {time.monotonic() - begin:.0f} s", flush=True)
    print(f"{', '.join(counts)}: lost {tally['lost']}, signals {tally['signals']}, hangs {tally['hangs']}, "
          f"wrong exit codes {tally['wrong']}")
    sys.exit(1 if any(tally.values()) else 0)


if __name__ == "__main__":
    main()
