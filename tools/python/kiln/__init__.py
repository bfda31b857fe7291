"""Kiln's kernels on arrays of PyTorch, NumPy, JAX, and all others with DLPack or a buffer.

    import kiln, torch
    x, w = torch.randn(64, 512), torch.randn(512, 256)
    y = kiln.ops.matmul(x, w)                        # a built-in operator
    axpy = kiln.load("axpy.cc").axpy                 # a kernel of your own, from C++ or from a shared object
    axpy[(64,)](a, b, alpha=0.5, block=1024)         # 64 programs; arguments by position or name, config by name
    linear[(64,)](x, w, bias=None, out=y)            # None for an optional view, a list or tuple for a list of views
    with kiln.open("simulator:sm_90a"):              # on a simulated GPU, with checks
        axpy[(64,)](a, b, alpha=0.5)

Kernels on host arrays run on "cpu", or on the device of the `with`. Kernels on GPU arrays run on that GPU, in the order of
PyTorch's current stream. Your own kernels get arrays without a copy; an operator copies an operand if its last dimension is
not contiguous. An argument that does not fit, or a failed assertion in a kernel, is a kiln.Error with the text that C++ gives.
"""

import array
import contextlib
import ctypes
import errno
import os
import sys
import threading

from . import _c
from ._c import DeviceError, Error, InternalError

__version__ = _c.library.kiln_version().decode()
__all__ = ["Device", "DeviceError", "Error", "InternalError", "Kernel", "Library", "cdiv", "load", "open", "ops", "testing"]

_local = threading.local()  # .devices: those of the `with` blocks of this thread


class Device:
    """A device by its name: "cpu", "cuda:0", "simulator:sm_90a". In a `with`, kernels on host arrays run on it."""

    def __init__(self, name):
        self.name = name
        self._is_cuda = name.startswith("cuda:")
        handle = ctypes.c_void_p()
        _c.check(_c.library.kiln_device_open(name.encode(), ctypes.byref(handle)))
        self._handle = handle.value

    def synchronize(self):
        """Waits for all launches. Raises Error for the first failed device_assert, or for the findings of the simulator."""
        _c.check(_c.library.kiln_synchronize(self._handle))

    def set_threads(self, threads):
        """Sets the number of threads that run programs on a CPU. Results do not depend on it."""
        _c.check(_c.library.kiln_device_threads(self._handle, threads))

    def __enter__(self):
        if not hasattr(_local, "devices"):
            _local.devices = []
        _local.devices.append(self)
        return self

    def __exit__(self, *_):
        _local.devices.pop()

    def __repr__(self):
        return f"kiln.open({self.name!r})"


_opened = {}


def open(name):
    """The device of this name, opened once in a process."""
    if name not in _opened:
        _opened[name] = Device(name)
    return _opened[name]


def _device_of(arrays):
    """The device that computes on these arrays."""
    gpus = {each.place[1] for each in arrays if each.place[0] == _c.CUDA}
    if len(gpus) > 1:
        raise Error(f"expected arrays on one GPU, but got some on {', '.join(f'cuda:{gpu}' for gpu in sorted(gpus))}")
    if gpus:
        return open(f"cuda:{gpus.pop()}")
    return _local.devices[-1] if getattr(_local, "devices", None) else open("cpu")


def _run(device, arrays, function, *arguments):
    """Calls a function of the C interface that launches. On a GPU the launches are in the order of PyTorch's stream; on
    other devices the call waits for them."""
    if not device._is_cuda:
        _c.check(function(device._handle, *arguments))
        _c.check(_c.library.kiln_synchronize(device._handle))
        return
    torch = sys.modules.get("torch")
    ours = any(_c.is_torch(each.owner) for each in arrays)
    stream = torch.cuda.current_stream(int(device.name[5:])).cuda_stream if torch and ours else None
    _c.check(_c.library.kiln_after(device._handle, stream))
    _c.check(function(device._handle, *arguments))
    _c.check(_c.library.kiln_before(device._handle, stream))


