# SPDX-License-Identifier: Apache-2.0
"""When blocks were used: an earlier model that is still held is what is not used again at the peak, with the bytes that the program
itself counts; nothing is said of uses that were not recorded."""
import csv
import json
import re
from types import SimpleNamespace

import pytest
from conftest import Programs

PROGRAM = """
import json, sys, torch, torch.nn as nn
def model():
    return nn.Sequential(nn.Linear(512, 2048), nn.GELU(), nn.Linear(2048, 512)).cuda()
def train(m, steps, n):
    o = torch.optim.AdamW(m.parameters())
    for i in range(steps):
        m(torch.randn(n, 512, device="cuda")).square().mean().backward()
        o.step(); o.zero_grad()
    return o
old = model()
state = train(old, 3, 64)
parameters = sum(p.untyped_storage().nbytes() for p in old.parameters())
moments = sum(t.untyped_storage().nbytes() for s in state.state.values() for t in s.values() if t.is_cuda)
json.dump({"parameters": parameters, "state": moments, "address": next(old.parameters()).data_ptr()}, open("truth.json", "w"))
new = model()
train(new, 4, 4096)
if sys.argv[1:] == ["fail"]:
    new[0](torch.randn(1 << 22, 512, device="cuda"))
"""


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    """The program; without uses; and where it runs out of memory behind the second training."""
    programs = Programs(tmp_path_factory.mktemp("uses"), forks=True)
    script = programs.folder / "twice.py"
    script.write_text(PROGRAM)
    on = programs.traced(script, output="on.gmt")
    truth = json.loads((programs.folder / "truth.json").read_text())
    off = programs.traced(script, output="off.gmt", GPUMEMTRACE_USES="off")
    done = programs(script, "fail", card="small=3GiB", GPUMEMTRACE_OUTPUT="fails.gmt")
    assert "OutOfMemoryError" in done.stderr
    return SimpleNamespace(on=on, off=off, fails=programs.folder / "fails.gmt", **truth)


def held(lines, kind):
    return sum(line["bytes"] for line in lines if line["class"] == kind and line["function"] in ("model", "train", "<module>"))


def test_the_old_model_is_not_used_again(tool, runs):
    device = tool.json("report", runs.on)["devices"][0]
    lines = device["unused_at_peak"]
    assert held(lines, "parameters") == runs.parameters and held(lines, "optimizer_state") == runs.state
    assert device["unused_at_peak_bytes"] == sum(line["bytes"] for line in lines)
    assert [line["bytes"] for line in lines] == sorted((line["bytes"] for line in lines), reverse=True)
    assert device["used_bound_bytes"] < device["peak_bytes"]
    assert tool.json("replay", runs.on)["used_bound_bytes"] == device["used_bound_bytes"]
    text = tool("report", runs.on)
    assert re.search(r"^  not used again +[\d.]+ [KMG]iB  kept after the last use:$", text, re.M)
    assert re.search(r"^  smallest peak +%.1f MiB  if each block lived from first to last use$" % (device["used_bound_bytes"] / 2**20), text, re.M)
    assert re.search(r"^    model twice.py:4 +[\d.]+ [KMG]iB  parameters$", text, re.M)


def test_a_block_says_when_it_was_used(tool, runs):
    live = {b["addr"]: b for b in tool.json("live", runs.on)["blocks"]}
    why = tool.json("why", runs.on, hex(runs.address))
    block = live[runs.address]
    assert (why["uses"], why["last_use_ns"], why["next_use_ns"]) == (block["uses"], block["last_use_ns"], None)
    assert block["next_use_ns"] is None and why["first_use_ns"] < why["last_use_ns"] < why["time_ns"]
    assert re.search(r"^Last used in step 3 by multi_tensor_apply_kernel \(twice.py:9\), [\d.]+ m?s before;\s+not\s+used\s+again",
                     tool("why", runs.on, hex(runs.address)), re.M)
    early = tool.json("live", runs.on, "--at", why["first_use_ns"] - 1)
    assert [(b["last_use_ns"], b["next_use_ns"]) for b in early["blocks"] if b["addr"] == runs.address] == [(None, why["first_use_ns"])]
    rows = csv.DictReader(tool("export", runs.on, "--to", "csv", "-o", "-").splitlines())
    row = next(r for r in rows if int(r["address"]) == runs.address)
    assert [int(row[k]) for k in ("first_use_ns", "last_use_ns", "uses", "longest_pause_ns")] == [
        why[k] for k in ("first_use_ns", "last_use_ns", "uses", "longest_pause_ns")]
    uses = [e for e in tool.events(runs.on) if e["kind"] in ("use", "transfer") and
            runs.address in e.get("places", [e["addr"]])]
    assert why["first_use_ns"] == uses[0]["time_ns"] and why["last_use_ns"] == uses[-1]["time_ns"]


def test_a_refusal_says_since_when(tool, runs):
    said = tool.json("oom", runs.fails)
    idle = {(h["class"], h["line"]): h for h in said["holders"] if h["idle_bytes"]}
    assert sum(h["idle_bytes"] for h in idle.values()) == runs.parameters + runs.state
    assert all(h["last_use_ns"] < said["time_ns"] for h in idle.values())
    assert re.search(r"optimizer state, .*not used (since step 3|for a step)", tool("oom", runs.fails))


def test_launches_are_counted(tool, runs):
    events = tool.events(runs.on)
    info = tool.json("info", runs.on)
    assert info["launches"] == sum(e["kind"] == "use" and not e["flags"] & 512 for e in events) > 0
    assert info["launches_unread"] == 0
    assert tool.json("info", runs.off)["launches"] == 0


def test_nothing_is_said_without_uses(tool, runs):
    device = tool.json("report", runs.off)["devices"][0]
    assert device["unused_at_peak_bytes"] is None and device["used_bound_bytes"] is None and device["unused_at_peak"] == []
    block = max(tool.json("live", runs.off)["blocks"], key=lambda b: b["size"])
    why = tool.json("why", runs.off, block["addr"])
    assert block["uses"] is block["last_use_ns"] is block["next_use_ns"] is why["uses"] is why["first_use_ns"] is None
    assert "used" not in tool("why", runs.off, block["addr"]).split("allocated by")[1]
    assert "not used" not in tool("report", runs.off) and "smallest peak" not in tool("report", runs.off) and tool.json("replay", runs.off)["used_bound_bytes"] is None
    row = next(csv.DictReader(tool("export", runs.off, "--to", "csv", "-o", "-").splitlines()))
    assert row["first_use_ns"] == row["uses"] == row["longest_pause_ns"] == ""
