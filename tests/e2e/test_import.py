# SPDX-License-Identifier: Apache-2.0
"""PyTorch's memory snapshots as files of every command. What is right is said by Python reading the same pickle
(the end state, the bytes that were asked for) and by PyTorch's own counters in the process that wrote it."""
import bz2
import gzip
import io
import json
import lzma
import pickle
import shutil
import struct
import subprocess
import sys
import zipfile

import pytest

from conftest import REAL, ROOT, Tool, record
from packed import compressed

pytestmark = pytest.mark.forks

RECORDINGS = sorted((ROOT.parent / "shared/realcard").glob("*.pickle.zst"))
LOOP = "_PyEval_EvalFrameDefault"


class Plain(pickle.Unpickler):
    def find_class(self, module, name):
        raise pickle.UnpicklingError(f"{module}.{name}")


def load(path):
    raw = path.read_bytes()
    if path.suffix == ".zst":
        raw = subprocess.run(["zstd", "-dcq", path], capture_output=True, check=True).stdout
    return Plain(io.BytesIO(raw)).load()


class Truth:
    """A snapshot as Python reads it."""

    def __init__(self, snapshot):
        self.segments = snapshot if isinstance(snapshot, list) else snapshot["segments"]
        self.traces = [] if isinstance(snapshot, list) else snapshot.get("device_traces", [])
        self.devices = sorted({s["device"] for s in self.segments} | {i for i, t in enumerate(self.traces) if t})
        self.ooms = {d: sum(e["action"] == "oom" for e in self.trace(d)) for d in self.devices}

    def trace(self, device):
        return self.traces[device] if device < len(self.traces) else []

    def blocks(self, device):
        """address -> block, alive at the end."""
        found = {}
        for segment in self.segments:
            address = segment["address"]
            for block in segment["blocks"]:
                address = block.get("address", address)
                if segment["device"] == device and block["state"] == "active_allocated":
                    found[address] = block
                address += block["size"]
        return found

    def reserved(self, device):
        return sum(s["total_size"] for s in self.segments if s["device"] == device)

    def asked(self, device):
        """Bytes that were asked for: at the end, and at most (undoing the trace from the end)."""
        end = now = peak = sum(
            b.get("requested_size", b["size"]) for b in self.blocks(device).values())
        for entry in reversed(self.trace(device)):
            if entry["action"] == "alloc":
                now -= entry["size"]
            elif entry["action"] == "free_requested":
                now += entry["size"]
            peak = max(peak, now)
        return end, peak

    @staticmethod
    def frames(block):
        frames = block.get("frames")
        if frames is None:
            frames = (block.get("history") or [{}])[0].get("frames", [])
        return [(f["name"], f["line"]) for f in frames if not f["name"].startswith(LOOP)]


def check(tool, path, truth):
    report = tool.json("report", path)
    facts = tool.json("info", path)["meta"]
    assert report["file_bytes"] == path.stat().st_size
    assert [d["device"] for d in report["devices"]] == truth.devices
    assert not report["truncated"] and tool.json("verify", path)["ok"]
    signs = {"mem_alloc": 1, "map": 1, "mem_free": -1, "unmap": -1}
    assert sum(signs.get(e["kind"], 0) * e.get("size", 0) for e in tool.events(path)) == sum(
        truth.reserved(device) for device in truth.devices)
    for device in report["devices"]:
        number = device["device"]
        blocks = truth.blocks(number)
        assert device["end_bytes"] == sum(b["size"] for b in blocks.values())
        assert device["ooms"] == truth.ooms[number]
        end, peak = truth.asked(number)
        assert int(facts[f"device.{number}.asked_bytes_at_end"]) == end
        assert int(facts[f"device.{number}.asked_bytes_peak"]) == peak
        assert peak <= device["peak_bytes"] <= 1.05 * peak + 2**21
        assert sum(device["categories_at_peak"].values()) == device["peak_bytes"]
        live = tool.json("live", path, "--at", "end", "--device", number)["blocks"]
        assert {b["addr"]: b["size"] for b in live} == {a: b["size"] for a, b in blocks.items()}
        check_stacks(tool, path, [(b["stack"], truth.frames(blocks[b["addr"]])) for b in live])


