# SPDX-License-Identifier: Apache-2.0
"""Recordings that have nothing to do with each other are compared, in both directions: those of many.py's programs and of
tests/data. Under the sanitizers: tests/unit/test_all_pairs.c."""
import json
import subprocess
import sys

from conftest import PACKAGE, ROOT

# Prints each pair before it is compared: the last one is that of which the process died.
COMPARE = """
import json, sys
sys.path.insert(0, sys.argv[1])
import gpumemtrace
opened = []
for path in sys.argv[2:]:
    try:
        r = gpumemtrace.open(path)
        gpumemtrace.diff(r, r)
        opened.append(r)
    except gpumemtrace.Error:
        pass
for i, a in enumerate(opened):
    for b in opened[i:]:
        print(json.dumps([a.path, b.path]), flush=True)
        there, back = (json.loads(x._json("diff", others=[y])) for x, y in ((a, b), (b, a)))
        print(json.dumps([there["peak_old"] - back["peak_new"], there["delta"] + back["delta"]]), flush=True)
"""


def test_every_pair_of_recordings(many):
    files = [*sorted(many.glob("*.gmt")), *sorted((ROOT / "tests/data").glob("*/*.gmt"))]
    done = subprocess.run([sys.executable, "-c", COMPARE, PACKAGE, *files], capture_output=True, text=True, check=False, timeout=300)
    lines = [json.loads(line) for line in done.stdout.splitlines()]
    assert done.returncode == 0, (lines[-1], done.returncode, done.stderr[-2000:])
    assert len(lines) // 2 > 1800
    wrong = [pair for pair, figures in zip(lines[::2], lines[1::2]) if figures != [0, 0]]
    assert wrong == []
