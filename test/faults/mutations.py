"""Damaged inputs, in the process that reads them: batches of cases of fault-inputs (see inputs.cc).

A batch that ends before its last case died of the case that it named last; the rest of it goes on behind that one.
"""

import os
import re
import signal

from process import Fault, run

# Kinds of input, with the cases of a full run and of a quick one.
INPUTS = {"checkpoint": (7000, 300), "json": (4000, 500), "module": (6000, 60), "cache": (2000, 20),
          "image": (10000, 200), "array": (2000, 100), "ptx": (20000, 300), "command": (3000, 300)}
BATCH = 250
OPTIONS = {"ASAN_OPTIONS": "detect_leaks=0:detect_container_overflow=0:allocator_may_return_null=1:abort_on_error=1:"
                           "hard_rss_limit_mb=6000:max_allocation_size_mb=5000",
           "UBSAN_OPTIONS": "print_stacktrace=1:halt_on_error=1:abort_on_error=1"}


class Mutations:
    name = "mutated"

    def __init__(self, setting):
        self.setting = setting
        self.program = f"{setting.sanitized}/bin/fault-inputs"
        self.sources = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
        self.batches = []
        for kind, counts in INPUTS.items():
            count = counts[setting.quick]
            for begin in range(0, count, BATCH):
                self.batches.append((kind, begin, min(begin + BATCH, count)))
        self.cases = len(self.batches)

    def words(self, kind, begin, end):
        return [self.program, kind, "--seed", str(self.setting.seed), "--from", str(begin), "--to", str(end),
                "--sources", self.sources]

    def run(self, case, folder):
        """Runs a batch; what was found, and its size."""
        kind, begin, end = self.batches[case]
        found, at = [], begin
        while at < end:
            outcome = run(self.words(kind, at, end), self.setting.environment(OPTIONS), limit=20 * (end - at),
                          memory=None)
            lines = outcome.out.splitlines()
            for line in lines:
                if wrong := re.match(r"wrong (\d+): (.*)", line):
                    found.append(self.fault("wrong", kind, int(wrong.group(1)), wrong.group(2)))
            named = [int(line[3:]) for line in lines if line.startswith("at ")]
            if outcome.status == 0 and lines[-1:] == ["done"]:
                break
            if not named:
                found.append(Fault("wrong", f"{kind}: did not begin: {outcome.status}: {outcome.err[-300:]}"))
                break
            hung = outcome.hung or outcome.status == -signal.SIGPROF
            found.append(self.fault("hangs" if hung else "signals", kind, named[-1],
                                    f"ended with {outcome.status}: {self.summary(outcome.err)}"))
            at = named[-1] + 1
        return found, end - begin

    def fault(self, kind, inputs, number, text):
        again = " ".join(self.words(inputs, number, number + 1))
        return Fault(kind, f"{inputs} {number}: {text}\n  it alone: {again} --show")

    @staticmethod
    def summary(err):
        """The line of a sanitizer's report that says what happened, or the end."""
        lines = re.findall(r".*(?:ERROR: AddressSanitizer|runtime error).*", err)
        return lines[0][:300] if lines else err.strip()[-300:]
