"""Errors of the operating system, at every system call of a save, a log, a cache write, and what else the programs read
and write: the calls are counted in a run without errors, then each fails in a run of its own (see failing_calls.c).

A program that cannot do what it was asked for ends with 3 and a message that names the file's folder and the reason;
what it can do without (the cache, the removal of old checkpoints, a save on the way) it does without. Either way
earlier checkpoints are whole and the run goes on to the undisturbed end. A call that was interrupted, or did half of
its work, is made again.
"""

import errno
import os
import random

from process import Fault, faults_of, run

# The ways in which a call may fail. Interrupts and partial transfers are no failures of reads and writes.
MOVING = ("read", "pread", "readv", "write", "pwrite", "writev")
WRITES = ("ENOSPC", "EIO", "EDQUOT", "EINTR", "short", "full")
READS = ("EIO", "EINTR", "short")
WAYS = {
    "open": ("ENOSPC", "EACCES", "EMFILE", "EIO", "EDQUOT", "EINTR", "full", "ENFILE", "EROFS"),
    "read": READS, "pread": READS, "readv": READS, "write": WRITES, "pwrite": WRITES, "writev": WRITES,
    "fsync": ("EIO", "ENOSPC", "EDQUOT", "full"), "fdatasync": ("EIO", "ENOSPC"),
    "rename": ("EIO", "ENOSPC", "EACCES", "EDQUOT", "full"), "mkdir": ("ENOSPC", "EACCES", "EDQUOT", "EROFS", "full"),
    "unlink": ("EACCES", "EIO", "EROFS"), "rmdir": ("EACCES", "EIO"), "close": ("EIO", "EINTR", "ENOSPC", "EDQUOT"),
    "symlink": ("EACCES", "ENOSPC", "EROFS"), "flock": ("EIO", "ENOLCK", "EINTR"), "fcntl": ("EIO", "ENOLCK", "EINTR"),
    "mmap": ("ENOMEM", "EACCES"), "stat": ("EACCES", "EIO"), "access": ("EACCES", "EIO"), "getdents": ("EIO",),
    "lseek": ("EIO",), "ftruncate": ("EIO", "EDQUOT"), "fallocate": ("ENOSPC",), "readlink": ("EIO", "EACCES"),
    "chmod": ("EPERM", "EIO"), "utimens": ("EACCES",), "link": ("EIO", "ENOSPC"), "creat": ("ENOSPC",),
}
SAME = {"openat": "open", "fstatat": "stat", "fstat": "stat", "lstat": "stat", "statx": "stat", "faccessat": "access",
        "fchmod": "chmod", "utimensat": "utimens", "renameat": "rename", "renameat2": "rename", "mkdirat": "mkdir",
        "unlinkat": "unlink", "symlinkat": "symlink", "linkat": "link", "readlinkat": "readlink"}


class Scene:
    """Something that a user does, in a folder of its own; the calls on `watched` fail."""

    forgiving = False  # whether it goes on without the files

    def __init__(self, setting, training):
        self.setting, self.training = setting, training
        self.name = type(self).__name__.lower()

    def prepare(self, folder):
        """Makes what is there before."""

    def watched(self, folder):
        return folder + "/run"

    def environment(self, folder):
        return {}

    def right(self, folder, outcome):
        """What is wrong with the result of a run that said it went well."""
        yield from self.training.losses(folder + "/run", self.training.steps, "a run that went well")

    def after(self, folder):
        """What is wrong with what a failed run left."""
        return ()


class Begins(Scene):
    """A run from its beginning: makes the folder, logs, saves, and removes the oldest."""

    def words(self, folder):
        return self.training.words(folder + "/run")

    def after(self, folder):
        yield from self.training.losses(folder + "/run", 0, "after the error")
        yield from self.training.finish(folder + "/run", "after the error")


class GoesOn(Begins):
    """A run that goes on from its second step of four."""

    def prepare(self, folder):
        self.training.begun(folder + "/run", 2)

    def words(self, folder):
        return self.training.words(folder + "/run", "--resume")

    def after(self, folder):
        yield from self.training.losses(folder + "/run", 2, "after the error")
        yield from self.training.finish(folder + "/run", "after the error")


class ReadsText(Begins):
    """The training text."""

    def watched(self, folder):
        return self.training.data


class WritesCache(Begins):
    """A run that compiles some kernels and keeps them."""

    forgiving = True

    def prepare(self, folder):
        self.setting.copy_cache(folder + "/cache", random.Random(1))

    def watched(self, folder):
        return folder + "/cache"

    def environment(self, folder):
        return {"KILN_CACHE": folder + "/cache"}


class Samples(Scene):
    """Text from a checkpoint."""

    text = None

    def prepare(self, folder):
        self.training.begun(folder + "/run", 4)

    def words(self, folder):
        return [self.setting.program("gpt2"), "sample", "--out", folder + "/run", "--tokens", "9", "--threads", "1"]

    def right(self, folder, outcome):
        Samples.text = Samples.text or run(self.words(folder), self.setting.environment()).out
        if outcome.out != Samples.text:
            yield Fault("lost", f"expected the sample {Samples.text!r}, but got {outcome.out!r}")


