# SPDX-License-Identifier: Apache-2.0
"""Native stacks that were verified instead of unwound, against libunwind's walk of the same moment, at every
event of real programs. The library is built to take both (`make CHECK=1`)."""
import fcntl
import json
import re
import subprocess

import pytest
from conftest import BUILD, REAL, ROOT


@pytest.fixture(scope="session")
def comparing():
    with open(ROOT / "build/check.lock", "w") as lock:  # other processes of this test run want it too
        fcntl.flock(lock, fcntl.LOCK_EX)
        subprocess.run(["make", "-s", "CHECK=1", "build/check/libgpumemtrace.so"], cwd=ROOT, check=True)
    return ROOT / "build/check/libgpumemtrace.so"


def compare(programs, library, *script):
    log = programs.folder / "frames.log"
    preload = [str(library)] + ([] if REAL else [str(BUILD / "libsimgpu.so")])
    recording = programs.traced(*script, LD_PRELOAD=":".join(preload), FRAMES_CHECK_LOG=log)
    text = log.read_text()
    counts = [dict((name, int(n)) for name, n in re.findall(r"(\w+) (\d+)", line))
              for line in text.splitlines() if line.startswith("frames:")]
    total = {name: sum(c[name] for c in counts) for name in counts[0]}
    assert total["differ"] == total["wrong"] == 0, text[:4000]
    return recording, total


@pytest.mark.real
@pytest.mark.parametrize("script,least", [
    pytest.param(("frames.py",), 9000, marks=pytest.mark.matrix),
    (("strange.py", "truth.json"), 200),
    (("stacks.py", "truth.json", "blocks"), 1000),
])
def test_same_as_libunwind(programs, tool, comparing, script, least):
    recording, total = compare(programs, comparing, *script)
    with_stack = sum(1 for e in tool.events(recording) if e.get("stack") and e["kind"] not in ("tag_saved", "use", "transfer", "graph_launch"))
    assert total["compared"] + total["asked"] >= with_stack >= least
    assert total["asked"] <= total["compared"] / 100
    assert total["kept"] > total["frames"] / 4


@pytest.mark.real
@pytest.mark.matrix
def test_python_within_operators(programs, tool, comparing):
    """Python's frames are not read again while an operator runs that the innermost one called, unless it calls Python."""
    recording, total = compare(programs, comparing, "bindings.py", "truth.json")
    assert total["left_out"] > 20
    said = json.loads((programs.folder / "truth.json").read_text())
    taken = [e for e in tool.events(recording) if e["kind"] == "mem_alloc" and e["size"] == 4096]
    assert len(taken) == len(said) > 150
    stacks = tool.stacks(recording)
    for event, functions in zip(taken, said):
        python = [f["function"].rsplit(".", 1)[-1] for f in stacks[event["stack"]] if f["kind"] == "python"]
        assert python[:3] == functions
