# SPDX-License-Identifier: Apache-2.0
"""A recording, as the tool reads it."""

from __future__ import annotations

import html
import os
from dataclasses import dataclass
from typing import ClassVar, Dict, List, Mapping, Optional, Tuple, Union

from . import _arrow
from ._documents import (Account, Check, Diff, Info, Leaks, Live, Modules, Oom, Peak, Report, StackFrame, Steps, StepsRow, Timeline,
                         Why)
from ._error import Error
from ._rows import Kinds, Row, Table
from ._tool import ask, option

Path = Union[str, "os.PathLike[str]"]
Size = Union[int, str]  # bytes, or as people write them: "40GiB"


@dataclass(frozen=True)
class Rank(Row):
    """The peak of one recording of a run.

    file: the recording
    device: CUDA ordinal
    bytes: in use at its peak (bytes)
    time_ns: when that was (ns, of its own process's clock)
    step: step, 0 before the first
    phase: phase
    text: where it was, in words
    reserved_bytes: reserved by the framework then (bytes)
    categories: bytes by class then (bytes)
    rank: its rank; None if it says none
    """

    file: str
    device: int
    bytes: int
    time_ns: int
    step: int
    phase: str
    text: str
    reserved_bytes: int
    categories: Mapping[str, int]
    rank: Optional[int] = None

    _kinds: ClassVar[Kinds] = {
        "file": ("TEXT", None), "device": ("SIGNED", None), "bytes": ("BYTES", None), "time_ns": ("NS", None), "step": ("NUMBER", None),
        "phase": ("TEXT", None), "text": ("TEXT", None), "reserved_bytes": ("BYTES", None), "categories": ("CLASSES", None),
        "rank": ("NUMBER", None)}


class StreamTable:
    """A table that the tool writes while it is read: hand it to ``pandas.DataFrame.from_arrow``, ``polars.DataFrame``,
    ``pyarrow.table``, ``pyarrow.RecordBatchReader.from_stream`` or, by its name, to DuckDB's SQL. Each use reads the
    recording anew, in batches of 65,536 rows, and starts one process; an error of the tool is ``Error`` where it
    begins, and the reader's own exception (pyarrow's ``OSError``, say) with the tool's sentence where it comes later.
    """

    def __init__(self, arguments: List[str]) -> None:
        self._arguments = arguments

    def __repr__(self) -> str:
        return f"<{type(self).__name__} of {self._arguments[1]}: for pandas.DataFrame.from_arrow, polars.DataFrame, pyarrow.table or DuckDB>"

    def __arrow_c_schema__(self) -> object:
        return _arrow.schema_of_tool(self._arguments)

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        return _arrow.stream_of_tool(self._arguments)


class EventTable(StreamTable):
    """All events, in order: what ``gpumemtrace dump`` prints."""

    def select(self, *columns: str) -> StreamTable:
        """Only these columns, in this order; the others cost nothing."""
        return StreamTable([*self._arguments, "--columns", ",".join(columns)])


