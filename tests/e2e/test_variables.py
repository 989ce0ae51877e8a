# SPDX-License-Identifier: Apache-2.0
"""Tensors in the variables of Python frames: at a refusal against what the frames themselves have (traceback, f_locals, data_ptr), and what
`oom` and `report` say of them."""
import ctypes
import json
import re
import subprocess
from pathlib import Path

import pytest
from test_python_stacks import PYTHONS

ROOT = Path(__file__).parents[2]
FRAMES = r"""
import json, sys, torch, torch._subclasses
from torch import nn

def described(v):
    if isinstance(v, torch.Tensor):
        if v.device.type == "cuda" and type(v).__name__ != "FakeTensor":
            return [list(v.shape), str(v.dtype)[6:], v.data_ptr(), v.untyped_storage().nbytes(), 0]
    elif type(v) in (list, tuple, dict):
        items = lambda x: list(x.values()) if type(x) is dict else list(x) if type(x) in (list, tuple) else [x]
        flat = [y for x in items(v) for y in items(x)]
        flat = [y for y in flat if isinstance(y, torch.Tensor) and y.device.type == "cuda"]
        if flat:
            storages = {y.untyped_storage().data_ptr(): y.untyped_storage().nbytes() for y in flat}
            first = flat[0]
            return [list(first.shape), str(first.dtype)[6:], first.data_ptr(), sum(storages.values()), len(flat)]

def attributes(v):
    # CPython manages the dict of objects whose class was written in Python: Py_TPFLAGS_MANAGED_DICT.
    if type(v).__flags__ >> 4 & 1 and not described(v):
        return [(name, x) for name, x in vars(v).items() if name not in ("_parameters", "_buffers")]
    return []

def truth(at):
    said, frames, seen = [], [], set()
    while at:
        frames.insert(0, at.tb_frame)
        at = at.tb_next
    for frame in frames:  # innermost first: an object is said once
        for name, value in list(frame.f_locals.items()):
            if described(value):
                said.append([frame.f_code.co_name, name, *described(value)])
            elif id(value) not in seen:
                said += [[frame.f_code.co_name, f"{name}.{n}", *described(x)] for n, x in attributes(value) if isinstance(n, str) and described(x)]
                seen.add(id(value))
    return said

class Pair(torch.Tensor):
    pass

class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer, self.features = nn.Linear(64, 64), []
        self.register_buffer("grid", torch.ones(8))

    def forward(self, rows, half=None):
        self.features.append(rows)
        self.latest = rows
        grid = rows.view(4, 2, 2, 2, 2, -1)
        weight = self.layer.weight
        if rows.shape[0] > 64:
            return self.layer(rows[:1]) + torch.empty(2 << 30, device="cuda")
        return self.layer(rows)

class Plain:  # nobody asks for its __dict__
    def __init__(self):
        self.number, self.table, self.by_step = 1, torch.ones(6, 6, device="cuda"), {}

class Slots:
    __slots__ = ["tensor"]

def run(net):
    plain, slots, deleted, extra = Plain(), Slots(), Plain(), Plain()
    plain.by_step[1], slots.tensor = torch.ones(11, device="cuda"), torch.ones(12, device="cuda")
    deleted.late = torch.ones(13, device="cuda")
    del deleted.number, deleted.table
    extra.__dict__["x" * 30] = extra.__dict__[5] = torch.ones(15, device="cuda")
    other = plain
    on_host, nothing, number, text = torch.rand(4), None, 7, "x" * 40
    meta = torch.empty(5, 5, device="meta")
    pair = torch.ones(3, 3, device="cuda").as_subclass(Pair)
    flags = torch.zeros(7, dtype=torch.bool, device="cuda")
    wide = torch.zeros((), dtype=torch.float64, device="cuda")
    tail = torch.arange(100, device="cuda")[40:].view(3, 20)
    kept, couples, mixed = [], [], (1, None, "a", torch.ones(2, 2, device="cuda").bfloat16())
    by_name = {"a": torch.ones(9, device="cuda"), 7: [torch.ones(1 << 16, device="cuda")], "none": None}
    views = [torch.zeros(4, 8, device="cuda") for _ in range(1)]
    views += [views[0][0], views[0][1]]

    def step(rows):
        kept.append(net(rows))  # a closure's variable
        couples.append((rows, kept[-1]))
        return kept[-1]

    for count in range(40):
        batch = torch.rand(32, 64, device="cuda")
        step(batch)

    with torch._subclasses.FakeTensorMode():
        fake = torch.empty(3, device="cuda")
    large = torch.rand(128, 64, device="cuda")
    step(large)

net = Net().cuda()
outside, listed = torch.ones(5, 6, device="cuda", dtype=torch.half), [torch.ones(7, device="cuda"), 4]
try:
    run(net)
except torch.OutOfMemoryError as e:
    print(json.dumps(truth(e.__traceback__)))
"""


