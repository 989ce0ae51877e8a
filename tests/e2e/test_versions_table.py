# SPDX-License-Identifier: Apache-2.0
"""The table of PyTorch versions (docs/pytorch-versions.md): its program under this version's PyTorch, and that it sees what is missing."""
import json
import sys

import pytest

from conftest import ROOT

sys.path.insert(0, str(ROOT / "tests/matrix"))
import versions  # noqa: E402

pytestmark = pytest.mark.forks

TAGS = {"sizes", "leaves", "gradients", "saved", "releases", "moved", "nodes"}


def judged(programs, tool, **env):
    recording = programs.traced(ROOT / "tests/matrix/program.py", "truth.json", **env)
    truth = json.loads((programs.folder / "truth.json").read_text())
    return versions.judge(tool.events(recording), tool.json("report", recording), truth)


def test_the_program_and_its_judge(programs, tool):
    assert {what for what, right in judged(programs, tool).items() if not right} == set()
    without = judged(programs, tool, GPUMEMTRACE_TAGS="off", output="without.gmt")
    assert {what for what, right in without.items() if not right} >= TAGS and without["blocks"] and without["ranges"]


def test_a_row_says_what_is_wrong():
    seen = dict.fromkeys(versions.COLUMNS, True)
    rows = {"2.1": {"version": "2.1.2+cu121", "cuda": "12.1", "hooks": {"saved": [True], "leaves": [False]}, "seen": {**seen, "saved": False, "leaves": False}},
            "2.1.2+cu118": {"trouble": "no such wheel"}}
    head, _, first, second = versions.table(rows).splitlines()
    cells = dict(zip(head.split(" | "), first.split(" | ")))
    assert cells["saved tensors"] == "**wrong**" and cells["parameters"] == "no hook" and cells["blocks"] == "yes"
    assert "| 2.1.2 | 11.8 | no such wheel |" in second and second.count("|") == head.count("|")
