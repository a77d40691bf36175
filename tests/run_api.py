"""Running exports with the functions of libferry (include/ferry/exported.h), called through ctypes: one process, and
a program that stays open from run to run."""

import ctypes
from pathlib import Path

import numpy as np
from text_api import LIBRARY, Error, FerryError

DTYPES = {
    name: LIBRARY.ferry_dtype_parse(name.encode())
    for name in ("bool", "uint8", "int8", "int16", "int32", "int64", "float16", "float32", "float64")
}
NAMES = {number: name for name, number in DTYPES.items()}


class Tensor(ctypes.Structure):
    _fields_ = [
        ("name", ctypes.c_char_p),
        ("dtype", ctypes.c_int),
        ("rank", ctypes.c_size_t),
        ("shape", ctypes.c_int64 * 8),
        ("data", ctypes.c_void_p),
    ]


class RunConfig(ctypes.Structure):
    _fields_ = [
        ("size", ctypes.c_size_t),
        ("runtime", ctypes.c_char_p),
        ("library", ctypes.c_char_p),
        ("device", ctypes.c_char_p),
        ("threads", ctypes.c_uint),
        ("note", ctypes.c_void_p),
        ("note_context", ctypes.c_void_p),
    ]


LIBRARY.ferry_tensors_new.restype = ctypes.c_void_p
LIBRARY.ferry_tensors_at.restype = ctypes.POINTER(Tensor)
LIBRARY.ferry_tensors_count.restype = ctypes.c_size_t


class Exported:
    """An export that `runtime` runs; `libraries` is where that is found."""

    def __init__(self, directory: Path, runtime: str, libraries: Path, threads: int = 1):
        self.error, self.handle, self.config = Error(), ctypes.c_void_p(), RunConfig()
        self.check(LIBRARY.ferry_exported_load(str(directory).encode(), ctypes.byref(self.handle), ctypes.byref(self.error)))
        LIBRARY.ferry_run_config_init(ctypes.byref(self.config))
        self.config.runtime, self.config.library = runtime.encode(), str(libraries).encode()
        self.config.threads = threads

    def check(self, status: int):
        if status:
            raise FerryError(f"{self.error.where.decode()}: {self.error.message.decode()}")

    def run(self, inputs: dict) -> dict:
        given, outputs = ctypes.c_void_p(LIBRARY.ferry_tensors_new()), ctypes.c_void_p()
        try:
            for name, array in inputs.items():
                self.add(given, name, np.ascontiguousarray(array).reshape(array.shape))
            self.check(self.call(given, ctypes.byref(outputs), ctypes.byref(self.error)))
            return dict(self.take(outputs, i) for i in range(LIBRARY.ferry_tensors_count(outputs)))
        finally:
            LIBRARY.ferry_tensors_free(given)
            LIBRARY.ferry_tensors_free(outputs)

    def call(self, given, outputs, error) -> int:
        return LIBRARY.ferry_exported_run(self.handle, ctypes.byref(self.config), given, outputs, error)

    def add(self, tensors, name: str, array: np.ndarray):
        made, shape = ctypes.POINTER(Tensor)(), (ctypes.c_int64 * 8)(*array.shape)
        self.check(
            LIBRARY.ferry_tensors_add(
                tensors, name.encode(), DTYPES[str(array.dtype)], ctypes.c_size_t(array.ndim), shape,
                ctypes.byref(made), ctypes.byref(self.error),
            )  # fmt: skip
        )
        ctypes.memmove(made.contents.data, array.ctypes.data, array.nbytes)

    def take(self, tensors, index: int):
        tensor = LIBRARY.ferry_tensors_at(tensors, ctypes.c_size_t(index)).contents
        array = np.empty(tensor.shape[: tensor.rank], NAMES[tensor.dtype])
        ctypes.memmove(array.ctypes.data, tensor.data, array.nbytes)
        return tensor.name.decode(), array

    def reset(self):
        """What the program keeps from run to run is what it was at first."""
        self.check(LIBRARY.ferry_exported_reset(self.handle, ctypes.byref(self.error)))

    def close(self):
        LIBRARY.ferry_exported_free(self.handle)
        self.handle = None


class Runner(Exported):
    """One component of an export, whose cache stays with it from run to run."""

    def __init__(self, directory: Path, component: str, runtime: str, libraries: Path):
        super().__init__(directory, runtime, libraries)
        self.runner = ctypes.c_void_p()
        self.check(
            LIBRARY.ferry_exported_runner(
                self.handle, component.encode(), ctypes.byref(self.config), ctypes.byref(self.runner),
                ctypes.byref(self.error),
            )  # fmt: skip
        )

    def call(self, given, outputs, error) -> int:
        return LIBRARY.ferry_runner_run(self.runner, given, outputs, error)

    def cache(self) -> dict:
        held = ctypes.c_void_p()
        self.check(LIBRARY.ferry_runner_cache(self.runner, ctypes.byref(held), ctypes.byref(self.error)))
        found = dict(self.take(held, i) for i in range(LIBRARY.ferry_tensors_count(held)))
        LIBRARY.ferry_tensors_free(held)
        return found

    def reset(self):
        self.check(LIBRARY.ferry_runner_reset(self.runner, ctypes.byref(self.error)))

    def close(self):
        LIBRARY.ferry_runner_free(self.runner)
        super().close()
