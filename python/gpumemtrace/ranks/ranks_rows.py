# SPDX-License-Identifier: Apache-2.0
"""A row per recording, from a command's answer for it: figures for the columns, and the bytes of each class and line of code."""
from __future__ import annotations

import ctypes
import json
import os
import queue
import signal
import subprocess
import threading
from typing import Any, Callable, Dict, Iterator, List, NamedTuple, Optional, Sequence, Tuple, TypeVar, Union

from .. import _core
from .._answer import UNREADABLE, in_units
from .._error import Error
from .ranks_columns import CATEGORY, CLASS, PLACE, TEXTS, WORDS, Column
from .ranks_run import File
from .ranks_words import Place, Words

AT_ONCE = 4  # recordings: each may need what the largest one needs

PR_SET_PDEATHSIG = 1
prctl = ctypes.CDLL(None).prctl

T = TypeVar("T")


class Result(NamedTuple):
    """The exit code; the documents of the command and of `peak`, b"" if there are none; the error; whether a recording has no end or is damaged."""

    code: int
    document: bytes
    peak: bytes
    error: str
    part: bool


class Value(NamedTuple):
    known: bool
    n: float = 0
    words: str = ""


class Device(NamedTuple):
    """A device that a rank had memory on. reserved: at least the peak; both 0: it has a context only. context: bytes there at the peak that no
    recording shows. place: the line that held most of the peak, or made the context."""

    number: int
    uuid: str
    peak: int
    reserved: int
    context: int
    place: Place


# ---- answers ----


def ask(paths: Sequence[str], question: str, options: Sequence[str], with_peak: bool) -> Result:
    """What the library says of one recording, or of two."""
    handles: List[_core.Handle] = []
    peak = b""
    try:
        for path in paths:
            handles.append(_core.Handle(path))
        code, document, error = _core.answer(handles, question, *options)
        if with_peak and document:
            _, peak, _ = _core.answer(handles, "peak")
    except Error as trouble:
        code, document, error = trouble.exit_code, b"", str(trouble)
    return Result(code, document, peak, error, any(_core.is_part(h) for h in handles))


def export(tool: str, path: str, output: str, options: Sequence[str]) -> Result:
    """A file that is written by a process of its own, which ends with this one and then removes what is half written."""
    done = subprocess.run([tool, "export", path, f"--output={output}", *options, "--json"], stdin=subprocess.DEVNULL, capture_output=True,
                          preexec_fn=lambda: prctl(PR_SET_PDEATHSIG, signal.SIGTERM))
    last = done.stderr.decode("utf-8", "surrogateescape").rstrip("\n").rpartition("\n")[2]
    error = last.partition(": ")[2] if last.startswith("gpumemtrace") and ": " in last else last
    if done.returncode < 0:
        return Result(UNREADABLE, b"", b"", f"reading it was ended by signal {-done.returncode} ({signal.strsignal(-done.returncode)})", False)
    try:
        part = _core.is_part(_core.Handle(path))
    except Error:
        part = False
    return Result(done.returncode, done.stdout, b"", error, part)


def in_order(count: int, work: Callable[[int], T]) -> Iterator[T]:
    """The results of a few threads, none of which goes far ahead."""
    most = min(os.cpu_count() or 1, AT_ONCE, count)
    lanes: List["queue.Queue[Union[T, Exception]]"] = [queue.Queue(1) for _ in range(most)]

    def run(lane: int) -> None:
        try:
            for i in range(lane, count, most):
                lanes[lane].put(work(i))
        except Exception as trouble:
            lanes[lane].put(trouble)
    for lane in range(most):
        threading.Thread(target=run, args=(lane,), daemon=True).start()
    for i in range(count):
        result = lanes[i % most].get()
        if isinstance(result, Exception):
            raise result
        yield result


# ---- values ----


def member_at(document: Any, path: str) -> Any:
    for part in path.split("."):
        if "=" in part:
            key, _, name = part.partition("=")
            document = next((x for x in document or () if x.get(key) == name), None)
        elif isinstance(document, list):
            document = document[int(part)] if int(part) < len(document) else None
        else:
            document = document.get(part) if isinstance(document, dict) else None
    return document


