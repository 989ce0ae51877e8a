# SPDX-License-Identifier: Apache-2.0
"""What a program may say while it is recorded. Without the library every call is one comparison."""

from __future__ import annotations

import itertools
import os
from contextlib import ContextDecorator
from types import TracebackType
from typing import Any, Optional, Type

# The functions of the preloaded library; None if it is not there.
_library: Any = None


def _find() -> Any:
    try:
        import ctypes

        library = ctypes.CDLL(None)
        library.gpumemtrace_mark.argtypes = [ctypes.c_char_p]
        library.gpumemtrace_mark.restype = library.gpumemtrace_pause.restype = library.gpumemtrace_resume.restype = None
        library.gpumemtrace_recording.restype = ctypes.c_char_p
        return library
    except (ImportError, OSError, AttributeError):
        return None


_library = _find()


def is_preloaded() -> bool:
    """Whether the library is in this process; a recording begins where the program first uses a device."""
    return _library is not None


def mark(name: str) -> None:
    """A named instant of the recording: ``gpumemtrace live FILE --at mark:NAME``, ``--at mark:NAME#2`` for the second of that name. Does nothing in a
    program that is not recorded, and before the program has used a device the mark is kept until it does. Never raises; about a microsecond."""
    if _library is not None:
        _library.gpumemtrace_mark(name.encode("utf-8", "replace"))


class paused(ContextDecorator):
    """``with gpumemtrace.paused():`` or ``@gpumemtrace.paused()``: no stacks are taken in it, in any thread, which is
    most of what an event costs. Allocations and frees are recorded all the same, so that totals and live blocks stay
    exact; what was allocated in it has no line of code, and its class may be ``unknown``."""

    def __enter__(self) -> "paused":
        if _library is not None:
            _library.gpumemtrace_pause()
        return self

    def __exit__(self, kind: Optional[Type[BaseException]], error: Optional[BaseException],
                 trace: Optional[TracebackType]) -> None:
        if _library is not None:
            _library.gpumemtrace_resume()


def recording() -> Optional[str]:
    """The path of the recording that this process writes; None if it writes none, or has used no device yet."""
    if _library is None:
        return None
    path: Optional[bytes] = _library.gpumemtrace_recording()
    return None if path is None else os.fsdecode(path)


def snapshot(path: Optional[str] = None) -> Optional[str]:
    """Writes all that was recorded so far as a whole recording of its own, and returns its path; None if this program
    is not recorded. Without ``path`` it is the recording's name with ``.snapshot1``, ``.snapshot2``... before its end.
    The program goes on being recorded. Takes as long as the recording takes to copy.

    Error with the tool's exit code if it cannot be written.
    """
    source = recording()
    if source is None:
        return None
    from ._tool import run

    target = path or _free_name(source)
    run("recover", source, "-o", target)
    return target


def _free_name(source: str) -> str:
    base, end = os.path.splitext(source)
    return next(name for i in itertools.count(1) if not os.path.exists(name := f"{base}.snapshot{i}{end}"))
