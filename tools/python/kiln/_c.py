"""The C interface, kiln.h, by ctypes; and arrays of other libraries as its tensors."""

import array
import ctypes
import os
import struct
import sys
from ctypes import POINTER, Structure, byref, c_char_p, c_double, c_int, c_int32, c_int64, c_size_t, c_uint8, c_uint16, c_uint64, c_void_p


class Error(RuntimeError):
    """An argument is wrong, or an assertion in a kernel failed. The text has the expected and the actual value."""


class DeviceError(Error):
    """The machine lacks memory, a driver or a file."""


class InternalError(Error):
    """A bug in Kiln."""


class Tensor(Structure):
    """kiln_tensor, which is DLPack's DLTensor."""
    _fields_ = [("data", c_void_p), ("device_type", c_int32), ("device_id", c_int32), ("rank", c_int32), ("type_code", c_uint8),
                ("type_bits", c_uint8), ("lanes", c_uint16), ("shape", POINTER(c_int64)), ("strides", POINTER(c_int64)),
                ("byte_offset", c_uint64)]


class Trial(Structure):
    """kiln_trial."""
    _fields_ = [("config", c_char_p), ("grid", c_int64 * 3)]


SIGNED, UNSIGNED, FLOAT, BFLOAT, BOOL, E4M3, E5M2, E8M0, E2M1 = 0, 1, 2, 4, 6, 10, 12, 14, 17
HOST, CUDA = 1, 2
SCALAR, OPTIONAL = 0, 2  # kinds of arguments: a number; a view that may be None

# DLPack's code and bits by the name that NumPy, ml_dtypes, PyTorch and JAX give a type.
TYPES = {"bool": (BOOL, 8), "int8": (SIGNED, 8), "int16": (SIGNED, 16), "int32": (SIGNED, 32), "int64": (SIGNED, 64),
         "uint8": (UNSIGNED, 8), "uint16": (UNSIGNED, 16), "uint32": (UNSIGNED, 32), "uint64": (UNSIGNED, 64),
         "float16": (FLOAT, 16), "bfloat16": (BFLOAT, 16), "float32": (FLOAT, 32), "float64": (FLOAT, 64),
         "float8_e4m3fn": (E4M3, 8), "float8_e5m2": (E5M2, 8), "float8_e8m0fnu": (E8M0, 8),
         "float4_e2m1fn_x2": (E2M1, 4)}  # in pairs: two lanes
# The same by the letters of the buffer protocol.
_LETTERS = {"?": "bool", "b": "int8", "h": "int16", "i": "int32", "q": "int64", "l": "int64", "B": "uint8", "H": "uint16",
            "I": "uint32", "Q": "uint64", "L": "uint64", "e": "float16", "f": "float32", "d": "float64"}

# --- The library -----------------------------------------------------------------------------------------------------

_DECLARATIONS = {
    "kiln_error": (c_char_p, []),
    "kiln_version": (c_char_p, []),
    "kiln_device_open": (c_int, [c_char_p, POINTER(c_void_p)]),
    "kiln_device_close": (None, [c_void_p]),
    "kiln_device_place": (None, [c_void_p, POINTER(c_int32), POINTER(c_int32)]),
    "kiln_device_threads": (c_int, [c_void_p, c_int]),
    "kiln_synchronize": (c_int, [c_void_p]),
    "kiln_after": (c_int, [c_void_p, c_void_p]),
    "kiln_before": (c_int, [c_void_p, c_void_p]),
    "kiln_library_open": (c_int, [c_char_p, POINTER(c_void_p)]),
    "kiln_library_close": (None, [c_void_p]),
    "kiln_library_size": (c_size_t, [c_void_p]),
    "kiln_library_kernel": (c_void_p, [c_void_p, c_size_t]),
    "kiln_kernel_name": (c_char_p, [c_void_p]),
    "kiln_kernel_arguments": (c_size_t, [c_void_p]),
    "kiln_kernel_argument": (c_char_p, [c_void_p, c_size_t, POINTER(c_int)]),
    "kiln_kernel_config": (c_int, [c_void_p, c_char_p, POINTER(c_char_p)]),
    "kiln_tuned": (c_int, [c_void_p, c_void_p, c_void_p, c_size_t, c_char_p, POINTER(c_char_p)]),
    "kiln_candidates": (c_int, [c_void_p, c_void_p, c_char_p, c_int, POINTER(c_char_p)]),
    "kiln_tune": (c_int, [c_void_p, c_void_p, c_void_p, c_size_t, POINTER(Trial), c_size_t, c_double, c_int, c_char_p,
                          c_char_p, POINTER(c_char_p), POINTER(c_char_p)]),
    "kiln_launch": (c_int, [c_void_p, c_void_p, c_void_p, c_void_p, c_size_t, c_char_p]),
    "kiln_operators": (c_char_p, []),
    "kiln_operate": (c_int, [c_void_p, c_char_p, c_void_p, c_size_t, c_char_p]),
}


