"""Seed 003: dot products and attention for a batch of examples, as a loop and by vmap, beside torch.vmap and jax.vmap.
Each row is a child of its own, so that its memory is its own; the rows of a round run one after the other, and a row's
round with the least median time counts. A GPU's rows are those of `--device cuda:0`, of which nobody has measured any."""

import json
import os

from children import output, program
from tables import markdown, table

HERE = os.path.dirname(os.path.abspath(__file__))

# The functions, examples, extents of one, and how many calls the seed made; its attention is of 10 examples, the heads
# are those of GPT-2.
FUNCTIONS = [("dot", 100, [10000], 1000), ("attention", 10, [10, 512], 1000), ("attention", 12, [1024, 64], 100)]
FIELDS = ["us", "resident_mb", "cold_ms"]
PEERS = ["torch loop", "torch.vmap", "jax.vmap", "jit(jax.vmap)"]
ROUNDS = 3


def row(framework, function, options, calls, folder):
    """The numbers of a child, by their names; None where a peer is absent."""
    name, batch, extents, _ = function
    if framework.startswith("kiln "):
        only, rows = f"{name} {batch} x {'x'.join(map(str, extents))}, {framework.split()[1]}", os.path.join(folder, "rows.json")
        output(program("kiln-bench"), "vmap", "--device", options.device, "--only", only, "--json", rows,
               *(["--quick"] if options.quick else []),
               env={**os.environ, "KILN_CACHE": os.path.join(folder, "no-cache"), "KILN_CACHE_BYTES": "0"})
        with open(rows, encoding="utf-8") as made:
            return {each["metric"]: each["value"] for each in json.load(made)}
    task = {"task": "vmap", "how": framework, "device": options.device, "function": name, "batch": batch, "extents": extents,
            "calls": calls}
    script = "peer_torch.py" if framework.startswith("torch") else "peer_jax.py"
    said = output(options.python, os.path.join(HERE, script), json.dumps(task)).strip()
    return None if said == "absent" else json.loads(said)


def best(framework, function, options, folder):
    calls = 20 if options.quick else function[3]
    rounds = [row(framework, function, options, calls, folder) for _ in range(1 if options.quick else ROUNDS)]
    return None if None in rounds else min(rounds, key=lambda one: one["us"])


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
        every += [[framework, f"{name} {shape}", *(one[field] for field in FIELDS)] for framework, one in found]
        text += f"\n## {name}, {shape}\n\n" + markdown(["", "median, µs", "memory, MB", "cold, ms"], [
            [framework, *(f"{one[field]:.1f}" for field in FIELDS)] if one else [framework, "absent", "", ""] for framework, one in rows])
        file = f"{name}-{'x'.join(map(str, [batch, *extents]))}"
        for what, field, unit in (("time", "us", "µs a call"), ("memory", "resident_mb", "MB")):
            with open(os.path.join(folder, f"{file}-{what}.svg"), "w", encoding="utf-8") as out:
                out.write(bars(f"{name}, {shape}", unit, [(framework, one[field]) for framework, one in found]))
        text += f"\n![time]({file}-time.svg)\n![memory]({file}-memory.svg)\n"
    table(os.path.join(folder, "vmap.csv"), ["framework", "function", *FIELDS], every)
    text += "\nTimes are of a call behind the first, which is the cold one; memory is what is resident behind the last. "
    text += "The seed told of no numbers, and left its GPU's as work in progress: `--device cuda:0` fills them in.\n"
    return text + ("\nThis was `--quick`: 20 calls of peers, once.\n" if options.quick else "")
