# SPDX-License-Identifier: Apache-2.0
"""libgpumemtrace_core.so by ctypes: the functions of gpumemtrace.h, and Arrow's capsules made of its streams."""

from __future__ import annotations

import ctypes
import os
import weakref
from array import array
from typing import Any, Callable, List, NamedTuple, Optional, Sequence, Tuple

from ._error import Error

INTERFACE = 1  # GPUMEMTRACE_INTERFACE
_STREAM_BYTES, _SCHEMA_BYTES = 5 * 8, 9 * 8  # of the structs of Arrow's C interfaces
_NUMBERS = {"L": "Q", "l": "q", "g": "d"}  # format of Arrow -> of array


class Column(NamedTuple):
    """format: L, l, g, b or u as in Arrow's C data interface; None among the values is null."""

    name: str
    format: str
    values: Sequence[Any]


class _Answer(ctypes.Structure):
    _fields_ = [("json", ctypes.c_void_p), ("length", ctypes.c_size_t), ("sentence", ctypes.c_char_p), ("notes", ctypes.c_char_p)]


class _Column(ctypes.Structure):
    _fields_ = [("name", ctypes.c_char_p), ("format", ctypes.c_char_p), ("nulls", ctypes.c_int64), ("buffers", ctypes.c_char_p * 3),
                ("lengths", ctypes.c_uint64 * 3)]


class _Library:
    """The functions, and those of the interpreter that capsules need."""

    def __init__(self, path: str) -> None:
        try:
            self.lib = lib = ctypes.CDLL(path or "libgpumemtrace_core.so")
        except OSError as error:
            why = f"cannot be loaded into this Python: {error}" if path else "was not found beside this program or in ../lib: install gpumemtrace again"
            raise Error(f"{path or 'libgpumemtrace_core.so'} {why}", 3) from None
        if lib.gpumemtrace_interface() != INTERFACE:
            raise Error(f"{path} is of another version than this package: install gpumemtrace again from its wheel", 3)
        libc = ctypes.CDLL(None)
        self.calloc, self.free = libc.calloc, libc.free
        self.calloc.restype, self.calloc.argtypes = ctypes.c_void_p, [ctypes.c_size_t, ctypes.c_size_t]
        self.free.argtypes = [ctypes.c_void_p]
        python = ctypes.pythonapi
        self.capsule = ctypes.PYFUNCTYPE(ctypes.py_object, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_void_p)(
            ("PyCapsule_New", python))
        lib.gpumemtrace_capsule_getter(ctypes.cast(python.PyCapsule_GetPointer, ctypes.c_void_p))
        lib.gpumemtrace_close.argtypes = lib.gpumemtrace_stream_free.argtypes = [ctypes.c_void_p]

    def answer(self, function: Callable[..., int], *arguments: Any) -> Tuple[int, bytes, str]:
        """Its code, what it answers, and its sentence."""
        answer = _Answer()
        code = function(*arguments, ctypes.byref(answer))
        try:
            json = ctypes.string_at(answer.json, answer.length) if answer.json else b""
            return code, json, (answer.sentence or b"").decode("utf-8", "replace")
        finally:
            self.lib.gpumemtrace_answer_free(ctypes.byref(answer))

    def call(self, function: Callable[..., int], *arguments: Any, fine: int = 0) -> bytes:
        """What a function answers; Error with its sentence, if its code is above `fine`."""
        code, json, sentence = self.answer(function, *arguments)
        if code > fine:
            raise Error(sentence, code)
        return json

    def new(self, size: int) -> int:
        place = self.calloc(1, size)
        if not place:
            raise MemoryError
        return int(place)

    def new_capsule(self, pointer: int, kind: str) -> object:
        """kind: stream or schema. The library has the name of such capsules, and the function that ends one."""
        name = ctypes.addressof(ctypes.c_char.in_dll(self.lib, f"gpumemtrace_{kind}_name"))
        end = ctypes.cast(getattr(self.lib, f"gpumemtrace_{kind}_end"), ctypes.c_void_p)
        made: object = self.capsule(pointer, name, end)
        return made


_loaded: Optional[_Library] = None


def load(path: str) -> _Library:
    """The library of that path, for all that follows."""
    global _loaded
    _loaded = _Library(path)
    return _loaded


def _library() -> _Library:
    if _loaded is not None:
        return _loaded
    from ._files import core_library

    return load(core_library())


