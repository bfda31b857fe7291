"""Runs the tests: GoogleTest cases, lit files and single commands, many cases in each process.

`run.py SOURCE BUILD [OPTIONS]` is what tools/test calls. The build writes BUILD/tests.txt: a line a program or command,
`gtest FOLDER PROGRAM together|alone` or `command NAME WORDS...`, separated by tabs. lit files are found below SOURCE/test.
A case is called FOLDER/Suite.Case/Parameter, a lit file by its path below test/.

Cases of one program run in batches of about 20 seconds, by the times of the last run, the longest first. A program that
crashes or says nothing for ten minutes fails the case that it was at; each of the rest then runs in a process of its own.
"""

import argparse
import collections
import json
import os
import re
import shlex
import signal
import subprocess
import sys
import tempfile
import threading
import time

BATCH_SECONDS = 20
SILENT_SECONDS = 600
# Estimated seconds of a case without a recorded time, by the beginning or the end of its name.
UNKNOWN_SECONDS = {".mlir": 1.0, "faults/": 60.0, ".test": 6.0, "models/": 1.5, "fuzz/": 3.0, "barriers/": 1.0, "kernels/": 0.3,
                   "runtime/semantics/": 0.4, "": 0.05}
# Devices of the matrix; each turn verifies the compilations for one of them, and for tests without a device.
VERIFIED_IN_TURN = ("cpu_generic", "cpu", "simulator_sm_80", "simulator_sm_90a")
RESULT = re.compile(r"\[ +(OK|FAILED|SKIPPED) +\] ([\w./]+)(?:, where .*?)? \((\d+) ms\)", re.S)
LIT_RESULT = re.compile(r"^(PASS|FAIL|UNSUPPORTED|UNRESOLVED|TIMEOUT|XPASS): kiln :: (\S+)", re.M)

Result = collections.namedtuple("Result", "name status seconds text")  # status: passed, failed or skipped


class Batch:
    """Cases that one process runs; `run` returns a Result for each, and once more for what is wrong with the process."""

    def __init__(self, cases):
        self.cases = cases

    def run(self, runner):
        raise NotImplementedError


class GoogleTests(Batch):
    """Cases of one program, without its folder's prefix."""

    def __init__(self, folder, program, cases):
        super().__init__([f"{folder}/{case}" for case in cases])
        self.folder, self.program, self.own = folder, program, cases

    def again(self, case, runner):
        environment = runner.environment_of([f"{self.folder}/{case}"])
        shown = " ".join(f"{name}={shlex.quote(environment[name])}" for name in
                         ("KILN_TEST_TURN", "KILN_TEST_DEVICE", "KILN_VERIFY", "KILN_CACHE") if environment.get(name))
        return f"again: {shown} {os.path.relpath(self.program)} --gtest_filter='{case}'"

    def run(self, runner):
        with tempfile.NamedTemporaryFile("w", suffix=".flags") as flags:
            flags.write(f"--gtest_filter={':'.join(self.own)}\n")
            flags.flush()
            status, output = runner.execute([self.program, f"--gtest_flagfile={flags.name}", "--gtest_brief=0"], self.cases)
        found = {}
        for match in RESULT.finditer(output):
            kind, case, milliseconds = match.groups()
            begin = output.rfind(f"[ RUN      ] {case}\n", 0, match.start())
            text = output[begin:match.end()] + "\n" + self.again(case, runner) if kind == "FAILED" else ""
            found[case] = Result(f"{self.folder}/{case}", {"OK": "passed", "FAILED": "failed", "SKIPPED": "skipped"}[kind],
                                 int(milliseconds) / 1000, text)
        missing = [case for case in self.own if case not in found]
        results = list(found.values())
        if missing:  # it crashed, or said nothing more
            first, *rest = missing
            begin = max(output.rfind(f"[ RUN      ] {first}\n"), 0)
            results.append(Result(f"{self.folder}/{first}", "failed", 0,
                                  f"{output[begin:]}\n{first}: {ended(status)}\n{self.again(first, runner)}"))
            for case in rest:
                results += GoogleTests(self.folder, self.program, [case]).run(runner)
        elif status != (1 if any(result.status == "failed" for result in results) else 0):
            results.append(Result(f"{self.folder}/{os.path.basename(self.program)}", "failed", 0,
                                  f"{output[-4000:]}\n{self.program}: {ended(status)} behind its last test"))
        return results


