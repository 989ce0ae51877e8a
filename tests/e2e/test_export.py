# SPDX-License-Identifier: Apache-2.0
"""Exports are right if the tools they are for load them and come to our own figures: PyTorch's memory_viz, Go's
pprof, pyarrow, Polars, DuckDB; the rest is held against the rules of its format. What is exported is a real
training run on the simulated device, and snapshots that others recorded."""
import csv
import io
import json
import os
import pickle
import pickletools
import shutil
import subprocess
import sys

import pytest

from conftest import REAL, ROOT, Programs, Tool
from test_import import RECORDINGS, Truth, load, small, there_and_back, write

TOOLS = ROOT / ".venv-tools/bin/python"
FORMATS = ["torch", "perfetto", "speedscope", "folded", "pprof", "csv", "jsonl", "arrow"]
WORDS = {"parameters", "gradients", "optimizer state", "buffers", "inputs", "activations", "kv cache",
         "optimizer temporaries", "backward temporaries", "forward temporaries", "workspace", "communication", "unknown"}

# What the reader of PyTorch's own page knows.
PAGE_READS = set("""PROTO STOP MARK EMPTY_LIST APPEND APPENDS EMPTY_DICT SETITEM SETITEMS BININT BININT1 BININT2 LONG1 BINFLOAT
    NEWTRUE NEWFALSE NONE BINUNICODE SHORT_BINUNICODE BINGET LONG_BINGET BINPUT LONG_BINPUT MEMOIZE TUPLE TUPLE1 TUPLE2
    TUPLE3 EMPTY_TUPLE LIST DICT FRAME""".split())

TRAIN = """
import torch
torch.manual_seed(0)
model = torch.nn.Sequential(torch.nn.Linear(1000, 3000), torch.nn.ReLU(), torch.nn.Linear(3000, 10)).cuda()
optimizer = torch.optim.AdamW(model.parameters())
for step in range(3):
    with torch.profiler.record_function("forward; one"):
        loss = model(torch.randn(700, 1000, device="cuda")).sum()
    loss.backward()
    optimizer.step()
    optimizer.zero_grad()
try:
    torch.empty(1 << 45, device="cuda")
except torch.OutOfMemoryError:
    pass
if torch.cuda.device_count() > 1:
    kept = torch.empty(12345, device="cuda:1")
print(torch.cuda.max_memory_allocated(), torch.cuda.max_memory_reserved())
"""


class Run:
    """One recording, and everything that was exported of it."""

    def __init__(self, folder, expandable):
        self.tool = Tool()
        env = {"PYTORCH_CUDA_ALLOC_CONF": "expandable_segments:True"} if expandable else {}
        programs = Programs(folder, forks=True)
        done = programs("-c", TRAIN, GPUMEMTRACE_OUTPUT="run.gmt", count=2, **env)
        assert done.returncode == 0, done.stderr[-3000:]
        self.peak, self.reserved = map(int, done.stdout.split()[-2:])
        self.path = folder / "run.gmt"
        self.report = self.tool.json("report", self.path)
        self.end = self.report["devices"][0]["end_bytes"]  # after Python took its objects down
        self.files = {}
        for name in FORMATS:
            self.files[name] = folder / f"run.{name}"
            said = self.tool.json("export", self.path, "--to", name, "-o", self.files[name])
            assert said == {"file": str(self.files[name]), "format": name,
                            "file_bytes": self.files[name].stat().st_size}

    def live(self, at="peak", device=0):
        return self.tool.json("live", self.path, "--at", at, "--device", device)

    def by_class(self):
        return {k.replace("_", " "): v for k, v in self.report["devices"][0]["categories_at_peak"].items()}


@pytest.fixture(scope="module", params=["plain", "expandable"])
def run(request, tmp_path_factory):
    if REAL:
        pytest.skip("for the simulated device")
    made = Run(tmp_path_factory.mktemp(request.param), request.param == "expandable")
    made.kind = request.param
    return made


def test_the_run_is_what_torch_says(run):
    device = run.report["devices"][0]
    assert (device["peak_bytes"], device["peak_reserved_bytes"]) == (run.peak, run.reserved)


