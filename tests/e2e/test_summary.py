# SPDX-License-Identifier: Apache-2.0
"""What `report` says first: nothing of a run that has nothing, else the figures that PyTorch itself counts, most bytes first."""
import json
import subprocess
import sys

import pytest

from conftest import BUILD, ROOT

MIB = 1 << 20
PROGRAM = """
import json, statistics, sys, torch
from torch import nn
kind, counts, peaks, kept = sys.argv[1], [], [], []
model = nn.Sequential(nn.Linear(2048, 2048), nn.ReLU(), nn.Linear(2048, 2048)).cuda()
optimizer = torch.optim.AdamW(model.parameters())
truth = {}
for step in range(8):
    torch.cuda.reset_peak_memory_stats()
    out = model(torch.randn(65536 if kind == "spike" and step == 5 else 4096, 2048, device="cuda"))
    out.square().mean().backward()
    optimizer.step()
    optimizer.zero_grad()
    if kind in ("leak", "oom"):
        kept.append(out.detach())  # here
    del out
    counts.append(torch.cuda.memory_allocated())
    peaks.append(torch.cuda.max_memory_allocated())
if kind == "leak":
    truth = {"growth": counts[-1] - counts[1]}
if kind == "spike":
    truth = {"spike": max(peaks) - statistics.median_high(peaks)}
if kind == "cache":
    torch.cuda.reset_peak_memory_stats()
    many = [torch.empty(8 << 20, dtype=torch.uint8, device="cuda") for _ in range(128)]
    del many
    large = torch.empty(900 << 20, dtype=torch.uint8, device="cuda")  # fits no hole
    truth = {"reserved": torch.cuda.memory_reserved() - torch.cuda.memory_allocated(),
             "spike": torch.cuda.max_memory_allocated() - statistics.median_high(peaks)}
print(json.dumps(truth))
"""


def record(folder, kind, card="h100-80g", code=0):
    (folder / "train.py").write_text(PROGRAM)
    done = subprocess.run([BUILD / "gpumemtrace", "run", "-q", "--sim", card, "-o", folder / "x.gmt", "--", sys.executable, folder / "train.py", kind],
                          capture_output=True, text=True, timeout=120)
    assert done.returncode == code, done.stderr
    return folder / "x.gmt", json.loads(done.stdout) if not code else {}


@pytest.mark.parametrize("kind", ["none", "leak", "spike", "cache"])
def test_bytes_are_what_pytorch_counts(tool, tmp_path, kind):
    recording, truth = record(tmp_path, kind)
    report, text = tool.json("report", recording), tool("report", recording)
    said = {m["kind"]: m for m in report["summary"]}
    assert {k: m["bytes"] for k, m in said.items() if k in truth or k not in ("reserved",)} == truth
    assert [m["bytes"] for m in report["summary"]] == sorted((m["bytes"] for m in report["summary"]), reverse=True)
    head = " ".join(text.split("Device 0:")[0].split())
    assert ("Nothing stands out." in head) == (not said)
    for m in said.values():
        assert m["text"] in head and m["action"] in head
    if kind == "leak":
        assert PROGRAM.splitlines()[said["growth"]["line"] - 1].strip().startswith("out = model(")
    if kind == "spike":
        assert "in step 6" in said["spike"]["text"] and said["spike"]["time_ns"] == report["devices"][0]["peak_time_ns"]


def test_a_refusal_comes_first_with_its_cause_and_the_best_remedy(tool, tmp_path):
    recording, _ = record(tmp_path, "oom", card="mine=720MiB", code=1)
    oom, (first, *others) = tool.json("oom", recording), tool.json("report", recording)["summary"]
    assert first["kind"] == "out_of_memory" and first["text"] == "Out of memory: " + oom["text"]
    assert first["action"].startswith(oom["remedies"][0]["what"]) and oom["remedies"][0]["saves_bytes"]
    assert oom["cause"] in ("growing", "retained_graph") and "growth" not in {m["kind"] for m in others}  # said as the cause
    assert first["bytes"] >= max(m["bytes"] for m in others or [first])


def test_what_the_recording_lacks(tool, tmp_path):
    recording, _ = record(tmp_path, "none")
    recording.write_bytes(recording.read_bytes()[:-200])
    assert tool.json("report", recording)["summary"][-1]["kind"] == "incomplete"
    assert "Nothing stands out" not in tool("report", recording)


def test_examples_of_the_manual(tool):
    """At most five, also of a run that has many."""
    for recording in (ROOT / "tests/data/example").glob("*.gmt"):
        matters = tool.json("report", recording)["summary"]
        assert len(matters) <= 5 and all(m["text"] and m["action"] for m in matters)
