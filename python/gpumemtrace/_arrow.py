# SPDX-License-Identifier: Apache-2.0
"""Capsules of Arrow's PyCapsule interface, made by libgpumemtrace-arrow.so (python/native)."""

from __future__ import annotations

import ctypes
import os
from array import array
from typing import Any, List, NamedTuple, Optional, Sequence, Tuple

from ._error import Error
from ._files import arrow_library, tool
from ._tool import environment, sentence_of

_TEXT = 4096
_STREAM_BYTES, _SCHEMA_BYTES = 5 * 8, 9 * 8  # of the structs of the C interfaces
_NUMBERS = {"L": "Q", "l": "q", "g": "d"}  # format of Arrow -> of array


class Column(NamedTuple):
    """format: L, l, g, b or u as in Arrow's C data interface; None among the values is null."""

    name: str
    format: str
    values: Sequence[Any]


class _Given(ctypes.Structure):
    _fields_ = [("name", ctypes.c_char_p), ("format", ctypes.c_char_p), ("metadata", ctypes.c_char_p),
                ("nulls", ctypes.c_int64), ("buffers", ctypes.c_char_p * 3), ("lens", ctypes.c_uint64 * 3),
                ("bits", ctypes.c_uint8)]


class _Library:
    """The functions, and those of the interpreter that capsules need."""

    def __init__(self) -> None:
        self.lib = ctypes.CDLL(arrow_library())
        self.libc_calloc = ctypes.CDLL(None).calloc
        self.libc_calloc.restype = ctypes.c_void_p
        self.libc_calloc.argtypes = [ctypes.c_size_t, ctypes.c_size_t]
        self.libc_free = ctypes.CDLL(None).free
        self.libc_free.argtypes = [ctypes.c_void_p]
        python = ctypes.pythonapi
        self.capsule = ctypes.PYFUNCTYPE(ctypes.py_object, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_void_p)(
            ("PyCapsule_New", python))
        self.lib.gmt_arrow_set_getter.argtypes = [ctypes.c_void_p]
        self.lib.gmt_arrow_set_getter.restype = None
        self.lib.gmt_arrow_set_getter(ctypes.cast(python.PyCapsule_GetPointer, ctypes.c_void_p))
        self.lib.gmt_arrow_get_schema.argtypes = [ctypes.c_void_p, ctypes.c_void_p]
        self.lib.gmt_arrow_of_columns.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int64, ctypes.c_void_p]
        self.lib.gmt_arrow_drop.argtypes = [ctypes.c_void_p]
        self.lib.gmt_arrow_drop.restype = None

    def new(self, size: int) -> int:
        place = self.libc_calloc(1, size)
        if not place:
            raise MemoryError
        return int(place)

    def new_capsule(self, pointer: int, kind: str) -> object:
        """kind: stream or schema. The library has the name of such capsules, and the function that ends one."""
        name = ctypes.addressof(ctypes.c_char.in_dll(self.lib, f"gmt_arrow_{kind}_name"))
        end = ctypes.cast(getattr(self.lib, f"gmt_arrow_end_{kind}"), ctypes.c_void_p)
        made: object = self.capsule(pointer, name, end)
        return made

    def stream_capsule(self, stream: int) -> object:
        return self.new_capsule(stream, "stream")

    def schema_capsule(self, stream: int) -> object:
        """The schema of a stream, which ends here."""
        schema = self.new(_SCHEMA_BYTES)
        rc = self.lib.gmt_arrow_get_schema(stream, schema)
        self.lib.gmt_arrow_drop(stream)
        if rc:
            self.libc_free(schema)
            raise OSError(rc, os.strerror(rc))
        return self.new_capsule(schema, "schema")


_loaded: Optional[_Library] = None


def _library() -> _Library:
    global _loaded
    if _loaded is None:
        _loaded = _Library()
    return _loaded


def _strings(texts: Sequence[str]) -> "ctypes.Array[ctypes.c_char_p]":
    return (ctypes.c_char_p * (len(texts) + 1))(*[os.fsencode(t) for t in texts], None)


def _open_tool(arguments: Sequence[str]) -> int:
    """A stream of what the tool writes on its standard output, its schema read."""
    library = _library()
    stream, code, text = library.new(_STREAM_BYTES), ctypes.c_int(-1), ctypes.create_string_buffer(_TEXT)
    argv = _strings(["gpumemtrace", *arguments])
    envp = _strings([f"{k}={v}" for k, v in environment().items()])
    rc = library.lib.gmt_arrow_of_tool(os.fsencode(tool()), argv, envp, ctypes.c_void_p(stream), ctypes.byref(code), text,
                                       ctypes.c_size_t(_TEXT))
    if not rc:
        return stream
    library.libc_free(stream)
    said = text.value.decode("utf-8", "replace")
    raise Error(sentence_of(said or f"the tool cannot be started: {os.strerror(rc)}", code.value), code.value if code.value > 0 else 3)


def stream_of_tool(arguments: Sequence[str]) -> object:
    return _library().stream_capsule(_open_tool(arguments))


def schema_of_tool(arguments: Sequence[str]) -> object:
    return _library().schema_capsule(_open_tool(arguments))


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


def _buffers(c: Column) -> Tuple[int, List[bytes], int]:
    """How many nulls there are; valid, offsets, values; bits of a value, 0 for texts."""
    nulls = sum(v is None for v in c.values)
    valid = _bits([v is not None for v in c.values]) if nulls else b""
    if c.format == "u":
        return nulls, [valid, *_texts(c.values)], 0
    if c.format == "b":
        return nulls, [valid, b"", _bits([bool(v) for v in c.values])], 1
    return nulls, [valid, b"", array(_NUMBERS[c.format], [v or 0 for v in c.values]).tobytes()], 64


def _open_columns(columns: Sequence[Column], rows: int) -> int:
    library = _library()
    given = (_Given * (len(columns) + 1))()
    kept = []
    for to, column in zip(given, columns):
        to.nulls, buffers, to.bits = _buffers(column)
        kept.append(buffers)
        to.name, to.format = column.name.encode(), column.format.encode()
        to.buffers = (ctypes.c_char_p * 3)(*buffers)
        to.lens = (ctypes.c_uint64 * 3)(*map(len, buffers))
    stream = library.new(_STREAM_BYTES)
    rc = library.lib.gmt_arrow_of_columns(given, len(columns), rows, stream)
    if rc:
        library.libc_free(stream)
        raise OSError(rc, os.strerror(rc))
    return stream


def stream_of_columns(columns: Sequence[Column], rows: int) -> object:
    return _library().stream_capsule(_open_columns(columns, rows))


def schema_of_columns(columns: Sequence[Column]) -> object:
    return _library().schema_capsule(_open_columns([Column(c.name, c.format, []) for c in columns], 0))