class LitFiles(Batch):
    """Text files that one lit runs."""

    def run(self, runner):
        files = [os.path.join(runner.build, "test", case) for case in self.cases]
        with tempfile.NamedTemporaryFile("r", suffix=".json") as report:
            _, output = runner.execute([runner.lit, "-v", "-j1", "--skip-test-time-recording", "-o", report.name, *files])
            seconds = {test["name"].removeprefix("kiln :: "): test["elapsed"] for test in runner.read(report.name).get("tests", [])}
        found = {}
        for kind, case in LIT_RESULT.findall(output):
            text = ""
            if kind not in ("PASS", "UNSUPPORTED"):
                text = output[output.index(f": kiln :: {case} "):].split("\n********************\n")[0]
            found[case] = Result(case, {"PASS": "passed", "UNSUPPORTED": "skipped"}.get(kind, "failed"), seconds.get(case) or 0, text)
        return [found.get(case, Result(case, "failed", 0, f"lit says nothing of it:\n{output[-4000:]}")) for case in self.cases]


class Command(Batch):
    """One command, a test that passes with exit status 0."""

    def __init__(self, name, words):
        super().__init__([name])
        self.words = words

    def run(self, runner):
        begin = time.monotonic()
        status, output = runner.execute(self.words)
        text = f"{output[-8000:]}\n{' '.join(self.words)}: {ended(status)}" if status else ""
        return [Result(self.cases[0], "failed" if status else "passed", time.monotonic() - begin, text)]


def ended(status):
    if status is None:
        return f"said nothing for {SILENT_SECONDS} seconds"
    return f"ended by {signal.Signals(-status).name}" if status < 0 else f"ended with status {status}"


