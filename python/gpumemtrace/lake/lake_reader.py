# SPDX-License-Identifier: Apache-2.0
"""The process that reads recordings. It starts others, a few at a time, for one large recording or several small ones each: a recording that
ends its reader does not end the others. Results come in order. It begins before DuckDB has threads, because a fork copies none."""
from __future__ import annotations

import contextlib
import ctypes
import fcntl
import json
import marshal
import os
import signal
from typing import BinaryIO, Callable, Dict, List, NamedTuple, Optional, Sequence, Tuple

from .._answer import ANSWER
from .lake_ending import ENDING, words

AT_ONCE = 4  # each may need what the largest recording needs
SMALL = 4 << 20  # bytes of recordings for one process
ROOM = 1 << 20  # of results that wait for those of recordings before
PR_SET_PDEATHSIG, F_SETPIPE_SZ = 1, 1031

Tables = Dict[str, bytes]
Result = Tuple[Optional[str], Tables]  # why it cannot be read
Read = Callable[[int, int], Tables]  # of a recording, by its number in order and its index; an exception if it cannot be read


def fork(child: Callable[[], None]) -> int:
    """A process that ends with this one, and as this program's others by the signals that end it."""
    parent, pid = os.getpid(), os.fork()
    if pid:
        return pid
    try:
        ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, int(signal.SIGTERM))
        for one in ENDING:
            if signal.getsignal(one) != signal.SIG_IGN:
                signal.signal(one, signal.SIG_DFL)
        if os.getppid() == parent:
            child()
    finally:
        os._exit(0)


class Running(NamedTuple):
    """A process, and which recordings it reads, by their number in order."""
    pid: int
    answers: BinaryIO
    numbers: Sequence[int]


def put(stream: BinaryIO, result: Result) -> None:
    data = marshal.dumps(result)
    stream.write(b"%d\n%b" % (len(data), data))
    stream.flush()


def take(stream: BinaryIO) -> Optional[Result]:
    """None: its end is missing."""
    line = stream.readline()
    size = int(line) if line.endswith(b"\n") else 0
    data = stream.read(size)
    return marshal.loads(data) if size and len(data) == size else None


def start(read: Read, numbers: Sequence[int], indexes: Sequence[int]) -> Running:
    def child() -> None:
        with os.fdopen(theirs, "wb") as stream:
            for number in numbers:
                try:
                    put(stream, (None, read(number, indexes[number])))
                except Exception as error:
                    put(stream, (getattr(error, "sentence", None) or words(error), {}))

    ours, theirs = os.pipe()
    with contextlib.suppress(OSError):
        fcntl.fcntl(theirs, F_SETPIPE_SZ, ROOM)
    pid = fork(child)
    os.close(theirs)
    return Running(pid, os.fdopen(ours, "rb"), numbers)


def finish(one: Running) -> str:
    """Why there are no more results."""
    one.answers.close()
    status = os.waitpid(one.pid, 0)[1]
    number = os.WTERMSIG(status) if os.WIFSIGNALED(status) else 0
    return f"reading it was ended by signal {number} ({signal.strsignal(number)})" if number else "reading it ended early"


def shares(sizes: Sequence[int]) -> List[List[int]]:
    """One large recording for a process, or several small ones."""
    found: List[List[int]] = []
    most = len(sizes) // (2 * AT_ONCE) + 1
    for number, size in enumerate(sizes):
        if not found or len(found[-1]) == most or size + sum(sizes[n] for n in found[-1]) > SMALL:
            found.append([])
        found[-1].append(number)
    return found


def serve(read: Read, indexes: Sequence[int], sizes: Sequence[int], rows: BinaryIO) -> None:
    due, running = shares(sizes), []  # type: List[List[int]], List[Running]
    while due or running:
        while due and len(running) < min(AT_ONCE, os.cpu_count() or 1):
            running.append(start(read, due.pop(0), indexes))
        one = running.pop(0)
        for nth, number in enumerate(one.numbers):
            result = take(one.answers)
            put(rows, result or (finish(one), {}))
            if not result:
                running.insert(0, start(read, one.numbers[nth + 1:], indexes))
                break
        else:
            finish(one)


class Reader:
    def __init__(self, read: Read) -> None:
        order, self.order = os.pipe()
        answers, rows = os.pipe()

        def child() -> None:
            for fd in {ANSWER, self.order, answers} - {order, rows}:
                with contextlib.suppress(OSError):
                    os.close(fd)
            with os.fdopen(order, "rb") as asked, os.fdopen(rows, "wb") as stream:
                indexes, sizes = json.loads(asked.read() or b"[[], []]")
                serve(read, indexes, sizes, stream)
        self.pid = fork(child)
        os.close(order)
        os.close(rows)
        self.rows: BinaryIO = os.fdopen(answers, "rb")

    def begin(self, indexes: Sequence[int], sizes: Sequence[int]) -> None:
        """`rows` have their results then (take)."""
        with os.fdopen(self.order, "w") as order:
            json.dump([indexes, sizes], order)

    def end(self) -> None:
        self.rows.close()
        os.kill(self.pid, signal.SIGTERM)
        os.waitpid(self.pid, 0)
