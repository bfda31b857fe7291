"""Two trainers, and five, that begin in one folder at the same time; and files that never end, or never begin, with an
interrupt.

One of the trainers owns the folder: it runs to its end as if it were alone, and the others say so and end with 2.
Ctrl-C ends a program that waits for a pipe or reads an endless file.
"""

import os
import random
import signal
import tempfile
import time

from process import Fault, Outcome, faults_of, start, wait
from training import logged

STEPS = 8
WAITING = ("pipe", "open pipe", "zeros", "link to zeros")


class Rivals:
    name = "rivals"

    def __init__(self, setting):
        self.setting = setting
        self.runs = [setting.training(STEPS, seed) for seed in range(1, 6)]
        rounds = 4 if setting.quick else 40
        self.chosen = [("race", 2 if i % 2 else 5, i % 4 >= 2) for i in range(rounds)]
        readers = ("data", "weights", "config", "kilnc", "kiln-opt", "kilnc source")
        self.chosen += [("wait", reader, kind) for reader in readers for kind in WAITING][:: 5 if setting.quick else 1]
        self.cases = len(self.chosen)

    def run(self, case, folder):
        kind, *more = self.chosen[case]
        return list(self.race(folder, *more) if kind == "race" else self.wait(folder, *more)), 1

    # --- One folder, several trainers -------------------------------------------------------------------------------

    def race(self, folder, count, resume):
        out, what = folder + "/run", "resuming" if resume else "beginning"
        if resume:
            self.runs[0].begun(out, 3)
        runs = [self.runs[0] if resume else self.runs[i] for i in range(count)]
        outcomes = finish_all([run.words(out, *(["--resume"] if resume else [])) for run in runs],
                              self.setting.environment())
        what = f"{count} trainers {what}"
        for outcome in outcomes:
            yield from faults_of(outcome, (0, 2), what)
            if outcome.status == 2 and out not in outcome.err:
                yield Fault("wrong", f"{what}: expected a message that names the folder, but got "
                                         f"{outcome.err[-200:]!r}")
        winners = [i for i, outcome in enumerate(outcomes) if outcome.status == 0]
        if len(winners) != 1 and not resume:  # one that comes when the other is done may resume what is done
            yield Fault("wrong", f"{what}: expected one to win, but {len(winners)} did")
        if winners:
            yield from self.belongs_to(runs[winners[0]], out, what)

    @staticmethod
    def belongs_to(winner, out, what):
        yield from winner.losses(out, STEPS, what)
        if logged(out) != list(range(1, STEPS + 1)):
            yield Fault("lost", f"{what}: expected the log to have every step once, but got {logged(out)}")

    # --- Files that never end ---------------------------------------------------------------------------------------

    def wait(self, folder, reader, kind):
        """Gives a reader a file without end, interrupts it after half a second, and waits for it."""
        words, path = self.reader(folder, reader)
        writer = make_endless(path, kind)
        with tempfile.TemporaryFile() as err:
            process = start(words, self.setting.environment(), stderr=err, prepare=os.setpgrp, memory=2 << 30)
            begin = time.monotonic()
            time.sleep(random.Random(kind).uniform(0.3, 0.6))
            os.killpg(process.pid, signal.SIGINT)  # as a terminal does: to kilnc's compiler, too
            hung = wait(process)
            err.seek(0)
            outcome = Outcome(process.returncode, hung, "", err.read().decode("utf-8", "replace"),
                              time.monotonic() - begin)
        if writer is not None:
            os.close(writer)
        # A process without unsaved steps may end by the interrupt, like any program.
        if outcome.status != -signal.SIGINT:
            yield from faults_of(outcome, (0, 2, 3), f"{reader} from {kind}, interrupted")

    def reader(self, folder, reader):
        """A command line, and the path that it will read."""
        program = self.setting.program
        if reader == "data":
            path = folder + "/text"
            return [program("gpt2"), "train", "--data", path, "--out", folder + "/run"], path
        if reader in ("weights", "config"):
            self.runs[0].begun(folder + "/run", 3)
            path = self.runs[0].checkpoint(folder + "/run", 3)
            path += "/model.safetensors" if reader == "weights" else "/config.json"
            os.unlink(path)
            return [program("gpt2"), "sample", "--out", folder + "/run", "--tokens", "1"], path
        path = folder + ("/kernel.cc" if reader == "kilnc source" else "/module.mlir")
        return [program("kiln-opt" if reader == "kiln-opt" else "kilnc"), path], path


def make_endless(path, kind):
    """Makes a file of a kind that has no end; an open end of the pipe, if there is one to be closed."""
    if kind == "zeros":
        os.symlink("/dev/zero", path)
    elif kind == "link to zeros":
        os.symlink("/dev/zero", path + ".link")
        os.symlink(path + ".link", path)
    else:
        os.mkfifo(path)
        if kind == "open pipe":
            return os.open(path, os.O_RDWR)
    return None


def finish_all(lines, environment):
    """Starts all at once and waits for all."""
    files = [tempfile.TemporaryFile() for _ in lines]
    processes = [start(words, environment, stderr=file) for words, file in zip(lines, files)]
    outcomes = []
    for process, file in zip(processes, files):
        hung = wait(process)
        file.seek(0)
        outcomes.append(Outcome(process.returncode, hung, "", file.read().decode("utf-8", "replace")))
        file.close()
    return outcomes
