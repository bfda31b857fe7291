"""A tiny training run and what it leaves when nobody disturbs it: the measure for kills, faults and rivals."""

import glob
import hashlib
import json
import os
import re
import shutil

from process import Fault, run

MODEL = "--layers 1 --heads 1 --width 16 --context 8 --batch 2 --threads 1 --save-every 1".split()


def digests(checkpoint):
    """A checkpoint's files and their hashes; empty when it is not there."""
    found = {}
    for path in sorted(glob.glob(checkpoint + "/*")):
        with open(path, "rb") as file:
            found[os.path.basename(path)] = hashlib.sha256(file.read()).hexdigest()
    return found


def checkpoints(out):
    """The steps that a run's folder holds."""
    names = (re.fullmatch(r"checkpoint-(\d+)", name) for name in (os.listdir(out) if os.path.isdir(out) else []))
    return sorted(int(name.group(1)) for name in names if name)


def logged(out):
    """The steps in a run's log; a last line that was cut short does not count."""
    try:
        with open(out + "/log.jsonl", encoding="utf-8") as log:
            lines = log.read().split("\n")[:-1]
    except FileNotFoundError:
        return []
    return [json.loads(line)["step"] for line in lines if line]


class Training:
    """A run of `steps` steps that saves after each. The constructor makes it once, undisturbed. It stops after each step, so that
    all checkpoints can be copied although the run keeps two."""

    def __init__(self, setting, steps, seed):
        self.setting, self.steps, self.seed = setting, steps, seed
        self.data = f"{setting.folder}/text"
        if not os.path.exists(self.data):
            with open(self.data, "w", encoding="utf-8") as text:
                text.writelines(f"line {i * 7919 % 1000} of the text\n" for i in range(400))
        self.undisturbed = f"{setting.folder}/undisturbed-{steps}-{seed}"
        out = self.undisturbed + "-now"
        for step in range(1, steps + 1):
            outcome = run(self.going_on(out, "--stop-after", str(step)), setting.environment(), limit=200)
            if outcome.status != 0:
                raise SystemExit(f"faults: the undisturbed run ended with {outcome.status}: {outcome.err}")
            shutil.copytree(self.checkpoint(out, step), self.checkpoint(self.undisturbed, step), symlinks=True)
        shutil.copytree(out, self.undisturbed, symlinks=True, dirs_exist_ok=True)
        self.whole = {step: digests(self.checkpoint(self.undisturbed, step)) for step in range(1, steps + 1)}

    @staticmethod
    def checkpoint(out, step):
        return f"{out}/checkpoint-{step:08}"

    def words(self, out, *more):
        return [self.setting.program("gpt2"), "train", "--data", self.data, "--out", out, "--steps", str(self.steps),
                "--seed", str(self.seed), *MODEL, *more]

    def going_on(self, out, *more):
        """The run in a folder that may hold a part of it."""
        return self.words(out, *(["--resume"] if checkpoints(out) else []), *more)

    def begun(self, out, step):
        """Makes a folder as a run leaves it that was stopped after `step`."""
        os.makedirs(out)
        for saved in (step - 1, step):
            shutil.copytree(self.checkpoint(self.undisturbed, saved), self.checkpoint(out, saved), symlinks=True)
        for name, target in (("latest", os.path.basename(self.checkpoint(out, step))),
                             ("config.json", "latest/config.json"), ("model.safetensors", "latest/model.safetensors")):
            os.symlink(target, f"{out}/{name}")
        with open(self.undisturbed + "/log.jsonl", encoding="utf-8") as log:
            rows = log.readlines()[:step]
        with open(out + "/log.jsonl", "w", encoding="utf-8") as log:
            log.writelines(rows)

    def losses(self, out, least, what):
        """What is missing or damaged in `out`, whose newest checkpoint should be that of step `least` or later."""
        found = checkpoints(out)
        newest = max(found, default=0)
        if newest < least:
            yield Fault("lost", f"{what}: the checkpoint of step {least} was complete, but the newest is {newest}")
        for step in found:
            files = digests(self.checkpoint(out, step))
            for file in sorted(set(files) | set(self.whole.get(step, {}))):
                if files.get(file) != self.whole.get(step, {}).get(file):
                    yield Fault("lost", f"{what}: '{file}' of the checkpoint of step {step} is not the undisturbed "
                                        "run's")

    def finish(self, out, what):
        """Lets the run go on to its end; what then differs from the undisturbed one."""
        outcome = run(self.going_on(out), self.setting.environment())
        if outcome.status != 0 or outcome.hung:
            yield Fault("lost", f"{what}: the run does not go on: {outcome.status}: {outcome.err.strip()[-300:]}")
            return
        yield from self.losses(out, self.steps, what)
        steps = logged(out)
        if steps != list(range(1, self.steps + 1)):
            yield Fault("lost", f"{what}: expected the log to have every step once, but got {steps}")
