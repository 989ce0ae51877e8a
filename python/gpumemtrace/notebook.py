# SPDX-License-Identifier: Apache-2.0
"""``%load_ext gpumemtrace``, then in a cell of its own:

    %%gpumemtrace [--sim CARD] [-o FILE] [--name VARIABLE] [--height PIXELS] [--no-page]
    import torch
    ...

In a kernel that was started without the library the cell runs as a program of its own, which has none of the notebook's
variables; in one that is recorded (``gpumemtrace run -- jupyter notebook``) it runs in the kernel. Below the cell stands the page of the recording;
VARIABLE, ``recording`` if none is named, becomes the recording itself."""

from __future__ import annotations

import argparse
import builtins
import html
import importlib
import os
import shlex
import subprocess
import symtable
import sys
import tempfile
from typing import Any, Iterable, Iterator, List, Optional, Sequence, Tuple

from ._files import has_card, tool
from ._program import is_preloaded, snapshot
from ._recording import Recording
from ._tool import run as run_tool


class _Parser(argparse.ArgumentParser):
    """Says what is wrong as an exception: a kernel must not end."""

    def error(self, message: str) -> Any:
        raise ValueError(f"%%gpumemtrace: {message}\n{self.format_usage()}")


def _parse(line: str) -> argparse.Namespace:
    parser = _Parser(prog="%%gpumemtrace", add_help=False)
    parser.add_argument("--sim", metavar="CARD")
    parser.add_argument("-o", "--output", metavar="FILE")
    parser.add_argument("--name", default="recording", metavar="VARIABLE")
    parser.add_argument("--height", type=int, default=700, metavar="PIXELS")
    parser.add_argument("--no-page", action="store_true")
    return parser.parse_args(shlex.split(line))


def _in_a_process(cell: str, card: Optional[str], output: str) -> None:
    folder = tempfile.mkdtemp(prefix="gpumemtrace-")
    script = os.path.join(folder, "cell.py")
    with open(script, "w", encoding="utf-8") as file:
        file.write(cell)
    card = card or (None if has_card() else "h100-80g")
    # The cell imports what lies beside the notebook.
    path = os.pathsep.join(filter(None, [os.getcwd(), os.environ.get("PYTHONPATH")]))
    program = subprocess.Popen([tool(), "run", *(["--sim", card] if card else []), "-o", output, "--", sys.executable, "-u", script],
                               stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace",
                               env={**os.environ, "PYTHONPATH": path})
    assert program.stdout is not None
    for text in program.stdout:
        print(text, end="")
    program.wait()


def _scopes(table: symtable.SymbolTable) -> Iterator[symtable.SymbolTable]:
    yield table
    for child in table.get_children():
        yield from _scopes(child)


def _unseen(cell: str, names: Iterable[str]) -> List[str]:
    """Those of the notebook's names that a cell uses and does not define."""
    try:
        top = symtable.symtable(cell, "cell", "exec")
    except (SyntaxError, ValueError):
        return []
    own = {s.get_name() for s in top.get_symbols() if s.is_assigned() or s.is_imported() or s.is_namespace()}
    own |= {s.get_name() for table in _scopes(top) for s in table.get_symbols() if s.is_declared_global() and s.is_assigned()}
    used = {s.get_name() for table in _scopes(top) for s in table.get_symbols() if s.is_referenced() and (s.is_global() or table is top)}
    return sorted(name for name in used - own if name in names and not name.startswith("_") and not hasattr(builtins, name))


def _say_unseen(names: Sequence[str]) -> None:
    if names:
        print(f"%%gpumemtrace: the cell runs in a process of its own, which does not have the notebook's {', '.join(names)}: define "
              f"{'it' if len(names) == 1 else 'them'} in the cell, or start the kernel with gpumemtrace run")


def _identity(path: str) -> Tuple[int, ...]:
    """Of the file there: an earlier recording stays if nothing is recorded."""
    try:
        info = os.stat(path)
    except OSError:
        return ()
    return info.st_dev, info.st_ino, info.st_ctime_ns


class _Page:
    """The page of a recording in a frame of its own, from which nothing of the notebook can be reached."""

    def __init__(self, path: str, height: int) -> None:
        self._path, self._height = path, height
        with tempfile.TemporaryDirectory() as folder:
            page = os.path.join(folder, "page.html")
            run_tool("html", path, "-o", page)
            with open(page, encoding="utf-8") as file:
                text = file.read()
        # Without a base of its own a link to a part of the page would load the notebook into the frame.
        self._text = text.replace("<head>", '<head><base href="about:srcdoc">', 1)

    def __repr__(self) -> str:
        return f"gpumemtrace html {self._path}"

    def _repr_html_(self) -> str:
        return (f'<iframe sandbox="allow-scripts" srcdoc="{html.escape(self._text, quote=True)}" '
                f'style="width: 100%; height: {self._height}px; border: 0" title="gpumemtrace"></iframe>')


def cell_magic(shell: Any, line: str, cell: str) -> None:
    options = _parse(line)
    if is_preloaded():
        shell.run_cell(cell)
        path = snapshot(options.output)
    else:
        path = options.output or os.path.join(tempfile.mkdtemp(prefix="gpumemtrace-"), "cell.gmt")
        before = _identity(path)
        _say_unseen(_unseen(cell, shell.user_ns))
        _in_a_process(cell, options.sim, path)
        path = None if _identity(path) == before else path
    if path is None or not os.path.exists(path):
        print("%%gpumemtrace: nothing was recorded: the cell used no device")
        return
    shell.user_ns[options.name] = Recording(path)
    if not options.no_page:
        importlib.import_module("IPython.display").display(_Page(path, options.height))


def load(shell: Any) -> None:
    shell.register_magic_function(lambda line, cell: cell_magic(shell, line, cell), "cell", "gpumemtrace")
