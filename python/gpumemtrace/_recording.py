# SPDX-License-Identifier: Apache-2.0
"""A recording: read once, asked in this process."""

from __future__ import annotations

import html
import json
import os
from dataclasses import dataclass
from typing import ClassVar, Dict, List, Mapping, Optional, Sequence, Tuple, Union

from . import _core
from ._documents import (Account, Advise, Check, Diff, Info, Leaks, Live, Modules, Oom, Peak, Report, Stack, StackFrame, Steps, StepsRow,
                         Timeline, Why)
from ._error import Error
from ._rows import Kinds, Row, Table
from ._tool import ask as run_tool, option

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
    """A table that is made while it is read: hand it to ``pandas.DataFrame.from_arrow``, ``polars.DataFrame``, ``pyarrow.table``,
    ``pyarrow.RecordBatchReader.from_stream`` or, by its name, to DuckDB's SQL. Batches have at most 65,536 rows. An error is ``Error`` where reading
    begins, and the reader's own exception (pyarrow's ``OSError``, say) with the same sentence where it comes later. """

    def __init__(self, recording: "Recording", table: str, columns: Optional[str] = None) -> None:
        self._recording, self._table, self._columns = recording, table, columns

    def __repr__(self) -> str:
        return (f"<{type(self).__name__} {self._table} of {self._recording.path}: for pandas.DataFrame.from_arrow, polars.DataFrame, "
                "pyarrow.table or DuckDB>")

    def select(self, *columns: str) -> "StreamTable":
        """Only these columns, in this order; the others cost nothing."""
        return StreamTable(self._recording, self._table, ",".join(columns))

    def _fill(self) -> _core.Fill:
        return _core.table_of(self._recording._handles()[0], self._table, self._columns)

    def __arrow_c_schema__(self) -> object:
        return _core.schema_capsule(self._fill())

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        return _core.stream_capsule(self._fill())


