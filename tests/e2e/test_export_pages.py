# SPDX-License-Identifier: Apache-2.0
"""Exports in the pages that they are for, in Chromium: Perfetto with its trace processor, and the page of PyTorch's
memory_viz. What they come to is what the recording says."""
import collections
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from conftest import REAL, ROOT
from test_export import WORDS, Run

DRIVER = ROOT / ".venv-browser/bin/python"
MEMORY_VIZ = os.environ.get("GPUMEMTRACE_TEST_MEMORYVIZ")

pytestmark = pytest.mark.skipif(not shutil.which("chromium") or not DRIVER.exists(),
                                reason="no chromium or no .venv-browser (scripts/setup.sh browser)")


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    if REAL:
        pytest.skip("for the simulated device")
    return Run(tmp_path_factory.mktemp("pages"), False)


def ask(trace, *queries):
    done = subprocess.run([DRIVER, ROOT / "tests/e2e/perfetto_ui.py", trace], text=True, capture_output=True, timeout=300,
                          input="".join(json.dumps(q) + "\n" for q in queries))
    assert done.returncode == 0, done.stderr[-3000:]
    answer = json.loads(done.stdout)
    assert answer["dialogs"] == []
    return answer["rows"]


def test_perfetto_comes_to_our_figures(run):
    """Slices, counters, instants and threads of the trace processor, each counted against the events."""
    device = run.report["devices"][0]
    events = run.tool.events(run.path)
    first = min(e["time_ns"] for e in events if "time_ns" in e)
    at = device["peak_time_ns"] - first
    errors, slices, peak, highest, instants, threads = ask(
        run.files["perfetto"],
        "select name, value from stats where value > 0 and severity in ('error', 'data_loss')",
        "select name, ts, dur from slice where dur > 0",
        f"select t.name, c.value, max(c.id) from counter c join counter_track t on c.track_id = t.id where c.ts <= {at} group by t.id",
        "select t.name, max(c.value) from counter c join counter_track t on c.track_id = t.id group by t.id",
        "select s.name, extract_arg(s.arg_set_id, 'args.asked_bytes') from slice s where s.name = 'out of memory'",
        "select name from thread where name is not null")
    assert errors == []
    begun = {(e["thread"], e["arg0"]): e for e in events if e.get("kind") == "range_begin"}
    ranges = [(begun[e["thread"], e["arg0"]]["name"], begun[e["thread"], e["arg0"]]["time_ns"] - first, e["time_ns"] - begun[e["thread"], e["arg0"]]["time_ns"])
              for e in events if e.get("kind") == "range_end" and (e["thread"], e["arg0"]) in begun]
    assert len(ranges) == 9
    assert collections.Counter(map(tuple, slices)) == collections.Counter(ranges)
    here = {name.removeprefix("GPU 0 ").removesuffix(" bytes"): value for name, value, _ in peak if name.startswith("GPU 0 ")}
    assert {k: v for k, v in here.items() if k != "reserved" and v} == {k: v for k, v in run.by_class().items() if v}
    assert dict(highest)["GPU 0 reserved bytes"] == run.reserved
    assert [n for _, n in instants] == [4 << 45]
    assert "python" in " ".join(n for n, in threads)


def test_perfetto_takes_any_name(run, tmp_path):
    names = ["<b>&quot;", "\\u0000", "\x1b[31m", "\udcff\udc80", "\u202e", "x" * 3_000, '"}],', "emoji \U0001f600"]
    lines = ["thread 1 1 main"] + [f"string {i} {name}" for i, name in enumerate(names, 1)]
    for i in range(1, len(names) + 1):
        lines += [f"event range_begin time_ns={i * 100} arg0={i} arg1=1 name={i} thread=1",
                  f"event range_end time_ns={i * 100 + 20} arg0={i} arg1=1 name={i} thread=1"]
    subprocess.run(["make", "-s", "build/data/make_recording"], cwd=ROOT, check=True)
    subprocess.run([ROOT / "build/data/make_recording", tmp_path / "x.gmt"], input="\n".join(lines).encode("utf-8", "surrogateescape") + b"\n", check=True)
    run.tool("export", tmp_path / "x.gmt", "--to", "perfetto", "-o", tmp_path / "x.json")
    errors, slices = ask(tmp_path / "x.json", "select name, value from stats where value > 0 and severity in ('error', 'data_loss')",
                         "select length(name), dur from slice order by ts")
    assert errors == [] and [d for _, d in slices] == [20] * len(names)
    assert slices[5][0] == 3_000


PLOT = """
import pickle, sys
from torch.cuda import _memory_viz as viz
open(sys.argv[2], "w").write(viz.trace_plot(pickle.load(open(sys.argv[1], "rb")), device=0))
"""


@pytest.mark.skipif(not MEMORY_VIZ, reason="GPUMEMTRACE_TEST_MEMORYVIZ names no folder with MemoryViz.js and d3 (tests/e2e/memory_viz.py)")
def test_page_of_memory_viz(run, tmp_path):
    """Every allocation has its shape and its stack, coloured by our class."""
    subprocess.run([sys.executable, "-c", PLOT, run.files["torch"], tmp_path / "plot.html"], check=True)
    done = subprocess.run([DRIVER, ROOT / "tests/e2e/memory_viz.py", Path(MEMORY_VIZ), tmp_path / "plot.html"], capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr[-3000:]
    got = json.loads(done.stdout)
    assert got["said"] == [] and got["left"] == []
    births = collections.Counter(e["size"] for e in run.tool.events(run.path) if e.get("kind") == "block_alloc" and e["device"] == 0)
    assert collections.Counter(d["size"] for d in got["details"]) == births
    classes = [t for t in got["legend"] if t in WORDS]
    assert set(classes) >= {"unknown"} | {k for k, v in run.by_class().items() if v}
    assert len({d["fill"] for d in got["details"]}) >= 5
    assert any("<module>" in d["text"] for d in got["details"])
