# SPDX-License-Identifier: Apache-2.0
"""GPUMEMTRACE_MAX_SIZE: a training run in a recording that is a fraction of what it would be. The peak of every step, the
totals and all live blocks are what PyTorch says; a kill at any moment leaves a recording within the bound."""
import csv
import io
import json
import os
import random
import signal
import subprocess
import sys
import time

import toy

MIB = 1 << 20
BOUND = 4 * MIB
PROGRAM = """
import ctypes, json, sys, torch
from torch import nn
torch.manual_seed(0)
mark = ctypes.CDLL(None).gpumemtrace_mark
model = nn.Sequential(*[nn.Sequential(nn.Linear(64, 256), nn.ReLU(), nn.Linear(256, 64)) for _ in range(12)]).cuda()
optimizer = torch.optim.AdamW(model.parameters())
kept, peaks = [], []
for step in range(int(sys.argv[1])):
    torch.cuda.reset_peak_memory_stats()
    batch = 64 + 512 * (step == 400) + step % 7 * 8
    loss = model(torch.randn(batch, 64, device="cuda")).square().mean()
    loss.backward()
    optimizer.step()
    optimizer.zero_grad(set_to_none=step % 2 == 0)
    if step % 50 == 0:
        mark(b"first %d" % step)
        kept.append(torch.zeros(1000 + step, device="cuda").add_(1))
        mark(b"made %d" % step)
    if step % 50 == 20 and step > 20:
        mark(b"last %d" % (step - 70))
        kept[-2][100:].mul_(2)
        mark(b"used %d" % (step - 70))
    if step % 100 == 0:
        print(step, flush=True)
    peaks.append(torch.cuda.max_memory_allocated())
    del loss
blocks = sorted((b["address"], b["size"]) for s in torch.cuda.memory_snapshot() for b in s["blocks"]
                if b["state"] == "active_allocated")
mark(b"end of it")
json.dump({"peaks": peaks, "now": torch.cuda.memory_allocated(), "blocks": blocks}, open("truth.json", "w"))
"""


def start(programs, steps):
    (programs.folder / "bounded.py").write_text(PROGRAM)
    env = programs.environment(GPUMEMTRACE_OUTPUT="bounded.gmt", GPUMEMTRACE_MAX_SIZE="4MiB")
    return subprocess.Popen([sys.executable, "bounded.py", str(steps)], env=env, cwd=programs.folder, stdout=subprocess.PIPE,
                            stderr=subprocess.PIPE, text=True)


def room(file):
    return sum(p.stat().st_size for p in file.parent.glob("bounded.gmt*") if not p.name.endswith(".live"))


def test_totals_stay_exact(programs, tool):
    process = start(programs, 1200)
    file, most = programs.folder / "bounded.gmt", 0
    while process.poll() is None:
        try:
            most = max(most, room(file))
        except FileNotFoundError:
            pass
        time.sleep(0.02)
    assert process.returncode == 0, process.stderr.read()[-2000:]
    assert BOUND / 4 < most <= BOUND and [p.name for p in programs.folder.glob("bounded.gmt*")] == ["bounded.gmt"]
    truth = json.loads((programs.folder / "truth.json").read_text())
    report = tool.json("report", file, "--steps")
    assert [s["peak_bytes"] for s in report["steps"] if 0 < s["step"] <= len(truth["peaks"])] == truth["peaks"]
    assert report["devices"][0]["peak_bytes"] == max(truth["peaks"]) and report["dropped"] == 0
    at_peak = tool.json("live", file)
    assert at_peak["bytes"] == max(truth["peaks"]) and tool.json("peak", file)["bytes"] == at_peak["bytes"]
    live = tool.json("live", file, "--at", "mark:end of it")
    assert live["bytes"] == truth["now"] and sorted([b["addr"], b["size"]] for b in live["blocks"]) == truth["blocks"]
    kept = [b for b in live["blocks"] if b["stack"] and b["size"] in range(3584, 9000)]
    assert len(kept) >= 20, "each with the stack of its birth, also of steps that were left out"
    facts = tool.json("info", file)["meta"]
    left, lines = int(facts["thinned.events"]), tool("dump", file, "--json").splitlines()
    numbered = [line for line in lines if '"kind":' in line and '"seq":' in line]  # 400,000, of which a few are read
    events = [json.loads(line) for line in numbered if '"thinned"' in line or '"mark"' in line]
    records = [e for e in events if e["kind"] == "thinned"]
    assert sum(e["size"] for e in records) == left > 100000
    assert len(numbered) - len(records) + left == report["events"] == json.loads(numbered[-1])["seq"]
    assert report["allocs"] - report["frees"] >= len(kept) and tool.json("verify", file)["ok"]
    done = subprocess.run([tool.path, "report", file], capture_output=True, text=True)
    assert f"{left:,} events" in done.stderr and "are exact" in done.stderr
    check_uses(tool, file, events)
    copy = programs.folder / "copy.gmt"
    tool("recover", file, "-o", copy)
    assert tool.json("live", copy, "--at", "mark:end of it")["blocks"] == live["blocks"]
    assert tool.json("info", copy)["format_version"] == 5