class Recording:
    """A recording: a file that ``gpumemtrace run`` or the preloaded library wrote, or a memory snapshot of PyTorch.

    Bytes are device memory as the allocator has it, times nanoseconds of the program's ``CLOCK_MONOTONIC``. Where
    several devices had memory, answers are about the one with the highest peak unless ``device`` was given. The file is
    read once, when it is opened; its tables stay in memory as long as the object. Answers are the documents of the
    command of that name with ``--json``. Every method may raise ``Error``, with exit code 2 for a wrong argument.
    Several threads may ask one recording: they take turns.
    """

    def __init__(self, path: Path, *, rank: Optional[str] = None, device: Optional[int] = None) -> None:
        self.path = os.fspath(path)
        self._device = device
        self._of_device = option("device", device)
        self._report: Optional[Report] = None
        self._handle: Optional[_core.Handle] = None
        if not os.path.exists(path):
            raise Error(f"{self.path}: there is no file or folder of that name", 3)
        if rank is not None:
            self._handle = _core.Handle(str(run_tool("info", self._operand(), "--rank", str(rank))["file"]))
        elif not os.path.isdir(path):
            self._handle = _core.Handle(self.path)

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

    def _operand(self) -> str:
        return os.path.join(".", self.path) if self.path.startswith("-") else self.path

    def _handles(self, *others: "Recording") -> List[_core.Handle]:
        if self._handle is None:
            raise Error(f"{self.path} is a folder of recordings: gpumemtrace.open(path, rank=N) opens one of them, .ranks lists all", 2)
        return [self._handle, *(handle for other in others for handle in other._handles())]

    def _json(self, command: str, *arguments: str, others: Sequence["Recording"] = (), fine: int = 0) -> bytes:
        """The document as it is, to the byte what the command prints."""
        return _core.ask(self._handles(*others), command, *arguments, fine=fine)

    def _ask(self, command: str, *arguments: str, others: Sequence["Recording"] = (), fine: int = 0) -> Dict[str, object]:
        document: Dict[str, object] = json.loads(self._json(command, *arguments, others=others, fine=fine))
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
        """The published formulas of training memory, beside measured figures."""
        return Account._of(self._ask("account", *self._of_device))

    def modules(self, at: Union[str, int] = "peak") -> Modules:
        """Which modules hold the activations at a moment."""
        return Modules._of(self._ask("modules", *self._at(at)))

    def timeline(self) -> Timeline:
        """Memory by class over the time of the run."""
        return Timeline._of(self._ask("timeline", *self._of_device))

    def advise(self) -> Advise:
        """What would lower the peak, the change that saves most first."""
        return Advise._of(self._ask("advise", *self._of_device))

    def diff(self, new: Union["Recording", Path]) -> Diff:
        """What changed from this recording to ``new``; the first of the findings is the one to read."""
        return Diff._of(self._ask("diff", *self._of_device, others=[new if isinstance(new, Recording) else Recording(new)]))

    def check(self, *, max_peak: Optional[Size] = None, max_reserved: Optional[Size] = None, max_growth: Optional[Size] = None,
              max_class: Optional[Mapping[str, Size]] = None, baseline: Union["Recording", Path, None] = None,
              fail_above: Optional[Size] = None) -> Check:
        """Whether it keeps within bounds: ``ok``, and a sentence for each bound in ``recordings[0].bounds``.

        Sizes are bytes or text (``"40GiB"``); ``max_growth`` is what may stay with each step, ``max_class`` the most of
        a class at any moment; the peak of ``baseline`` may be exceeded by ``fail_above`` (2 % if not given).
        """
        words = bounds(max_peak=max_peak, max_reserved=max_reserved, max_growth=max_growth, max_class=max_class, baseline=baseline,
                       fail_above=fail_above)
        return Check._of(self._ask("check", *self._of_device, *words, fine=1))

    @property
    def ranks(self) -> Table[Rank]:
        """Of a folder: the peak of each recording in it that can be read, a row for each rank."""
        if self._handle is not None:
            return Table(Rank, [Rank._of({"file": self.path, **self._ask("peak")})])
        document = run_tool("peak", self._operand())
        return Table(Rank, [Rank._of(row) for row in document.get("ranks", [{"file": self.path, **document}]) if "bytes" in row])

    @property
    def allocations(self) -> StreamTable:
        """Every block that ever was: device, address, size, class, birth, end, stack, line. One row an allocation.
        Those of all devices, as in ``events``."""
        self._check_device()
        return StreamTable(self, "allocations")

    @property
    def events(self) -> StreamTable:
        """Every event, in order: what ``gpumemtrace dump`` prints. ``events.select("time_ns", "size")`` has these columns alone."""
        self._check_device()
        return StreamTable(self, "events")


def bounds(*, max_class: Optional[Mapping[str, Size]] = None, baseline: Union[Recording, Path, None] = None, **sizes: Optional[Size]) -> List[str]:
    """Arguments of `check` for those of Recording.check."""
    words = [word for name, size in sizes.items() for word in option(name.replace("_", "-"), size)]
    words += [word for name, size in (max_class or {}).items() for word in ("--max-class", f"{name}={size}")]
    old = baseline.path if isinstance(baseline, Recording) else baseline
    return words + option("baseline", None if old is None else os.fspath(old))


def open(path: Path, *, rank: Optional[str] = None, device: Optional[int] = None) -> Recording:
    """Reads a recording. Of a folder with several (the ranks of a run) ``rank`` says which; ``device`` is a CUDA ordinal.

    Error with exit code 3 if there is nothing of that name, or it cannot be read.
    """
    return Recording(path, rank=rank, device=device)


def diff(old: Union[Recording, Path], new: Union[Recording, Path]) -> Diff:
    """What changed from one recording to another."""
    return (old if isinstance(old, Recording) else Recording(old)).diff(new)
