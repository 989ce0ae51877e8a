# SPDX-License-Identifier: Apache-2.0
"""Facts of recordings, asked of the tool: one process of it reads them all (viewer/commands/search_facts.c)."""
from __future__ import annotations

import contextlib
import json
import os
import subprocess
from typing import Any, Dict, Optional

SEARCH_FACTS = "--search-facts"


class Facts:
    def __init__(self, tool: str) -> None:
        self.argv = [tool, SEARCH_FACTS]
        self.process = self.start()

    def start(self) -> "subprocess.Popen[bytes]":
        return subprocess.Popen(self.argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)

    def ask(self, what: str, path: str) -> Optional[Dict[str, Any]]:
        """None: it cannot be read. A process that ended over a recording is replaced."""
        assert self.process.stdin and self.process.stdout
        answer = b""
        with contextlib.suppress(OSError):
            self.process.stdin.write(os.fsencode(f"{what} {path}\0"))
            self.process.stdin.flush()
            answer = self.process.stdout.readline()
        if not answer.endswith(b"\n"):
            self.close()
            self.process = self.start()
            return None
        found = json.loads(answer)
        return found if isinstance(found, dict) else None

    def close(self) -> None:
        self.process.kill()
        with contextlib.suppress(OSError):
            self.process.communicate()