def cdiv(a, b):
    """a / b of integers, rounded up: the number of programs of b elements that cover a."""
    return -(-a // b)


def _value_of(text):
    """The number that the text of a field spells; the text itself for an enum."""
    for kind in (int, float):
        with contextlib.suppress(ValueError):
            return kind(text)
    return text


def _fields_of(text):
    """A config such as "block=64,eps=1e-05" as a dictionary from field to value."""
    pairs = (field.split("=", 1) for field in text.split(",") if field)
    return {name: _value_of(value) for name, value in pairs}


def _text_of(fields):
    """A config or options in the form of the C interface."""
    return ",".join([f"{name}={int(x) if isinstance(x, bool) else x}" for name, x in fields.items()]).encode()


_MISSING = object()  # in the place of an argument that is not given


class _Config(dict):
    """The config of a kernel, as a grid that is a function gets it."""

    def __init__(self, kernel, fields):
        super().__init__(fields)
        self._kernel = kernel

    def __missing__(self, name):
        self._kernel._config_text(f"{name}=".encode())  # an error

    def __getattr__(self, name):
        if name.startswith("_"):
            raise AttributeError(name)
        raise AttributeError(f"kernel '{self._kernel.name}': expected config[\"{name}\"], as of a dictionary, but got config.{name}")


class Kernel:
    """A kernel of a library. `kernel[grid](arguments…)` launches it. The grid is one to three numbers, or a function that
    returns them for the config, a dictionary from field to number (to text for an enum)."""

    def __init__(self, library, handle):
        self._library, self._handle = library, handle  # the library must live as long
        self.name = _c.library.kiln_kernel_name(handle).decode()
        self.arguments, self._kinds = [], []
        for i in range(_c.library.kiln_kernel_arguments(handle)):
            kind = ctypes.c_int()
            self.arguments.append(_c.library.kiln_kernel_argument(handle, i, ctypes.byref(kind)).decode())
            self._kinds.append(kind.value)
        self._indices = {name: i for i, name in enumerate(self.arguments) if name}
        self.config = _fields_of(self._config_text(b""))

    def _config_text(self, changed):
        text = ctypes.c_char_p()
        _c.check(_c.library.kiln_kernel_config(self._handle, changed, ctypes.byref(text)))
        return text.value.decode()

    def __call__(self, *_, **__):
        raise TypeError(f"kernel '{self.name}': a launch requires a grid; write kernel[grid](…)")

    def __getitem__(self, grid):
        return lambda *arguments, **named: self._launch(grid, arguments, named)

    def _values(self, arguments, named):
        """The arguments in the kernel's order, and what is left of the named ones: its config."""
        if len(arguments) > len(self.arguments):
            raise Error(f"kernel '{self.name}': expected {len(self.arguments)} arguments, but got {len(arguments)}")
        values, config = [*arguments, *[_MISSING] * (len(self.arguments) - len(arguments))], {}
        for name, value in named.items():
            if name in self.config:
                config[name] = value
                continue
            index = self._indices.get(name)
            if index is None:
                try:
                    self._config_text(f"{name}=".encode())
                except Error as error:
                    hint = f"its arguments are {', '.join(self._indices)}"
                    if name == "device":
                        hint = "arrays choose the device, or for arrays on the host `with kiln.open(\"simulator:sm_80\"):`"
                    raise Error(f"{error}\nhint: {hint}") from None
            if values[index] is not _MISSING:
                raise Error(f"kernel '{self.name}': expected one value for '{name}', but got two")
            values[index] = value
        if len(arguments) + len(named) - len(config) < len(values):
            values = [None if value is _MISSING and kind == _c.OPTIONAL else value for value, kind in zip(values, self._kinds)]
            missing = [self.arguments[i] or str(i) for i, value in enumerate(values) if value is _MISSING]
            if missing:
                raise Error(f"kernel '{self.name}': expected a value for each argument, but got none for {', '.join(missing)}")
        return values, config

    def _extents(self, grid, config):
        """The numbers of programs for a config, as the C interface has them."""
        if callable(grid):
            given = {name: _value_of(x) if isinstance(x, str) else x for name, x in config.items()}
            grid = grid(_Config(self, {**self.config, **given}))
        grid = tuple(grid) if isinstance(grid, (tuple, list)) else (grid,)
        if not 1 <= len(grid) <= 3:
            raise Error(f"kernel '{self.name}': expected a grid of 1 to 3 extents, but got {len(grid)}")
        try:
            extents = array.array("q", (*grid, 1, 1)[:3])
        except TypeError:
            text = ", ".join(map(repr, grid))
            raise Error(f"kernel '{self.name}': expected whole numbers in the grid, but got {text}; use kiln.cdiv") from None
        if 0 in extents[1:] and min(extents) == 0:  # no programs, which the C interface spells with 0 on axis 0 alone
            extents = array.array("q", (0, 1, 1))
        return extents

    def _packed(self, values):
        try:
            return _c.Arguments(values, self.arguments)
        except Error as error:
            raise Error(f"kernel '{self.name}': {error}") from None

    def _launch(self, grid, arguments, named):
        values, config = self._values(arguments, named)
        extents = self._extents(grid, config)
        packed = self._packed(values)
        text = _text_of(config) if config else None
        try:
            _run(_device_of(packed.arrays), packed.arrays, _c.library.kiln_launch, self._handle, extents.buffer_info()[0],
                 packed.address, len(values), text)
        except Error as error:
            if type(error) is Error:
                error.args = (str(error) + _c.hint_for(str(error), values, self.arguments, self._kinds),)
            raise

    def tune(self, *arguments, grid, budget=60, configs=None, vary_results=False, bucket="", findings=None, verbose=False, **named):
        """Finds the fastest config for these arguments, by measuring for about `budget` seconds. Returns it as a dictionary
        for `kernel[grid](…, **config)`. `configs` are dictionaries; by default all combinations of the candidates in the
        kernel's registration (`.among`) are tried. Fields that change results vary only if `vary_results`. Named fields of
        the config keep their values. The result of each config is compared with that of the kernel's default; a wrong one
        is an Error. A config whose result differs by rounding wins only with `vary_results` or `configs`. At the end, arrays
        that the kernel writes have their original contents. `findings` is a file that gets the finding, which tuned() reads.
        The finding is valid for the buckets (powers of two) of the extents in `bucket`, such as "x.0, out.0". `verbose`
        prints a table of the times."""
        values, fixed = self._values(arguments, named)
        packed = self._packed(values)
        device = _device_of(packed.arrays)
        allowed = vary_results or configs is not None
        if configs is None:
            text = ctypes.c_char_p()
            _c.check(_c.library.kiln_candidates(device._handle, self._handle, _text_of(fixed), vary_results, ctypes.byref(text)))
            configs = [_fields_of(line) for line in text.value.decode().splitlines()]
        else:
            for config in configs:
                if not isinstance(config, dict):
                    raise Error(f"kernel '{self.name}': expected dictionaries in configs, such as {{\"block\": 256}}, but got {config!r}")
            names = {name: None for config in configs for name in config}  # in order
            for name in names:
                if name not in self.config:
                    self._config_text(f"{name}=".encode())  # an error
            default = {**{name: self.config[name] for name in names}, **fixed}
            configs = [default, *(each for each in ({**default, **config} for config in configs) if each != default)]
        trials = (_c.Trial * len(configs))(
            *[_c.Trial(_text_of(config), tuple(self._extents(grid, config))) for config in configs])
        best, table = ctypes.c_char_p(), ctypes.c_char_p()
        _run(device, packed.arrays, _c.library.kiln_tune, self._handle, packed.address, len(values), trials, len(trials), budget,
             allowed, bucket.encode(), os.fsencode(findings) if findings else None, ctypes.byref(best), ctypes.byref(table))
        best, table = best.value.decode(), table.value.decode()
        if verbose:
            print(table, end="")
        return _fields_of(best)

    def tuned(self, *arguments, findings=None, **named):
        """The config that tune() or `kilnc --tune` found for these arguments, as a dictionary for `kernel[grid](…, **config)`.
        It is empty without a finding. The file is `findings`, by default the one that the variable KILN_FINDINGS names."""
        values, _ = self._values(arguments, named)
        packed = self._packed(values)
        text = ctypes.c_char_p()
        _c.check(_c.library.kiln_tuned(_device_of(packed.arrays)._handle, self._handle, packed.address, len(values),
                                       os.fsencode(findings) if findings else None, ctypes.byref(text)))
        return _fields_of(text.value.decode())

    def __repr__(self):
        return f"kernel {self.name}({', '.join(self.arguments)})"


class Library:
    """The kernels of a C++ file: library.axpy or library["axpy"]."""

    def __init__(self, path):
        self.path = path
        self._handle = ctypes.c_void_p()
        _c.check(_c.library.kiln_library_open(path and path.encode(), ctypes.byref(self._handle)))
        self._kernels = {}
        for i in range(_c.library.kiln_library_size(self._handle)):
            kernel = Kernel(self, _c.library.kiln_library_kernel(self._handle, i))
            self._kernels[kernel.name] = kernel

    def __getitem__(self, name):
        if name not in self._kernels:
            raise Error(f"'{self.path or 'Kiln'}': unknown kernel '{name}' (known: {', '.join(self._kernels)})")
        return self._kernels[name]

    def __getattr__(self, name):
        if name.startswith("_"):
            raise AttributeError(name)
        try:
            return self[name]
        except Error as error:
            raise AttributeError(str(error)) from None

    def __dir__(self):
        return [*super().__dir__(), *self._kernels]

    def __iter__(self):
        return iter(self._kernels.values())

    def __len__(self):
        return len(self._kernels)


def load(path=None):
    """Loads the kernels that a C++ file registers. `path` is one of these:
    - the C++ file; this machine then needs a C++ compiler ($CXX, else c++)
    - a shared object, made by `kilnc FILE.cc --emit=library -o FILE.so`
    - an image of kernels compiled in advance, made by `kilnc FILE.cc … --emit=image -o FILE.kiln`
    - None: the built-in kernels
    Kernels stay loaded as long as the process lives. A missing file is a FileNotFoundError."""
    if path is not None and not os.path.exists(path):
        raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), str(path))
    return Library(None if path is None else str(path))


def __getattr__(name):
    hint = {  # for names of Triton's
        "jit": "; a kernel is a C++ function: kiln.load(\"FILE.cc\")",
        "autotune": "; kernel.tune(…) finds the fastest config in advance",
        "Config": "; a config is a dictionary: kernel.tune(…, configs=[{\"block\": 256}])",
        "next_power_of_2": "; a tile may have any extent",
    }.get(name, "")
    raise AttributeError(f"module 'kiln' has no attribute '{name}'{hint}")


from . import ops, testing  # noqa: E402
