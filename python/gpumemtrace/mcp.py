# SPDX-License-Identifier: Apache-2.0
"""``python -m gpumemtrace.mcp``: a server of read-only tools for coding assistants (Model Context Protocol) over stdin and stdout.

It needs the package mcp, the extra ``mcp`` of the wheel. Each tool gives the text of one command, at most ``MOST`` characters of it (2,000
tokens), also of an error; ``start`` reads on. Addresses, stacks and moments in an answer are what the next question takes. Nothing is written and no program is run."""

from __future__ import annotations

import functools
import json
import os
import stat as modes
import sys
from typing import Any, Callable, Dict, List

from ._error import Error
from ._tool import run

MOST = 6000  # three characters a token: figures and paths are short tokens
RESULT = 64 << 20  # bytes of a result of fit that are read

INSTRUCTIONS = """Answers about the GPU memory of a program from recordings (.gmt of gpumemtrace run) and PyTorch memory snapshots.
Begin with what_matters. Then: oom after an out-of-memory, leaks if memory grows, advise to lower the peak, diff for two runs, who_holds
and why for single blocks. Say no cause or remedy that no answer gave."""


def _page(text: str, start: int = 0) -> str:
    """The lines from that one on, as far as they have room."""
    lines, kept, room, start = text.rstrip("\n").split("\n"), [], MOST - 40, max(start, 0)
    for line in lines[start:]:
        line = line if len(line) <= MOST // 4 else line[:MOST // 4] + " ..."
        if len(line) >= room:
            break
        kept.append(line)
        room -= len(line) + 1
    left = len(lines) - start - len(kept)
    return "\n".join(kept) + (f"\n[{left} more lines: start={start + len(kept)}]" if left > 0 else "")


def _cut(text: str) -> str:
    """Of an error, which may name a long path in front of the reason. The library adds the tool's name."""
    room = MOST - 100
    return text if len(text) <= room else f"{text[:room // 2]} ... {text[-room // 2 + 5:]}"


def _file(path: str) -> str:
    """Nothing else is opened: a device or a pipe may have no end."""
    try:
        mode = os.stat(path).st_mode
    except (OSError, ValueError):
        raise Error(f"{path}: there is no file or folder of that name", 3) from None
    if not modes.S_ISREG(mode) and not modes.S_ISDIR(mode):
        raise Error(f"{path}: neither a file nor a folder", 3)
    return os.path.abspath(path)


def _result(path: str) -> Any:
    """The document in a file, which is looked at again once it is open."""
    try:
        with os.fdopen(os.open(_file(path), os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC), encoding="utf-8") as file:
            info = os.fstat(file.fileno())
            if not modes.S_ISREG(info.st_mode) or info.st_size > RESULT:
                raise Error(f"{path}: not the output of gpumemtrace fit --json, which is a file of {RESULT >> 20} MiB at most", 3)
            return json.loads(file.read(RESULT))
    except OSError as error:
        raise Error(f"{path}: {error.strerror}", 3) from None


def _answer(start: int, command: str, *arguments: str) -> str:
    return _page(run(command, *arguments).decode("utf-8", "replace"), start)


def what_matters(path: str, start: int = 0) -> str:
    """What matters about a run, most bytes first, each with its next command; then peak, classes and lines. path: a recording, a snapshot, or
    a folder with the recordings of all ranks."""
    return _answer(start, "report", _file(path))


def peak(path: str, start: int = 0) -> str:
    """The highest moment: when, in which step and phase, and the lines that held it."""
    return _answer(start, "peak", _file(path))


def who_holds(path: str, at: str = "peak", start: int = 0) -> str:
    """Blocks alive at a moment, the largest first: address (for why), size, class, stack (for stack), line. at: peak, end, oom, 1.5s, mark:NAME."""
    return _answer(start, "live", _file(path), f"--at={at}", "--top=0")


def why(path: str, address: str, at: str = "peak") -> str:
    """What the block at an address (0x...) is for at a moment, with the evidence and the stack that allocated it."""
    return _answer(0, "why", _file(path), hex(int(address, 0)), f"--at={at}")


def stack(path: str, stack: int) -> str:
    """The frames of a stack, innermost first."""
    return _answer(0, "stack", _file(path), str(int(stack)))


def steps(path: str, start: int = 0) -> str:
    """The training steps: peak, end and growth of each, with its phases."""
    return _answer(start, "steps", _file(path))


def leaks(path: str, start: int = 0) -> str:
    """What grows from step to step, and the lines that allocated it."""
    return _answer(start, "leaks", _file(path))


def oom(path: str, start: int = 0) -> str:
    """Why memory ran out, and which changes would have made room."""
    return _answer(start, "oom", _file(path))


def advise(path: str, start: int = 0) -> str:
    """Changes that would lower the peak, each with the bytes that it saves and how that is known."""
    return _answer(start, "advise", _file(path))


def diff(old: str, new: str, start: int = 0) -> str:
    """What changed in memory between two runs; the first finding is the one to read."""
    return _answer(start, "diff", _file(old), _file(new))


def fit(result: str, start: int = 0) -> str:
    """Which cards a program fits, from the saved output of: gpumemtrace fit --json -- COMMAND >result.json (the user runs it: it starts the
    program on simulated cards)."""
    try:
        document: Dict[str, Any] = _result(result)
        lines: List[str] = []
        for card in document["cards"]:
            vary = "".join(f" {name}={value}" for name, value in card["vary"].items())
            lines.append(f"{card['card']}{vary}: {card['verdict']}; peak {card['peak_bytes']:,} B, reserved {card['peak_reserved_bytes']:,} B of "
                         f"{card['capacity_bytes']:,} B. {card.get('text') or card.get('error') or card.get('peak_text', '')}")
        lines += [f"{item['text']} Next: {item['action']}" for item in document.get("summary", ())]
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise Error(f"{result}: not the output of gpumemtrace fit --json", 3) from error
    return _page("\n".join(lines), start)


TOOLS: List[Callable[..., str]] = [what_matters, peak, who_holds, why, stack, steps, leaks, oom, advise, diff, fit]


def server() -> Any:
    from mcp.server.mcpserver import MCPServer
    from mcp.server.mcpserver.exceptions import ToolError
    from mcp.types import ToolAnnotations

    def telling(tool: Callable[..., str]) -> Callable[..., str]:
        @functools.wraps(tool)
        def told(*args: Any, **named: Any) -> str:
            try:
                return tool(*args, **named)
            except (Error, ValueError) as error:  # the library hides the words of any other error
                raise ToolError(_cut(str(error))) from error
        return told

    made = MCPServer("gpumemtrace", instructions=INSTRUCTIONS)
    for tool in TOOLS:
        made.tool(annotations=ToolAnnotations(read_only_hint=True, destructive_hint=False, open_world_hint=False), structured_output=False)(telling(tool))
    return made


def main() -> None:
    try:
        made = server()
    except ImportError:
        print(f"gpumemtrace.mcp: needs the package mcp: {sys.executable} -m pip install 'mcp>=2'", file=sys.stderr)
        sys.exit(2)
    made.run()


if __name__ == "__main__":
    main()