def variables_of(tool, recording):
    """Of each telling: (seq, node) -> rows."""
    lines = [json.loads(line) for line in tool("dump", "--defs", "--json", recording).splitlines()]
    return [x for x in lines if x.get("def") == "variables"], lines


@pytest.mark.matrix
def test_variables_are_what_frames_have(programs, tool):
    (programs.folder / "program.py").write_text(FRAMES)
    done = programs(programs.folder / "program.py", card="card=1GiB", GPUMEMTRACE_OUTPUT="run.gmt")
    assert done.returncode == 0, done.stderr[-3000:]
    truth = {tuple(map(str, x)) for x in json.loads(done.stdout)}
    told, lines = variables_of(tool, programs.folder / "run.gmt")
    codes = {x["id"]: x["name"].rpartition(".")[2] for x in lines if x.get("def") == "code"}
    nodes = {x["id"]: codes.get(x["value"] >> 32) for x in lines if x.get("def") == "stack" and x["frame"] == 2}
    last = max(x["seq"] for x in told)
    found = {(nodes[x["stack"]], x["name"], x["shape"], x["type"], str(x["address"]), str(x["bytes"]), str(x["tensors"]))
             for x in told if x["seq"] == last}
    assert found == truth, (found - truth, truth - found)
    assert len(truth) > 15 and {"kept", "couples", "mixed", "views", "tail", "pair", "grid", "outside", "listed", "by_name",
                                "self.features", "self.latest", "plain.table", "plain.by_step", "deleted.late", "extra.table"} <= {x[1] for x in truth}


def test_small_requests_tell_nothing(programs, tool):
    code = """
import torch
def small(x):
    return x * 2
def large(y):
    return y * 2
for i in range(9):
    small(torch.ones(1000, device="cuda"))
    large(torch.ones(1 << 19, device="cuda"))
"""
    recording = programs.traced("-c", code)
    told, _ = variables_of(tool, recording)
    assert {x["name"] for x in told} == {"y"}
    assert [x["shape"] for x in told] == ["[524288]"]  # once, however often the line runs


def test_off_with_tags(programs, tool):
    recording = programs.traced("-c", "import torch\nx = torch.ones(1 << 22, device='cuda')\ny = x + 1", GPUMEMTRACE_TAGS="off")
    assert not variables_of(tool, recording)[0]