class BeginsCache(Samples):
    """A cache that is not there yet, below a folder that is not either."""

    forgiving = True

    def watched(self, folder):
        return folder + "/cache"

    def environment(self, folder):
        return {"KILN_CACHE": folder + "/cache/deep"}


class Compiles(Scene):
    """An object from a module in a file."""

    object = None

    def prepare(self, folder):
        os.mkdir(folder + "/run")
        kernel = run([self.setting.program("kilnc"), "--kernel=gelu", "--emit=tile", "-o", folder + "/run/in.mlir",
                      "--args=f32[?], f32[?]"], self.setting.environment())
        if kernel.status != 0:
            raise SystemExit(f"faults: {kernel.err}")

    def words(self, folder):
        return [self.setting.program("kilnc"), folder + "/run/in.mlir", "--emit=obj", "-o", folder + "/run/out.o"]

    def content(self, folder):
        with open(folder + "/run/out.o", "rb") as file:
            return file.read()

    def right(self, folder, outcome):
        if Compiles.object is None:
            run(self.words(folder), self.setting.environment())
            Compiles.object = self.content(folder)
        if not os.path.exists(folder + "/run/out.o") or self.content(folder) != Compiles.object:
            yield Fault("lost", "the object is not what it is without errors")

    def after(self, folder):
        left = set(os.listdir(folder + "/run")) - {"in.mlir"}
        if left:
            yield Fault("lost", f"expected nothing to be left of a failed compilation, but got {sorted(left)}")


class Optimises(Compiles):
    """A module through a pass."""

    def words(self, folder):
        return [self.setting.program("kiln-opt"), folder + "/run/in.mlir", "--canonicalize", "-o",
                folder + "/run/out.o"]

    def right(self, folder, outcome):
        return ()

    def after(self, folder):
        return ()


SCENES = (Begins, GoesOn, ReadsText, WritesCache, Samples, BeginsCache, Compiles, Optimises)


class Injections:
    name, count_of_all, count_of_quick = "injected", 700, 16

    def __init__(self, setting):
        self.setting = setting
        training = setting.training(4)
        every = []
        for scene in SCENES[:4] if setting.quick else SCENES:
            every += self.ways(scene(setting, training))
        self.choose(every)

    def choose(self, every):
        """All that differ in call and kind of file, then of the rest, at random, as many as fill the count."""
        chance = random.Random(self.setting.seed)
        chance.shuffle(every)
        seen, first, rest = set(), [], []
        for way in every:
            scene, _, what, call, file = way
            (rest if (scene.name, what, call, file) in seen else first).append(way)
            seen.add((scene.name, what, call, file))
        count = self.count_of_quick if self.setting.quick else max(self.count_of_all, len(first))
        self.chosen = (first + rest)[:count]
        self.cases = len(self.chosen)

    def ways(self, scene):
        """Every call of a scene with every way in which it may fail."""
        folder, trace = self.setting.path(f"{scene.name}-counted"), self.setting.path(f"{scene.name}-trace")
        os.mkdir(folder)
        scene.prepare(folder)
        outcome = run(scene.words(folder), self.setting.environment(
            scene.environment(folder), self.setting.failing(scene.watched(folder), trace=trace)))
        if outcome.status != 0:
            raise SystemExit(f"faults: {scene.name} without errors ended with {outcome.status}: {outcome.err}")
        found = []
        with open(trace, encoding="utf-8", errors="replace") as lines:
            for line in lines:
                number, call, path = line.rstrip("\n").split(" ", 2)
                file = "".join(c for c in os.path.basename(path) if c.isalpha() or c == ".")
                for what in WAYS[SAME.get(call, call)]:
                    found.append((scene, int(number), what, call, file))
        return found

    def run(self, case, folder):
        """Lets one call fail; what was found, and one."""
        scene, number, what, call, file = self.chosen[case]
        scene.prepare(folder)
        how = what if what in ("short", "full") else getattr(errno, what)
        outcome = run(scene.words(folder), self.setting.environment(
            scene.environment(folder), self.setting.failing(scene.watched(folder), at=number, what=how)))
        found = [fault._replace(text=f"{scene.name}, {call} {number} ({file}) fails with {what}: {fault.text}")
                 for fault in self.judge(scene, folder, outcome, call, what)]
        return found, 1

    def judge(self, scene, folder, outcome, call, what):
        harmless = scene.forgiving or (call in MOVING and what in ("EINTR", "short"))
        yield from faults_of(outcome, (0,) if harmless else (0, 3), scene.name)
        if outcome.status == 0:
            yield from scene.right(folder, outcome)
        if outcome.status == 3 or "could not save" in outcome.out:  # a save on the way, after which the run goes on
            yield from self.message(scene, folder, outcome, what)
        if outcome.status == 3:
            yield from scene.after(folder)

    @staticmethod
    def message(scene, folder, outcome, what):
        """A failure names the place and the reason."""
        reason = os.strerror(errno.ENOSPC if what == "full" else getattr(errno, what, 0))
        said = outcome.out + outcome.err
        if os.path.dirname(scene.watched(folder)) not in said or (what != "short" and reason not in said):
            yield Fault("wrong", f"expected a message that names the file and '{reason}', but got "
                                 f"{said.strip()[-300:]!r}")