class Runner:
    def __init__(self, source, build, turn, is_all):
        self.source, self.build, self.turn, self.is_all = source, build, turn, is_all
        listing = os.path.join(build, "tests.txt")
        if not os.path.exists(listing):
            sys.exit(f"test/run.py: expected '{listing}', but the folder was configured without tests; run tools/build, without --programs")
        with open(listing, encoding="utf-8") as stream:
            (_, self.lit), *self.listed = [line.rstrip("\n").split("\t") for line in stream]
        self.environment = {**os.environ, **self.cache("test-cache"), "KILN_TEST_TURN": "all" if is_all else str(turn)}
        self.environment.setdefault("KILN_CACHE_BYTES", str(4 << 30))  # all that a whole run compiles
        self.running = set()
        self.times_file = os.path.join(build, "test-times.json")
        self.times = self.read(self.times_file)

    def cache(self, name):
        folder = os.path.join(self.build, name)
        return {"KILN_CACHE": folder, "XDG_CACHE_HOME": os.path.join(folder, "xdg")}

    def verified(self, case):
        """Whether MLIR's verifier runs after each pass of what the case compiles. That is a fifth of the time."""
        if "KILN_VERIFY" in self.environment:  # the caller decides for all cases
            return self.environment["KILN_VERIFY"] != ""
        device = re.search(rf"/({'|'.join(VERIFIED_IN_TURN)})(?=_|$)", case)
        return self.is_all and (not device or device[1] == VERIFIED_IN_TURN[self.turn % len(VERIFIED_IN_TURN)])

    def environment_of(self, cases):
        """That of a process; what is verified takes nothing from the cache that was compiled without."""
        return {**self.environment, **self.cache("verified-cache"), "KILN_VERIFY": "1"} if self.verified(cases[0]) else self.environment

    @staticmethod
    def read(path):
        try:
            with open(path, encoding="utf-8") as stream:
                return json.load(stream)
        except (OSError, ValueError):
            return {}

    def stop(self, number, _frame):
        """Ends the processes that run, which have sessions of their own, and this one."""
        for process in list(self.running):
            try:
                os.killpg(process.pid, signal.SIGKILL)
            except ProcessLookupError:
                pass
        os._exit(128 + number)

    def execute(self, words, cases=("",)):
        """The exit status, None when it was silent for too long, and all that it printed."""
        with tempfile.TemporaryFile() as output:
            process = subprocess.Popen(words, cwd=self.build, env=self.environment_of(cases), stdin=subprocess.DEVNULL, stdout=output,
                                       stderr=subprocess.STDOUT, start_new_session=True)
            self.running.add(process)
            size, since, status = 0, time.monotonic(), None
            while status is None:
                try:
                    status = process.wait(10)
                except subprocess.TimeoutExpired:
                    now = os.fstat(output.fileno()).st_size
                    if now != size:
                        size, since = now, time.monotonic()
                    elif time.monotonic() - since > SILENT_SECONDS:
                        os.killpg(process.pid, signal.SIGKILL)
                        process.wait()
                        break
            self.running.discard(process)
            output.seek(0)
            return status, output.read().decode(errors="replace")

    # --- What there is ------------------------------------------------------------------------------------------------

    def cases_of(self, program):
        """The names of a program's cases; kept until the program, or what decides its cases, is another."""
        kept = self.read(os.path.join(self.build, "test-cases.json")) if not hasattr(self, "kept") else self.kept
        self.kept = kept
        key = [os.stat(program).st_mtime_ns, *(self.environment.get(f"KILN_TEST_{name}") for name in ("TURN", "DEVICE"))]
        if kept.get(program, [None])[0] != key:
            status, output = self.execute([program, "--gtest_list_tests"])
            if status:
                sys.exit(f"{output}\ntools/test: '{program} --gtest_list_tests' {ended(status)}")
            cases, suite = [], ""
            for line in output.splitlines():
                name = line.split("#")[0].rstrip()
                if line.startswith("  "):
                    cases.append(suite + name.strip())
                elif name.endswith("."):
                    suite = name
            kept[program] = [key, [case for case in cases if "DISABLED_" not in case]]
        return kept[program][1]

    def lit_files(self):
        for folder, folders, files in os.walk(os.path.join(self.source, "test")):
            folders[:] = sorted(name for name in folders if name != "inputs")
            yield from (os.path.relpath(os.path.join(folder, file), os.path.join(self.source, "test"))
                        for file in sorted(files) if file.endswith((".mlir", ".test")))

    def seconds(self, name):
        known = self.times.get(name)
        return known if known is not None else next(
            seconds for part, seconds in UNKNOWN_SECONDS.items() if name.startswith(part) or part and name.endswith(part))

    def cut(self, cases, prefix=""):
        """Lists of cases that take about BATCH_SECONDS each."""
        batch, total = [], 0.0
        for case in cases:
            batch.append(case)
            total += self.seconds(prefix + case)
            if total >= BATCH_SECONDS:
                yield batch
                batch, total = [], 0.0
        if batch:
            yield batch

    def batches(self, wanted):
        for kind, name, *words in self.listed:
            if kind == "gtest" and os.path.exists(words[0]):
                program, company = words
                cases = [case for case in self.cases_of(program) if wanted(f"{name}/{case}")]
                for verified in (True, False):
                    alike = [case for case in cases if self.verified(f"{name}/{case}") == verified]
                    for part in ([case] for case in alike) if company == "alone" else self.cut(alike, f"{name}/"):
                        yield GoogleTests(name, program, part)
            elif kind == "command" and wanted(name):
                yield Command(name, words)
        for part in self.cut([file for file in self.lit_files() if wanted(file)]):
            yield LitFiles(part)

    # --- Running ------------------------------------------------------------------------------------------------------

    def run(self, batches, jobs):
        """Runs all, the longest first; prints a line a batch, and what failed; returns all results."""
        queue = sorted(batches, key=lambda batch: -sum(map(self.seconds, batch.cases)))
        total, results, lock = sum(len(batch.cases) for batch in queue), [], threading.Lock()

        def work():
            while True:
                with lock:
                    if not queue:
                        return
                    batch = queue.pop(0)
                begin = time.monotonic()
                found = batch.run(self)
                with lock:
                    results.extend(found)
                    for result in found:
                        if result.status == "failed":
                            print(f"\nFAILED: {result.name}\n{result.text}\n", flush=True)
                        else:
                            self.times[result.name] = round(result.seconds, 3)
                    self.keep()
                    more = f" and {len(batch.cases) - 1} more" if len(batch.cases) > 1 else ""
                    print(f"[{len(results)}/{total}] {batch.cases[0]}{more}: {time.monotonic() - begin:.1f} s", flush=True)

        workers = [threading.Thread(target=work) for _ in range(jobs)]
        for worker in workers:
            worker.start()
        for worker in workers:
            worker.join()
        return results

    def keep(self):
        for path, what in ((self.times_file, self.times), (os.path.join(self.build, "test-cases.json"), getattr(self, "kept", {}))):
            with open(path + ".part", "w", encoding="utf-8") as stream:
                json.dump(what, stream)
            os.replace(path + ".part", path)


