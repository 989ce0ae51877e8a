# SPDX-License-Identifier: Apache-2.0
"""Memory that libraries take for their own work: what makes it smaller, and what PyTorch says where it does not fit."""
import subprocess

import pytest

pytestmark = pytest.mark.forks
MIB = 1 << 20
ENGINE = "was unable to find an engine to execute this computation"

PROGRAM = """
import sys, torch
from torch import nn
kind = sys.argv[1]
torch.backends.cudnn.benchmark = "search" in kind
torch.backends.cudnn.deterministic = "deterministic" in kind
if kind in ("products", "bias"):
    net, shape = nn.Linear(256, 256, bias=kind == "bias").cuda(), (64, 256)
    for step in range(3):
        net(torch.rand(shape).cuda()).square().mean().backward()
        net.zero_grad()
else:
    like = torch.channels_last if kind == "last" else torch.contiguous_format
    of, side = (nn.Conv1d, (1 << 20,)) if kind == "line" else (nn.Conv2d, (1024, 1024))
    net = nn.Sequential(of(3, 64, 9, padding=4), nn.ReLU(), of(64, 32, 5, padding=2), nn.ReLU(), of(32, 3, 5, padding=2)).cuda().to(memory_format=like)
    with torch.no_grad():
        for n in (1, 2):
            net(torch.rand(1, 3, *side).cuda().to(memory_format=like)).sum()
"""


def record(programs, kind, card, **settings):
    (programs.folder / "program.py").write_text(PROGRAM)
    done = programs(programs.folder / "program.py", kind, card=card, GPUMEMTRACE_OUTPUT="run.gmt", **settings)
    return done, programs.folder / "run.gmt"


def without_refusal(tool, path):
    done = subprocess.run([tool.path, "oom", path], capture_output=True, text=True)
    assert done.returncode == 1, done.stdout
    return " ".join(done.stderr.split())


def peak(tool, path):
    return tool.json("report", path)["devices"][0]["peak_bytes"]


@pytest.mark.parametrize("kind, card, conf", [("products", "rtx4090-24g", ":16:8"), ("bias", "rtx4090-24g", ":16:8"), ("products", "h100-80g", ":4096:2")])
def test_smaller_workspaces_of_cublas(programs, tool, kind, card, conf):
    """The change is as large as said, with the setting for this card; of cuBLASLt's it is the upper end."""
    _, path = record(programs, kind, card)
    (said,) = [f for f in tool.json("advise", path)["findings"] if f["kind"] == "less_workspace"]
    before = peak(tool, path)
    assert f"CUBLAS_WORKSPACE_CONFIG={conf} " in said["what"]
    _, path = record(programs, kind, card, CUBLAS_WORKSPACE_CONFIG=conf)
    assert said["least_bytes"] - before // 33 <= before - peak(tool, path) <= said["saves_bytes"] + before // 33
    assert conf != ":16:8" or not [f for f in tool.json("advise", path)["findings"] if f["kind"] == "less_workspace"]


@pytest.mark.parametrize("kind", ["plain", "last", "line", "deterministic"])
def test_copies_of_channels(programs, tool, kind):
    _, path = record(programs, kind, "rtx4090-24g")
    said = [f for f in tool.json("advise", path)["findings"] if f["kind"] == "channels_last"]
    assert bool(said) == (kind in ("plain", "deterministic"))
    if kind != "plain":
        return
    before = peak(tool, path)
    _, path = record(programs, "last", "rtx4090-24g")
    assert said[0]["least_bytes"] == 0 and abs(before - peak(tool, path) - said[0]["saves_bytes"]) <= before // 33


def test_a_workspace_that_does_not_fit(programs, tool):
    done, path = record(programs, "plain", "mine=850MiB")
    assert f"GET {ENGINE}" in done.stderr
    said, text = tool.json("oom", path), " ".join(tool("oom", path).split())
    assert f'"GET {ENGINE}"' in said["text"] and "benchmark" not in text and "deterministic" not in text
    assert "for a workspace of" in text and "for a tensor of" not in text
    (remedy,) = [r for r in said["remedies"] if r["name"] == "channels_last"]
    assert remedy["saves_bytes"] == said["block_bytes"] and not remedy["enough"]
    done, path = record(programs, "last", "mine=850MiB")
    assert done.returncode == 0, done.stderr


def test_a_search_that_finds_nothing_that_fits(programs, tool):
    """No request is refused. A search that ends well is none of this."""
    done, path = record(programs, "search", "mine=850MiB")
    assert f"FIND {ENGINE}" in done.stderr
    said = without_refusal(tool, path)
    assert f'"FIND {ENGINE}"' in said and "no request was refused" in said and "program.py:" in said and "MiB free" in said
    done, path = record(programs, "search", "rtx4090-24g")
    assert done.returncode == 0 and "memory did not run out" in without_refusal(tool, path)
