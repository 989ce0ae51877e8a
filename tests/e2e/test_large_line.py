# SPDX-License-Identifier: Apache-2.0
"""The line that most of the peak, or a refused request, is of: its statement, and what its operation can do without. What a call is given is
not its result."""
import conftest
import pytest
from conftest import BUILD

pytestmark = pytest.mark.skipif(not (BUILD / "libsimgpu.so").exists(), reason="built without CUDA headers")

PROGRAM = """
import sys
import torch
from torch import nn
net = nn.Linear(64, 64).cuda()
rows = torch.randn(1024, 64, device="cuda")
def masks(mask):
    return mask.repeat(400, 1, 1)
def scores(parts):
    return nn.functional.linear(torch.stack(parts).flatten(0, 1), rows)
def listed():
    kept = []
    for _ in range(12):
        part = rows.repeat(100, 1)
        kept.append(part)
    return kept
def chained(weight):
    return rows.repeat(2, 1).matmul(weight)[None]
def joined(dtype):
    return torch.cat([rows.to(dtype)] * 1600).float()
class Filled(nn.Module):
    def forward(self, x):
        sums = torch.zeros(1024, 100000, device="cuda")
        sums[:, 0] += x[:, 0]
        return sums
def moved(values):
    return values.cuda()
def taken():
    net.weight.requires_grad_(False)
    taken = nn.Parameter(torch.zeros(64, 1 << 16, device="cuda")).index_select(0, torch.arange(64, device="cuda").repeat(16))
    kept = torch.bmm(taken[None], nn.Parameter(torch.zeros(1, 1 << 16, 8, device="cuda")))
    kept.sum().backward()
    return kept.detach()
with torch.set_grad_enabled(sys.argv[1] == "saved"):
    net(rows)
    if sys.argv[1] == "saved":
        kept = taken()
    elif sys.argv[1] == "copy":
        kept = masks(torch.zeros(1, 1024, 512, device="cuda"))
    elif sys.argv[1] == "many":
        kept = listed()
    elif sys.argv[1] == "chain":
        kept = chained(torch.randn(64, 65536, device="cuda"))
    elif sys.argv[1] in ("wide", "narrow"):
        kept = joined(torch.float32 if sys.argv[1] == "wide" else torch.bfloat16)
    elif sys.argv[1] == "filled":
        kept = Filled()(rows)
    elif sys.argv[1] == "moved":
        kept = moved(torch.zeros(1024, 100000))
    else:
        kept = scores([rows] * 200)
    print(float(kept[0].sum()))
torch.kept = kept  # to the end
"""


def record(folder, how, card="h100-80g"):
    """Of a program that ends well on a large card alone."""
    (folder / "program.py").write_text(PROGRAM)
    conftest.record(folder / "x.gmt", folder / "program.py", how, card=card, code=int("=" in card))
    return folder / "x.gmt"


@pytest.mark.parametrize("how", ["copy", "product"])
def test_the_statement_and_its_operation(tool, tmp_path, how):
    recording = record(tmp_path, how)
    said = tool.json("advise", recording)["look_at"]
    line, statement = {"copy": (8, "return mask.repeat(400, 1, 1)"), "product": (10, "return nn.functional.linear(torch.stack(parts)")}[how]
    assert f"program.py:{line} ({statement}" in said and ("expand()" in said) == (how == "copy") and "written" not in said
    assert " ".join(said.split()) in " ".join(tool("advise", recording).split())
    (matter,) = [m for m in tool.json("report", recording)["summary"] if m["kind"] == "line"]
    assert (matter["line"], matter["file"]) == (line, str(tmp_path / "program.py")) and matter["action"].startswith("look at that line")
    recording = record(tmp_path, how, "mine=800MiB")
    said = tool.json("oom", recording)
    assert said["cause"] in ("activation_spike", "batch_too_large")
    assert said["look_at"].startswith(f"Look at {'masks' if how == 'copy' else 'scores'} program.py:{line} ({statement}")


@pytest.mark.parametrize("how, line, change", [("many", 14, "look at that line: many of its results are there at once: keep fewer"),
                                               ("chain", 18, "look at that line: compute only the rows that are read, if not all are"),
                                               ("wide", 20, "look at that line: compute only the rows that are read, if not all are"),
                                               ("narrow", 20, "look at that line: the copy takes four bytes a value"),
                                               ("filled", 23, "look at that line: if it is filled later, make it on the host"),
                                               ("moved", 27, "look at that line: it is moved to the device whole")])
def test_what_does_not_help_is_not_said(tool, tmp_path, how, line, change):
    """A view in place of each of many copies, or of what a product takes; a conversion where another operator made the largest block; parts of
    what is whole before it is filled, or before it is moved. Parts have their condition."""
    recording = record(tmp_path, how)
    (matter,) = [m for m in tool.json("report", recording)["summary"] if m["kind"] == "line"]
    assert matter["line"] == line and matter["action"].startswith(change) and "no_grad" not in matter["action"]
    assert ("some rows at a time" in matter["action"]) == ("if rows are independent and little of each part stays" in matter["action"]) == (how in ("chain", "wide", "narrow"))


def test_rows_that_are_copied_for_each_index(tool, tmp_path):
    """Made in parts all of them are kept, unless each is computed again; a product with a sparse matrix needs none."""
    recording = record(tmp_path, "saved", "mine=640MiB")
    said = tool.json("oom", recording)["look_at"]
    assert said.startswith("Look at taken program.py:30 ") and "sparse matrix" in said and "torch.utils.checkpoint if autograd keeps it" in said
