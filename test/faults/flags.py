"""Every flag of every program with values at every boundary, and the environment's variables: the work is tiny, and
whatever the value is, a program ends with 0, 2 or 3, soon.
"""

import os
import random

from process import Fault, faults_of, run

NUMBERS = ("", "0", "1", "-1", "2", "3", "-2", "007", "+1", "16", "255", "256", "1000", "65536", "1048576", "1048577",
           "2147483647", "2147483648", "-2147483648", "4294967295", "4294967296", "9223372036854775807",
           "9223372036854775808", "-9223372036854775808", "-9223372036854775809", "18446744073709551615",
           "18446744073709551616", "9" * 500, "0.5", "1.5", "1e3", "1e-3", "1e-320", "1e308", "1e309", "-1e309", "nan",
           "-nan", "inf", "-inf", "0x10", "1,5", "1 ", " 1", "1\n", "1a", "--", "-", "=", "%s%n", "\udcff\udcfe", "²",
           "true", "{}", "[1,2]")
TEXTS = ("", "a", "-", "--", "=", ",", "cpu", "cpu:", "cpu:generic", "cpu:nosuch", "gpu", "nano", "d2", "NANO",
         "native", "tile", "llvm", "asm", "x86-64", "x86-64-v3", "%s%n%n", "\udcff\udcfe", "é", "a b", "a\nb", "'",
         "\"", "\\", "*", "x" * 5000, "true", "0", "-1", "[", "{}", "bm=1", "matmul", "matmull")
ARGUMENTS = ("f32[?]", "f32[?], f32[?]", "f32[4], f32[4]", "f32[0], f32[0]", "f32[-1], f32[1]", "f32[?x?], f32[?]",
             "f32[9223372036854775807], f32[?]", "f32[9223372036854775808], f32[?]",
             "f32[4294967296x4294967296], f32[?]", "f32[], f32[]", "f32, f32", "f32[?], f32[?],", ",", "f32[", "f32]",
             "f32[?x], f32[?]", "f33[?], f32[?]", "i64, i64", "f32[? ], f32[?]", "f32[1e3], f32[?]", "f32[??], f32[?]",
             "f32[" + "1x" * 2000 + "1], f32[?]", "f32[?], " * 300, "boolean[?], boolean[?]", "f64[?], f64[?]",
             "bf16[3], bf16[3]", "f16[?], i8[?]", "\udcff[?]", "F32[?], F32[?]")
CONFIGS = ("block=1", "block=0", "block=-1", "block=3", "block=1000000", "block=16777216", "block=16777217",
           "block=2147483647", "block=2147483648", "block=9223372036854775807", "block=-2147483648", "block=",
           "block", "=1", "blok=1", "block=1,block=2", "block=1,", ",", "block=1;x", "block=nan", "block=1.5",
           "block= 1", "block=0x10", "block=" + "9" * 400, "x" * 5000)
PIPELINES = ("until=loops", "until=llvm-dialect", "until=x", "until=", "until", "target=x", "target=", "target=cpu",
             "target=x86-64", "target=x86-64-v3 until=loops", "target=cpu:generic", "target=generic", "cpu=native", "x=1", "=", "{", "}", "target=\udcff", "until=loops until=linalg",
             "target=" + "x" * 5000, "target='x y'", "target=\"", "target={a}")
MLIR = ("--mlir-print-ir-after-all", "--mlir-print-ir-after=", "--mlir-print-ir-after=nosuch", "--mlir-timing",
        "--mlir-timing=x", "--mlir-nosuch", "--mlir-", "--mlir-elide-elementsattrs-if-larger=-1",
        "--mlir-print-debuginfo", "--mlir-print-debuginfo=maybe", "--mlir-elide-elementsattrs-if-larger=" + "9" * 30)
UNKNOWN = ("--nosuch", "-x", "--", "---", "-", "--=1", "--nosuch=1", "--\udcff", "extra", "--he", "--" + "x" * 5000,
           "--Help", "-h=0", "--version=1", "")

