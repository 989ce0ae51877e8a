# SPDX-License-Identifier: Apache-2.0
"""`gpumemtrace fit --ranks` of a world larger than the machine: PyTorch's own client of the rendezvous, groups of gloo and NCCL with
ranks that do not run, and the shards of those that do."""
import json
import os
import re
import subprocess
import sys

import json_page
import pytest
import toy
from conftest import BUILD, ENDS_BADLY, REAL, TABLES

pytestmark = pytest.mark.skipif(REAL or not (BUILD / "libsimgpu.so").exists(), reason="for the simulated device")
# Members of `fit --json` that no other search has.
OF_LARGE_WORLDS = {("fit_card", m) for m in ("ranks", "nccl_bytes", "nccl_least_bytes", "nccl_most_bytes")} | {
    ("fit_rank", m.name) for m in TABLES["fit_rank"][1]}
PROGRAMS = os.path.join(toy.ROOT, "tests/fit/world_programs.py")


def fit(folder, ranks, *args):
    env = {k: v for k, v in os.environ.items() if not k.startswith(("GPUMEMTRACE_", "SIMGPU_"))}
    for again in (True, False):
        done = subprocess.run([toy.TOOL, "fit", "--json", "--ranks", ranks, "--cards", "h100-80g", "-o", folder, "--", sys.executable, PROGRAMS, *args],
                              env={**env, "OMP_NUM_THREADS": "1", "PYTHONUNBUFFERED": "1"}, capture_output=True, text=True, timeout=500)
        if not (again and "exit code 134: " + ENDS_BADLY in done.stderr):
            break
        for path in folder.iterdir():
            path.unlink()
    logs = "".join(p.read_text() for p in folder.glob("*.log"))
    assert done.returncode == 0, done.stderr + logs[-4000:]
    document = json.loads(done.stdout)
    seen = set()
    assert json_page.check(TABLES, "fit", document, seen) == []
    assert OF_LARGE_WORLDS <= seen
    return document["cards"][0], logs


def test_shards_of_512(tmp_path):
    """Objects by gloo and by NCCL, a sum, a barrier; then FSDP2: six blocks of 512 x 2048, evenly over all ranks but for what is
    shorter than there are ranks."""
    card, logs = fit(tmp_path, "512", "gloo")
    assert [r["rank"] for r in card["ranks"]] == [0, 256, 511]
    assert len({(r["peak_bytes"], r["peak_reserved_bytes"]) for r in card["ranks"]}) == 1
    assert card["peak_bytes"] == card["ranks"][0]["peak_bytes"]
    block = (2048 * 512 + 2048 + 512 * 2048 + 512 + 2 * 512) // 512
    assert re.findall(r"elements (\d+)", logs) == [str(6 * block)] * 3
    assert card["nccl_least_bytes"] < card["nccl_bytes"] < card["nccl_most_bytes"] < 8 << 30
    assert all((tmp_path / r["recording"]).exists() for r in card["ranks"])
    said = json.loads(subprocess.run([toy.TOOL, "report", "--json", tmp_path], capture_output=True, text=True, check=True).stdout)
    assert [(r["rank"], r["devices"][0]["peak_bytes"]) for r in said["ranks"]] == [(r["rank"], r["peak_bytes"]) for r in card["ranks"]]
    assert "note" not in said


def test_a_pipeline(tmp_path):
    """Shapes reach each stage from the nearest one before it that runs."""
    card, logs = fit(tmp_path, "64:0,32,63", "pipeline")
    first, middle, last = (r["peak_bytes"] for r in card["ranks"])
    assert card["peak_bytes"] == max(first, middle, last) and first > middle and last > middle
    assert len(re.findall(r"elements (\d+)", logs)) == 3


def test_a_pipeline_of_two_stages(tmp_path):
    """Two of the ranks that run are of its last stage: neither can send what the other receives."""
    card, logs = fit(tmp_path, "64:0,32,63", "pipeline", "two")
    first, middle, last = (r["peak_bytes"] for r in card["ranks"])
    assert middle == last != first
    assert len(re.findall(r"elements (\d+)", logs)) == 3
