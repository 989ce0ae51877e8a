# SPDX-License-Identifier: Apache-2.0
"""Facts of recordings, asked of the tool: one process of it reads them all (viewer/search/search_facts.c)."""
from __future__ import annotations

import json
import os
import subprocess
from typing import Any, Dict, Optional

SEARCH_FACTS = "--search-facts"


class Facts:
    def __init__(self, tool: str) -> None:
        self.process = subprocess.Popen([tool, SEARCH_FACTS], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)

    def ask(self, what: str, path: str) -> Optional[Dict[str, Any]]:
        """None: it cannot be read."""
        assert self.process.stdin and self.process.stdout
        try:
            self.process.stdin.write(os.fsencode(f"{what} {path}\0"))
            self.process.stdin.flush()
            answer = json.loads(self.process.stdout.readline() or b"null")
        except (OSError, ValueError):
            return None
        return answer if isinstance(answer, dict) else None

    def close(self) -> None:
        self.process.kill()
        self.process.communicate()
