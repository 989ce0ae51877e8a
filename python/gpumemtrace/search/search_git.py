# SPDX-License-Identifier: Apache-2.0
"""Asks git. Hooks are switched off, because the repository's hooks are meant for its own tree."""
from __future__ import annotations

import contextlib
import os
import signal
import subprocess
from typing import Dict, NamedTuple, Optional

from .._answer import Interrupted, Sentence
from .search_runs import interrupt

WORDS = ("git", "-c", "core.hooksPath=/dev/null", "-c", "advice.detachedHead=false")


class Done(NamedTuple):
    code: int
    text: str  # what it printed, without the last end of line
    errors: str


class Git:
    def __init__(self, environment: Dict[str, str]) -> None:
        self.environment = environment

    def run(self, folder: Optional[str], *words: str) -> Done:
        """In a process group of its own, which an interrupt ends; what is run after one, to clean up, it does not."""
        before = interrupt.came
        try:
            process = subprocess.Popen([*WORDS, *words], cwd=folder, env=self.environment, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                       stderr=subprocess.PIPE, start_new_session=True)
        except FileNotFoundError:
            return Done(127, "", "git was not found")
        while True:
            try:
                out, errors = process.communicate(timeout=0.1)
                return Done(process.returncode, os.fsdecode(out).rstrip("\n"), os.fsdecode(errors).rstrip("\n"))
            except subprocess.TimeoutExpired:
                if interrupt.came and not before:
                    with contextlib.suppress(ProcessLookupError):
                        os.killpg(process.pid, signal.SIGTERM)

    def ask(self, folder: Optional[str], *words: str) -> Optional[str]:
        """None: it failed."""
        done = self.run(folder, *words)
        return None if done.code else done.text

    def does(self, folder: Optional[str], *words: str) -> bool:
        return self.ask(folder, *words) is not None

    def must(self, what: str, folder: Optional[str], *words: str) -> str:
        """Its failure ends the search, with the last line of its errors."""
        done = self.run(folder, *words)
        if interrupt.came:
            raise Interrupted
        if done.code:
            raise Sentence(f"{what}: {done.errors.rpartition(chr(10))[2]}")
        return done.text