SCENES = """
import sys, torch
from torch import nn

class Net(nn.Module):
    def __init__(self, n):
        super().__init__()
        self.layer = nn.Linear(256, n)

    def forward(self, x):
        y = self.layer(x)
        return torch.relu(y)  # line

def kept():
    net, results = Net(4096).cuda(), []
    while True:
        results.append(net(torch.rand(1024, 256, device="cuda")))

def pairs():
    a, b = torch.rand(30000, 2, device="cuda"), torch.rand(9000, 2, device="cuda")
    return (a[:, None] - b[None]).square().sum(-1)

def one():
    net = Net(1 << 14).cuda()
    for rows in (1 << 8, 1 << 15):
        net(torch.rand(1, rows, 256, device="cuda")).square().mean().backward()

def many():
    net = Net(1 << 14).cuda()
    for rows in (1 << 2, 1 << 9):
        net(torch.rand(64, rows, 256, device="cuda")).square().mean().backward()

class Tapped:  # hooks gather what layers return, and nobody asks for it
    def __init__(self, net):
        self.outputs = {"layer": [], "net": []}
        net.layer.register_forward_hook(lambda m, x, y: self.outputs["layer"].append(y.clone()))
        net.register_forward_hook(lambda m, x, y: self.outputs["net"].append(y))
        self.net = net

    def run(self):
        with torch.no_grad():
            while True:
                self.net(torch.rand(1024, 256, device="cuda"))

def hooks():
    Tapped(Net(4096).cuda()).run()

globals()[sys.argv[1]]()
"""


def test_an_attribute_is_named(programs, tool):
    (programs.folder / "program.py").write_text(SCENES)
    done = programs(programs.folder / "program.py", "hooks", card="card=1200MiB", GPUMEMTRACE_OUTPUT="run.gmt")
    assert "OutOfMemoryError" in done.stderr, done.stderr[-2000:]
    said = tool.json("oom", programs.folder / "run.gmt")
    held = {v["name"]: v for v in said["variables"]}["self.outputs"]
    assert held["bytes"] == held["tensors"] * (16 << 20) and held["function"] == "Tapped.__init__.<locals>.<lambda>"
    assert said["cause"] == "retained_graph"  # outputs, by their uses
    assert f"The variable self.outputs of {held['function']} program.py:{held['line']} has {held['tensors']} tensors" in said["text"]
    assert said["remedies"][0]["saves_bytes"] > held["bytes"] - (64 << 20)


@pytest.mark.forks
@pytest.mark.parametrize("kind", ["kept", "pairs", "one", "many"])
def test_what_is_said_of_them(programs, tool, kind):
    (programs.folder / "program.py").write_text(SCENES)
    done = programs(programs.folder / "program.py", kind, card="card=1200MiB", GPUMEMTRACE_OUTPUT="run.gmt")
    assert "OutOfMemoryError" in done.stderr, done.stderr[-2000:]
    recording = programs.folder / "run.gmt"
    said, text = tool.json("oom", recording), " ".join(tool("oom", recording).split())
    rows = {v["name"]: v for v in said["variables"]}
    batch = "".join(r["what"] for r in said["remedies"] if r["name"] == "smaller_batch")
    if kind == "kept":
        passes = rows["results"]["tensors"]
        assert rows["results"]["bytes"] == passes * (16 << 20) and rows["results"]["function"] == "kept" and passes > 40
        assert f"The variable results of kept program.py:{rows['results']['line']} has {passes} tensors" in said["text"]
        assert f"results {passes * 16 / 1024:.1f} GiB {passes}, first [1024, 4096] float32" in re.sub(" +", " ", text) or passes * 16 < 1024
    elif kind == "pairs":
        assert "with a [30000, 2], b [9000, 2])" in said["look_at"]
        assert rows["a"]["shape"] == "[30000, 2]" and not batch
    else:
        assert batch.startswith({"one": "Make the sample smaller, the batch is one", "many": "Halve the batch"}[kind])
        assert "if it is one" not in batch


