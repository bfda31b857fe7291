"""Seed 003: dot products and attention for a batch of examples, as a loop and by vmap, beside torch.vmap and jax.vmap.
Each row is a child of its own, so that its memory is its own; the rows of a round run one after the other, and a row's
round with the least mean time counts. A GPU's rows are those of `--device cuda:0`, of which nobody has measured any."""

import csv
import json
import os
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))

# The functions, examples, extents of one, and how many calls the seed made; its attention is of 10 examples, the heads
# are those of GPT-2.
FUNCTIONS = [("dot", 100, [10000], 1000), ("attention", 10, [10, 512], 1000), ("attention", 12, [1024, 64], 100)]
FIELDS = ["framework", "function", "device", "mean_s", "std_s", "p50_s", "p99_s", "mean_rss_bytes", "std_rss_bytes",
          "device_bytes", "cold_s"]
PEERS = ["torch loop", "torch.vmap", "jax.vmap", "jit(jax.vmap)"]
ROUNDS = 3


def measured(command, **environment):
    """The line that a child prints, by its fields; None where it says that it is absent."""
    result = subprocess.run(command, capture_output=True, text=True, env={**os.environ, **environment})
    if result.returncode != 0:
        sys.exit(f"tools/seeds: '{' '.join(command)}' ended with {result.returncode}: {result.stderr.strip()}")
    line = result.stdout.strip()
    return None if line == "absent" else dict(zip(FIELDS, line.split(",")))


def row(framework, function, options, calls, folder):
    name, batch, extents, _ = function
    flags = ["--function", name, "--batch", str(batch), "--extents", ",".join(map(str, extents)), "--calls", str(calls)]
    if framework.startswith("kiln "):
        command = [os.path.join(ROOT, "build", "bin", "kiln-vmap"), "--device", options.device,
                   "--how", framework.split()[1], *flags]
        return measured(command, KILN_CACHE=os.path.join(folder, "no-cache"), KILN_CACHE_BYTES="0")
    task = {"task": "vmap", "how": framework, "device": options.device, "function": name, "batch": batch, "extents": extents, "calls": calls}
    script = "peer_torch.py" if framework.startswith("torch") else "peer_jax.py"
    return measured([options.python, os.path.join(HERE, script), json.dumps(task)])


def best(framework, function, options, folder):
    calls = 20 if options.quick else function[3]
    rounds = [row(framework, function, options, calls, folder) for _ in range(1 if options.quick else ROUNDS)]
    return None if None in rounds else min(rounds, key=lambda one: float(one["mean_s"]))


def bars(title, unit, values):
    """A picture of named numbers as bars, the least first."""
    values = sorted(values, key=lambda pair: pair[1])
    most = max((number for _, number in values), default=1) or 1
    lines = [f'<svg xmlns="http://www.w3.org/2000/svg" width="640" height="{40 + 24 * len(values)}" '
             'font-family="sans-serif" font-size="13">', '<rect width="100%" height="100%" fill="#ffffff"/>',
             f'<text x="8" y="20" fill="#000000">{title}, {unit}</text>']
    for i, (name, number) in enumerate(values):
        y = 34 + 24 * i
        lines.append(f'<text x="8" y="{y + 13}" fill="#000000">{name}</text>'
                     f'<rect x="130" y="{y}" width="{max(1, 420 * number / most):.1f}" height="17" fill="#4477aa"/>'
                     f'<text x="{136 + 420 * number / most:.1f}" y="{y + 13}" fill="#000000">{number:.4g}</text>')
    return "\n".join([*lines, "</svg>", ""])


def run(options, folder):
    """Measures all rows; writes vmap.csv and a picture of time and of memory for each function; returns the text."""
    text, every = "# Seed 003: a batch by vmap\n", []
    for function in FUNCTIONS:
        name, batch, extents, calls = function
        shape = f"{batch} × ({', '.join(map(str, extents))})"
        rows = [(framework, best(framework, function, options, folder))
                for framework in ["kiln loop", "kiln vmap", *PEERS]]
        found = [(framework, one) for framework, one in rows if one]
        every += [{**one, "framework": framework, "function": f"{name} {shape}"} for framework, one in found]
        text += f"\n## {name}, {shape}\n\n"
        text += "| | mean, µs | deviation, µs | median, µs | 99 %, µs | memory, MB | deviation, MB | cold, ms |\n"
        text += "|" + "---|" * 8 + "\n"
        for framework, one in rows:
            cells = ["absent"] + [""] * 6 if one is None else [
                *(f"{float(one[field]) * 1e6:.2f}" for field in ("mean_s", "std_s", "p50_s", "p99_s")),
                *(f"{float(one[field]) / 1e6:.1f}" for field in ("mean_rss_bytes", "std_rss_bytes")),
                f"{float(one['cold_s']) * 1e3:.1f}"]
            text += f"| {framework} | " + " | ".join(cells) + " |\n"
        file = f"{name}-{'x'.join(map(str, [batch, *extents]))}"
        for what, field, unit, scale in (("time", "mean_s", "µs a call", 1e6), ("memory", "mean_rss_bytes", "MB", 1e-6)):
            with open(os.path.join(folder, f"{file}-{what}.svg"), "w", encoding="utf-8") as out:
                out.write(bars(f"{name}, {shape}", unit, [(framework, float(one[field]) * scale) for framework, one in found]))
        text += f"\n![time]({file}-time.svg)\n![memory]({file}-memory.svg)\n"
    with open(os.path.join(folder, "vmap.csv"), "w", encoding="utf-8", newline="") as out:
        writer = csv.DictWriter(out, FIELDS)
        writer.writeheader()
        writer.writerows(every)
    text += "\nTimes are of a call behind the first, which is the cold one; memory is what is resident after each call. "
    text += "The seed told of no numbers, and left its GPU's as work in progress: `--device cuda:0` fills them in.\n"
    return text + ("\nThis was `--quick`: 20 calls, once.\n" if options.quick else "")