def number_at(document: Any, path: str) -> Value:
    if ".*." in path:
        items = member_at(document, path.partition(".*.")[0])
        return Value(items is not None, sum(member_at(x, path.partition(".*.")[2]) or 0 for x in items or ()))
    if " - " in path:
        first, second = (member_at(document, p) for p in path.split(" - "))
        return Value(first is not None, (first or 0) - (second or 0))
    value = member_at(document, path)
    n = len(value) if isinstance(value, list) else value if isinstance(value, (int, float)) else 0
    return Value(value is not None, n)


def place_of(v: Any) -> Place:
    return Place(v.get("function") or "", v.get("file") or "", v.get("line") or 0)


def devices_of(document: Any) -> List[Device]:
    return [Device(d["device"], d.get("uuid", ""), d.get("peak_bytes", 0), max(d.get("peak_reserved_bytes", 0), d.get("peak_bytes", 0)),
                   d.get("context_bytes", 0), place_of(d)) for d in (*document.get("devices", ()), *document.get("contexts", ()))]


class Row:
    def __init__(self, file: File) -> None:
        self.file, self.part = file, file.part
        self.code, self.error, self.fine = 0, "", False
        self.values: List[Value] = []
        self.classes: Dict[str, int] = {}
        self.lines: Dict[Tuple[str, Place], int] = {}  # bytes of a class at a line of code
        self.devices: List[Device] = []

    def home(self) -> Optional[Device]:
        """The device that the rank works on: the one on which it has most."""
        return max(self.devices, key=lambda d: d.peak, default=None)


class Table:
    def __init__(self, files: Sequence[File], command: str, columns: List[Column], words: Words) -> None:
        self.command, self.columns, self.words = command, columns, words
        self.rows = [Row(f) for f in files]
        self.main = next((i for i, c in enumerate(columns) if c.has("main")), None)
        self.has_classes = any(c.kind == CLASS for c in columns)

    def fine(self, host: str = "") -> List[Row]:
        """Rows with an answer, of one host or of all."""
        return [r for r in self.rows if r.fine and (not host or r.file.host == host)]

    def figure(self, row: Row) -> float:
        """In the main column."""
        assert self.main is not None
        return row.values[self.main].n

    def sum(self, column: int, host: str = "") -> float:
        return sum(r.values[column].n for r in self.fine(host))

    def add(self, i: int, result: Result) -> Tuple[Any, Any]:
        """Fills a row; the documents."""
        row = self.rows[i]
        document, peak = (json.loads(text) if text else None for text in (result.document, result.peak))
        row.code, row.part, row.fine = result.code, row.part or result.part, document is not None
        if document is None:
            row.error = result.error or "nothing was found"
            return None, None
        if self.has_classes:
            self.read_classes(row, peak if peak is not None else document)
        row.values = [self.value(row, c, peak if c.path.startswith("peak:") else document) for c in self.columns]
        if self.command == "report":
            row.devices = devices_of(document)
        return document, peak

    def read_classes(self, row: Row, document: Any) -> None:
        found = document.get("categories") or {}
        row.classes = {c: found[c] for c in self.words.classes if c in found}
        for line in document.get("lines", ()):
            if line.get("class") in self.words.classes:
                at = (line["class"], place_of(line))
                row.lines[at] = row.lines.get(at, 0) + line["bytes"]

    def value(self, row: Row, c: Column, document: Any) -> Value:
        path = c.path.partition("peak:")[2] or c.path
        if c.kind not in TEXTS:
            return number_at(document, path)
        text, value = "", member_at(document, path)
        if c.kind == WORDS and isinstance(value, str):
            text = value
        elif c.kind == CATEGORY:
            text = self.words.classes.get(value, "")
        elif c.kind == PLACE and value is not None:
            text = self.words.place(place_of(value), 44)
        elif c.kind == CLASS and any(row.classes.values()):
            most = max(row.classes, key=lambda name: row.classes[name])
            text = f"{self.words.classes[most]} {in_units(row.classes[most])}"
        return Value(bool(text), 0, text)