def main():
    parser = argparse.ArgumentParser(prog="tools/test", description="Builds everything and runs the tests.")
    parser.add_argument("source", help=argparse.SUPPRESS)
    parser.add_argument("build", help=argparse.SUPPRESS)
    parser.add_argument("--all", action="store_true", help="the whole matrix of devices and types, not this turn's part of it")
    parser.add_argument("--turn", type=int, default=0, help="the quick tier's turn (the number of commits)")
    parser.add_argument("-R", metavar="REGEX", action="append", default=[], help="only tests whose name has a match of each")
    parser.add_argument("-E", metavar="REGEX", action="append", default=[], help="no test whose name has a match")
    parser.add_argument("-N", action="store_true", help="print the names, run nothing")
    parser.add_argument("-j", metavar="N", type=int, default=os.cpu_count(), help="processes at once")
    options = parser.parse_args()
    try:
        chosen, left_out = [re.compile(text) for text in options.R], [re.compile(text) for text in options.E]
    except re.error as fault:
        parser.error(f"expected a regular expression, but got '{fault.pattern}': {fault}")
    runner = Runner(options.source, options.build, options.turn, options.all)
    # Ctrl-C ends the tests, too. If nohup or a shell's & had these signals ignored, tests that send them would hang.
    for number in (signal.SIGHUP, signal.SIGINT, signal.SIGQUIT, signal.SIGTERM):
        signal.signal(number, runner.stop)
    batches = list(runner.batches(lambda name: all(re.search(one, name) for one in chosen) and
                                  not any(re.search(one, name) for one in left_out)))
    runner.keep()
    if options.N:
        print("\n".join(case for batch in batches for case in batch.cases))
        return
    if not batches:
        sys.exit("tools/test: expected tests of such a name, but found none (tools/test -N prints all names)")
    begin = time.monotonic()
    results = runner.run(batches, options.j)
    count = collections.Counter(result.status for result in results)
    print("\nslowest: " + ", ".join(f"{result.name} {result.seconds:.1f} s" for result in
                                    sorted(results, key=lambda result: -result.seconds)[:5]))
    for result in results:
        if result.status == "failed":
            print(f"failed: {result.name}")
    print(f"{time.monotonic() - begin:.0f} s\n{count['passed']} passed, {count['failed']} failed, {count['skipped']} skipped")
    sys.exit(1 if count["failed"] else 0)


if __name__ == "__main__":
    main()
