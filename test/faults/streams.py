"""Standard streams that are closed, full, or whose reader went away, for every program and every kind of its output.

A closed stream is no harm to what needs none. A result that could not be written (`sample`, `info`, lists, stages) is a
failure of the machine, 3; a run of training goes on without its progress, and ends as at an interrupt when its reader
went away. No file of the program's takes the number of a closed stream.
"""

import os

from process import Fault, faults_of, run
from training import logged

STREAMS = ("stdin", "stdout", "stderr")
# Replacements of streams; the other streams are unchanged.
PLACES = [
    *({stream: "closed" for bit, stream in enumerate(STREAMS) if mask >> bit & 1} for mask in range(8)),
    {"stdout": "full"}, {"stderr": "full"}, {"stdout": "full", "stderr": "full"},
    {"stdout": "gone"}, {"stderr": "gone"}, {"stdout": "gone", "stderr": "gone"},
    {"stdin": "closed", "stdout": "full", "stderr": "gone"},
]


class Streams:
    name = "streams"

    def __init__(self, setting):
        self.setting = setting
        self.training = setting.training(4)
        model = setting.path("streams.mlir")
        gelu = ["--kernel=gelu", "--args=f32[?], f32[?]"]
        run([setting.program("kilnc"), *gelu, "-o", model], setting.environment())
        out = self.training.undisturbed
        # Words, the exit status, and whether standard output is the result.
        self.commands = [
            (self.training.words("OUT"), 0, False),
            (["gpt2", "sample", "--out", out, "--tokens", "3"], 0, True),
            (["gpt2", "info"], 0, True), (["gpt2", "info", "--buffers"], 0, True),
            (["gpt2", "--help"], 0, True), (["gpt2", "train", "--help"], 0, True),
            (["gpt2", "--nosuch"], 2, False), (["gpt2", "sample", "--out", "/nosuch"], 2, False),
            (["kilnc", "--list"], 0, True), (["kilnc", *gelu], 0, True), (["kilnc", *gelu, "--emit=asm"], 0, True),
            (["kilnc", "--help"], 0, True), (["kilnc", "--nosuch"], 2, False),
            (["kilnc", *gelu, "-o", "OUT"], 0, False),
            (["kiln-opt", model], 0, True), (["kiln-opt", "--help"], 0, True), (["kiln-opt", "--nosuch"], 2, False),
            (["kiln-opt", model, "--kiln=until=llvm-dialect"], 0, True), (["kiln-opt", model, "-o", "OUT"], 0, False),
            (["kiln-bench", "--help"], 0, True), (["kiln-bench", "nosuch"], 2, False),
            (["kiln-bench", "compile", "--quick", "--threads", "1"], 0, True),
            # An unusable cache is reported, and is no failure.
            (["env", "KILN_CACHE=/dev/null", "gpt2", "sample", "--out", out, "--tokens", "1"], 0, True),
        ]
        every = [(command, place) for command in self.commands for place in PLACES]
        self.chosen = every[:: 9] if setting.quick else every
        self.cases = len(self.chosen)

    def run(self, case, folder):
        """Runs one command with some streams replaced; what was found, and one."""
        (words, status, is_result), places = self.chosen[case]
        programs = ("gpt2", "kilnc", "kiln-opt", "kiln-bench")
        line = [folder + "/run" if word == "OUT" else self.setting.program(word) if word in programs else word
                for word in words]
        what = f"{' '.join(map(os.path.basename, words))} with {places or 'plain streams'}"
        more, closed = self.streams(places)
        outcome = run(line, self.setting.environment(), prepare=lambda: [os.close(number) for number in closed], **more)
        for stream in more.values():
            os.close(stream)
        lost = is_result and places.get("stdout") in ("closed", "full", "gone")
        found = list(faults_of(outcome, (3,) if lost else (status,), what))
        if "train" in words and "--data" in words:
            found += self.trained(folder + "/run", places, what)
        return found, 1

    @staticmethod
    def streams(places):
        """Arguments of start(), and the numbers that it closes."""
        more, closed = {}, []
        for number, stream in enumerate(STREAMS):
            place = places.get(stream)
            if place == "closed":
                closed.append(number)
            elif place == "full":
                more[stream] = os.open("/dev/full", os.O_WRONLY)
            elif place == "gone":
                reader, more[stream] = os.pipe()
                os.close(reader)
        return more, closed

    def trained(self, out, places, what):
        """A run of training is whole whatever became of its streams, unless its reader went away."""
        if "gone" not in places.values():
            yield from self.training.losses(out, self.training.steps, what)
        steps = logged(out)
        if steps != list(range(1, len(steps) + 1)) or (not steps and "gone" not in places.values()):
            yield Fault("lost", f"{what}: expected the steps in the log, but got {steps}")