def _load():
    """The library in this package, else the one that the system finds (LD_LIBRARY_PATH)."""
    path = os.path.join(os.path.dirname(os.path.abspath(__file__)), "libkiln.so")
    try:
        library = ctypes.CDLL(path if os.path.exists(path) else "libkiln.so")
    except OSError as error:
        raise ImportError(f"expected Kiln's library at '{path}' or in a folder of LD_LIBRARY_PATH, but: {error}") from None
    for name, (result, arguments) in _DECLARATIONS.items():
        function = getattr(library, name)
        function.restype, function.argtypes = result, arguments
    return library


library = _load()


def check(status):
    """Raises what the C interface returned as an error."""
    if status:
        kind = {2: Error, 3: DeviceError}.get(status, InternalError)
        raise kind(library.kiln_error().decode(errors="replace"))


# --- Arrays ----------------------------------------------------------------------------------------------------------


class Array:
    """An array of another library as a tensor. Its memory lives as long as this does. No strides: row-major without gaps."""
    __slots__ = ("owner", "data", "place", "kind", "shape", "strides", "is_read_only", "byte_offset", "lanes")

    def __init__(self, owner, data, place, kind, shape, strides, is_read_only, byte_offset=0, lanes=1):
        self.owner, self.data, self.place, self.kind = owner, data, place, kind
        self.shape, self.strides, self.is_read_only = shape, strides, is_read_only
        self.byte_offset, self.lanes = byte_offset, lanes


def _kind(name, what):
    if name not in TYPES:
        raise Error(f"expected {what} of a type out of {', '.join(TYPES)}, but got {name}")
    return TYPES[name]


_ON_HOST = (HOST, 0)
_kinds = {}  # by what a library says of a type: names take longer


def is_torch(x):
    return type(x).__module__.split(".", 1)[0] == "torch" and hasattr(x, "data_ptr")