READ = """
import ctypes, json, sys
frame_variables, code_variables, type_keys, own = map(int, sys.argv[1:5])
word = lambda at: ctypes.c_size_t.from_address(at).value
head = 16 if not hasattr(sys, "_is_gil_enabled") or "t" not in sys.abiflags else 32

def look(first, second="b", *rest, third=None):
    local = [first]
    def inner():
        return hidden
    hidden = {1: 2}
    f = sys._getframe()
    frame = word(id(f) + own) if own else id(f)
    names = word(id(f.f_code) + code_variables)
    count, items = word(names + head), names + head + 8 + 8 * (sys.version_info >= (3, 14))
    expected = f.f_code.co_varnames + (f.f_code.co_cellvars if own else ())
    assert count == len(expected), (count, expected)
    got = {}
    for i in range(count):
        assert word(items + 8 * i) == id(expected[i]), expected[i]
        got[expected[i]] = word(frame + frame_variables + 8 * i) & ~7
    assert got["first"] == id(first) and got["third"] == id(third) and got["local"] == id(local) and got["f"] == id(f), got
    if own:
        assert word(got["hidden"] + head) == id(hidden)
    return "right"

class Plain:
    def __init__(self):
        self.first, self.second = object(), [1]

# Values of an object whose __dict__ nobody asked for: by the names that its class keeps.
if type_keys >= 0:
    Plain(), Plain()
    x, minor = Plain(), sys.version_info[1]
    flags = word(id(Plain) + 168)
    assert flags == Plain.__flags__ and flags >> 4 & 1 and word(id(Plain) + 32) == Plain.__basicsize__
    keys = word(id(Plain) + type_keys)
    size, index, kind = ctypes.string_at(keys + 8, 3)
    entries = keys + 32 + (1 << index)
    assert kind == 2 and [word(entries + 16 * i) for i in (0, 1)] == [id(sys.intern("first")), id(sys.intern("second"))]
    values = word(id(x) - 32) if minor == 11 else word(id(x) - 24) + 1 if minor == 12 else id(x) + Plain.__basicsize__ + 8
    assert minor < 13 or (word(id(x) - 24) == 0 and flags >> 2 & 1 and word(values - 8) >> 24 & 1)
    assert minor != 12 or word(id(x) - 24) & 1
    assert [word(values + 8 * i) for i in (0, 1)] == [id(x.first), id(x.second)]
    # with a dict of its own, which has the same values first
    assert list(x.__dict__) == ["first", "second"]
    given = word(id(x) - 24)
    assert given == id(x.__dict__) and not (minor == 11 and word(id(x) - 32))
    keys, values = word(given + 32), word(given + 40) + 8 * (minor >= 13)
    assert word(values + 8) == id(x.second) and ctypes.string_at(keys + 10, 1) == b"\x02"
print(look(object(), 2, 3, third=object()))
"""


@pytest.mark.parametrize("version", sorted(v for v in PYTHONS if not v.endswith("t") and v != "3.14"))
def test_offsets_of_variables(version, tmp_path):
    """python_offsets.def in each interpreter of this machine."""
    table = (ROOT / "shim/stacks/python_offsets.def").read_text()
    row = re.search(rf"^PYTHON\({version.partition('.')[2]},.*,\s*(\d+), \d+, (\d+), +(-?\d+)\)$", table, re.M)
    # a frame object of its own until 3.10, later one that points to the frame
    own = ctypes.sizeof(ctypes.c_void_p) * 3 if int(version.partition(".")[2]) >= 11 else 0
    done = subprocess.run([PYTHONS[version], "-c", READ, *row.groups(), str(own)], capture_output=True, text=True, timeout=600)
    assert done.stdout == "right\n", done.stderr


RETRIES = """
import torch
def attempt(n):
    x = torch.ones(n, 1000, device="cuda")
    return x @ torch.ones(1000, 1 << 24, device="cuda")
for n in range(1, 71):
    try:
        attempt(n)
    except torch.OutOfMemoryError:
        pass
"""


def test_each_refusal_has_its_own(programs, tool):
    """A process's first 64 refusals are told; of a later one nothing is said rather than what was so before."""
    (programs.folder / "program.py").write_text(RETRIES)
    done = programs(programs.folder / "program.py", card="card=1GiB", GPUMEMTRACE_OUTPUT="run.gmt")
    assert done.returncode == 0, done.stderr[-2000:]
    for nth in (1, 40, 64, 65, 70):
        said = tool.json("oom", programs.folder / "run.gmt", "--nth", nth)
        assert [v["shape"] for v in said["variables"] if v["name"] == "x"] == ([f"[{nth}, 1000]"] if nth <= 64 else [])
