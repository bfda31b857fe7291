"""Ranks that are killed: of two processes under mpirun, either one, at a random moment of the run, its beginning and its
saves included; the last kill of a case comes behind a checkpoint.

The job ends within ten seconds, what it says names the rank, and no process stays. Checkpoints that were complete are
there and whole; the run goes on from them, is killed again, and ends as the undisturbed run of two ranks does, bit for
bit. Without mpirun there are no cases.
"""

import os
import random
import shutil
import signal
import subprocess
import tempfile
import time

from process import Fault, start, wait
from training import Training, checkpoints, logged

KILLS_OF_A_CASE, STEPS = 3, 8
SECONDS = 10
# As root, with fewer cores than ranks, and in a container where processes may not read each other's memory.
ENVIRONMENT = {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1",
               "OMPI_MCA_rmaps_base_oversubscribe": "1", "OMPI_MCA_hwloc_base_binding_policy": "none",
               "OMPI_MCA_btl": "self,vader", "OMPI_MCA_btl_vader_single_copy_mechanism": "none"}


class RankTraining(Training):
    """A run of two ranks."""

    def words(self, out, *more):
        return ["mpirun", "-n", "2", *super().words(out, *more)]


class RankSetting:
    """The setting of others, with what mpirun wants in the environment and a folder for its run."""

    def __init__(self, setting):
        self.setting = setting
        self.folder = setting.path("ranks")
        os.makedirs(self.folder, exist_ok=True)

    def program(self, name):
        return self.setting.program(name)

    def environment(self, *more):
        return self.setting.environment(ENVIRONMENT, *more)


def ranks_of(launcher):
    """The processes of a job by their ranks."""
    found = {}
    try:
        with open(f"/proc/{launcher}/task/{launcher}/children", encoding="ascii") as children:
            processes = [int(word) for word in children.read().split()]
        for process in processes:
            with open(f"/proc/{process}/environ", encoding="utf-8", errors="replace") as environment:
                for variable in environment.read().split("\0"):
                    if variable.startswith("OMPI_COMM_WORLD_RANK="):
                        found[int(variable.split("=")[1])] = process
    except OSError:  # it has just ended
        pass
    return found


def has_ended(process):
    """Whether a process is gone, or nobody has waited for it."""
    try:
        with open(f"/proc/{process}/stat", encoding="latin-1") as stat:
            return stat.read().rsplit(")", 1)[1].split()[0] == "Z"
    except OSError:
        return True


def ends(process, seconds):
    """Whether a process ends in that time: the launcher kills the others and may be gone before they are."""
    last = time.monotonic() + seconds
    while not has_ended(process):
        if time.monotonic() > last:
            return False
        time.sleep(0.02)
    return True


class Ranks:
    name = "ranks"

    def __init__(self, setting):
        self.setting, self.cases = setting, 0
        if shutil.which("mpirun", path=setting.environment()["PATH"]) is None:
            return
        self.seed = setting.seed
        self.launched = RankSetting(setting)
        begin = time.monotonic()
        self.training = RankTraining(self.launched, STEPS, 1)
        self.seconds = time.monotonic() - begin
        saved = [os.stat(self.training.checkpoint(self.training.undisturbed, step)).st_mtime for step in (1, STEPS)]
        self.saving = saved[1] - saved[0]
        self.cases = 1 if setting.quick else 40

    def run(self, case, folder):
        """Kills ranks of one run KILLS_OF_A_CASE times; what was found, and the number of kills."""
        chance = random.Random(f"{self.seed} ranks {case}")
        out, found, kills, before = folder + "/run", [], 0, 0
        while kills < KILLS_OF_A_CASE and not found:
            if before == self.training.steps:  # it was done before the kill came: another one
                shutil.rmtree(out)
                before = 0
            kills += 1
            found += self.kill(out, chance, behind=kills == KILLS_OF_A_CASE)
            found += self.training.losses(out, max([before] + logged(out)[-2:-1]), f"kill {kills}")
            before = max(checkpoints(out), default=0)
        return found + list(self.training.finish(out, "after the last kill")), kills

    def kill(self, out, chance, behind):
        """Starts the run, kills a rank, `behind` its next checkpoint or at any moment, and looks at how the job ends."""
        newest = lambda: max(checkpoints(out), default=0)
        begun = newest()
        with tempfile.TemporaryFile() as said:
            job = start(self.training.going_on(out), self.launched.environment(), stdout=said, stderr=subprocess.STDOUT,
                        memory=0)
            while behind and job.poll() is None and newest() == begun:
                time.sleep(0.005)
            try:
                job.wait(chance.uniform(0, self.saving) if behind else chance.uniform(0.05, self.seconds))
            except subprocess.TimeoutExpired:
                pass
            processes = ranks_of(job.pid)
            if len(processes) < 2:  # it has not begun, or is done
                wait(job, 60)
                return
            rank = chance.choice(sorted(processes))
            os.kill(processes[rank], signal.SIGKILL)
            begin = time.monotonic()
            try:
                job.wait(SECONDS)
            except subprocess.TimeoutExpired:
                job.kill()
                job.wait()
                yield Fault("hangs", f"the job does not end within {SECONDS} s of rank {rank}'s end")
            seconds = time.monotonic() - begin
            said.seek(0)
            text = said.read().decode("utf-8", "backslashreplace")
            if job.returncode != 0 and f"rank {rank}" not in text:
                yield Fault("wrong", f"rank {rank} was killed, {seconds:.1f} s before the end, and nothing names it: "
                                     f"{text[-300:]!r}")
            for other in processes.values():
                if not ends(other, SECONDS):
                    yield Fault("hangs", f"process {other} outlives its job")