class Handle:
    """An open recording, whose tables stay in memory until it is collected."""

    def __init__(self, path: str) -> None:
        library, handle = _library(), ctypes.c_void_p()
        library.call(library.lib.gpumemtrace_open, os.fsencode(path), ctypes.byref(handle))
        self.pointer = handle
        weakref.finalize(self, library.lib.gpumemtrace_close, handle)


def answer(handles: Sequence[Handle], question: str, *arguments: str) -> Tuple[int, bytes, str]:
    """The exit code, the JSON and the error of `gpumemtrace QUESTION RECORDING... ARGUMENTS --json`."""
    library = _library()
    recordings = (ctypes.c_void_p * len(handles))(*[h.pointer.value for h in handles])
    words = (ctypes.c_char_p * (len(arguments) + 1))(*[os.fsencode(a) for a in arguments], None)
    return library.answer(library.lib.gpumemtrace_ask, recordings, ctypes.c_size_t(len(handles)), question.encode(), words)


def ask(handles: Sequence[Handle], question: str, *arguments: str, fine: int = 0) -> bytes:
    """The JSON alone; codes up to `fine` are no error."""
    code, json, sentence = answer(handles, question, *arguments)
    if code > fine:
        raise Error(sentence, code)
    return json


def is_part(handle: Handle) -> bool:
    """Whether the recording has no end or is damaged."""
    return bool(_library().lib.gpumemtrace_is_part(handle.pointer))


# A stream, made in the memory that is given.
Fill = Callable[[ctypes.c_void_p], None]


def table_of(handle: Handle, table: str, columns: Optional[str]) -> Fill:
    library = _library()

    def fill(stream: ctypes.c_void_p) -> None:
        library.call(library.lib.gpumemtrace_table, handle.pointer, table.encode(), None if columns is None else columns.encode(), stream)
    return fill


def _open(fill: Fill) -> int:
    library = _library()
    stream = library.new(_STREAM_BYTES)
    try:
        fill(ctypes.c_void_p(stream))
    except BaseException:
        library.free(stream)
        raise
    return stream


def stream_capsule(fill: Fill) -> object:
    return _library().new_capsule(_open(fill), "stream")


def schema_capsule(fill: Fill) -> object:
    """The schema of a stream, which ends here."""
    library, stream = _library(), _open(fill)
    schema = library.new(_SCHEMA_BYTES)
    get_schema = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.c_void_p)(ctypes.c_void_p.from_address(stream).value or 0)
    rc = get_schema(stream, schema)
    library.lib.gpumemtrace_stream_free(stream)
    if rc:
        library.free(schema)
        raise OSError(rc, os.strerror(rc))
    return library.new_capsule(schema, "schema")


# ---- columns that Python has ----


def _bits(flags: Sequence[bool]) -> bytes:
    packed = bytearray((len(flags) + 7) // 8)
    for i, flag in enumerate(flags):
        packed[i // 8] |= bool(flag) << i % 8
    return bytes(packed)


def _texts(values: Sequence[Optional[str]]) -> Tuple[bytes, bytes]:
    encoded = [(v or "").encode("utf-8", "replace") for v in values]
    ends = array("i", [0])
    for text in encoded:
        ends.append(ends[-1] + len(text))
    return ends.tobytes(), b"".join(encoded)


def _buffers(c: Column) -> Tuple[int, List[bytes]]:
    """How many nulls there are; valid, offsets, values."""
    nulls = sum(v is None for v in c.values)
    valid = _bits([v is not None for v in c.values]) if nulls else b""
    if c.format == "u":
        return nulls, [valid, *_texts(c.values)]
    if c.format == "b":
        return nulls, [valid, b"", _bits([bool(v) for v in c.values])]
    return nulls, [valid, b"", array(_NUMBERS[c.format], [v or 0 for v in c.values]).tobytes()]


def columns_of(columns: Sequence[Column], rows: int) -> Fill:
    library = _library()

    def fill(stream: ctypes.c_void_p) -> None:
        given = (_Column * (len(columns) + 1))()
        kept = [_buffers(column) for column in columns]
        for to, column, (nulls, buffers) in zip(given, columns, kept):
            to.nulls = nulls
            to.name, to.format = column.name.encode(), column.format.encode()
            to.buffers = (ctypes.c_char_p * 3)(*buffers)
            to.lengths = (ctypes.c_uint64 * 3)(*map(len, buffers))
        library.call(library.lib.gpumemtrace_columns, given, ctypes.c_size_t(len(columns)), ctypes.c_int64(rows), stream)
    return fill
