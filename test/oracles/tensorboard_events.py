"""Files of events that a run wrote, read by TensorBoard's own reader, beside the run's log.

    pip install tensorboard==2.20.0
    build/bin/gpt2 train --data FILE --out RUN --tensorboard EVENTS
    python3 test/oracles/tensorboard_events.py EVENTS RUN/log.jsonl

Ends with a message unless every number of the log is there under its tag, at its step, as the nearest f32, and nothing
else is; texts must be there, too. test/models/observe/tensorboard_test.cc has a reader of its own and needs no library.
"""

import json
import struct
import sys

from tensorboard.backend.event_processing.event_accumulator import EventAccumulator


def tag_of(name):
    if name.startswith("val_"):
        return "validation/" + name[4:]
    return ("train_details/" if name.startswith("grad_norm_") else "train/") + name


def main():
    folder, log = sys.argv[1:]
    events = EventAccumulator(folder, size_guidance={"scalars": 0, "tensors": 0})
    events.Reload()
    found = {(tag, e.step): e.value for tag in events.Tags()["scalars"] for e in events.Scalars(tag)}
    texts = {(tag, e.step): e.tensor_proto.string_val[0].decode() for tag in events.Tags()["tensors"]
             for e in events.Tensors(tag)}
    wanted, words = {}, {}
    with open(log, encoding="utf-8") as lines:
        for line in lines:
            row = json.loads(line)
            for name, value in row.items():
                if name in ("step", "seconds"):
                    continue
                place = (tag_of(name), row["step"])
                if isinstance(value, str):
                    words[place] = value
                elif value is not None:
                    wanted[place] = struct.unpack("f", struct.pack("f", value))[0]
    if found != wanted or texts != words:
        wrong = [f"{place}: {found.get(place)} for {wanted.get(place)}" for place in sorted(found.keys() | wanted.keys())
                 if found.get(place) != wanted.get(place)]
        sys.exit("\n".join(wrong) or f"texts differ: {sorted(texts)[:5]}, {sorted(words)[:5]}")
    print(f"{len(found)} numbers and {len(texts)} texts are as in the log")


main()