VIZ = """
import io, pickle, sys
from torch.cuda import _memory_viz as viz
data = pickle.load(open(sys.argv[1], "rb"))
assert "segments: %d" % len(data["segments"]) in viz.segsum(data)
for device in range(len(data["device_traces"])):
    page = viz.trace_plot(data, device=device)
    assert "MemoryViz" in page
assert "MemoryViz" in viz.segment_plot(data)
text = viz.trace(data)
assert text.count("del ") > 50 and "TOTAL MEM" in text
raw = lambda lines: lines
print(sum(int(line.rsplit(" ", 1)[1]) for line in viz.memory(data, format_flamegraph=raw).splitlines()
          if ";active_allocated;" in line))
print(sum(int(line.rsplit(" ", 1)[1]) for line in viz.segments(data, format_flamegraph=raw).splitlines()))
"""


def test_torch_loads_its_own_format(run):
    """memory_viz of the installed torch: stats, traces and plots; its flame graphs have our bytes."""
    done = subprocess.run([sys.executable, "-c", VIZ, run.files["torch"]], capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr[-3000:]
    alive, reserved = map(int, done.stdout.split())
    devices = run.report["devices"]
    assert alive == sum(d["end_bytes"] for d in devices)
    truth = Truth(load(run.files["torch"]))
    assert reserved == sum(truth.reserved(d) for d in truth.devices)


def test_snapshot_says_what_the_recording_says(run):
    snapshot = load(run.files["torch"])
    raw = run.files["torch"].read_bytes()
    assert raw[:2] == b"\x80\x02" and {op.name for op, _, _ in pickletools.genops(raw)} <= PAGE_READS
    truth = Truth(snapshot)
    for device in truth.devices:
        live = run.live("end", device)["blocks"]
        assert {a: b["size"] for a, b in truth.blocks(device).items()} == {b["addr"]: b["size"] for b in live}
        assert truth.asked(device)[1] == run.report["devices"][device]["peak_bytes"]
    now, peak = 0, 0
    held = {}
    for entry in snapshot["device_traces"][0]:
        words = entry["user_metadata"].removesuffix(" (gpumemtrace)")
        if entry["action"] == "alloc":
            assert words in WORDS and entry["user_metadata"].endswith(" (gpumemtrace)")
            held[entry["addr"]] = entry["size"]
        elif entry["action"] == "free_requested":
            assert held.pop(entry["addr"]) == entry["size"]
        now += {"segment_alloc": 1, "segment_map": 1, "segment_free": -1, "segment_unmap": -1}.get(
            entry["action"], 0) * entry["size"]
        peak = max(peak, now)
    assert peak == run.reserved
    assert sum(e["action"] == "oom" and e["size"] == 4 << 45 for e in snapshot["device_traces"][0]) == 1
    assert all(s.get("is_expandable") for s in snapshot["segments"]) == (run.kind == "expandable")
    names = [(a["stage"], a["name"]) for a in snapshot["external_annotations"]]
    assert names.count(("START", "forward; one")) == names.count(("END", "forward; one")) == 3
    assert any(f["name"].endswith("<module>") for e in snapshot["device_traces"][0] for f in e["frames"])


def test_there_and_back(run):
    """Recording -> snapshot -> recording: the same peaks, live sets, times and ranges."""
    path = run.files["torch"].with_suffix(".pickle")
    shutil.copy(run.files["torch"], path)
    again = run.tool.json("report", path)
    for was, now in zip(run.report["devices"], again["devices"], strict=True):
        for key in ("device", "peak_bytes", "end_bytes", "peak_reserved_bytes", "ooms"):
            assert was[key] == now[key], key
    for at in ("peak", "end", "mark:forward; one#3"):
        was, now = run.live(at), run.tool.json("live", path, "--at", at)
        assert [(b["addr"], b["size"]) for b in was["blocks"]] == [(b["addr"], b["size"]) for b in now["blocks"]]


@pytest.mark.skipif(not RECORDINGS or not shutil.which("zstd"), reason="no recordings of real cards")
@pytest.mark.parametrize("path", RECORDINGS, ids=lambda p: p.name.split(".")[0])
def test_snapshots_of_real_cards_there_and_back(tool, tmp_path, path):
    """What PyTorch wrote, read, written by us and read again: the same report, but for the file's size."""
    out = tmp_path / "again.pickle"
    tool("export", path, "--to", "torch", "-o", out)
    was, now = tool.json("report", path), tool.json("report", out)
    for key in was.keys() - {"file_bytes", "events"}:
        if key not in ("devices", "summary"):
            assert was[key] == now[key], key
    assert [(m["kind"], m["bytes"]) for m in was["summary"]] == [(m["kind"], m["bytes"]) for m in now["summary"]]
    for a, b in zip(was["devices"], now["devices"], strict=True):
        for key in ("peak_bytes", "end_bytes", "peak_reserved_bytes", "ooms"):
            assert a[key] == b[key], key
    there_and_back(tool, path, tmp_path)


STATS = """
import sys
from torch.cuda import _memory_viz as viz
import pickle
raw = lambda lines: lines
for was, now in zip(sys.argv[1::2], sys.argv[2::2]):
    a, b = (pickle.load(open(path, "rb")) for path in (was, now))
    a = {"segments": a, "device_traces": []} if isinstance(a, list) else a
    for view in (viz.segsum, lambda d: viz.memory(d, raw), lambda d: viz.segments(d, raw)):
        assert view(a) == view(b), was
    assert viz.trace(a).count("# free completed") == viz.trace(b).count("# free completed"), was
    print(was)
"""


@pytest.mark.skipif(not RECORDINGS or not shutil.which("zstd"), reason="no recordings of real cards")
def test_torch_says_the_same_of_both(tool, tmp_path):
    """PyTorch's own `_memory_viz stats`, `memory` and `segments` of what others recorded and of what we write again."""
    pairs = []
    for path in RECORDINGS:
        plain, again = tmp_path / path.stem, tmp_path / f"again-{path.stem}"
        plain.write_bytes(subprocess.run(["zstd", "-dcq", path], capture_output=True, check=True).stdout)
        tool("export", plain, "--to", "torch", "-o", again)
        pairs += [plain, again]
    done = subprocess.run([sys.executable, "-c", STATS, *pairs], capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr[-3000:]
    assert len(done.stdout.splitlines()) == len(RECORDINGS)


def test_perfetto(run):
    """By the rules of the trace event format; at every time the counters of the classes add up to the curve."""
    events = json.loads(run.files["perfetto"].read_text())["traceEvents"]
    assert {e["ph"] for e in events} <= set("MCXbei")
    assert all({"ph", "pid", "tid", "ts", "name"} <= e.keys() for e in events)
    now, peak, ends = {}, 0, []
    for event in sorted((e for e in events if e["ph"] == "C"), key=lambda e: e["ts"]):
        assert event["name"].startswith("GPU ") and list(event["args"]) == ["bytes"]
        device, words = event["name"].split(" ", 2)[1:]
        if words == "reserved" or device != "0":
            continue
        assert words in WORDS
        now[words] = event["args"]["bytes"]
        ends.append((event["ts"], sum(now.values())))
    last_of = dict(ends)
    assert max(last_of.values()) == run.peak and ends[-1][1] == run.end
    names = {e["tid"]: e["args"]["name"] for e in events if e["name"] == "thread_name"}
    assert events[0]["pid"] in names  # the main thread, by which viewers know it
    slices = [e for e in events if e["ph"] == "X"]
    assert {e["tid"] for e in slices} <= names.keys()
    assert sum(e["name"] == "forward; one" for e in slices) == 3
    for thread in {e["tid"] for e in slices}:  # in one another, or apart
        open_until = []
        for s in sorted((e for e in slices if e["tid"] == thread), key=lambda e: (e["ts"], -e["dur"])):
            while open_until and open_until[-1] <= s["ts"]:
                open_until.pop()
            assert not open_until or s["ts"] + s["dur"] <= open_until[-1] + 0.001
            open_until.append(s["ts"] + s["dur"])
    assert [e["args"]["asked_bytes"] for e in events if e["ph"] == "i" and e["name"] == "out of memory"] == [4 << 45]


def test_speedscope(run):
    """By its published schema: sampled profiles, weights as many as samples, frames by index."""
    file = json.loads(run.files["speedscope"].read_text())
    assert file["$schema"] == "https://www.speedscope.app/file-format-schema.json"
    frames = file["shared"]["frames"]
    assert all(isinstance(f["name"], str) and f["name"] and f.keys() <= {"name", "file", "line", "col"} for f in frames)
    for profile in file["profiles"]:
        assert profile.keys() == {"type", "name", "unit", "startValue", "endValue", "samples", "weights"}
        assert (profile["type"], profile["unit"], profile["startValue"]) == ("sampled", "bytes", 0)
        assert len(profile["samples"]) == len(profile["weights"]) and sum(profile["weights"]) == profile["endValue"]
        assert all(0 <= i < len(frames) for s in profile["samples"] for i in s)
    assert file["activeProfileIndex"] == 0 and file["profiles"][0]["endValue"] == run.peak
    assert {p["name"]: p["endValue"] for p in file["profiles"][1:]} == run.by_class()


def test_folded(run):
    """Frames from the outermost on: what a flame graph's root is, is the class."""
    lines = run.files["folded"].read_text().splitlines()
    classes = {}
    for line in lines:
        stack, count = line.rsplit(" ", 1)
        frames = stack.split(";")
        classes[frames[0]] = classes.get(frames[0], 0) + int(count)
    assert classes == run.by_class() and any("<module> (" in line for line in lines)
    python = run.tool("export", run.path, "--to", "folded", "-o", "-", "--stacks", "python").splitlines()
    assert sum(int(line.rsplit(" ", 1)[1]) for line in python) == run.peak
    assert all(f.endswith(")") and ":" in f for line in python for f in line.rsplit(" ", 1)[0].split(";")[1:]
               if "Backward" not in f)
    end = run.tool("export", run.path, "--to", "folded", "-o", "-", "--at", "end").splitlines()
    assert sum(int(line.rsplit(" ", 1)[1]) for line in end) == run.end


@pytest.mark.skipif(not shutil.which("go"), reason="no go")
def test_pprof(run, tmp_path):
    def pprof(*args):
        done = subprocess.run(["go", "tool", "pprof", "-unit=B", *args, run.files["pprof"]], capture_output=True, text=True,
                              timeout=600, env=dict(os.environ, PPROF_TMPDIR=str(tmp_path)))
        assert done.returncode == 0, done.stderr
        return done.stdout

    assert f"of {run.peak}B total" in pprof("-top") and "Type: inuse_space" in pprof("-top")
    tags = pprof("-tags")
    for words, size in run.by_class().items():
        assert f"{size}B" in tags and f": {words}" in tags
    born = sum(e["size"] for e in run.tool.events(run.path) if e["kind"] == "block_alloc" and e["device"] == 0)
    assert f"of {born}B total" in pprof("-top", "-sample_index=alloc_space")


def rows_of(run):
    """The table as JSON lines, which need no reader."""
    return [json.loads(line) for line in run.files["jsonl"].read_text().splitlines()]


def test_table(run):
    rows = rows_of(run)
    births = [e for e in run.tool.events(run.path) if e["kind"] == "block_alloc"]
    assert sorted((r["born_ns"], r["address"], r["size"]) for r in rows) == sorted(
        (e["time_ns"], e["addr"], e["size"]) for e in births)
    alive = [r for r in rows if r["died_ns"] is None]
    assert sum(r["size"] for r in alive if r["device"] == 0) == run.end
    at = run.report["devices"][0]["peak_time_ns"]
    assert sum(r["size"] for r in rows if r["device"] == 0 and r["born_ns"] <= at and (r["died_ns"] or at + 1) > at) == run.peak
    assert {r["class"].replace("_", " ") for r in rows} <= WORDS
    kept = {b["addr"]: b for b in run.live("end")["blocks"]}
    for row in alive:
        if row["device"] == 0:
            assert row["stack"] == kept[row["address"]]["stack"]
    assert any(r["function"] and r["line"] for r in rows)


def test_rules_are_those_of_why(run, tool):
    """Of blocks that had their class for good when they were born."""
    rows, seen = rows_of(run), set()
    assert all(row["rule"] for row in rows)
    for row in rows:
        if row["device"] == 0 and row["died_ns"] is None and row["rule"] not in seen:
            why = tool.json("why", run.path, hex(row["address"]), "--at", "end")
            if why["category"] == row["class"]:
                seen.add(row["rule"])
                assert why["rule"] == row["rule"], row
    assert seen


def test_csv(run):
    with open(run.files["csv"], newline="") as f:
        rows = list(csv.DictReader(f))
    plain = [{k: "" if v is None else str(v) for k, v in r.items()} for r in rows_of(run)]
    assert rows == plain


FORMULAS = ["=cmd|'/C_calc'!A0", "+1+1", "-2+3", "@SUM(A1)", "'quoted", "=1,2", '=HYPERLINK("http://x")', "a=b", "x-1"]


def test_a_name_is_no_formula_in_csv(tool, tmp_path):
    """A spreadsheet would run it; a program that reads CSV gets the name back by taking one apostrophe away."""
    lines = ["thread 1 1 main"]
    for i, name in enumerate(FORMULAS, 1):
        lines += [f"code {i} 779 1 /f.py {name} 80 00", f"node {i} 0 2 {i << 32 | 1}",
                  f"event block_alloc time_ns={i} addr={i * 4096} size=512 arg0={512 * i} arg1=65536 stack={i} thread=1"]
    recording = make(tmp_path, "\n".join([*lines, "event end time_ns=99", ""]).encode())
    tool("export", recording, "--to", "csv", "-o", tmp_path / "x.csv")
    with open(tmp_path / "x.csv", newline="") as f:
        cells = [row["function"] for row in csv.DictReader(f)]
    assert cells == [("'" if name[0] in "=+-@'" else "") + name for name in FORMULAS]


READ = """
import json, sys
import duckdb, polars, pyarrow, pyarrow.ipc
table = pyarrow.ipc.open_file(sys.argv[1]).read_all()
table.validate(full=True)
read = polars.read_ipc(sys.argv[1])
frame = table
print(json.dumps({
    "rows": table.to_pylist(),
    "units": {f.name: f.metadata[b"unit"].decode() for f in table.schema},
    "types": {f.name: str(f.type) for f in table.schema},
    "polars": [read.height, read["size"].sum(), read["died_ns"].null_count()],
    "duckdb": duckdb.sql("select count(*), sum(size)::bigint, count(*) - count(died_ns) from frame").fetchall()[0],
}))
"""


def read_arrow(path):
    done = subprocess.run([TOOLS, "-c", READ, path], capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr[-3000:]
    return json.loads(done.stdout)


@pytest.mark.skipif(not TOOLS.exists(), reason="no .venv-tools: scripts/setup.sh tools")
def test_arrow(run):
    said, rows = read_arrow(run.files["arrow"]), rows_of(run)
    assert said["rows"] == rows
    sums = [len(rows), sum(r["size"] for r in rows), sum(r["died_ns"] is None for r in rows)]
    assert said["polars"] == said["duckdb"] == sums
    assert said["units"]["size"] == "bytes" and said["types"]["size"] == "uint64" and said["types"]["class"] == "string"


def test_the_manual_names_every_column_and_format():
    import re
    manual = subprocess.run(["bash", ROOT / "scripts/man.sh", "--markdown", ROOT / "docs/man/gpumemtrace-export.1.md"],
                            capture_output=True, text=True, check=True).stdout
    columns = re.findall(r'^COLUMN\((\w+), \w+, "(.*?)", "(.*?)"\)', (ROOT / "viewer/export/export_columns.def").read_text(), re.M)
    assert len(columns) == 20
    for name, unit, meaning in columns:
        assert f"- *{name}*{f' ({unit})' if unit else ''}: {meaning}.\n" in manual
    assert re.findall(r"^EXPORT\((\w+),", (ROOT / "viewer/export/export_formats.def").read_text(), re.M) == FORMATS
    assert all(f"*{name}*" in manual for name in FORMATS)


# Odd content


def test_odd_names(tool, tmp_path):
    """Names that hold what formats part their fields with."""
    odd = small()
    name = "a;b,c\"d\\e\nf\x1b\t é\x80</script>"
    odd["segments"][0]["blocks"][1]["frames"] = [{"name": name, "filename": "x;,\" .py", "line": 3}]
    odd["external_annotations"][1]["name"] = odd["external_annotations"][2]["name"] = name
    path = write(tmp_path / "s.pickle", odd)
    files = {}
    for form in FORMATS:
        files[form] = tmp_path / f"o.{form}"
        tool("export", path, "--to", form, "-o", files[form])
    assert name in {f["name"] for s in load(files["torch"])["segments"] for b in s["blocks"] for f in b["frames"]}
    assert name in {e["name"] for e in json.loads(files["perfetto"].read_text())["traceEvents"]}
    assert name in {f["name"] for f in json.loads(files["speedscope"].read_text())["shared"]["frames"]}
    folded = files["folded"].read_text().splitlines()
    assert all(line.rsplit(" ", 1)[1].isdigit() and line.count(";") <= 1 for line in folded)
    with open(files["csv"], newline="") as f:
        assert [len(r) for r in csv.reader(f)] == [20] * 4
    assert name in {json.loads(line)["function"] for line in files["jsonl"].read_text().splitlines()}
    if TOOLS.exists():
        assert name in {r["function"] for r in read_arrow(files["arrow"])["rows"]}


def test_bytes_that_are_no_text(tool, tmp_path):
    recording = make(tmp_path, b"string 1 a\xff\xfeb\nevent range_begin time_ns=1 arg0=1 arg1=1 name=1\n"
                     b"event mem_alloc time_ns=2 addr=0x1000 size=4096 arg0=1\nevent range_end time_ns=3 arg0=1 name=1\n"
                     b"event end time_ns=4\n")
    for form in FORMATS:
        tool("export", recording, "--to", form, "-o", tmp_path / form)
    assert [a["name"] for a in load(tmp_path / "torch")["external_annotations"]] == ["a\udcff\udcfeb"] * 2
    segments = load(tmp_path / "torch")["segments"]
    assert [(s["address"], s["total_size"], len(s["blocks"])) for s in segments] == [(0x1000, 4096, 1)]
    json.loads((tmp_path / "perfetto").read_text())


def make(folder, text):
    out = folder / "made.gmt"
    subprocess.run(["make", "-s", "build/data/make_recording"], cwd=ROOT, check=True)
    subprocess.run([ROOT / "build/data/make_recording", out], input=text, check=True)
    return out


@pytest.mark.skipif(not TOOLS.exists(), reason="no .venv-tools: scripts/setup.sh tools")
def test_many_rows_are_several_batches(tool, tmp_path):
    lines = [f"event block_alloc time_ns={i + 1} addr={512 * (i % 1000 + 1)} size=512" if i // 1000 % 2 == 0 else
             f"event block_free time_ns={i + 1} addr={512 * (i % 1000 + 1)} size=512" for i in range(300_000)]
    recording = make(tmp_path, "\n".join(lines + ["event end time_ns=400000", ""]).encode())
    tool("export", recording, "--to", "arrow", "-o", tmp_path / "x.arrow")
    done = subprocess.run([TOOLS, "-c", "import sys, pyarrow.ipc as i; f = i.open_file(sys.argv[1]); t = f.read_all();"
                           "t.validate(full=True); print(f.num_record_batches, t.num_rows, sum(t['size'].to_pylist()))",
                           tmp_path / "x.arrow"], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["3", "150000", str(150_000 * 512)]


def test_a_recording_is_not_written_over(tool, tmp_path):
    recording, other = make(tmp_path, b"event end time_ns=4\n"), tmp_path / "other.gmt"
    other.write_bytes(recording.read_bytes())
    done = subprocess.run([Tool.path, "export", recording, "--to", "csv", "-o", other], capture_output=True, text=True)
    assert done.returncode == 2 and "other.gmt exists and is not a file of --to csv" in done.stderr and other.read_bytes() == recording.read_bytes()


def test_empty_recording(tool, tmp_path):
    recording = make(tmp_path, b"event end time_ns=4\n")
    for form in FORMATS:
        code = 2 if form in ("speedscope", "folded", "pprof") else 0
        done = subprocess.run([Tool.path, "export", recording, "--to", form, "-o", tmp_path / form], capture_output=True)
        assert done.returncode == code, (form, done.stderr)
        assert (tmp_path / form).exists() == (code == 0)
    assert load(tmp_path / "torch")["segments"] == []
    if TOOLS.exists():
        assert read_arrow(tmp_path / "arrow")["rows"] == []


@pytest.mark.parametrize("args, says", [
    ([], "--to"), (["--to", "perfeto", "-o", "x"], "perfetto"), (["--to", "xyzzy", "-o", "x"], "torch, perfetto"),
    (["--to", "csv"], "-o"), (["--to", "csv", "-o", "x", "--at", "end"], "whole run"),
    (["--to", "csv", "-o", "x", "--device", "0"], "all devices"), (["--to", "folded", "-o", "x", "--at", "noon"], "noon"),
    (["--to", "folded", "-o", "x", "--stacks", "some"], "some"), (["--to", "csv", "-o", "SELF"], "another file"),
    (["--to", "csv", "-o", "/dev"], "not a plain file"), (["--to", "folded", "-o", "x", "--device", "7"], "7"),
])
def test_wrong_use(tmp_path, args, says):
    path = write(tmp_path / "s.pickle", small())
    args = [str(path) if a == "SELF" else a for a in args]
    done = subprocess.run([Tool.path, "export", path, *args], capture_output=True, text=True, cwd=tmp_path)
    assert done.returncode == 2 and done.stdout == "" and len(done.stderr.splitlines()) == 1 and says in done.stderr, done
    assert pickle.load(io.BytesIO(path.read_bytes())) == small() and not (tmp_path / "x").exists()


def test_output_that_cannot_be_written(tmp_path):
    path = write(tmp_path / "s.pickle", small())
    done = subprocess.run([Tool.path, "export", path, "--to", "csv", "-o", tmp_path / "no/x"], capture_output=True, text=True)
    assert done.returncode == 3 and "No such file" in done.stderr
    with open("/dev/full", "w") as full:
        done = subprocess.run([Tool.path, "export", path, "--to", "csv", "-o", "-"], stdout=full, stderr=subprocess.PIPE,
                              text=True)
    assert done.returncode == 3 and "cannot be written" in done.stderr


def test_only_its_own_kind_is_replaced(tool, tmp_path):
    """One rule for every output: an export replaces an export of its format or an empty file, and nothing else."""
    recording, out = ROOT / "tests/data/v4/killed.gmt", tmp_path / "out.html"
    mine = [b"mine\n", b"{}", b"[1]", b"\x80\x04.", b"<!doctype html>\n", b"a,b\n", b"\0" * 100, recording.read_bytes()]
    for format in FORMATS:
        for content in mine:
            out.write_bytes(content)
            done = subprocess.run([tool.path, "export", recording, "--to", format, "-o", out], capture_output=True, text=True)
            said = f"gpumemtrace export: {out} exists and is not a file of --to {format}; remove it or choose another name\n"
            assert (done.returncode, done.stderr, out.read_bytes()) == (2, said, content)
        out.write_bytes(b"")
        tool("export", recording, "--to", format, "-o", out)
        first = out.read_bytes()
        tool("export", recording, "--to", format, "-o", out)
        assert out.read_bytes() == first and first
    for words, what in [(("html", recording), "a page of this tool"), (("diff", recording, recording), "a page of this tool"),
                        (("check", recording, "--max-peak", "1TiB", "--junit"), "a report of this command")]:
        for content in (b"mine", b"<!doctype html>\n<p>mine", b'<?xml version="1.0"?>\n<project/>'):
            out.write_bytes(content)
            done = subprocess.run([tool.path, *words, *([] if "--junit" in words else ["-o"]), out], capture_output=True, text=True)
            assert done.returncode == 2 and f"{out} exists and is not {what}; remove it or choose another name\n" in done.stderr
            assert out.read_bytes() == content
    assert [p.name for p in tmp_path.iterdir()] == ["out.html"]
