# SPDX-License-Identifier: Apache-2.0
"""The answer on descriptor 3, which the command reads (viewer/handover/lake_engine.c): a line of names and types of the columns, then a line
for each row, as JSON arrays; the last line is an object with the number of rows, or with an error and an exit code. Notes may stand
between them. What others print on stdout is no part of that."""
from __future__ import annotations

import json
import os
import signal
import subprocess
from types import FrameType
from typing import Any, Mapping, Optional, Sequence

ANSWER, TERMINAL = 3, 4  # descriptors; the second is the command's stderr
UNREADABLE, USAGE = 3, 2  # exit codes
ENDING = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


class Sentence(Exception):
    """What is wrong, as the command says it."""

    def __init__(self, text: str, code: int = UNREADABLE) -> None:
        super().__init__(text)
        self.code = code


class Ended(BaseException):
    """A signal: what is half done is removed, and the command ends by it."""


def end_by_signals() -> None:
    def end(signum: int, frame: Optional[FrameType]) -> None:
        for one in ENDING:
            signal.signal(one, signal.SIG_IGN)
        raise Ended
    for one in ENDING:
        if signal.getsignal(one) != signal.SIG_IGN:
            signal.signal(one, end)


def terminal() -> int:
    """Where a process that reads recordings says how far it is."""
    try:
        os.fstat(TERMINAL)
        return TERMINAL
    except OSError:
        return subprocess.DEVNULL


class Answer:
    def __init__(self) -> None:
        self.file = os.fdopen(ANSWER, "w", encoding="ascii")
        self.count = 0

    def line(self, value: object) -> None:
        self.file.write(json.dumps(value) + "\n")

    def columns(self, columns: Sequence[Sequence[str]]) -> None:
        self.line(columns)

    def rows(self, rows: Sequence[Sequence[Any]]) -> None:
        self.file.writelines(json.dumps(row) + "\n" for row in rows)
        self.count += len(rows)

    def note(self, text: str) -> None:
        self.line({"note": text})
        self.file.flush()

    def text(self, text: str) -> None:
        """A line of what is printed as text."""
        self.line({"line": text})

    def document(self, document: Mapping[str, Any]) -> None:
        """What is printed as JSON."""
        self.line({"document": document})

    def end(self, code: int = 0) -> None:
        self.line({"rows": self.count, "code": code})
        self.file.close()

    def fail(self, text: str, code: int, member: str = "sentence") -> None:
        self.line({member: text, "code": code})
        self.file.close()


def words(error: Exception) -> str:
    """Of an exception, the lines that say something."""
    lines = [line.strip() for line in str(error).splitlines()]
    lines = [line for line in lines if line and not line.startswith(("Traceback", "File "))]
    return " ".join(lines[:3]) or type(error).__name__
