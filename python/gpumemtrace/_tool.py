# SPDX-License-Identifier: Apache-2.0
"""Runs the command-line tool."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from typing import Any, Dict, List

from ._error import Error
from ._files import tool


def environment() -> Dict[str, str]:
    """For a tool that a recorded program starts: nothing is preloaded into it. This Python is the first one in which it looks for DuckDB."""
    return {"GPUMEMTRACE_PYTHON": sys.executable or "python3", **{k: v for k, v in os.environ.items() if k not in ("LD_PRELOAD", "LD_LIBRARY_PATH")}}


def sentence_of(text: str, code: int) -> str:
    """The tool's sentence without the name of the command before it."""
    line = text.strip() or f"the tool ended with code {code} and said nothing"
    head, colon, rest = line.partition(": ")
    return rest if colon and head.split(" ")[0] == "gpumemtrace" else line


def run(*arguments: str, fine: int = 0) -> bytes:
    """What the tool prints. Error if it fails; exit codes up to `fine` are no failure."""
    done = subprocess.run([tool(), *arguments], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                          env=environment(), check=False)
    if not 0 <= done.returncode <= fine:
        raise Error(sentence_of(done.stderr.decode("utf-8", "replace"), done.returncode), done.returncode if done.returncode > 0 else 3)
    return done.stdout


def ask(command: str, *arguments: str, fine: int = 0) -> Dict[str, Any]:
    """The JSON document of a command."""
    text = run(command, *arguments, "--json", fine=fine)
    try:
        document = json.loads(text)
    except ValueError:
        document = None
    if not isinstance(document, dict):
        raise Error(f"the answer of gpumemtrace {command} is {'cut or mixed with other output' if text.strip() else 'empty'}: {tool()} is not this package's tool, "
                    "or something else writes to its standard output", 3)
    return document


def option(name: str, value: object) -> List[str]:
    """The option if it has a value."""
    return [] if value is None else [f"--{name}", str(value)]
