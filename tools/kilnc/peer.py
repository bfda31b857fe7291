"""The child of `kilnc --bench --peer`: evaluates an expression of Python on the kernel's arguments. Requests and replies are
lines of JSON: the expression, then for each size the arguments, whose results go to files, then numbers of evaluations to
measure."""

import array
import builtins
import dis
import importlib
import json
import math
import os
import sys
import time

NUMPY = {"boolean": "bool", "i8": "int8", "i16": "int16", "i32": "int32", "i64": "int64", "u8": "uint8", "u16": "uint16",
         "u32": "uint32", "u64": "uint64", "f16": "float16", "f32": "float32", "f64": "float64"}
TORCH = {**NUMPY, "bf16": "bfloat16", "f8e4m3": "float8_e4m3fn", "f8e5m2": "float8_e5m2", "f8e8m0": "float8_e8m0fnu",
         "f4e2m1x2": "float4_e2m1fn_x2"}
BUFFER = {"boolean": "?", "i8": "b", "i16": "h", "i32": "i", "i64": "q", "u8": "B", "u16": "H", "u32": "I", "u64": "Q", "f32": "f",
          "f64": "d"}


def loaded(code):
    """The names that an expression takes from outside: its arguments, modules and built-in functions."""
    names = {each.argval for each in dis.get_instructions(code) if each.opname in ("LOAD_NAME", "LOAD_GLOBAL")}
    return names.union(*(loaded(each) for each in code.co_consts if hasattr(each, "co_code")))


def firstInstalled(*names):
    """The first of the modules that is installed, by its name."""
    for name in names:
        try:
            return {name: importlib.import_module(name)}
        except ImportError:
            pass
    return {}


class Peer:
    def __init__(self, expression, device, threads):
        for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
            os.environ[name] = str(threads)
        self.code = compile(expression, "--peer", "eval")
        self.device, self.threads = device, threads
        self.names = {}

    def argument(self, given):
        if "value" in given:
            return given["value"]
        with open(given["file"], "rb") as file:
            data = bytearray(file.read())
        kind, shape = given["type"], given["shape"]
        torch, numpy = (self.modules.get(name) for name in ("torch", "numpy"))
        types = TORCH if torch else NUMPY if numpy else BUFFER
        if kind not in types or (torch and not hasattr(torch, types[kind])):
            library = "PyTorch" if torch else "NumPy" if numpy else "Python"
            raise TypeError(f"'{given['name']}' is of type {kind}, which {library} does not have")
        if torch:
            dtype = getattr(torch, types[kind])
            return (torch.frombuffer(data, dtype=dtype) if data else torch.empty(0, dtype=dtype)).reshape(shape).to(self.device)
        if numpy:
            return numpy.frombuffer(data, dtype=types[kind]).reshape(shape)
        view = memoryview(data)
        return view.cast(types[kind], shape) if data and shape else view.cast(types[kind])

    def start(self, arguments):
        known = {each["name"] for each in arguments}
        self.modules = {}
        for name in sorted(loaded(self.code) - known - set(dir(builtins))):
            module = {"np": "numpy"}.get(name, name)
            try:
                self.modules[module] = self.names[name] = importlib.import_module(module)
            except ImportError as error:
                raise ImportError(f"expected '{name}' to be an argument ({', '.join(sorted(known))}) or a module: {error}") from None
        if not self.modules: # operators alone: of tensors, if there is a library
            self.modules = firstInstalled("torch", "numpy")
        if "torch" in self.modules:
            self.modules["torch"].set_num_threads(self.threads)
            self.modules["torch"].set_grad_enabled(False)
        elif self.device != "cpu":
            raise ValueError(f"expected an expression of torch on {self.device}")
        self.names.update({each["name"]: self.argument(each) for each in arguments})

    def results(self, folder):
        """Evaluates the expression once; its results, as f64, are files. Of pairs they are the bytes."""
        value = self.evaluate(1)
        files = []
        for number, each in enumerate(value if isinstance(value, (tuple, list)) else [value]):
            path = os.path.join(folder, f"result{number}")
            if "torch" in self.modules:
                if each.dtype == getattr(self.modules["torch"], TORCH["f4e2m1x2"], None):
                    each = each.view(self.modules["torch"].uint8)
                shape, data = list(each.shape), each.detach().cpu().double().contiguous().flatten().tolist()
            elif "numpy" in self.modules:
                shape, data = list(each.shape), each.astype("float64").ravel().tolist()
            else:
                view = memoryview(each)
                shape, data = list(view.shape), memoryview(view.tobytes()).cast(view.format).tolist()
            if len(data) != math.prod(shape):
                raise ValueError(f"expected {math.prod(shape)} elements, but got {len(data)}")
            with open(path, "wb") as file:
                array.array("d", data).tofile(file)
            files.append({"file": path, "shape": shape})
        return files

    def evaluate(self, times):
        for _ in range(times):
            value = eval(self.code, self.names)
        if self.device != "cpu":
            self.modules["torch"].cuda.synchronize()
        return value

    def measure(self, times):
        begin = time.perf_counter()
        self.evaluate(times)
        return (time.perf_counter() - begin) / times * 1e6


def main():
    replies = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # what the expression prints is no reply
    peer = None
    for line in sys.stdin:
        request, reply = json.loads(line), {}
        try:
            if "expression" in request:
                peer = Peer(request["expression"], request["device"], request["threads"])
            elif "arguments" in request:
                peer.start(request["arguments"])
                reply["results"] = peer.results(request["folder"])
            else:
                reply["us"] = peer.measure(request["times"])
        except Exception as error:
            reply = {"error": f"{type(error).__name__}: {error}"}
        print(json.dumps(reply), file=replies, flush=True)


main()
