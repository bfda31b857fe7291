"""A model of bytes: sequences of 256 a second by type, by model and by attention, and its loss by type. The seed's rows
are of an RTX 4090."""

import os
import sys

from children import TORCH, Ours, Peer, measured, program, rate, ratio, train
from tables import curves, table

DTYPES = {"float32": "fp32", "float16": "fp16", "bfloat16": "bf16"}


def run(options, folder):
    if not options.data:
        sys.exit("tools/seeds: expected --data FILE of seed 000, whose bytes it trains on")
    bytelm = program("bytelm")
    layers, batch, micro, steps = (2, 4, 1, 2) if options.quick else (8, 20, 5, 2)
    size = {"layers": layers, "heads": 8, "width": 512, "inner": 2048, "context": 256, "vocab": 256, "batch": batch,
            "micro": micro, "shift": True, "tied": False, "last_norm": False, "dropout": 0.1}
    ours = [bytelm, "train", "--data", options.data, "--device", options.device, "--layers", str(layers), "--batch",
            str(batch), "--accumulate", str(micro)]

    def columns(dtype, model="base", attention="flash", peers=(*TORCH, "jax")):
        arguments = [*ours, "--model", model, "--dtype", DTYPES[dtype], "--attention", attention]
        all_columns = {"kiln": Ours(arguments, os.path.join(folder, "rates"), 256)}
        what = {**size, "dtype": dtype, "flash": attention == "flash", "attention_dropout": 0.1 * (model == "pytorch")}
        for peer in set(peers) & set(options.peers.split(",")):
            all_columns[peer] = Peer(options, peer, what, batch * micro)
        return all_columns

    by_type = {dtype: columns(dtype, peers=TORCH if dtype == "float16" else (*TORCH, "jax"))
               for dtype in DTYPES}
    pytorch = columns("bfloat16", "pytorch", peers=("compile",))
    plain = columns("float16", attention="plain", peers=("eager", "compile"))
    rows = {**by_type, "pytorch": pytorch, "plain": plain}
    measured(options, {(row, name): column for row, found in rows.items() for name, column in found.items()}, steps)

    text = "# Seed 000: a model of bytes\n\nSequences of 256 bytes a second, forward, backward and update"
    text += f", {layers} layers, {batch * micro} sequences a step.\n\n## By the model, bfloat16, compiled\n\n"
    both = by_type["bfloat16"]
    text += table(os.path.join(folder, "models.csv"), ["", "pytorch", "handcraft", "speed-up"], [
        ["seed, RTX 4090", 1093, 1273, 1.16],
        ["torch here", rate(pytorch.get("compile")), rate(both.get("compile")), ratio(both.get("compile"), pytorch.get("compile"))],
        ["Kiln here", rate(pytorch["kiln"]), rate(both["kiln"]), ratio(both["kiln"], pytorch["kiln"])]])
    seed = {"float32": (672, 736, 797), "float16": (991, 1287, ""), "bfloat16": (982, 1273, "")}
    text += "\n## By dtype\n\n"
    text += table(os.path.join(folder, "dtypes.csv"), [
        "dtype", "seed: torch", "seed: torch.compile", "seed: jax", "torch here", "torch.compile here",
        "torch.compile dynamic here", "jax here", "Kiln here", "Kiln vs torch", "Kiln vs torch.compile",
        "Kiln vs torch.compile dynamic", "Kiln vs jax"], [
            [dtype, *seed[dtype], *(rate(c.get(name)) if name != "jax" or dtype != "float16" else "" for name in (*TORCH, "jax")),
             rate(c["kiln"]), *(ratio(c["kiln"], c.get(name)) for name in (*TORCH, "jax"))]
            for dtype, c in by_type.items()])
    flash = by_type["float16"]
    text += "\n## By attention, float16\n\nThe seed's table has its labels the other way round; here they are right.\n\n"
    text += table(os.path.join(folder, "attention.csv"), ["", "normal", "flash", "speed-up"], [
        ["seed, eager", 991, 1425, 1.44], ["seed, compiled", 1287, 1170, 0.9],
        *([f"torch here, {words}", rate(plain.get(name)), rate(flash.get(name)), ratio(flash.get(name), plain.get(name))]
          for name, words in (("eager", "eager"), ("compile", "compiled"))),
        ["Kiln here", rate(plain["kiln"]), rate(flash["kiln"]), ratio(flash["kiln"], plain["kiln"])]])

    length = ["--steps", "30", "--evaluate-sequences", "16"] if options.quick else []
    lines = {}
    for dtype, short in DTYPES.items():
        for attention in ("flash", "plain") if dtype == "float16" else ("flash",):
            name = short if attention == "flash" else f"{short}, plain attention"
            log, _ = train([*ours, "--model", "base", "--dtype", short, "--attention", attention, *length],
                           os.path.join(folder, f"{short}-{attention}"))
            lines[name] = [(row["step"], row["loss"]) for row in log]
    curves(os.path.join(folder, "losses.svg"), "iterations", "loss", lines)
    text += "\n## Loss by dtype and attention\n\n![loss over iterations](losses.svg)\n"
    if options.quick:
        text += "\nThis was `--quick`: two layers and few sequences, whose rates are not the seed's.\n"
    return text