def check_stacks(tool, path, stacks):
    """The frames of up to four blocks, in order; the line too where there is one."""
    for stack, frames in stacks[:: max(1, len(stacks) // 4)]:
        assert bool(stack) == bool(frames)
        if not stack:
            continue
        said = [(f["function"], f["line"]) for f in tool.json("stack", path, stack)["frames"]]
        assert said == frames


@pytest.mark.skipif(not RECORDINGS or not shutil.which("zstd"), reason="no recordings of real cards")
@pytest.mark.parametrize("path", RECORDINGS, ids=lambda p: p.name.split(".")[0])
def test_snapshots_of_real_cards(tool, path):
    check(tool, path, Truth(load(path)))


TRAIN = """
import json, os, sys, torch
kind = sys.argv[1]
how = {"stacks": sys.argv[2], "max_entries": int(sys.argv[3])}
torch.manual_seed(0)
torch.cuda.memory._record_memory_history(**how)
model = torch.nn.Sequential(torch.nn.Linear(1000, 3000), torch.nn.ReLU(), torch.nn.Linear(3000, 10)).cuda()
optimizer = torch.optim.AdamW(model.parameters())
side = torch.cuda.Stream()
peaks = []
for step in range(4):
    if kind == "late" and step == 2:
        torch.cuda.memory._record_memory_history(None)
        torch.cuda.memory._record_memory_history(**how)
        torch.cuda.reset_peak_memory_stats()
    with torch.profiler.record_function(f"forward"):
        loss = model(torch.randn(700 + step, 1000, device="cuda")).sum()
    loss.backward()
    optimizer.step()
    optimizer.zero_grad()
    with torch.cuda.stream(side):
        extra = torch.empty(3_000_001 * (step + 1), device="cuda")
if kind == "oom":
    try:
        torch.empty(1 << 45, device="cuda")
    except torch.OutOfMemoryError:
        pass
if kind == "two":
    kept = torch.empty(12345, device="cuda:1")
del extra
torch.cuda.empty_cache()
said = {d: {"peak": torch.cuda.max_memory_allocated(d), "end": torch.cuda.memory_allocated(d),
            "reserved": torch.cuda.max_memory_reserved(d)} for d in range(torch.cuda.device_count())}
torch.cuda.memory._dump_snapshot("snapshot.pickle")
print(json.dumps(said))
"""

KINDS = {
    "plain": (["plain", "all", "1000000"], {}),
    "python": (["plain", "python", "1000000"], {}),
    "expandable": (["plain", "all", "1000000"], {"PYTORCH_CUDA_ALLOC_CONF": "expandable_segments:True"}),
    "rounded": (["plain", "all", "1000000"], {"PYTORCH_CUDA_ALLOC_CONF": "roundup_power2_divisions:[256:1,512:2,>:8]"}),
    "late": (["late", "all", "1000000"], {}),
    "ring": (["plain", "all", "200"], {}),
    "oom": (["oom", "all", "1000000"], {}),
    "two": (["two", "all", "1000000"], {"count": 2}),
}
OF_OTHERS = "plain", "python", "expandable", "oom"  # what another PyTorch may write in another way


@pytest.mark.skipif(REAL, reason="for the simulated device")
@pytest.mark.parametrize("kind", [pytest.param(kind, marks=pytest.mark.matrix if kind in OF_OTHERS else ()) for kind in KINDS])
def test_snapshots_of_this_torch(programs, tool, kind):
    """PyTorch's counters say what the peak was; where the trace is whole, so does the snapshot."""
    args, env = KINDS[kind]
    done = programs("-c", TRAIN, *args, traced=False, **env)
    assert done.returncode == 0, done.stderr[-3000:]
    said = {int(d): s for d, s in json.loads(done.stdout.splitlines()[-1]).items()}
    path = programs.folder / "snapshot.pickle"
    truth = Truth(load(path))
    check(tool, path, truth)
    for device in tool.json("report", path)["devices"]:
        counters = said[device["device"]]
        assert device["end_bytes"] == counters["end"]
        if kind != "ring":
            assert device["peak_bytes"] == counters["peak"]
            assert kind == "late" or device["peak_reserved_bytes"] == counters["reserved"]
        else:
            assert device["end_bytes"] <= device["peak_bytes"] <= counters["peak"]
    there_and_back(tool, path, programs.folder)
    if kind in ("plain", "python", "late"):
        classes(tool, path)


def classes(tool, path):
    """Parameters by module frames, activations by their lives, state by the frames of the optimizer."""
    live = tool.json("live", path, "--at", "end")["blocks"]
    held = {}
    for block in live:
        held[block["category"]] = held.get(block["category"], 0) + block["size"]
    parameters = 4 * (1000 * 3000 + 3000 + 3000 * 10 + 10)
    assert parameters <= held["parameters"] <= parameters + 2**20
    assert 2 * parameters <= held["optimizer_state"] <= 2 * parameters + 2 * 2**20
    at_peak = tool.json("report", path)["devices"][0]["categories_at_peak"]
    assert at_peak.get("unknown", 0) < 0.05 * sum(at_peak.values())


CONVERTED = """
import torch
torch.cuda.memory._record_memory_history(stacks="all")
model = torch.nn.Sequential(torch.nn.Linear(256, 256), torch.nn.ReLU(), torch.nn.Linear(256, 32000)).bfloat16().cuda()
optimizer = torch.optim.SGD(model.parameters(), 0.1)
for step in range(3):
    x = torch.randn(64, 256, device="cuda").bfloat16()
    logits = model(x)
    wide = logits.float()
    loss = torch.logsumexp(wide, -1).mean()
    loss.backward()
    optimizer.step()
    optimizer.zero_grad()
torch.cuda.memory._dump_snapshot("snapshot.pickle")
"""


@pytest.mark.skipif(REAL, reason="for the simulated device")
def test_what_a_model_returns_in_another_type(programs, tool):
    """The script converts it, and a graph holds it: it is no input."""
    done = programs("-c", CONVERTED, traced=False)
    assert done.returncode == 0, done.stderr[-3000:]
    path, line = programs.folder / "snapshot.pickle", CONVERTED.splitlines().index("    wide = logits.float()") + 1
    found = {b["category"] for b in tool.json("live", path, "--at", "peak")["blocks"]
             if [f["line"] for f in tool.json("stack", path, b["stack"])["frames"] if f["kind"] == "python"][:1] == [line]}
    assert found == {"activations"}


SHARED = """
import torch
torch.cuda.memory._record_memory_history(stacks="all")
layers = torch.nn.ModuleList(torch.nn.Linear(512, 512) for _ in range(6)).cuda()

class Engine:
    def __init__(self):
        self.pools = [torch.zeros(2, 40, 1 << 18, device="cuda") for _ in layers]

    @torch.no_grad()
    def generate(self, x):
        for layer, pool in zip(layers, self.pools):
            x = layer(x)
            pool[0, :len(x), :512] = x
        return x

engine = Engine()
for _ in range(4):
    engine.generate(torch.randn(16, 512, device="cuda"))
try:
    x = torch.randn(20000, 512, device="cuda")
    for _ in range(20):
        for layer in layers:
            x = torch.nn.functional.gelu(layer(x))
except torch.OutOfMemoryError:
    torch.cuda.memory._dump_snapshot("snapshot.pickle")
"""


@pytest.mark.skipif(REAL, reason="for the simulated device")
def test_an_engines_cache_does_not_grow_with_the_batch(programs, tool):
    done = programs("-c", SHARED, traced=False, card="mine=2300MiB")
    assert done.returncode == 0, done.stderr[-3000:]
    said = tool.json("oom", programs.folder / "snapshot.pickle")
    (cache,) = [h["bytes"] for h in said["holders"] if h["class"] == "kv_cache"]
    assert cache == 6 * 80 * M
    (batch,) = [r for r in said["remedies"] if r["name"] == "smaller_batch"]
    others = sum(h["bytes"] for h in said["holders"]) - cache
    assert batch["saves_bytes"] <= (others + said["asked_bytes"]) / 2 and "KV cache" not in said["text"]


# Small snapshots by hand


def segment(address, size, blocks, **more):
    """blocks: (size, asked, state) one behind the other."""
    rows, at = [], address
    for block_size, asked, state in blocks:
        rows.append({"address": at, "size": block_size, "requested_size": asked, "state": state, "frames": []})
        at += block_size
    return {"device": 0, "address": address, "total_size": size, "allocated_size": 0, "active_size": 0, "stream": 0,
            "segment_type": "large", "blocks": rows, "frames": [], **more}


def entry(action, addr, size, time, **more):
    return {"action": action, "addr": addr, "size": size, "stream": 0, "time_us": time, "frames": [], **more}


M = 1 << 20
BASE = 0x7F0000000000


def without_classes(snapshot):
    """A snapshot as a dictionary, but for the classes that an export puts to its entries and blocks."""
    def rest(v):
        own = v.get("user_metadata") or ""
        return {k: x for k, x in v.items() if k != "category" and not (
            k == "user_metadata" and (not own or own.endswith(" (gpumemtrace)")))}

    snapshot = {"segments": snapshot} if isinstance(snapshot, list) else dict(snapshot)
    snapshot["segments"] = [{**s, "blocks": [rest(b) for b in s["blocks"]]} for s in snapshot["segments"]]
    snapshot["device_traces"] = [[rest(e) for e in t] for t in snapshot.get("device_traces", [])]
    return snapshot


def there_and_back(tool, path, folder):
    """Snapshot -> recording -> snapshot: every member is what it was, and every allocation has a class."""
    recording, again = folder / "there.gmt", folder / "back.pickle"
    tool("import", path, "-o", recording)
    tool("export", recording, "--to", "torch", "-o", again)
    was, now = load(path), load(again)
    assert without_classes(now) == without_classes(was)
    for trace in now["device_traces"]:
        assert all(e["user_metadata"] for e in trace if e["action"] == "alloc")
    return now


def small():
    """Of a trace that begins late: one block was freed in it, one stays, one comes."""
    return {
        "segments": [segment(BASE, 20 * M, [(2 * M, 2 * M, "inactive"), (3 * M, 3 * M - 5, "active_allocated"),
                                            (4 * M, 4 * M, "active_allocated"), (11 * M, 0, "inactive")])],
        "device_traces": [[entry("free_requested", BASE, 2 * M - 100, 10), entry("free_completed", BASE, 2 * M - 100, 11),
                           entry("alloc", BASE + 5 * M, 4 * M, 20, user_metadata="attention"),
                           entry("oom", 7 * M, 99 * M, 30)]],
        "external_annotations": [{"stage": "END", "name": "before", "device": 0, "time_us": 9},
                                 {"stage": "START", "name": "fwd", "device": 0, "time_us": 15},
                                 {"stage": "END", "name": "fwd", "device": 0, "time_us": 25}],
        "allocator_settings": {"PYTORCH_CUDA_ALLOC_CONF": "max_split_size_mb:64", "max_split_size": 64 * M}}


def write(path, snapshot, protocol=4):
    path.write_bytes(pickle.dumps(snapshot, protocol=protocol))
    return path


@pytest.mark.parametrize("protocol", [2, 3, 4, 5])
def test_a_trace_that_lost_its_beginning(tool, tmp_path, protocol):
    path = write(tmp_path / "s.pickle", small(), protocol)
    check(tool, path, Truth(small()))
    device = tool.json("report", path)["devices"][0]
    assert (device["peak_bytes"], device["end_bytes"], device["ooms"]) == (7 * M, 7 * M, 1)
    kinds = [(e["kind"], e.get("name", "")) for e in tool.events(path)]
    assert kinds == [
        ("mem_alloc", "cudaMalloc"), ("block_alloc", ""), ("block_alloc", ""), ("range_begin", "before"),
        ("range_end", "before"), ("block_free", ""), ("range_begin", "fwd"), ("range_begin", "attention"),
        ("block_alloc", ""), ("range_end", "fwd"), ("meminfo", ""), ("block_oom", ""), ("range_end", "attention"),
        ("end", "")]
    times = [e["time_ns"] - 10**9 for e in tool.events(path) if e["kind"] == "block_alloc"]
    assert times == [0, 0, 11_000]
    notes = tool.json("import", path, "-o", tmp_path / "s.gmt")["notes"]
    assert any("2 blocks (5242880 bytes) were there before" in n["text"] for n in notes)
    assert tool.json("live", tmp_path / "s.gmt") == tool.json("live", path)
    assert tool.json("live", path, "--at", "mark:fwd")["bytes"] == 3 * M
    assert tool.json("info", path)["start"] == "1970-01-01T00:00:00Z"


def test_expandable_segments_grow_and_shrink(tool, tmp_path):
    trace = [entry("segment_map", BASE, 20 * M, 1), entry("alloc", BASE, 18 * M, 2),
             entry("segment_map", BASE + 20 * M, 20 * M, 3), entry("alloc", BASE + 18 * M, 15 * M, 4),
             entry("free_requested", BASE, 18 * M, 5), entry("free_completed", BASE, 18 * M, 6),
             entry("segment_unmap", BASE, 16 * M, 7)]
    snapshot = {"device_traces": [trace], "segments": [segment(
        BASE + 16 * M, 24 * M, [(2 * M, 0, "inactive"), (15 * M, 15 * M, "active_allocated"), (7 * M, 0, "inactive")],
        is_expandable=True)]}
    path = write(tmp_path / "s.pickle", snapshot)
    check(tool, path, Truth(snapshot))
    device = tool.json("report", path)["devices"][0]
    assert (device["peak_bytes"], device["peak_reserved_bytes"]) == (33 * M, 40 * M)
    mapped = {}
    for event in tool.events(path):
        if event["kind"] == "map":
            mapped[event["addr"]] = event["size"]
        elif event["kind"] == "unmap":
            assert mapped.pop(event["addr"]) == event["size"]
    assert mapped == {BASE + 16 * M: 4 * M, BASE + 20 * M: 20 * M}


def test_old_forms(tool, tmp_path):
    frames = [{"name": "f", "filename": "a.py", "line": 3}, {"name": "<module>", "filename": "a.py", "line": 9}]
    blocks = [{"size": M, "state": "inactive"}, {"size": 2 * M, "state": "active_allocated", "history": [
        {"addr": BASE + M, "real_size": 2 * M - 7, "frames": frames}, {"addr": BASE, "real_size": 5}]}]
    old = [{"device": 1, "address": BASE, "total_size": 20 * M, "allocated_size": 2 * M, "active_size": 2 * M, "stream": 0,
            "segment_type": "large", "blocks": blocks}]
    path = write(tmp_path / "s.pickle", old)
    live = tool.json("live", path)
    assert (live["device"], [(b["addr"], b["size"]) for b in live["blocks"]]) == (1, [(BASE + M, 2 * M)])
    assert tool.json("stack", path, live["blocks"][0]["stack"])["frames"] == [
        {"kind": "python", "function": "f", "file": "a.py", "line": 3},
        {"kind": "python", "function": "<module>", "file": "a.py", "line": 9}]
    assert tool.json("info", path)["meta"]["device.1.asked_bytes_at_end"] == str(2 * M - 7)


def test_what_was_there_before_the_trace_is_no_step(tool, tmp_path):
    """Blocks of the end lie in the order of their addresses: nothing says which came first, or how long one took."""
    library = "/usr/lib/python3/site-packages/torch/nn/modules/module.py"
    forward = [{"name": "forward", "filename": "model.py", "line": 5}, {"name": "_call_impl", "filename": library, "line": 1520},
               {"name": "<module>", "filename": "train.py", "line": 9}]
    snapshot = [segment(BASE, 20 * M, [(M, M, "active_allocated") for _ in range(20)])]
    for i, block in enumerate(snapshot[0]["blocks"]):
        block["frames"] = forward if i % 2 else forward[2:]
    path = write(tmp_path / "s.pickle", snapshot)
    assert tool.json("steps", path)["steps"] == 0
    assert tool.json("leaks", path)["growth_per_step"] == 0
    assert "the whole run" in tool("steps", path)
    assert {b["category"] for b in tool.json("live", path)["blocks"]} >= {"forward_temporaries"}
    assert "It was there from the start, made in a forward pass" in tool.json("why", path, BASE + M)["evidence"]
    tool("html", path, "-o", tmp_path / "x.html")
    assert "It was born at" not in (tmp_path / "x.html").read_text().split('id="rest"')[1]


def every_form():
    """Actions, states and members of all versions that events have no place for."""
    private = segment(BASE, 20 * M, [(2 * M, 2 * M - 9, "active_pending_free"), (3 * M, 3 * M - 5, "active_allocated"),
                                     (15 * M, 0, "inactive")], segment_pool_id=(0, 7), is_expandable=True, stream=9)
    private["stream"] = 0x55550000AAAA
    trace = [entry("free_completed", BASE + 4 * M, 77, 1), entry("snapshot", 0, 0, 2),
             entry("segment_map", BASE, 20 * M, 3, pool_id=(0, 7), compile_context="0/1"),
             entry("alloc", BASE, 2 * M - 9, 4, user_metadata="mine", pool_id=(0, 7)),
             entry("alloc", BASE + 2 * M, 3 * M - 5, 5, user_metadata="", compile_context=None),
             entry("free_requested", BASE, 2 * M - 9, 6), entry("of a later version", 1, 2, 3, more={"a": [1.5, None, True]}),
             entry("alloc", BASE + 9 * M, 100, 7), entry("free_requested", BASE + 9 * M, 100, 7),
             entry("free_completed", BASE + 9 * M, 100, 8), {**entry("oom", 0, 99 * M, 9), "device_free": 7 * M}]
    shared = [{"name": "f", "filename": "a\u00e9\ud800.py", "line": 3, "fx_node_op": "call"}]
    for e in trace[2:6]:
        e["frames"] = shared
    return {"segments": [private], "device_traces": [[], trace, []], "host_segments": [], "host_traces": [[]],
            "allocator_settings": {"roundup_power2_divisions": {"1": 0}, "numbers": (-1, 2**63, 2**64 - 1, -2**63, 2**31, 1, 2, 3)},
            "external_annotations": [], "none": None, "empty": (), "bytes": "\udcff"}


def test_converted_snapshots_are_written_again(tool, tmp_path):
    whole = every_form()
    whole["segments"][0]["device"] = 1
    now = there_and_back(tool, write(tmp_path / "s.pickle", whole), tmp_path)
    assert [e["user_metadata"] for e in now["device_traces"][1] if e["action"] == "alloc"][0] == "mine"
    assert [type(x) for x in (now["empty"], now["segments"][0]["segment_pool_id"], now["host_traces"])] == [tuple, tuple, list]
    frames = [e["frames"] for e in now["device_traces"][1][2:6]]
    assert all(f is frames[0] for f in frames)
    for protocol in (2, 3, 5):
        there_and_back(tool, write(tmp_path / f"{protocol}.pickle", small(), protocol), tmp_path)
    again = there_and_back(tool, write(tmp_path / "list.pickle", [segment(BASE, M, [(M, M - 1, "active_allocated")])]), tmp_path)
    assert again["segments"][0]["blocks"][0]["user_metadata"].endswith(" (gpumemtrace)")
    loop = small()
    loop["itself"] = loop
    tool("export", write(tmp_path / "loop.pickle", loop), "--to", "torch", "-o", tmp_path / "x")
    assert load(tmp_path / "x")["itself"]["segments"] == loop["segments"] or load(tmp_path / "x")["itself"] is None


def windows(snapshot):
    """The same as it would be on Windows."""
    text = pickle.dumps(snapshot, 2)
    other = pickle.loads(text)
    seen = set()

    def change(v):
        if id(v) in seen:
            return
        seen.add(id(v))
        if isinstance(v, dict) and "filename" in v:
            path = v["filename"].replace("/usr/lib/python3", "/Program Files/Python311/Lib")
            v["filename"] = ("C:" * path.startswith("/") + path).replace("/", "\\")
        for x in v.values() if isinstance(v, dict) else v if isinstance(v, list) else []:
            change(x)

    change(other)
    return other


def test_paths_of_windows(tool, tmp_path):
    """The same answers as for the same program on Linux, and nothing between the two that differs."""
    nn = "/usr/lib/python3/site-packages/torch/nn/modules/module.py"
    forward = [{"name": "forward", "filename": "/home/me/net/model.py", "line": 5}, {"name": "_call_impl", "filename": nn, "line": 1520},
               {"name": "<module>", "filename": "train.py", "line": 9}]
    native = [{"name": "torch::autograd::Engine::thread_init(int)", "filename": "../torch/csrc/autograd/engine.cpp", "line": 1}]
    trace = []
    for i in range(6):
        trace.append(entry("alloc", BASE + i * M, M, 10 + i, frames=forward))
    for i in range(6):
        trace += [entry("free_requested", BASE + i * M, M, 30 + i, frames=native), entry("free_completed", BASE + i * M, M, 30 + i)]
    linux = {"segments": [segment(BASE, 20 * M, [(20 * M, 0, "inactive")])], "device_traces": [trace]}
    a, b = write(tmp_path / "a.pickle", linux), write(tmp_path / "b.pickle", windows(linux))
    assert tool.json("diff", a, b)["findings"] == []
    mine, theirs = (tool.json("report", p)["devices"] for p in (a, b))
    assert [m.pop("file") for m in mine] == ["/home/me/net/model.py"] and [t.pop("file") for t in theirs] == ["C:/home/me/net/model.py"]
    assert mine == theirs and "activations" in mine[0]["categories_at_peak"]
    stack = tool.json("live", b)["blocks"][0]["stack"]
    files = [f["file"] for f in tool.json("stack", b, stack)["frames"]]
    assert files == ["C:/home/me/net/model.py", "C:/Program Files/Python311/Lib/site-packages/torch/nn/modules/module.py", "train.py"]
    assert "forward model.py:5" in tool("report", b)


def test_a_state_is_no_peak(tool, tmp_path):
    path = write(tmp_path / "s.pickle", [segment(BASE, 20 * M, [(3 * M, 3 * M, "active_allocated"), (17 * M, 0, "inactive")])])
    text = tool("report", path)
    assert "Device 0: 3.0 MiB, a state at one moment" in text and "has no trace" in text
    for command in ("report", "peak", "steps", "live", "timeline", "modules", "top"):
        text = tool(command, path).split("Where next")[0]
        assert "a state at one moment" in text and "0 ns" not in text and "peak 3" not in text and "last piece" not in text, text
    assert tool.json("report", path)["devices"][0]["state_only"] is True
    assert tool.json("info", path)["start"] == "" and "does not say whether memory ran out" in subprocess.run(
        [tool.path, "oom", path], capture_output=True, text=True).stderr
    assert "No module is known" in tool("modules", path, "--class", "all")
    large = write(tmp_path / "l.pickle", [segment(BASE, 200 * M, [(180 * M, 180 * M, "active_allocated"), (20 * M, 0, "inactive")])])
    (matter,) = tool.json("report", large)["summary"]
    assert matter["kind"] == "unknown" and matter["bytes"] == 180 * M and "_record_memory_history" in matter["action"]
    traced = write(tmp_path / "t.pickle", small())
    assert "a state" not in tool("report", traced) and "state_only" not in tool.json("report", traced)["devices"][0]
    before = small()
    before["device_traces"][0] = [entry("free_requested", BASE, 2 * M - 100, 10), entry("free_completed", BASE, 2 * M - 100, 11)]
    text = tool("report", write(tmp_path / "u.pickle", before))
    assert ", when the trace began" in text and "0 ns" not in text and "last piece" not in text


def test_a_trace_that_begins_at_the_peak(tool, tmp_path):
    """The same height is reached again, by a block whose stack is known: that moment is the peak."""
    frames = [{"name": "step", "filename": "train.py", "line": 7}]
    trace = [entry(action, BASE, 2 * M, 10 + i, frames=frames) for i, action in enumerate(("free_requested", "free_completed", "alloc") * 3)]
    path = write(tmp_path / "s.pickle", {"segments": [segment(BASE, 20 * M, [(2 * M, 2 * M, "active_allocated"), (18 * M, 0, "inactive")])],
                                         "device_traces": [trace]})
    (block,) = tool.json("live", path, "--at", "peak")["blocks"]
    assert tool.json("stack", path, block["stack"])["frames"][0]["function"] == "step"
    (device,) = tool.json("report", path)["devices"]
    assert device["peak_bytes"] == 2 * M and "trace began" not in tool("report", path)
    assert device["peak_time_ns"] == tool.json("live", path, "--at", "peak")["time_ns"]


def test_packed(tool, tmp_path):
    plain = write(tmp_path / "s.pickle", small())
    (tmp_path / "s.pickle.gz").write_bytes(gzip.compress(plain.read_bytes()))
    (tmp_path / "s.pickle.zst").write_bytes(compressed(plain.read_bytes()))
    (tmp_path / "s.pickle.xz").write_bytes(lzma.compress(plain.read_bytes(), preset=9))
    for name in ("s.pickle.gz", "s.pickle.zst", "s.pickle.xz"):
        assert tool.json("live", tmp_path / name) == tool.json("live", plain)
        whole = (tmp_path / name).read_bytes()
        (tmp_path / "cut").write_bytes(whole[:-9])
        refused(tmp_path / "cut", "ends too early")
        (tmp_path / "bad").write_bytes(whole[:30] + bytes([whole[30] ^ 255, whole[31] ^ 255]) + whole[32:])
        refused(tmp_path / "bad", "")


def test_packed_by_others(tool, tmp_path):
    """Python's own archives, and the page that PyTorch's memory_viz writes."""
    from torch.cuda import _memory_viz
    plain = write(tmp_path / "s.pickle", small())
    for name, how in (("deflated.zip", zipfile.ZIP_DEFLATED), ("stored.zip", zipfile.ZIP_STORED)):
        with zipfile.ZipFile(tmp_path / name, "w", how) as archive:
            archive.mkdir("runs") if hasattr(archive, "mkdir") else archive.writestr("runs/", "")
            archive.write(plain, "runs/s.pickle")
        whole = (tmp_path / name).read_bytes()
        (tmp_path / "cut").write_bytes(whole[:200])
        refused(tmp_path / "cut", "cannot be unpacked")
    (tmp_path / "viz.html").write_text(_memory_viz.trace_plot(small()))
    whole = (tmp_path / "viz.html").read_bytes()
    (tmp_path / "cut").write_bytes(whole[:-200])
    refused(tmp_path / "cut", "ends too early")
    for name in ("deflated.zip", "stored.zip", "viz.html"):
        assert tool.json("live", tmp_path / name) == tool.json("live", plain)


PROFILED = """
import json, sys, torch
before = torch.empty(3 << 20, dtype=torch.uint8, device="cuda")
model = torch.nn.Sequential(torch.nn.Linear(512, 512), torch.nn.ReLU(), torch.nn.Linear(512, 512)).cuda()
optimizer = torch.optim.AdamW(model.parameters())
with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU], profile_memory=True) as profiler:
    torch.cuda.reset_peak_memory_stats()
    for step in range(4):
        with torch.profiler.record_function("all of a step"):
            model(torch.randn(1024 * (1 + step), 512, device="cuda")).square().mean().backward()
            optimizer.step()
            optimizer.zero_grad()
        if step == 1:
            del before
    truth = [torch.cuda.max_memory_allocated(), torch.cuda.memory_allocated(), torch.cuda.max_memory_reserved()]
profiler.export_chrome_trace("trace.json")
print(json.dumps(truth))
"""


def test_traces_of_the_profiler(tool, tmp_path):
    """Memory of a trace is what PyTorch counts, packed or not; what it lacks is said, and no step is made of optimizers' marks alone."""
    (tmp_path / "profiled.py").write_text(PROFILED)
    done = record(tmp_path / "run.gmt", tmp_path / "profiled.py")
    trace = tmp_path / "trace.json"
    (tmp_path / "trace.json.gz").write_bytes(gzip.compress(trace.read_bytes()))
    for path in (trace, tmp_path / "trace.json.gz"):
        (device,) = tool.json("report", path)["devices"]
        assert [device[k] for k in ("peak_bytes", "end_bytes", "peak_reserved_bytes")] == json.loads(done.stdout)
    assert "a trace of torch.profiler: gpumemtrace info says what it lacks" in " ".join(tool("report", trace).split()) and " step" not in tool("report", trace).splitlines()[0]
    notes = " ".join(v for k, v in tool.json("info", trace)["meta"].items() if k.startswith("note."))
    assert "the trace begins late: " in notes and "no stacks" in notes
    live = tool.json("live", trace, "--at", "mark:all of a step#2")
    assert live["bytes"] == sum(b["size"] for b in live["blocks"]) > 3 * M
    text = json.loads(trace.read_text())
    text["traceEvents"] = [e for e in text["traceEvents"] if e.get("name") != "[memory]"]
    (tmp_path / "none.json").write_text(json.dumps(text))
    refused(tmp_path / "none.json", "a trace without memory of a GPU: torch.profiler records it with profile_memory=True")


STACKED = """
import torch
from torch.profiler import ProfilerActivity, profile
class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.up = torch.nn.Linear(256, 4096)
    def forward(self, x):
        return widen(self.up, x).square().mean()
def widen(layer, x):
    return layer(x).relu()
net = Net().cuda()
kept = torch.ones(3 << 18, device="cuda")
with profile(activities=[ProfilerActivity.CPU], profile_memory=True, with_stack=True) as profiler:
    for step in range(3):
        net(torch.randn(1024, 256, device="cuda")).backward()
        net.zero_grad()
        kept = None
profiler.export_chrome_trace("trace.json")
"""


def test_traces_of_the_profiler_with_stacks(tool, tmp_path):
    """What encloses an allocation is its stack: functions, each with its first line, or the backward node; what was there before the trace is
    known by its end, else not at all."""
    (tmp_path / "stacked.py").write_text(STACKED)
    done = record(tmp_path / "run.gmt", tmp_path / "stacked.py")
    trace = tmp_path / "trace.json"
    assert tool.json("steps", trace)["steps"] == 3
    blocks = tool.json("live", trace, "--at", "peak")["blocks"]
    made = {}
    for block in blocks:
        frames = tool.json("stack", trace, block["stack"])["frames"] if block["stack"] else []
        own = [(f["function"], f["line"]) for f in frames if f["file"].endswith("stacked.py")]
        made.setdefault((block["category"], *own[:2]), []).append(block["size"])
    first = {name: STACKED.splitlines().index(f"    def {name}(self, x):" if name == "forward" else f"def {name}(layer, x):") + 1 for name in ("forward", "widen")}
    assert sum(made["activations", ("widen", first["widen"]), ("forward", first["forward"])]) >= 16 * M
    assert sum(made["unknown",]) >= 4 * M and not any(category == "parameters" for category, *_ in made)
    assert 3 * M in [b["size"] for b in tool.json("live", trace, "--at", str(10**9))["blocks"]]  # of before, freed in the trace
    said = tool("report", trace)
    assert "AddmmBackward0 (backward)" in said and "results of one line" not in said
    notes = " ".join(v for k, v in tool.json("info", trace)["meta"].items() if k.startswith("note."))
    assert "stacks are of functions, each with the line where it begins" in notes and "no stacks" not in notes


def test_a_refusal_in_backward(tool, tmp_path):
    """With Python's frames alone the threads of backward have none, and so has what they are refused."""
    at = [{"name": "step", "filename": "train.py", "line": 5}]
    engine = [{"name": "_engine_run_backward", "filename": "/usr/lib/python3/site-packages/torch/autograd/graph.py", "line": 8},
              {"name": "backward", "filename": "/usr/lib/python3/site-packages/torch/autograd/__init__.py", "line": 3}, *at]
    trace = [entry("alloc", BASE, 4 * M, 1), entry("alloc", BASE + 4 * M, M, 2), entry("alloc", BASE + 5 * M, M, 3), entry("oom", 7 * M, 99 * M, 4)]
    trace[0]["frames"], trace[1]["frames"] = at, engine
    snapshot = {"segments": [segment(BASE, 20 * M, [(4 * M, 4 * M, "active_allocated"), (M, M, "active_allocated"), (M, M, "active_allocated"), (14 * M, 0, "inactive")])],
                "device_traces": [trace]}
    assert "backward" in tool("oom", write(tmp_path / "s.pickle", snapshot)).splitlines()[1]


def test_ranks_are_in_the_names_of_snapshots(tool, tmp_path):
    for i, name in enumerate(("oom_rank-3_x.pickle", "a_rank12_pid4.pickle", "other.pickle")):
        snapshot = small()
        snapshot["device_traces"][0][-1]["time_us"] = 30 + i
        write(tmp_path / name, snapshot)
    said = tool("report", tmp_path / "oom_rank-3_x.pickle", tmp_path / "a_rank12_pid4.pickle")
    assert said.startswith("2 ranks") and [row.split()[0] for row in said.splitlines() if row.split()[:1] in (["3"], ["12"])] == ["3", "12"]
    assert "rank 3 was the first of 2 to run out of memory" in tool("oom", tmp_path / "oom_rank-3_x.pickle", tmp_path / "a_rank12_pid4.pickle")
    (tmp_path / "again.pickle").write_bytes((tmp_path / "other.pickle").read_bytes())
    assert ".pickle was the first of 2" in tool("oom", tmp_path / "other.pickle", tmp_path / "again.pickle")
    folders = [tmp_path / "run" / f"oom_rank{rank}" for rank in (1, 0)]  # a folder a rank
    for folder in folders:
        folder.mkdir(parents=True)
        write(folder / "snapshot.pickle", small())
    assert [r["rank"] for r in tool.json("report", *folders)["ranks"]] == [0, 1]
    said = subprocess.run([tool.path, "report", tmp_path / "run"], capture_output=True, text=True)
    assert said.returncode == 3 and "but in a folder in it: name" in said.stderr and "oom_rank" in said.stderr


LIBRARY = "/usr/lib/python3/site-packages/torch"


def framed(*lines, file="train.py"):
    return [{"name": "keep", "filename": file, "line": line} for line in lines]


def test_stacks_of_live_blocks_alone(tool, tmp_path):
    """The context "state": entries have no stacks, and the blocks that live at the end have them. Nothing says what a step is."""
    blocks = [(8 * M, 8 * M, "active_allocated") for _ in range(12)]
    snapshot = {"segments": [segment(BASE, 100 * M, [*blocks, (4 * M, 0, "inactive")])], "device_traces": [[]]}
    module = [{"name": "_call_impl", "filename": LIBRARY + "/nn/modules/module.py", "line": 9}]
    for i, block in enumerate(snapshot["segments"][0]["blocks"][:12]):
        block["frames"] = framed(7, 20) if i < 9 else [{"name": "forward", "filename": "net.py", "line": 3}, *module, *framed(21)]
        snapshot["device_traces"][0] += [{k: v for k, v in entry(action, address, size, 3 * i).items() if k != "frames"} for action, address, size in (
            ("alloc", BASE + 96 * M, 2 * M), ("alloc", BASE + 8 * M * i, 8 * M), ("free_requested", BASE + 96 * M, 2 * M), ("free_completed", BASE + 96 * M, 2 * M))]
    snapshot["device_traces"][0].append({"action": "oom", "size": 99 * M, "device_free": M, "stream": 0, "time_us": 99})
    path = write(tmp_path / "s.pickle", snapshot)
    said = tool.json("oom", path)
    assert [(h["line"], h["bytes"]) for h in said["holders"]] == [(7, 72 * M), (3, 24 * M)]
    assert said["cause"] == "unknown" and not said["remedies"]  # neither a batch nor a step is known
    assert tool.json("steps", path)["steps"] == 0
    assert any("live at the end alone" in n["text"] for n in tool.json("import", path, "-o", tmp_path / "s.gmt")["notes"])
    for entries in snapshot["device_traces"]:  # an entry's own stack counts, as ever
        for e in entries:
            e["frames"] = framed(50)
    assert {h["line"] for h in tool.json("oom", write(tmp_path / "t.pickle", snapshot))["holders"]} == {50}


def test_what_a_state_shows_stands_out(tool, tmp_path):
    """Without a history, too, the line that has most is said; without stacks, the size that most blocks have."""
    blocks = [(16 * M, 16 * M, "active_allocated") for _ in range(9)]
    state = [segment(BASE, 200 * M, [*blocks, (6 * M, 6 * M, "active_allocated"), (50 * M, 0, "inactive")])]
    (matter,) = tool.json("report", write(tmp_path / "s.pickle", state))["summary"]
    assert matter["kind"] == "unknown" and matter["bytes"] == 150 * M
    assert "recorded without stacks" in matter["text"] and "144.0 MiB of it are 9 blocks of 16.0 MiB each" in matter["text"] and " 6.0 MiB" not in matter["text"]
    for block in state[0]["blocks"]:
        block["frames"] = framed(7)
    (matter,) = tool.json("report", write(tmp_path / "s.pickle", state))["summary"]
    assert (matter["kind"], matter["line"], matter["bytes"]) == ("line", 7, 150 * M) and matter["text"].startswith("150.0 MiB are allocated.")


def native(*names):
    inner = ("torch::unwind::unwind()", "at::Tensor at::_ops::empty_memory_format::redispatch(c10::DispatchKeySet)", "std::function<void ()>::operator()() const")
    frames = [{"name": n, "filename": "??", "line": 0} for n in inner]
    return frames + [{"name": n, "filename": f"/src/{n.split('::')[-1].split('(')[0]}.cpp", "line": 30} for n in names] + [{"name": "clone", "filename": "??", "line": 0}]


def test_stacks_of_cpp_alone(tool, tmp_path):
    """The first function that is not PyTorch's own is the one to look at; where there is none, nobody is named."""
    blocks = [(64 * M, 64 * M, "active_allocated"), (32 * M, 32 * M, "active_allocated")]
    stacks = native("render::Volume::bake(int)", "main"), native()
    trace = [entry("alloc", BASE, 64 * M, 1, frames=stacks[0]), entry("alloc", BASE + 64 * M, 32 * M, 2, frames=stacks[1]),
             entry("oom", M, 99 * M, 3, frames=stacks[0])]
    path = write(tmp_path / "s.pickle", {"segments": [segment(BASE, 100 * M, [*blocks, (4 * M, 0, "inactive")])], "device_traces": [trace]})
    said = tool.json("oom", path)
    assert [(h["function"], h["file"], h["line"], h["bytes"]) for h in said["holders"]] == [("render::Volume::bake(int)", "/src/bake.cpp", 30, 64 * M), ("", "", 0, 32 * M)]
    assert "requested by render::Volume::bake bake.cpp:30" in tool("oom", path)


def late(frames, blocks, oom=True):
    """Blocks from before the recording, without stacks, and one that it saw."""
    trace = [entry("alloc", BASE + sum(b[0] for b in blocks), 64 * M, 5, frames=frames)]
    trace += [entry("oom", M, 99 * M, 9, frames=frames)] if oom else []
    return {"segments": [segment(BASE, 400 * M, [*blocks, (64 * M, 64 * M, "active_allocated"), (M, 0, "inactive")])], "device_traces": [trace]}


def test_what_is_older_than_the_recording(tool, tmp_path):
    """Its bytes are said, in what they are alike, and how to know more; but not of little."""
    for oom in (True, False):
        much = write(tmp_path / "much.pickle", late(framed(7), [(64 * M, 64 * M, "active_allocated")] * 4, oom))
        summary = tool.json("report", much)["summary"]
        text = tool.json("oom", much)["text"] if oom else summary[0]["text"]
        assert "256.0 MiB (80 %) were allocated before the recording began" in text and "256.0 MiB of it are 4 blocks of 64.0 MiB each" in text
        assert "_record_memory_history() before the model is made" in (text if oom else summary[0]["action"])
        assert sum("before the recording" in m["text"] for m in summary) == 1 and "(no stack)" not in text
        assert oom or [(m["line"], m["bytes"]) for m in summary if m["kind"] == "line"] == [(7, 64 * M)]  # a third of what is known
    bare = late([], [(4 * M, 4 * M, "active_allocated")])  # no stack at all
    text = tool.json("oom", write(tmp_path / "bare.pickle", bare))["text"]
    assert "recorded without stacks" in text and "One line" not in text
    little = write(tmp_path / "little.pickle", late(framed(7), [(4 * M, 4 * M, "active_allocated")]))
    assert "before the recording began" not in tool.json("oom", little)["text"]


def test_a_free_whose_request_is_lost(tool, tmp_path):
    """A ring may begin between the request for a free and its completion: no other stream uses the block."""
    for first, other in ((BASE, BASE + 2 * M), (BASE + 2 * M, BASE)):
        trace = [entry("free_completed", first, 2 * M, 1), entry("free_completed", other, 2 * M, 2), entry("alloc", BASE + 4 * M, M, 3)]
        path = write(tmp_path / "s.pickle", {"segments": [segment(BASE, 20 * M, [(4 * M, 0, "inactive"), (M, M, "active_allocated"), (15 * M, 0, "inactive")])],
                                             "device_traces": [trace]})
        ready = [e["addr"] for e in tool.events(path) if e["kind"] == "reuse_ready"]
        assert ready == [other]


RECORDING = b"\x89GMTREC\n" + bytes(99)


@pytest.mark.parametrize("name, data, says", [
    ("run.gmt", b"version https://git-lfs.github.com/spec/v1\noid sha256:0\n", "a Git LFS pointer; git lfs pull"),
    ("s.pickle.xz", lzma.compress(b"x", filters=[{"id": lzma.FILTER_LZMA2, "dict_size": 1 << 29}]), "large xz dictionary; unpack it first: xz -dk"),
    ("run.gmt.gz", gzip.compress(RECORDING, mtime=0), "is a packed recording; unpack it first"),
    ("run.gmt.xz", lzma.compress(RECORDING), "is a packed recording; unpack it first"),
    ("s.bz2", bz2.compress(b"x"), "packed with bzip2"),
    ("run.nsys-rep", b"x" * 99, "a report of Nsight Systems"),
    ("trace.json", b'{"traceEvents": []}', "a trace without memory"),
    ("x.json", b'{"a": 1}', "JSON"),
], ids=lambda value: value if isinstance(value, str) and "." in value and " " not in value else "")
def test_other_kinds_are_named(tmp_path, name, data, says):
    (tmp_path / name).write_bytes(data)
    refused(tmp_path / name, says)


TIMELINE = """
import json, torch
from torch.profiler import ProfilerActivity, profile
model = torch.nn.Linear(512, 512, device="cuda")
optimizer = torch.optim.Adam(model.parameters())
with profile(activities=[ProfilerActivity.CPU, ProfilerActivity.CUDA], profile_memory=True, record_shapes=True, with_stack=True) as p:
    for step in range(3):
        model(torch.randn(1024, 512, device="cuda")).square().mean().backward()
        optimizer.step()
        optimizer.zero_grad()
for name in ("t.json", "t.json.gz", "t.raw.json.gz"):
    p.export_memory_timeline(name, device="cuda:0")
"""


def test_memory_timelines_of_the_profiler(tool, tmp_path):
    """Levels of each category as the file has them, at every time; what it lacks is said, and the other forms are named."""
    (tmp_path / "timed.py").write_text(TIMELINE)
    done = record(tmp_path / "run.gmt", tmp_path / "timed.py")
    times, rows = json.loads((tmp_path / "t.json").read_text())
    rows = [[max(0, n) for n in row] for row in rows]
    names = ["PARAMETER", "OPTIMIZER_STATE", "INPUT", "TEMPORARY", "ACTIVATION", "GRADIENT", "AUTOGRAD_DETAIL", "Unknown"]
    (device,) = tool.json("report", tmp_path / "t.json")["devices"]
    assert device["peak_bytes"] == max(map(sum, rows)) > 4 * M and device["end_bytes"] == sum(rows[-1])
    for i in sorted({*range(0, len(rows), len(rows) // 5), len(rows) - 1}):
        last = max(k for k, t in enumerate(times) if t == times[i])
        live = tool.json("live", tmp_path / "t.json", "--at", str(10**9 + 1000 * (times[i] - times[0])))
        held = {tool.json("stack", tmp_path / "t.json", b["stack"])["frames"][0]["function"]: b["size"] for b in live["blocks"]}
        assert held == {name: n for name, n in zip(names, rows[last][1:]) if n} and live["bytes"] == sum(rows[last])
    assert {b["category"] for b in live["blocks"]} == {"unknown"}
    assert tool.json("report", tmp_path / "t.json.gz")["devices"] == [device]
    assert "a memory timeline of torch.profiler" in tool("report", tmp_path / "t.json") and "one block stands for each category" in tool.json("info", tmp_path / "t.json")["meta"]["note.1"]
    refused(tmp_path / "t.raw.json.gz", "to a name that ends in .json, not .raw.json")
    (tmp_path / "t.html").write_text('<html>\n<head><meta charset="utf-8" /><title>GPU Memory Timeline HTML</title></head>\n<body>\n')
    refused(tmp_path / "t.html", "a picture of a memory timeline")
    for n, text in enumerate(("[[", "[[]]", "[[1],[2]]", "[[1,2],[[0,1,2,3,4,5,6,7,8],[0,", "[[1],[[0,1,2]]]", "[[-1]" + "," * 99)):
        (tmp_path / f"bad{n}.json").write_text(text)
        refused(tmp_path / f"bad{n}.json", "JSON")


def test_checkpoints_are_named(tmp_path):
    """Of both forms that torch.save writes. A snapshot in an archive may have any name, that of a checkpoint's file, too."""
    code = "import torch; m = torch.nn.Linear(3, 3); torch.save(m.state_dict(), 'new.pt'); torch.save(m.state_dict(), 'old.pt', _use_new_zipfile_serialization=False); torch.save({}, 'empty.pt')"
    subprocess.run([sys.executable, "-c", code], cwd=tmp_path, check=True)
    for name in ("new.pt", "old.pt", "empty.pt"):
        refused(tmp_path / name, "a checkpoint of torch.save, not a snapshot")
    write(tmp_path / "data.pkl", small())
    with zipfile.ZipFile(tmp_path / "s.zip", "w") as z:
        z.write(tmp_path / "data.pkl", "run/data.pkl")
    assert Tool().json("report", tmp_path / "s.zip")["devices"]


def refused(path, says):
    """One sentence, exit code 3, no output, and no long wait."""
    for command in (["report", path], ["import", path, "-o", path.parent / "out.gmt"]):
        done = subprocess.run([Tool.path, *command], capture_output=True, text=True, timeout=600)
        assert done.returncode == 3 and done.stdout == "" and len(done.stderr.strip().splitlines()) == 1, done
        assert says in done.stderr, done.stderr
    assert not (path.parent / "out.gmt").exists()


class Evil:
    def __reduce__(self):
        import os
        return os.system, ("touch /tmp/gpumemtrace-was-executed",)


def nested(depth):
    value = []
    for _ in range(depth):
        value = [value]
    return value


def text4(n):
    return b"X" + struct.pack("<I", n)


# A list that holds the one before it ten times, thirty times over.
LAUGHS = b"\x80\x04]\x94" + b"".join(
    b"]\x94(" + bytes([ord("h"), i]) * 10 + b"e" for i in range(30)) + b"."

REFUSED = {
    "executes": (pickle.dumps({"segments": Evil()}, 4), "STACK_GLOBAL"),
    "executes in protocol 2": (pickle.dumps([Evil()], 2), "GLOBAL"),
    "persistent": (b"\x80\x02Kxq\x00Q.", "BINPERSID"),
    "extension": (b"\x80\x02\x82\x01.", "EXT1"),
    "a set": (pickle.dumps({"segments": {1, 2}}, 4), "EMPTY_SET"),
    "no opcode": (b"\x80\x04\xff.", "0xff"),
    "cut": (pickle.dumps(small(), 4)[:-1], "ends too early"),
    "long text": (b"\x80\x04" + text4(1 << 31) + b"abc.", "longer than the rest of the file"),
    "large memo": (b"\x80\x02]r\xff\xff\xff\x7f.", "too large"),
    "unknown memo": (b"\x80\x02h\x05.", "not kept"),
    "huge number": (b"\x80\x02\x8b\xff\xff\xff\x7f.", "64 bits"),
    "empty stack": (b"\x80\x02e.", "mark"),
    "into no list": (b"\x80\x02K\x01K\x02a.", "not a list"),
    "odd pairs": (b"\x80\x02}(K\x01u.", "key"),
    "nothing": (b"\x80\x04N.", "segments"),
    "a number": (b"\x80\x04K\x01.", "segments"),
    "a dictionary": (pickle.dumps({"a": 1}), "segments"),
    "no segments in it": (pickle.dumps([1, 2, 3]), "segment"),
    "deep": (b"\x80\x02" + b"]" * 3_000_000 + b"a" * 2_999_999 + b".", "segment"),
    "laughs": (LAUGHS, "segment"),
    "device": (pickle.dumps([dict(segment(BASE, M, []), device=1000)]), "device"),
    "trace": (pickle.dumps({"segments": [], "device_traces": [7]}), "trace"),
    "a loop": (b"\x80\x02]q\x00h\x00a.", "segment"),
    "same segment": (pickle.dumps([segment(BASE, M, [(512, 512, "inactive")] * 3000)] * 3000), "again and again"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_refused(tmp_path, name):
    data, says = REFUSED[name]
    path = tmp_path / "s.pickle"
    path.write_bytes(data)
    refused(path, says)


def test_bombs_stay_packed(tmp_path):
    path = tmp_path / "s.pickle.gz"
    with gzip.open(path, "wb", compresslevel=9) as f:
        f.write(b"\x80\x04")
        for _ in range(200):
            f.write(b"N" * (1 << 20))
    (tmp_path / "bomb").write_bytes(compressed(gzip.decompress(path.read_bytes()), 19))
    refused(tmp_path / "bomb", "far more")
    (tmp_path / "bomb").write_bytes(lzma.compress(bytes(100 << 20), preset=0))
    refused(tmp_path / "bomb", "far more")
    (tmp_path / "other").write_bytes(bz2.compress(b"x"))
    refused(tmp_path / "other", "")


def test_names_of_any_kind(tool, tmp_path):
    odd = small()
    odd["segments"][0]["blocks"][1]["frames"] = [
        {"name": "<script>\x1b[31m" + "x" * 100_000, "filename": "é\ud800.py" * 2, "line": -1},
        {"name": 7, "filename": None}, "no frame", {"name": "f(int)", "filename": "??", "line": 2**40}]
    path = tmp_path / "s.pickle"
    path.write_bytes(pickle.dumps(odd, 4))
    live = tool.json("live", path)["blocks"]
    frames = tool.json("stack", path, live[0]["stack"])["frames"]
    assert len(frames) == 4 and frames[0]["function"].startswith("<script>\x1b[31mxxx")


def test_import_says_what_is_wrong(tmp_path):
    def sentence(code, *args):
        done = subprocess.run([Tool.path, "import", *map(str, args)], capture_output=True, text=True)
        assert done.returncode == code and len(done.stderr.strip().splitlines()) == 1, done
        return done.stderr

    path = write(tmp_path / "s.pickle", small())
    assert "-o" in sentence(2, path)
    assert "No such file" in sentence(3, tmp_path / "none", "-o", tmp_path / "x")
    assert "protocol" in sentence(3, "/etc/passwd", "-o", tmp_path / "x")
    assert "not a recording" in sentence(2, path, "-o", path)
    assert pickle.loads(path.read_bytes()) == small()


def test_forks_that_round_otherwise(tool, tmp_path):
    """torch_npu's allocator adds 32 bytes before it rounds up to 512: no fragmentation, and the sizes of what the trace
    lost follow the same rule. One block that does so by chance is none."""
    def up(n):
        return (n + 511) // 512 * 512

    def snapshot(more, asked):
        blocks = [(up(n + more), n, "active_allocated") for n in asked]
        rest = 20 * M - sum(b[0] for b in blocks)
        whole = segment(BASE, 20 * M, [*blocks, (rest, 0, "inactive")])
        free = whole["blocks"][-1]["address"]
        return {"segments": [whole], "device_traces": [[entry("free_requested", free, 4096, 5), entry("free_completed", free, 4096, 6)]]}

    asked = [512 * k for k in (1, 2, 4, 8, 100, 1500)]
    for name, more, rows, said in (("npu", 32, asked, True), ("cuda", 0, asked, False), ("one", 32, asked[:1], False)):
        path = write(tmp_path / f"{name}.pickle", snapshot(more, rows))
        notes = " ".join(n["text"] for n in tool.json("import", path, "-o", tmp_path / f"{name}.gmt")["notes"])
        assert ("torch_npu" in notes) == said, notes
        freed = [e["size"] for e in tool.events(path) if e["kind"] == "block_free"]
        assert freed == [4608 if said else 4096]
        lost = int(tool.json("info", path)["meta"]["device.0.rounding_at_peak"])
        assert lost == sum(up(n + more) - n for n in rows) + freed[0] - 4096


def test_rounding_has_a_row(tool, tmp_path):
    blocks = [(3 * M, 2 * M + 1000, "active_allocated"), (2 * M, 2 * M, "active_allocated"), (15 * M, 0, "inactive")]
    text = tool("report", write(tmp_path / "s.pickle", [segment(BASE, 20 * M, blocks)]))
    row = next(line for line in text.splitlines() if "lost to rounding" in line)
    assert f"{(M - 1000) / 1024:.1f} KiB" in row and "over the requested sizes" in row, row
    even = [(3 * M, 3 * M, "active_allocated"), (17 * M, 0, "inactive")]
    assert "lost to rounding" not in tool("report", write(tmp_path / "even.pickle", [segment(BASE, 20 * M, even)]))
