# SPDX-License-Identifier: Apache-2.0
"""gpumemtrace: what a CUDA program's device memory is for, recorded without a change to the program.

    r = gpumemtrace.open("run.gmt")     what a recording says, as objects and as Arrow tables
    gpumemtrace.mark("after warm-up")   inside a recorded program; free of cost in any other

The package carries the tool (``gpumemtrace``), its core as a library that reads recordings in this process, the library that records (``libgpumemtrace.so``) and the simulated
device. It needs no other package, and a recorded program need not import it.
"""

from typing import TYPE_CHECKING, Any

from ._error import Error
from ._files import library, tool
from ._program import mark, paused, recording, snapshot

if TYPE_CHECKING:
    from ._recording import Recording, StreamTable, diff, open
    from ._rows import Table

    __version__: str

__all__ = ["Error", "Recording", "StreamTable", "Table", "__version__", "diff", "library", "mark", "open", "paused", "recording",
           "snapshot", "tool"]

_LATER = {"Recording": "_recording", "StreamTable": "_recording", "diff": "_recording", "open": "_recording", "Table": "_rows"}


def __getattr__(name: str) -> Any:
    """A recorded program that only marks imports no more than that."""
    import importlib

    if name == "__version__":
        value: Any = _find_version()
    elif name in _LATER:
        value = getattr(importlib.import_module(f".{_LATER[name]}", __name__), name)
    else:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    globals()[name] = value
    return value


def _find_version() -> str:  # not _version: the module of that name becomes an attribute of the package
    """That of the wheel; of a checkout that of its tool."""
    import importlib
    import subprocess

    try:
        found: str = importlib.import_module("._version", __name__).__version__
        return found
    except ImportError:
        return subprocess.run([tool(), "--version"], stdout=subprocess.PIPE, check=True, text=True).stdout.split()[-1]


def load_ipython_extension(shell: Any) -> None:
    """``%load_ext gpumemtrace``: the cell magic ``%%gpumemtrace`` (gpumemtrace.notebook)."""
    from .notebook import load

    load(shell)
