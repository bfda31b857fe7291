"""What the simulator notices: deletes each instruction that synchronises from the kernels of a corpus, one at a time.

`mutations.py --sim build/bin/kiln-sim CORPUS [--only NAME...] [--jobs N]`, where CORPUS has a folder a case, as
case.py describes them. A deletion is *reported* when a run in some order and delivery says what is wrong, *wrong*
when only the numbers show it, *silent* otherwise. What is silent must be harmless: it is deleted all together, as long
as nothing is reported, and what is left must be right in nine schedules without checks. Prints a table by kind and the
deletions that are wrong; the exit status is 1 when there is one, or when what is left is not right.
"""

import argparse
import collections
import concurrent.futures
import os
import re
import subprocess
import sys
import tempfile

sys.dont_write_bytecode = True
import case as corpus  # noqa: E402

ORDERS = ("forward", "reverse", "random")
# The first one that occurs in the line is the kind.
KINDS = (
    ("mbarrier", r"mbarrier\.(?!try_wait|test_wait)[\w.:]+"),
    ("mbarrier wait", r"mbarrier\.(try_wait|test_wait)[\w.:]+"),
    ("bulk commit", r"cp\.async\.bulk\.commit_group"),
    ("bulk wait", r"cp\.async\.bulk\.wait_group"),
    ("cp.async commit", r"cp\.async\.commit_group"),
    ("cp.async wait", r"cp\.async\.wait_(group|all)"),
    ("wgmma fence", r"wgmma\.fence"),
    ("wgmma commit", r"wgmma\.commit_group"),
    ("wgmma wait", r"wgmma\.wait_group"),
    ("proxy fence", r"fence\.proxy"),
    ("fence", r"(fence|membar)\.\w+"),
    ("bar.warp.sync", r"bar(rier)?\.warp\.sync"),
    ("bar.sync", r"\bbar(rier)?\.(cta\.)?(sync|arrive|red)|barrier\.cluster"),
)
PATTERNS = [(kind, re.compile(pattern)) for kind, pattern in KINDS]


def kind_of(line):
    code = line.split("//")[0]
    for kind, pattern in PATTERNS:
        if pattern.search(code):
            return kind
    return None


class Case:
    """A case of the corpus, and folders in which its text is changed."""

    def __init__(self, folder, sim):
        self.folder, self.sim = folder, sim
        self.name = os.path.basename(folder)
        with open(os.path.join(folder, "kernel.ptx")) as stream:
            self.lines = stream.read().split("\n")
        self.targets = [i for i, line in enumerate(self.lines) if kind_of(line)]

    def run(self, without, order, delivery, checks):
        """Exit status and what is said when the lines `without` are empty."""
        with tempfile.NamedTemporaryFile("w", suffix=".ptx") as text:
            text.write("\n".join("" if i in without else line for i, line in enumerate(self.lines)))
            text.flush()
            flags = ["--order", order, "--delivery", delivery, "--seed", "7", "--check=" + checks, "--threads", "1", "--steps", "20000000"]
            try:
                return corpus.run(self.sim, self.folder, flags, text.name)
            except subprocess.TimeoutExpired:
                return 5, "no end"

    def judge(self, without):
        """reported, wrong or silent, by the first schedule that is not silent; and what it said."""
        verdict = ("silent", "")
        for order in ORDERS:
            for delivery in ("late", "early"):
                status, text = self.run(without, order, delivery, "all")
                if status == 0:
                    continue
                if status != 1 or any(not re.match(r"in\d+\.npy: ", line) for line in text.splitlines()):
                    return "reported", text
                verdict = ("wrong", text)
        return verdict

    def prove(self, silent):
        """Deletes what is silent, all together as far as nothing is reported: (deleted, schedules that go wrong)."""
        deleted = set()
        for line in silent:
            if self.judge(deleted | {line})[0] == "silent":
                deleted.add(line)
        wrong = [(order, delivery) for order in ORDERS for delivery in ("late", "early", "random")
                 if self.run(deleted, order, delivery, "-all")[0] != 0]
        return deleted, wrong


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("corpus")
    parser.add_argument("--sim", required=True)
    parser.add_argument("--only", nargs="+", default=[])
    parser.add_argument("--jobs", type=int, default=1)
    options = parser.parse_args()
    folders = [os.path.join(options.corpus, name) for name in sorted(os.listdir(options.corpus))]
    cases = [Case(folder, os.path.abspath(options.sim)) for folder in folders
             if os.path.exists(os.path.join(folder, "case.json"))
             and (not options.only or any(word in os.path.basename(folder) for word in options.only))]
    counts = collections.defaultdict(collections.Counter)
    failed = False
    with concurrent.futures.ThreadPoolExecutor(options.jobs) as pool:
        cases = [case for case, right in zip(cases, pool.map(lambda case: case.judge(set()), cases))
                 if right[0] == "silent" or print(f"{case.name}: left out, it is {right[0]} as it is: {right[1][:200]}")]
        work = [(case, line) for case in cases for line in case.targets]
        silent = collections.defaultdict(list)
        for (case, line), (verdict, text) in zip(work, pool.map(lambda item: item[0].judge({item[1]}), work)):
            counts[kind_of(case.lines[line])][verdict] += 1
            if verdict == "silent":
                silent[case].append(line)
            if verdict == "wrong":
                failed = True
                print(f"{case.name}:{line + 1}: wrong, not reported: {case.lines[line].strip()}: {text.strip()}")
        for case, (deleted, wrong) in zip(silent, pool.map(lambda case: case.prove(silent[case]), silent)):
            failed |= bool(wrong)
            said = f"WRONG in {wrong}" if wrong else "right in nine schedules"
            print(f"{case.name}: {len(deleted)} of {len(silent[case])} silent lines deleted together: {said}")
    print(f"{'kind':18} {'deleted':>8} {'reported':>9} {'silent':>7} {'wrong':>6}")
    for kind in [kind for kind, _ in KINDS if kind in counts] + ["all"]:
        row = counts[kind] if kind != "all" else sum(counts.values(), collections.Counter())
        print(f"{kind:18} {sum(row.values()):8} {row['reported']:9} {row['silent']:7} {row['wrong']:6}")
    sys.exit(failed)


if __name__ == "__main__":
    main()
