# SPDX-License-Identifier: Apache-2.0
"""``python -m gpumemtrace.hook [--sim CARD] BOUNDS... -- PROGRAM...``: runs the program recorded, on the simulated device
where there is no card, and holds the recording against bounds (the options of ``gpumemtrace check``). For pre-commit and other
hooks: silent if all is well."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from typing import List

from ._files import has_card, tool

_USAGE = "usage: python -m gpumemtrace.hook [--sim CARD] BOUNDS... -- PROGRAM...   (bounds: gpumemtrace check --help)"


def main(words: List[str]) -> int:
    if "--" not in words[:-1] or words[0] == "--":
        print(_USAGE, file=sys.stderr)
        return 2
    middle = words.index("--")
    bounds, program = words[:middle], words[middle + 1:]
    card = "" if has_card() else "h100-80g"
    if bounds[0] == "--sim":
        card, bounds = bounds[1], bounds[2:]
    with tempfile.TemporaryDirectory(prefix="gpumemtrace-") as folder:
        recording = os.path.join(folder, "run.gmt")
        ran = subprocess.run([tool(), "run", *(["--sim", card] if card else []), "-o", recording, "--", *program],
                             stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False)
        if ran.returncode or not os.path.exists(recording):
            sys.stdout.write(ran.stdout.decode("utf-8", "replace"))
            print(f"gpumemtrace: the program ended with code {ran.returncode}" if ran.returncode else "gpumemtrace: the program used no device")
            return ran.returncode or 1
        held = subprocess.run([tool(), "check", recording, *bounds], stdout=subprocess.PIPE, stderr=subprocess.PIPE, check=False)
        if held.returncode:
            sys.stdout.write((held.stdout or held.stderr).decode("utf-8", "replace").replace(f" {recording}:", ""))
        return held.returncode


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