INTEGERS_OF_TRAIN = ("--layers", "--heads", "--width", "--context", "--vocab", "--batch", "--steps",
                     "--warmup", "--evaluate-every", "--evaluate-sequences", "--evaluate-all", "--seed", "--save-every",
                     "--stop-after", "--keep", "--threads")
REALS_OF_TRAIN = ("--lr", "--final-lr", "--decay", "--beta1", "--beta2", "--epsilon", "--clip")
SIZES = ("--layers", "--heads", "--width", "--context", "--vocab", "--batch", "--threads")


class Flags:
    name, count_of_quick = "flags", 40
    memory = 3 << 30

    def __init__(self, setting):
        self.setting = setting
        self.training = setting.training(4)
        self.model = setting.path("flags.mlir")
        made = run([setting.program("kilnc"), "--kernel=gelu", "--args=f32[?], f32[?]", "-o", self.model],
                   setting.environment())
        if made.status != 0:
            raise SystemExit(f"faults: {made.err}")
        self.paths = self.make_paths()
        self.lines = [*self.of_train(), *self.of_sample(), *self.of_info(), *self.of_kilnc(), *self.of_kiln_opt(),
                      *self.of_kiln_bench(), *self.of_environment()]
        if setting.quick:
            self.lines = random.Random(setting.seed).sample(self.lines, self.count_of_quick)
        self.cases = len(self.lines)

    def make_paths(self):
        """Paths to what is no ordinary file. No pipes: who waits for one does as asked (see rivals.py)."""
        folder = self.setting.path("odd")
        os.makedirs(folder + "/folder")
        for name, content in (("text", b"some text\n" * 200), ("empty", b""), ("bytes", bytes(range(256)) * 20)):
            with open(f"{folder}/{name}", "wb") as file:
                file.write(content)
        os.symlink("loop", folder + "/loop")
        os.symlink("nowhere", folder + "/dangling")
        names = ("folder", "text", "empty", "bytes", "loop", "dangling", "missing", "missing/below", "text/below", "",
                 "folder/.", "x" * 300, ("y" * 200 + "/") * 25, "\udcff\udcfe", "new\nline")
        return ["", ".", "/", "/dev/null", "/dev/full", "/proc/self/mem", "/proc/1/nosuch",
                *(f"{folder}/{name}" for name in names)]

    def each(self, program, words, flags, values):
        """Command lines with each flag and each value, as two words and as one by turns."""
        lines = []
        for flag in flags:
            for i, value in enumerate(values):
                more = [flag, value] if i % 2 else [f"{flag}={value}"]
                lines.append(([self.setting.program(program), *words, *more], {}))
        return lines

    def of_train(self):
        words = ["train", "--data", self.training.data, "--out", "OUT", "--layers", "1", "--heads", "1", "--width",
                 "16", "--context", "8", "--batch", "2", "--threads", "1", "--steps", "2", "--stop-after", "1"]
        yield from self.each("gpt2", words, INTEGERS_OF_TRAIN + REALS_OF_TRAIN, NUMBERS)
        yield from self.each("gpt2", words, ("--accumulate",), [n for n in NUMBERS if n not in ("65536", "1048576")])
        yield from self.each("gpt2", words, ("--device", "--model"), [text for text in TEXTS if text != "d2"])
        yield from self.each("gpt2", words, ("--data", "--out"), self.paths)
        yield from self.unknown("gpt2", words)
        yield from self.unknown("gpt2", [])

    def of_sample(self):
        words = ["sample", "--out", self.training.undisturbed, "--tokens", "2", "--threads", "1"]
        yield from self.each("gpt2", words, ("--temperature", "--top-k", "--seed", "--threads"), NUMBERS)
        yield from self.each("gpt2", words, ("--tokens",), [n for n in NUMBERS if len(n) < 4 or not n.isdigit()])
        yield from self.each("gpt2", words, ("--prompt", "--device"), TEXTS)
        yield from self.each("gpt2", words, ("--out", "--model-dir"), self.paths)
        yield from self.unknown("gpt2", words)

    def of_info(self):
        yield from self.each("gpt2", ["info"], SIZES, NUMBERS)
        yield from self.each("gpt2", ["info"], ("--model", "--device"), TEXTS)
        yield from self.unknown("gpt2", ["info"])

    def of_kilnc(self):
        words = ["--kernel=gelu", "--args=f32[?], f32[?]", "-o", "OUT"]
        yield from self.each("kilnc", words, ("--kernel", "--emit", "--target"), TEXTS)
        yield from self.each("kilnc", words, ("--args",), ARGUMENTS)
        yield from self.each("kilnc", [*words, "--emit=asm"], ("--config",), CONFIGS)
        yield from self.each("kilnc", [*words, "--emit=asm", "--generic"], ("--config",), CONFIGS)
        yield from self.each("kilnc", words, ("-o", "--include"), self.paths)
        program = self.setting.program("kilnc")
        for path in self.paths:
            yield [program, path], {}
            yield [program, path, "--kernel=add"], {}
        for flag in MLIR:
            yield [program, *words, flag], {}
        yield from self.unknown("kilnc", words)

    def of_kiln_opt(self):
        program = self.setting.program("kiln-opt")
        for options in PIPELINES:
            yield [program, self.model, f"--kiln={options}"], {}
        for flag, option in (("cpu-lower-tiles", "vector-bits"), ("cpu-lower-tiles", "registers"),
                             ("cpu-lower-math", "scale-instruction"), ("tile-verify-kernels", "elements"),
                             ("tile-verify-kernels", "operations")):
            for value in NUMBERS:
                yield [program, self.model, f"--{flag}={option}={value}"], {}
        yield from self.each("kiln-opt", [self.model], ("-o", "--run-reproducer"), self.paths)
        yield from self.each("kiln-opt", [self.model], ("--pass-pipeline",), TEXTS)
        for path in self.paths:
            yield [program, path], {}
        for flag in MLIR:
            yield [program, self.model, flag], {}
        yield from self.unknown("kiln-opt", [self.model])

    def of_kiln_bench(self):
        yield from self.each("kiln-bench", ["nosuch"], ("--threads",), NUMBERS)
        yield from self.each("kiln-bench", ["nosuch"], ("--json",), self.paths)
        yield from self.unknown("kiln-bench", [])
        for text in TEXTS[:2] + TEXTS[6:]:
            if text != "matmul":
                yield [self.setting.program("kiln-bench"), text], {}

    def of_environment(self):
        sample = [self.setting.program("gpt2"), "sample", "--out", self.training.undisturbed, "--tokens", "2"]
        for variable, values in (("KILN_THREADS", NUMBERS), ("KILN_CACHE_BYTES", NUMBERS), ("KILN_CACHE", self.paths),
                                 ("KILN_DUMP", self.paths), ("HOME", self.paths[:8]),
                                 ("XDG_CACHE_HOME", self.paths[:8])):
            for value in values:
                yield sample, {variable: value, **({} if variable.startswith("KILN") else {"KILN_CACHE": None})}

    def unknown(self, program, words):
        for word in UNKNOWN:
            yield [self.setting.program(program), *words, word], {}

    def run(self, case, folder):
        """Runs one command line; what was found, and one."""
        words, variables = self.lines[case]
        words = [folder + "/out" if word == "OUT" else word for word in words]
        environment = self.setting.environment(variables)
        environment = {name: value for name, value in environment.items() if value is not None}
        what = " ".join(repr(word) if len(word) < 80 else repr(word[:20]) + f"… ({len(word)})" for word in
                        [os.path.basename(words[0]), *words[1:]]) + (f" with {variables}" if variables else "")
        try:
            outcome = run(words, environment, folder=folder, memory=self.memory)
            found = list(faults_of(outcome, (0, 2, 3), what.encode("utf-8", "backslashreplace").decode()))
        except OSError as error:  # a word too long for the system
            found = [Fault("wrong", f"{what[:200]}: {error}")]
        return found, 1