class Recording:
    """A recording: a file that ``gpumemtrace run`` or the preloaded library wrote, or a memory snapshot of PyTorch.

    Bytes are device memory as the allocator has it, times nanoseconds of the program's ``CLOCK_MONOTONIC``. Where
    several devices had memory, answers are about the one with the highest peak unless ``device`` was given. Every
    method may raise ``Error``: exit code 3 if the file cannot be read, 2 for an argument that the tool refuses.
    """

    def __init__(self, path: Path, *, rank: Optional[str] = None, device: Optional[int] = None) -> None:
        self.path = os.fspath(path)
        self._operand = os.path.join(".", self.path) if self.path.startswith("-") else self.path
        self._of_rank = option("rank", rank)
        self._device = device
        self._of_device = option("device", device)
        self._report: Optional[Report] = None

    def __repr__(self) -> str:
        return f"gpumemtrace.open({self.path!r})"

    def _repr_html_(self) -> Optional[str]:
        """What matters, for a notebook; None, so that it shows the plain words, of a folder or of what cannot be read."""
        try:
            summary = self.report().summary
        except Error:
            return None
        items = "".join(f"<li>{html.escape(m.text)}<br>Next: <code>{html.escape(m.action)}</code></li>" for m in summary)
        return (f"<ol>{items}</ol>" if items else "<p>Nothing stands out.</p>") + f"<code>{html.escape(repr(self))}</code>"

    def _ask(self, command: str, *arguments: str) -> Dict[str, object]:
        document = ask(command, self._operand, *arguments, *self._of_rank)
        if "totals" in document:
            raise Error(f"{self.path} is a folder of recordings: gpumemtrace.open(path, rank=N) opens one of them, .ranks lists all", 2)
        return document

    def _at(self, at: Union[str, int]) -> List[str]:
        return ["--at", str(at), *self._of_device]

    def _check_device(self) -> None:
        if self._device is not None:
            self.report()

    @property
    def peak(self) -> int:
        """Most bytes in use at once, on the device with the highest peak or that of ``device``. 0 if no device had memory."""
        return max((d.peak_bytes for d in self.report().devices if self._device in (None, d.device)), default=0)

    def report(self) -> Report:
        """The figures of all devices, whatever ``device`` was given. Read once and kept."""
        if self._report is None:
            report = Report._of(self._ask("report"))
            if self._device not in (None, *(d.device for d in report.devices)):
                self.highest()  # the tool's sentence, unless that device was there and had no memory
            self._report = report
        return self._report

    def info(self) -> Info:
        """Facts about the program and the file."""
        return Info._of(self._ask("info"))

    @property
    def steps(self) -> Table[StepsRow]:
        """The training steps and the phases in each, in the order of time. The rows with phase ``step`` are whole steps."""
        return Steps._of(self._ask("steps", *self._of_device)).rows

    def classes(self, at: Union[str, int] = "peak") -> Dict[str, int]:
        """Bytes by class at a moment: ``peak``, ``end``, ``oom``, nanoseconds, ``1.5s`` from the first event,
        ``mark:NAME``, ``mark:NAME#K``. Classes without bytes are left out; the largest stands first."""
        found: Dict[str, int] = {}
        for block in self.live(at).blocks:
            found[block.category] = found.get(block.category, 0) + block.size
        return dict(sorted(found.items(), key=lambda item: -item[1]))

    def live(self, at: Union[str, int] = "peak") -> Live:
        """The blocks that are alive at a moment (as in ``classes``), by address; ``blocks`` is a table."""
        return Live._of(self._ask("live", *self._at(at)))

    def highest(self) -> Peak:
        """The highest moment: when, in which step and phase, and which lines held it."""
        return Peak._of(self._ask("peak", *self._of_device))

    def why(self, address: int, at: Union[str, int] = "peak") -> Why:
        """What the block at that address is for at a moment, and the evidence."""
        return Why._of(self._ask("why", hex(address), *self._at(at)))

    def stack(self, stack: int) -> Tuple[StackFrame, ...]:
        """The frames of a stack, by its id, innermost first."""
        from ._documents import Stack

        return tuple(Stack._of(self._ask("stack", str(stack))).frames)

    def leaks(self) -> Leaks:
        """What grows from step to step: ``growth_per_step`` in bytes, ``owners`` by line of code."""
        return Leaks._of(self._ask("leaks", *self._of_device))

    def oom(self) -> Optional[Oom]:
        """Why memory ran out the last time; None if it did not, or not on ``device``."""
        if self._device is None:
            return self._oom()
        for nth in range(sum(d.ooms for d in self.report().devices), 0, -1):
            found = self._oom("--nth", str(nth))
            if found is not None and found.device == self._device:
                return found
        return None

    def _oom(self, *arguments: str) -> Optional[Oom]:
        try:
            return Oom._of(self._ask("oom", *arguments))
        except Error as error:
            if error.exit_code == 1:
                return None
            raise

    def account(self) -> Account:
        """The published formulas of training memory beside what was measured."""
        return Account._of(self._ask("account", *self._of_device))

    def modules(self, at: Union[str, int] = "peak") -> Modules:
        """Which modules hold the activations at a moment."""
        return Modules._of(self._ask("modules", *self._at(at)))

    def timeline(self) -> Timeline:
        """Memory by class over the time of the run."""
        return Timeline._of(self._ask("timeline", *self._of_device))

    def diff(self, new: Union["Recording", Path]) -> Diff:
        """What changed from this recording to ``new``; the first of the findings is the one to read."""
        other = (new if isinstance(new, Recording) else Recording(new))._operand
        return Diff._of(self._ask("diff", other, *self._of_device))

    def check(self, *, max_peak: Optional[Size] = None, max_reserved: Optional[Size] = None, max_growth: Optional[Size] = None,
              max_class: Optional[Mapping[str, Size]] = None, baseline: Union["Recording", Path, None] = None,
              fail_above: Optional[Size] = None) -> Check:
        """Whether it keeps within bounds: ``ok``, and a sentence for each bound in ``recordings[0].bounds``.

        Sizes are bytes or text (``"40GiB"``); ``max_growth`` is what may stay with each step, ``max_class`` the most of
        a class at any moment; the peak of ``baseline`` may be exceeded by ``fail_above`` (2 % if not given).
        """
        old = baseline.path if isinstance(baseline, Recording) else baseline
        classes = [word for name, size in (max_class or {}).items() for word in ("--max-class", f"{name}={size}")]
        return Check._of(ask("check", self._operand, *self._of_rank, *self._of_device, *option("max-peak", max_peak),
                             *option("max-reserved", max_reserved), *option("max-growth", max_growth), *classes,
                             *option("baseline", None if old is None else os.fspath(old)), *option("fail-above", fail_above),
                             fine=1))

    @property
    def ranks(self) -> Table[Rank]:
        """Of a folder: the peak of each recording in it that can be read, a row for each rank."""
        document = ask("peak", self._operand)
        rows = document["ranks"] if "ranks" in document else [{"file": self.path, **document}]
        return Table(Rank, [Rank._of(row) for row in rows if "bytes" in row])

    @property
    def allocations(self) -> StreamTable:
        """Every block that ever was: device, address, size, class, birth, end, stack, line. One row an allocation.
        Those of all devices, as in ``events``."""
        self._check_device()
        return StreamTable(["export", self._operand, "--to", "arrow", "-o", "-", *self._of_rank])

    @property
    def events(self) -> EventTable:
        """Every event. ``events.select("time_ns", "size")`` has these columns alone."""
        self._check_device()
        return EventTable(["export", self._operand, "--to", "arrow", "-o", "-", "--table", "events", *self._of_rank])


def open(path: Path, *, rank: Optional[str] = None, device: Optional[int] = None) -> Recording:
    """A recording. Of a folder with several (the ranks of a run) ``rank`` says which; ``device`` is a CUDA ordinal.

    Error with exit code 3 if there is nothing of that name; what is wrong inside of the file is said by the first
    question.
    """
    if not os.path.exists(path):
        raise Error(f"{os.fspath(path)}: there is no file or folder of that name", 3)
    return Recording(path, rank=rank, device=device)