def check_uses(tool, file, events):
    """Of each tensor that was kept the first and the last use, between the marks around them; how many there were is not known."""
    marks = {e["name"]: e["time_ns"] for e in events if e.get("kind") == "mark"}
    rows = list(csv.DictReader(io.StringIO(tool("export", file, "--to", "csv", "-o", "-"))))
    found = late = 0
    for step in (int(name[6:]) for name in marks if name.startswith("first ")):
        rows_of = [r for r in rows if marks[f"first {step}"] < int(r["born_ns"]) < marks[f"made {step}"] and int(r["died_ns"] or 1 << 63) > marks["end of it"]]
        assert len(rows_of) == 1
        first, last = int(rows_of[0]["first_use_ns"]), int(rows_of[0]["last_use_ns"])
        assert marks[f"first {step}"] < first < marks[f"made {step}"]
        end = ("last", "used") if f"used {step}" in marks else ("first", "made")
        assert marks[f"{end[0]} {step}"] < last, step
        late += last > marks[f"{end[1]} {step}"]
        found += not rows_of[0]["uses"]
    assert found > 10, "of those that lived through what was left out"
    assert late <= found / 5, "a launch may name an old address, which makes a use more"


def test_killed_at_any_moment(programs, tool):
    """Copies of the files at random moments are what a kill leaves; the last one is a kill."""
    process = start(programs, 100000)
    file, seen = programs.folder / "bounded.gmt", 0
    chance = random.Random(7)
    try:
        while not process.stdout.readline().startswith("700"):
            assert process.poll() is None
        for i in range(5):
            time.sleep(chance.random() * 2)
            copy = programs.folder / f"copy{i}.gmt"
            tool("ctl", process.pid, "snapshot", copy)
            assert tool.json("verify", copy)["ok"]
            assert room(file) <= BOUND
            report = tool.json("report", copy)
            assert report["events"] > seen and report["dropped"] == 0
            seen = report["events"]
    finally:
        process.send_signal(signal.SIGKILL)
        process.wait()
    assert file.stat().st_size <= BOUND
    report = tool.json("report", file)
    assert report["events"] >= seen and report["devices"][0]["peak_bytes"] > MIB
    live = tool.json("live", file, "--at", "end")
    assert live["bytes"] == report["devices"][0]["end_bytes"]


def test_the_programs_heap_is_left_alone(tmp_path):
    """A child of a fork would find its lock held for ever where the allocator has no fork handlers."""
    subprocess.run(["make", "-s", "build/programs/own_heap"], cwd=toy.ROOT, check=True)
    file = tmp_path / "run.gmt"
    env = dict(os.environ, GPUMEMTRACE_OUTPUT=str(file), GPUMEMTRACE_MAX_SIZE="4MiB", GPUMEMTRACE_FLUSH_MS="10",
               LD_PRELOAD=f"{toy.SHIM}:{toy.build_cudart(tmp_path)}")
    done = subprocess.run([toy.ROOT + "/build/programs/own_heap", file], env=env, capture_output=True, text=True, timeout=600)
    assert (done.stdout, done.returncode) == ("thinned 2, asked by others 0\n", 0), done.stderr
    assert int(toy.facts(file)["thinned.events"]) > 100000
