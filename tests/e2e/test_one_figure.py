# SPDX-License-Identifier: Apache-2.0
"""Whichever command is asked, a figure is the same, and a recording does not differ from itself."""
import json
import shutil
from pathlib import Path

import pytest
from test_cli import MIB, ROOT, answer, run

NET = """
import torch
from torch import nn
net = nn.Sequential(nn.Linear(256, 1024), nn.ReLU(), nn.Linear(1024, 256)).cuda()
optimizer = torch.optim.AdamW(net.parameters())
def step(rows=512):
    net(torch.randn(rows, 256, device="cuda")).square().mean().backward()
    optimizer.step()
    optimizer.zero_grad()
"""
# where the peak is -> the program
PROGRAMS = {
    "after the last step": NET + """
for i in range(4): step()
with torch.no_grad():
    found = net(torch.randn(8192, 256, device="cuda"))
    scores = found @ found.T
    near = scores > scores.mean(1, keepdim=True)
    rank = scores.argsort(1)
""",
    "before the first step": NET + """
table = torch.randn(8192, 4096, device="cuda")
norm = table / table.norm(dim=1, keepdim=True)
best = norm.square().argsort(1)
del table, norm, best
for i in range(4): step()
""",
    "in the longest of several evaluations": NET + """
def evaluate(rows):
    with torch.no_grad():
        return [net(torch.randn(rows, 256, device="cuda")) for _ in range(3)]
for i in range(3):
    step()
    evaluate(4096 if i == 1 else 2048)
""",
    "twice, as high each time": NET + """
for i in range(4):
    step()
    a = torch.empty(1 << 28, device="cuda")
    b = torch.empty(1 << 20, device="cuda")
    del a, b
""",
    "in inference alone": NET + """
with torch.inference_mode():
    for rows in 512, 4096, 1024:
        net(torch.randn(rows, 256, device="cuda")).argmax(1)
""",
}
RECORDED = ["v1/killed.gmt", "v1/tiny.gmt", "v2/kinds.gmt", "v3/thinned.gmt", "v4/extra.gmt", "v4/training.gmt", "bad/noise_between.gmt",
            "bad/group_missing.gmt", "example/old.gmt", "example/new.gmt"]


def record(programs, program, *arguments, **settings):
    (programs.folder / "program.py").write_text(program)
    return programs.traced(str(programs.folder / "program.py"), *arguments, **settings)


def check_of(recording, *options):
    done = run("check", "--json", recording, *options)
    assert done.returncode in (0, 1), done.stderr
    return [b["measured_bytes"] for b in json.loads(done.stdout)["recordings"][0]["bounds"]]


def check_figures(recording, folder):
    """Every command's figures are those of report; nothing differs from the recording, from a copy of it neither."""
    devices = answer("report", recording)["devices"]
    main = max(devices, key=lambda d: d["peak_bytes"])
    peak = main["peak_bytes"]
    assert answer("peak", recording)["bytes"] == answer("live", recording)["bytes"] == peak
    assert check_of(recording, "--max-peak", "1B", "--max-reserved", "1B") == \
        [peak, max(d["peak_reserved_bytes"] for d in devices if d["peak_bytes"])]
    for d in devices:
        if d["peak_bytes"]:
            assert answer("peak", recording, "--device", d["device"])["bytes"] == d["peak_bytes"]
            assert check_of(recording, "--max-peak", "1B", "--device", d["device"]) == [d["peak_bytes"]]
    assert answer("live", recording, "--at", "end")["bytes"] == main["end_bytes"]
    assert check_of(recording, "--max-growth", "0B") == [answer("leaks", recording)["growth_per_step"]] or len(devices) > 1
    copy = shutil.copy(recording, folder / "copy.gmt")
    if (folder / (recording.name + ".live")).exists():
        shutil.copy(str(recording) + ".live", str(copy) + ".live")
    for other in recording, copy:
        for pair in (recording, other), (other, recording):
            said = answer("diff", *pair)
            assert said["findings"] == [] and said["modules"] == [] and said["delta"] == 0, said["findings"]
        # Nothing is known to be within a limit where events were lost.
        partly = "bad" in recording.parts or answer("report", recording)["dropped"]
        assert run("check", recording, "--baseline", other, "--fail-above", "0B").returncode in (0, 1 if partly else 0)


@pytest.mark.parametrize("where", PROGRAMS)
def test_wherever_the_peak_is(programs, where):
    check_figures(record(programs, PROGRAMS[where]), programs.folder)


def test_a_bounded_recording(programs):
    deep = NET.replace("net = ", "net = nn.Sequential(*[nn.Sequential(nn.Linear(256, 64), nn.ReLU(), nn.Linear(64, 256)) for _ in range(16)]).cuda()\n# ")
    recording = record(programs, deep + "for i in range(1600): step(4096 if i == 700 else 64 + i % 7 * 8)\n", GPUMEMTRACE_MAX_SIZE="4MiB")
    assert int(answer("info", recording)["meta"]["thinned.events"]) > 0
    check_figures(recording, programs.folder)


@pytest.mark.parametrize("name", RECORDED)
def test_recordings_of_every_version(tmp_path, name):
    original = Path(ROOT, "tests/data", name)
    folder = tmp_path / original.parent.name
    folder.mkdir()
    recording = Path(shutil.copy(original, folder))
    if Path(str(original) + ".live").exists():
        shutil.copy(str(original) + ".live", folder)
    check_figures(recording, folder)


TWO = NET + """
import sys
first, second = (torch.empty(int(mib) << 20, dtype=torch.uint8, device=f"cuda:{i}") for i, mib in enumerate(sys.argv[1:3]))
spare = torch.empty(int(sys.argv[4]) << 20, dtype=torch.uint8, device=f"cuda:{sys.argv[3]}")
del spare
torch.empty(1 << 30, dtype=torch.uint8, device="cuda:1")
kept = []
for i in range(6):
    step(64)
    kept.append(torch.empty(1 << 20, dtype=torch.uint8, device="cuda:1"))
"""


@pytest.mark.parametrize("first, second", [(4096, 64), (64, 4096), (2048, 16)])
def test_a_limit_is_one_for_every_device(programs, first, second):
    """Not only for the device with the highest peak: another may have reserved more, or grow."""
    recording = record(programs, TWO, str(first), str(second), "0", "8", count=2)
    devices = answer("report", recording)["devices"]
    assert len(devices) == 2
    most = max(devices, key=lambda d: d["peak_reserved_bytes"])
    assert check_of(recording, "--max-reserved", "1B") == [most["peak_reserved_bytes"]]
    done = run("check", recording, "--max-reserved", f"{most['peak_reserved_bytes'] - 1}B", "--max-growth", "0B")
    reserved, growth = done.stdout.splitlines()
    assert done.returncode == 1 and f" on device {most['device']}: " in reserved and reserved.startswith("fail ")
    assert growth.startswith("fail ") and "growth 1.0 MiB a step on device 1: " in growth
    assert check_of(recording, "--max-growth", "0B") == [answer("leaks", recording, "--device", "1")["growth_per_step"]] == [MIB]
    fine = [f"{max(d[k] for d in devices)}B" for k in ("peak_reserved_bytes", "peak_bytes")]
    assert run("check", recording, "--max-reserved", fine[0], "--max-peak", fine[1]).returncode == 0
    assert run("check", recording, "--max-growth", "0B", "--device", "0").returncode == 0
