# SPDX-License-Identifier: Apache-2.0
"""How work on a lake ends early: by a signal, or by an error of a library."""
from __future__ import annotations

import signal
from types import FrameType
from typing import Optional

ENDING = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


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


def words(error: Exception) -> str:
    """Of an exception, the lines that say something."""
    lines = [line.strip() for line in str(error).splitlines()]
    lines = [line for line in lines if line and not line.startswith(("Traceback", "File "))]
    return " ".join(lines[:3]) or type(error).__name__
