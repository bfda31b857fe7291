"""Programs that are measured: ours, each run a child of its own, and peers, children that run steps when they are asked.
Measured in turns, so that what else the machine does meets all alike."""

import json
import os
import statistics
import subprocess
import sys
import time

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))


def program(name):
    path = os.path.join(ROOT, "build", "bin", name)
    return path if os.access(path, os.X_OK) else None


def output(*command, **more):
    """What a program prints. This program ends where that one fails."""
    run = subprocess.run(command, capture_output=True, text=True, **more)
    if run.returncode:
        sys.exit(f"tools/{os.path.basename(sys.argv[0])}: '{' '.join(command)}' ended with {run.returncode}: {run.stderr.strip()}")
    return run.stdout


def ended(process):
    """The exit status of a child, and the peak of its memory alone, in bytes."""
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    return process.returncode, usage.ru_maxrss * 1024


def train(arguments, folder):
    """A run of one of our programs: the rows of its log, and its peak of memory. What it prints goes to FOLDER/output."""
    command = [*arguments, "--out", folder, "--overwrite"]
    print("tools/seeds:", " ".join(command), file=sys.stderr)
    os.makedirs(folder, exist_ok=True)
    with open(os.path.join(folder, "errors"), "w+", encoding="utf-8") as errors, \
            open(os.path.join(folder, "output"), "w", encoding="utf-8") as out:
        status, peak = ended(subprocess.Popen(command, stdout=out, stderr=errors))
        errors.seek(0)
        if status != 0:
            sys.exit(f"tools/seeds: '{' '.join(command)}' ended with {status}: {errors.read().strip()}")
    with open(os.path.join(folder, "log.jsonl"), encoding="utf-8") as log:
        return [json.loads(line) for line in log], peak


class Ours:
    """A column of ours: `arguments` train; a measurement is a run of a few steps, the first of which is left out."""

    def __init__(self, arguments, folder, targets):
        self.arguments, self.folder, self.targets = arguments, folder, targets
        self.rates, self.peak = [], 0

    def measure(self, steps):
        rows, peak = train([*self.arguments, "--steps", str(steps + 1), "--warmup", "0", "--evaluate-sequences", "1"],
                           self.folder)
        self.peak = max(self.peak, peak)
        self.rates.append(statistics.median(row["tokens_per_s"] for row in rows[1:]) / self.targets)

    def end(self):
        pass


# Peers of torch, and how each computes: step by step, compiled for the shapes that it meets, or for shapes that may change.
TORCH = {"eager": {"compile": False}, "compile": {"compile": True, "dynamic": False},
         "dynamic": {"compile": True, "dynamic": True}}


class Child:
    """A peer: a script of this folder that gets what to compute as JSON, says `ready`, or why it is not, and then answers each
    line."""

    def __init__(self, python, script, task, **environment):
        print(f"tools/{os.path.basename(sys.argv[0])}:", script, json.dumps(task), file=sys.stderr)
        self.script = script
        self.child = subprocess.Popen([python, os.path.join(ROOT, "tools", "seed_tables", script), json.dumps(task)],
                                      stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env={**os.environ, **environment})
        self.why = self.child.stdout.readline().strip()  # ready, absent, or nothing when it failed

    def __call__(self, line):
        self.child.stdin.write(line + "\n")
        self.child.stdin.flush()
        answer = self.child.stdout.readline()
        if not answer:
            sys.exit(f"expected an answer to '{line}' of {self.script}, but it ended with {self.child.wait()}")
        return json.loads(answer)

    def end(self):
        """Its peak of memory."""
        self.child.stdin.close()
        return ended(self.child)[1]


# The default model of a peer: a decoder on random tokens.
MODEL = {"task": "train", "seed": 1, "encoder_layers": 0, "bessel": False, "norm_epsilon": 1e-5, "attention_bias": True, "xavier": False,
         "flash": True, "activation": "relu", "last_norm": True, "waves": False, "scale": False, "shift": False, "tied": True,
         "smoothing": 0, "compile": False}


def library(name, model):
    """The script of a peer by its name, and what it gets."""
    return f"peer_{'torch' if name in TORCH else name}.py", {**MODEL, **model, **TORCH.get(name, {})}


class Peer:
    """A column of a peer that trains: measured as Ours."""

    def __init__(self, options, name, model, sequences):
        self.child = Child(options.python, *library(name, model))
        self.sequences, self.rates, self.peak, self.why = sequences, [], 0, self.child.why

    def measure(self, steps):
        if self.why == "ready":
            self.rates.append(steps * self.sequences / self.child(str(steps)))

    def end(self):
        self.peak = self.child.end()


def measured(options, columns, steps):
    """Measures the columns in turns."""
    for _ in range(options.rounds):
        for column in columns.values():
            column.measure(steps)
    for column in columns.values():
        column.end()
    return columns


def rate(column, digits=2):
    """The median of a column's rates as text."""
    if column is None:
        return "not measured"
    return f"{statistics.median(column.rates):.{digits}f}" if column.rates else (column.why or "failed")


def ratio(column, other):
    both = column and other and column.rates and other.rates
    return f"{statistics.median(column.rates) / statistics.median(other.rates):.2f}" if both else ""


def spread(task, call):
    """The numbers of kiln-bench's rows of vmap, as JSON: the median call behind the first, the first, and what is resident
    behind them."""
    times = []
    for _ in range(task["calls"] + 1):
        begin = time.perf_counter()
        call()
        times.append(time.perf_counter() - begin)
    with open("/proc/self/statm", encoding="utf-8") as file:
        resident = int(file.read().split()[1]) * 4096
    return json.dumps({"us": 1e6 * statistics.median(times[1:]), "cold_ms": 1e3 * times[0], "resident_mb": resident / 1e6})


def machine(options):
    with open("/proc/cpuinfo", encoding="utf-8") as info:
        names = [line.split(":", 1)[1].strip() for line in info if line.startswith("model name")]
    version = subprocess.run([program("gpt2"), "--version"], capture_output=True, text=True).stdout.splitlines()[0]
    ask = "import importlib.metadata as m\nfor n in ('torch', 'jax'):\n try: print(n, m.version(n))\n except Exception: pass"
    peers = subprocess.run([options.python, "-c", ask], capture_output=True, text=True).stdout.split("\n")
    what = "; ".join([version, *filter(None, peers)])
    return f"{len(os.sched_getaffinity(0))} cores of {names[0] if names else 'an unknown processor'}; {what}. " \
           f"Rates are medians of {options.rounds} measurements, in turns."
