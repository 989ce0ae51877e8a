# SPDX-License-Identifier: Apache-2.0
"""The answer on descriptor 3, which the command prints (viewer/commands/question.c): a line of JSON for each part, an object with one member.
The last line has an exit code. What others print on stdout is no part of that."""
from __future__ import annotations

import json
import os
import signal
from types import FrameType
from typing import Any, Optional, Sequence

ANSWER = 3  # descriptor
UNREADABLE, USAGE = 3, 2  # exit codes
UNITS = ("KiB", "MiB", "GiB", "TiB", "PiB", "EiB")
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


class Answer:
    def __init__(self) -> None:
        self.file = os.fdopen(ANSWER, "w", encoding="utf-8", errors="surrogateescape")

    def put(self, part: str, value: Any) -> None:
        self.file.write(f'{{"{part}": {json.dumps(value)}}}\n')

    def say(self, part: str, text: str, number: int = 0) -> None:
        self.put(part, [number, text])
        self.file.flush()

    def end(self, code: int = 0, lines: Sequence[str] = (), document: str = "") -> None:
        """The lines are printed as text, the document as JSON."""
        whole = f', "document": {document}' if document else ""
        self.file.write(f'{{"end": {{"code": {code}, "lines": {json.dumps(lines)}{whole}}}}}\n')
        self.file.close()

    def fail(self, text: str, code: int) -> None:
        self.say("error", text, code)
        self.file.close()


def in_units(n: int) -> str:
    """1.5 GiB"""
    if n < 1024:
        return f"{n} B"
    value, unit = n / 1024, 0
    while value >= 1023.95 and unit < len(UNITS) - 1:
        value, unit = value / 1024, unit + 1
    return f"{value:.1f} {UNITS[unit]}"


def words(error: Exception) -> str:
    """Of an exception, the lines that say something."""
    lines = [line.strip() for line in str(error).splitlines()]
    lines = [line for line in lines if line and not line.startswith(("Traceback", "File "))]
    return " ".join(lines[:3]) or type(error).__name__
