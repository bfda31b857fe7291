"""Running a program under a watch: how it ended, what it said, and whether it hung.

A program hangs when it uses more than LIMIT seconds of processor time, or sleeps for as long. Waiting for its turn on a
busy machine is no hang.
"""

import os
import resource
import select
import signal
import subprocess
import tempfile
import time
from typing import NamedTuple

LIMIT = 20  # seconds
MEMORY = 6 << 30  # bytes of addresses, so that a mistake does not take the machine down


class Outcome(NamedTuple):
    status: int  # the exit status, or minus the signal
    hung: bool
    out: str
    err: str
    seconds: float = 0


class Fault(NamedTuple):
    """What a case found: `kind` is lost, signals, hangs or wrong."""

    kind: str
    text: str


def standing(pid):
    """Seconds of processor time that a process has used, and whether it sleeps."""
    try:
        with open(f"/proc/{pid}/stat", encoding="latin-1") as stat:
            fields = stat.read().rsplit(")", 1)[1].split()
    except (OSError, IndexError):
        return 0, False
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK"), fields[0] == "S"


def wait(process, limit=LIMIT):
    """Waits for the end of `process`; kills it and returns True when it hangs."""
    if process.poll() is not None:
        return False
    handle = os.pidfd_open(process.pid)
    poll = select.poll()
    poll.register(handle, select.POLLIN)
    used, moved = 0, time.monotonic()
    try:
        while not poll.poll(1000):
            now, sleeps = standing(process.pid)
            if now > used + 0.05 or not sleeps:
                used, moved = now, time.monotonic()
            if now > limit or time.monotonic() - moved > limit:
                process.kill()
                process.wait()
                return True
    finally:
        os.close(handle)
    process.wait()
    return False


def set_limits(memory):
    if memory:
        resource.setrlimit(resource.RLIMIT_AS, (memory, memory))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    signal.signal(signal.SIGPIPE, signal.SIG_DFL)  # Python ignores it


def start(words, environment, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
          folder=None, prepare=None, memory=MEMORY):
    """Starts a program with at most `memory` bytes of addresses; `prepare` runs in it before."""

    def begin():
        set_limits(memory)
        if prepare:
            prepare()

    return subprocess.Popen(words, env=environment, stdin=stdin, stdout=stdout, stderr=stderr, cwd=folder,
                            preexec_fn=begin)


def run(words, environment, kill_after=None, limit=LIMIT, **more):
    """Runs a program to its end, or for `kill_after` seconds; standard output and error are kept unless given."""
    with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
        process = start(words, environment, **{"stdout": out, "stderr": err, **more})
        begin = time.monotonic()
        if kill_after is not None:
            try:
                process.wait(kill_after)
            except subprocess.TimeoutExpired:
                process.kill()
        hung = wait(process, limit)
        seconds = time.monotonic() - begin
        texts = []
        for stream in (out, err):
            stream.seek(0)
            texts.append(stream.read(8 << 20).decode("utf-8", "backslashreplace"))
        return Outcome(process.returncode, hung, *texts, seconds)


def faults_of(outcome, allowed, what):
    """A hang, a signal or an exit status that is not allowed."""
    said = (outcome.err.strip() or outcome.out.strip())[-300:]
    if outcome.hung:
        yield Fault("hangs", f"{what}: hung for {outcome.seconds:.0f} s")
    elif outcome.status < 0:
        yield Fault("signals", f"{what}: ended by {signal.Signals(-outcome.status).name}; {said}")
    elif outcome.status not in allowed:
        yield Fault("wrong", f"{what}: expected exit status {' or '.join(map(str, allowed))}, but got "
                             f"{outcome.status}; {said}")
