# SPDX-License-Identifier: Apache-2.0
"""Whichever command is asked, a figure is the same, and a recording does not differ from itself."""
import csv
import io
import json
import re
import shutil
from collections import Counter
from pathlib import Path

import gpumemtrace
import pytest
from conftest import TOOLS
from gpumemtrace._answer import in_units
from test_cli import MIB, ROOT, answer, run

pytestmark = pytest.mark.forks

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
    assert disagreements(recording, programs.folder)[0] == {}


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


# Every face's figures of a recording as (what, device or None, figure); `r` is it in Python, `main` its device with the highest peak.


def faces_of_documents(r, main):
    """Commands' documents, which are the same to the byte in Python (test_python.py)."""
    def ask(command, *words):
        return json.loads(r._json(command, *map(str, words), fine=1))
    report, info, verify = ask("report"), ask("info"), ask("verify")
    yield from (("events", None, d["events"]) for d in (report, info, verify))
    yield from (("peak", None, x) for x in (r.peak, ask("peak")["bytes"], ask("live")["bytes"], ask("steps")["peak"]["bytes"]))
    for d in report["devices"]:
        n = d["device"]
        yield from (("peak", n, d["peak_bytes"]), ("end", n, d["end_bytes"]), ("ooms", n, d["ooms"]), ("reserved", n, d["peak_reserved_bytes"]))
        if d["peak_bytes"]:
            on = ("--device", n)
            peak, timeline, steps, live, end = (ask(*c, *on) for c in (("peak",), ("timeline",), ("steps",), ("live",), ("live", "--at", "end")))
            yield from (("peak", n, x) for x in (peak["bytes"], timeline["peak_bytes"], max(b["max"]["bytes"] for b in timeline["buckets"]),
                                                 steps["peak"]["bytes"], max(row["peak_bytes"] for row in steps["rows"]), live["bytes"],
                                                 sum(peak["categories"].values()), sum(d["categories_at_peak"].values())))
            yield from (("end", n, x) for x in (end["bytes"], steps["rows"][-1]["end_bytes"]))
            yield "peak time", n, d["peak_time_ns"]
            yield from (("peak time", n, x["time_ns"]) for x in (peak, steps["peak"], live))
            if not info["meta"].get("thinned.events"):
                yield "peak", n, sum(b["size"] for b in live["blocks"])
                yield "end", n, sum(b["size"] for b in end["blocks"])
    for d in ask("peak")["devices"]:
        yield from (("peak", d["device"], d["peak_bytes"]), ("end", d["device"], d["end_bytes"]), ("ooms", d["device"], d["refusals"]),
                    ("reserved", d["device"], d["peak_reserved_bytes"]))
    if sum(d["ooms"] for d in report["devices"]):
        oom = ask("oom")
        yield "all ooms", None, oom["ooms"]
        yield "all ooms", None, len(oom["refusals"])
        steps = ask("steps", "--device", oom["device"])
        at = [row["step"] for row in steps["rows"] if row["begin_ns"] <= oom["time_ns"] <= row["end_ns"]]
        yield "oom's step", oom["device"], oom["step"]
        yield "oom's step", oom["device"], oom["step"] if oom["step"] in at else at
    yield "all ooms", None, sum(d["ooms"] for d in report["devices"])


def faces_of_files(path, r, main, folder):
    """Text, a page, an export."""
    text = run("report", path).stdout
    for n, peak, rest in re.findall(r"^Device (\d+): peak (\S+ \S+)(.*?)(?=^Device|\Z)", text, re.M | re.S):
        yield "peak in words", int(n), peak
        yield from (("end in words", int(n), end) for end in re.findall(r"^  allocated at the end +(\S+ \S+)", rest, re.M))
    for d in json.loads(r._json("report", fine=1))["devices"]:
        if d["peak_bytes"]:
            yield "peak in words", d["device"], in_units(d["peak_bytes"])
            yield "end in words", d["device"], in_units(d["end_bytes"])
    assert run("html", path, "-o", folder / "x.html").returncode == 0
    first = json.loads(re.search(r'id="first">(.*?)</script>', (folder / "x.html").read_text(), re.S)[1])
    yield from (("peak", t["device"], t["peak_bytes"]) for t in first["tracks"] if t["peak_bytes"])
    (folder / "x.html").unlink()
    if not json.loads(r._json("info"))["meta"].get("thinned.events") and not main["dropped"]:
        ends = Counter()
        for row in csv.DictReader(io.StringIO(run("export", path, "-t", "csv", "-o", "-").stdout)):
            ends[int(row["device"])] += int(row["size"]) * (not row["died_ns"])
        yield from (("end", d["device"], ends[d["device"]]) for d in main["devices"])


def disagreements(path, folder):
    """What has several figures, and how many figures were compared."""
    r = gpumemtrace.open(path)
    report = json.loads(r._json("report", fine=1))
    highest = max(report["devices"], key=lambda d: d["peak_bytes"])["device"] if report["devices"] else None
    figures = {}
    for what, device, figure in [*faces_of_documents(r, report), *faces_of_files(path, r, report, folder)]:
        figures.setdefault((what, highest if device is None and what == "peak" else device), []).append(figure)
    return {k: v for k, v in figures.items() if len({json.dumps(x) for x in v}) > 1}, sum(map(len, figures.values()))


def test_all_faces_have_one_figure(many, tmp_path):
    data = {Path(ROOT, "tests/data", name) for name in RECORDED} | set(Path(ROOT, "tests/data").glob("v*/*.gmt"))
    # The others have values that no program makes: of every size in every field, and totals of blocks that are nowhere.
    files = [*sorted(many.glob("*.gmt")), *sorted(f for f in data if f.stem not in ("kinds", "thinned", "extra", "repeats"))]
    differ, seen = {}, 0
    for path in files:
        found, count = disagreements(path, tmp_path)
        seen += count
        differ.update({f"{path.parent.name}/{path.name}": found} if found else {})
    assert differ == {}
    assert len(files) >= 50 and seen > 2000


@pytest.mark.skipif(not TOOLS.exists(), reason="no .venv-tools: scripts/setup.sh tools")
def test_a_lake_has_the_figures_of_its_recordings(many, tmp_path):
    assert run("collect", many, "-o", tmp_path / "lake").returncode == 0

    def rows(query):
        return sorted(tuple(row.values()) for row in json.loads(run("sql", query, tmp_path / "lake", "--json").stdout)["rows"])
    reports = [json.loads(gpumemtrace.open(path)._json("report", fine=1)) for path in many.glob("*.gmt")]
    assert rows("select peak_bytes, end_bytes, refusals from devices where peak_bytes > 0") == sorted(
        (d["peak_bytes"], d["end_bytes"], d["ooms"]) for r in reports for d in r["devices"] if d["peak_bytes"])
    assert rows("select events, refusals from ranks") == sorted((r["events"], sum(d["ooms"] for d in r["devices"])) for r in reports)
