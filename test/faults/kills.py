"""Kills at random moments: half of them after some milliseconds, half in place of some system call on the run's folder
or the compile cache.

A case kills a run, and the run that goes on from it, and the next; then it lets it finish. After every kill the newest
checkpoint that was complete must be there and whole, and the end must be the undisturbed run's, bit for bit.
"""

import random
import shutil
import signal

from process import faults_of, run
from training import checkpoints, logged

KILLS_OF_A_CASE = 3


class Kills:
    name, kills_of_all, kills_of_quick = "kills", 330, 12

    def __init__(self, setting):
        self.setting = setting
        self.training = setting.training(8)
        out, trace = setting.path("kills-counted"), setting.path("kills-trace")
        counted = run(self.training.words(out), setting.environment(setting.failing(out, trace=trace)))
        self.seconds = counted.seconds
        with open(trace, encoding="utf-8", errors="replace") as lines:
            self.calls = len(lines.readlines())
        self.cases = (self.kills_of_quick if setting.quick else self.kills_of_all) // KILLS_OF_A_CASE

    def run(self, case, folder):
        """Kills one run KILLS_OF_A_CASE times; what was found, and the number of kills."""
        chance = random.Random(f"{self.setting.seed} kills {case}")
        out, cache = folder + "/run", folder + "/cache"
        self.setting.copy_cache(cache, chance)
        found, kills, before = [], 0, 0
        while kills < KILLS_OF_A_CASE:
            what = f"kill {kills + 1}"
            if before == self.training.steps:  # it was done before the kill came: another one
                shutil.rmtree(out)
                before = 0
            outcome = self.start(out, cache, chance)
            if outcome.status != -signal.SIGKILL or outcome.hung:
                found += faults_of(outcome, (0,), what)
                if found:
                    break
            else:
                kills += 1
            # A step is logged before it is saved, so the last logged step may or may not be saved.
            found += self.training.losses(out, max([before] + logged(out)[-2:-1]), what)
            before = max(checkpoints(out), default=0)
        found += self.training.finish(out, "after the last kill")
        return found, kills

    def start(self, out, cache, chance):
        """Lets the run go on until it is killed."""
        words = self.training.going_on(out)
        if chance.random() < 0.5:
            return run(words, self.setting.environment({"KILN_CACHE": cache}),
                       kill_after=chance.uniform(0, self.seconds))
        left = max(1, self.calls * (self.training.steps - max(checkpoints(out), default=0)) // self.training.steps)
        return run(words, self.setting.environment({"KILN_CACHE": cache}, self.setting.failing(
            f"{out}:{cache}", at=chance.randint(1, left), what="kill")))