def _of_torch(x):
    kind = _kinds.get(x.dtype)
    if kind is None:
        kind = _kinds[x.dtype] = _kind(str(x.dtype)[len("torch."):], "a PyTorch tensor")
    if x.is_cpu:
        place = _ON_HOST
    elif x.is_cuda:
        place = (CUDA, x.device.index)
    else:
        raise Error(f"expected a PyTorch tensor on cpu or cuda, but it is on {x.device}")
    try:
        data = x.data_ptr()
    except RuntimeError:
        raise Error(f"expected a PyTorch tensor with memory of its elements, but got one of layout {x.layout}") from None
    return Array(x, data, place, kind, x.shape, x.stride(), False, lanes=8 // kind[1] or 1)


def _of_numpy(x):
    kind = _kinds.get(x.dtype)
    if kind is None:
        kind = _kind(x.dtype.name, "a NumPy array")
        if not x.dtype.isnative:
            raise Error(f"expected a NumPy array in the machine's byte order, but got dtype {x.dtype}")
        _kinds[x.dtype] = kind
    interface = x.__array_interface__
    (data, is_read_only), strides = interface["data"], interface["strides"]
    if strides is not None:
        strides = _in_elements(strides, x.dtype.itemsize)
    return Array(x, data, _ON_HOST, kind, interface["shape"], strides, is_read_only)


def _in_elements(strides, size):
    if any(step % size for step in strides):
        raise Error(f"expected strides of whole elements of {size} bytes, but got {strides} bytes")
    return [step // size for step in strides]


class _Managed(Structure):
    """DLManagedTensor up to the tensor."""
    _fields_ = [("tensor", Tensor)]


class _Versioned(Structure):
    """DLManagedTensorVersioned."""
    _fields_ = [("major", ctypes.c_uint32), ("minor", ctypes.c_uint32), ("context", c_void_p), ("deleter", c_void_p),
                ("flags", c_uint64), ("tensor", Tensor)]


_pointer = ctypes.pythonapi.PyCapsule_GetPointer
_pointer.restype, _pointer.argtypes = c_void_p, [ctypes.py_object, c_char_p]
_is_valid = ctypes.pythonapi.PyCapsule_IsValid
_is_valid.restype, _is_valid.argtypes = c_int, [ctypes.py_object, c_char_p]


def _of_dlpack(x):
    """By a capsule, which is not consumed: what it points at lives as long as the capsule does, and goes with it."""
    device = x.__dlpack_device__()
    options = {"stream": 1} if device[0] == CUDA else {}  # the default stream, after which the launch is ordered
    try:
        capsule = x.__dlpack__(max_version=(1, 1), **options)
    except TypeError:  # before version 1
        capsule = x.__dlpack__(**options)
    if _is_valid(capsule, b"dltensor_versioned"):
        managed = _Versioned.from_address(_pointer(capsule, b"dltensor_versioned"))
        if managed.major != 1:
            raise Error(f"expected a DLPack tensor of version 1, but got {managed.major}.{managed.minor}")
        is_read_only = bool(managed.flags & 1)
    else:
        managed = _Managed.from_address(_pointer(capsule, b"dltensor"))
        is_read_only = False
    is_read_only = is_read_only or type(x).__module__.split(".", 1)[0] in ("jax", "jaxlib")  # whose arrays never change
    tensor = managed.tensor
    strides = tensor.strides[:tensor.rank] if tensor.strides else None
    return Array((x, capsule), tensor.data, (tensor.device_type, tensor.device_id), (tensor.type_code, tensor.type_bits),
                 tensor.shape[:tensor.rank], strides, is_read_only, tensor.byte_offset, tensor.lanes)


class _Buffer(Structure):
    """Py_buffer."""
    _fields_ = [("data", c_void_p), ("object", c_void_p), ("bytes", ctypes.c_ssize_t), ("size", ctypes.c_ssize_t),
                ("is_read_only", c_int), ("rank", c_int), ("format", c_char_p), ("shape", POINTER(ctypes.c_ssize_t)),
                ("strides", POINTER(ctypes.c_ssize_t)), ("suboffsets", c_void_p), ("internal", c_void_p)]


_get_buffer, _release_buffer = ctypes.pythonapi.PyObject_GetBuffer, ctypes.pythonapi.PyBuffer_Release
_get_buffer.argtypes, _release_buffer.argtypes = [ctypes.py_object, c_void_p, c_int], [c_void_p]


def _of_buffer(x):
    view = memoryview(x)
    kind = _kinds.get((view.format, view.itemsize))
    if kind is None:
        letter = view.format.lstrip("@=<")
        if letter not in _LETTERS:
            raise Error(f"expected a buffer with a format out of {' '.join(_LETTERS)}, but got '{view.format}'")
        kind = TYPES[_LETTERS[letter]]
        if kind[1] != 8 * view.itemsize:  # "<l" has four bytes, "l" eight
            raise Error(f"expected elements of {kind[1] // 8} bytes for the format '{view.format}', but they have {view.itemsize}")
        _kinds[view.format, view.itemsize] = kind
    strides = None if view.c_contiguous else _in_elements(view.strides, view.itemsize)
    buffer = _Buffer()
    records_ro = 0x0018 | 0x0004  # PyBUF_STRIDES | PyBUF_FORMAT
    _get_buffer(view, byref(buffer), records_ro)
    data = buffer.data
    _release_buffer(byref(buffer))
    return Array(view, data, _ON_HOST, kind, view.shape, strides, view.readonly)


def is_number(x):
    """Whether x is a number of Python's or NumPy's and no array."""
    numpy = sys.modules.get("numpy")
    return isinstance(x, (bool, int, float)) or numpy is not None and isinstance(x, numpy.generic)


def _reader_for(x):
    """The function that makes an Array of an array of this type."""
    if is_torch(x):
        return _of_torch
    if type(x).__module__.split(".", 1)[0] == "numpy" and hasattr(x, "__array_interface__"):
        return _of_numpy
    return _of_dlpack if hasattr(x, "__dlpack__") else _of_buffer


_readers = {}  # by the types of arrays


def array_of(x):
    """The tensor that lies in an array of PyTorch, NumPy, JAX, any library with DLPack, or any buffer."""
    read = _readers.get(type(x))
    if read is None:
        read = _readers[type(x)] = _reader_for(x)
    try:
        return read(x)
    except TypeError:
        if read is not _of_buffer:
            raise
        raise Error(f"expected an array or a number, but got {type(x).__name__}") from None


# --- Arguments -------------------------------------------------------------------------------------------------------


_BITS, _DOUBLE = struct.Struct("q"), struct.Struct("d")


def _bits_of(number):
    return _BITS.unpack(_DOUBLE.pack(number))[0]


def _scalar(x):
    """The type and the 64 bits of a Python bool, int (i64) or float (f32), or a number of NumPy's of its own type."""
    if isinstance(x, bool):
        return TYPES["bool"], int(x)
    if isinstance(x, int):
        if not -2**63 <= x < 2**64:
            raise Error(f"expected an integer of 64 bits, but got {x}")
        return TYPES["int64" if x < 2**63 else "uint64"], x if x < 2**63 else x - 2**64
    if hasattr(x, "dtype"):
        kind = _kind(str(x.dtype), "a scalar")
        if kind[0] in (FLOAT, BFLOAT, E4M3, E5M2, E8M0):
            return kind, _bits_of(float(x))
        return kind, int(x) if int(x) < 2**63 else int(x) - 2**64
    return TYPES["float32"], _bits_of(x)


def _names_of_items(name, items):
    return [f"{name}[{i}]" for i in range(len(items))]


_ARGUMENT = 6  # words of 8 bytes in a kiln_argument


class Arguments:
    """Arrays, numbers, None, and lists of arrays as an array of kiln_argument, in one block of memory with what it points
    at. `names` are for errors. Its memory and that of its arrays live as long as it does.

    A block is words of 8 bytes: the kiln_argument of each value, then for each array its kiln_tensor, extents and strides,
    and for each list its items in the same form."""
    __slots__ = ("arrays", "address", "_words", "_pointers")

    def __init__(self, values, names=()):
        self.arrays, self._words, self._pointers = [], [], []  # the words that are offsets from the block's begin so far
        self._append(values, names)
        self._words = array.array("q", self._words)
        self.address = self._words.buffer_info()[0]
        for at in self._pointers:
            self._words[at] += self.address

    def _append(self, values, names):
        at = len(self._words)
        self._words += [0] * (_ARGUMENT * len(values))
        for i, value in enumerate(values):
            name = names[i] if i < len(names) else ""
            if type(value) in _readers or not self._append_other(at, value, name):
                try:
                    self._append_array(at, array_of(value))
                except Error as error:
                    raise Error(f"argument '{name}': {error}" if name else str(error)) from None
            at += _ARGUMENT

    def _append_other(self, at, value, name):
        """Appends a number, a list or None; whether the value is one."""
        words = self._words
        if is_number(value):
            (code, bits), words[at + 2] = _scalar(value)
            words[at + 1] = code << 32 | bits << 40 | 1 << 48
        elif isinstance(value, (list, tuple)):
            words[at + 3], words[at + 4], words[at + 5] = 8 * len(words), len(value), 1
            self._pointers.append(at + 3)
            self._append(value, _names_of_items(name, value) if name else ())
        else:
            return value is None
        return True

    def _append_array(self, at, each):
        words, tensor, rank = self._words, len(self._words), len(each.shape)
        (code, bits), (device_type, device_id) = each.kind, each.place
        words[at], words[at + 1] = 8 * tensor, each.is_read_only
        words += (each.data or 0, device_type | device_id << 32, rank | code << 32 | bits << 40 | each.lanes << 48,
                  8 * (tensor + 6), 0, each.byte_offset, *each.shape)
        self._pointers += (at, tensor + 3)
        if each.strides is not None:
            words[tensor + 4] = 8 * (tensor + 6 + rank)
            self._pointers.append(tensor + 4)
            words += each.strides
        self.arrays.append(each)


def _hint_for_scalars(values, names, kinds):
    """Lines for an error: the arrays of one element in the place of numbers."""
    arrays = [(name, value) for name, value, kind in zip(names, values, kinds) if kind == SCALAR and hasattr(value, "item")]
    return "".join(f"\nhint: {name} is a {type(value).__name__}; pass {name}.item()" for name, value in arrays if not is_number(value))


def _hint_for_doubles(values, names):
    """A line for an error: the float64 arrays next to arrays of another float type, and how to convert them."""
    pairs = []
    for name, value in zip(names, values):
        pairs += zip(_names_of_items(name, value), value) if isinstance(value, (list, tuple)) else [(name, value)]
    kinds = [(name, value, array_of(value).kind) for name, value in pairs if value is not None and not is_number(value)]
    doubles = [(name, value) for name, value, kind in kinds if kind == TYPES["float64"]]
    others = [kind for *_, kind in kinds if kind[0] in (FLOAT, BFLOAT, E4M3, E5M2, E8M0) and kind[1] < 64]
    if not doubles or not others:
        return ""
    conversions = []
    for name, value in doubles:
        if is_torch(value):
            how = f"; pass {name}.float()"
        elif type(value).__module__.split(".", 1)[0] == "numpy":
            how = f"; pass {name}.astype(np.float32)"
        else:
            how = "; pass f32"
        conversions.append(f"{name} is float64{how}")
    return "\nhint: " + ", ".join(conversions)


def hint_for(error, values, names, kinds):
    """What a caller may have meant, as lines after the text of a launch's error."""
    if " to be a scalar, but got " in error:
        return _hint_for_scalars(values, names, kinds)
    # A kernel that stores something else into an array of doubles says so itself; the copy that a hint made would be lost.
    return _hint_for_doubles(values, names) if "f64" in error and "the view's type f64" not in error else ""


if sys.byteorder != "little":
    raise ImportError("expected a machine of little-endian byte order")
