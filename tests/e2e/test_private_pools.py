# SPDX-License-Identifier: Apache-2.0
"""What of the framework's cache is whose: private pools, freed blocks that wait for streams, and what is free for everybody, against
PyTorch's own account of its segments (memory_snapshot) at the same moments; in recordings, and in snapshots that PyTorch wrote."""
import json

import pytest
from conftest import with_more

pytestmark = pytest.mark.forks

ASK = """
import json, torch
from torch import nn
from torch.profiler import record_function
truth = {}
def ask(name):
    segments = torch.cuda.memory_snapshot()
    apart = [s for s in segments if tuple(s["segment_pool_id"]) != (0, 0)]
    waiting = sum(b["size"] for s in segments for b in s["blocks"] if b["state"] in ("active_pending_free", "active_awaiting_free"))
    truth[name] = {
        "bytes": sum(s["total_size"] for s in apart), "allocated": sum(s["active_size"] for s in apart),
        "pools": len({tuple(s["segment_pool_id"]) for s in apart}), "waiting": waiting,
        "cached": sum(s["total_size"] - s["active_size"] for s in segments if s not in apart)}
    with record_function(name):
        pass
def write():
    torch.cuda.memory._dump_snapshot("snapshot.pickle")
    json.dump(truth, open("truth.json", "w"))
"""

GRAPHS = """
net = nn.Sequential(nn.Linear(1024, 4096), nn.GELU(), nn.Linear(4096, 1024)).cuda()
graphs = []
ask("before")
with torch.no_grad():
    for n in (256, 512, 1024):
        x = torch.zeros(n, 1024, device="cuda")
        net(x)
        g = torch.cuda.CUDAGraph()
        with torch.cuda.graph(g):
            y = net(x)
        graphs.append((g, x, y))
        ask("graph%d" % n)
    del graphs[1], g, x, y
    torch.cuda.empty_cache()
    ask("one_less")
write()
"""

ONE_POOL = """
pool = torch.cuda.graph_pool_handle()
graphs = []
def capture(n):
    x = torch.zeros(n, 2 << 20, device="cuda")
    g = torch.cuda.CUDAGraph()
    with torch.cuda.graph(g, pool=pool):
        y = x * 2 + 1
    graphs.append((g, x, y.sum()))
for n in (8, 4, 2):
    capture(n)
    ask("graph%d" % n)
write()
"""

CALLABLES = """
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.a, self.b = nn.Linear(512, 2048), nn.Linear(2048, 512)
    def forward(self, x):
        return self.b(torch.relu(self.a(x)))
nets = [Net().cuda() for _ in range(2)]
made = [torch.cuda.make_graphed_callables(n, (torch.randn(4096, 512, device="cuda", requires_grad=True),)) for n in nets]
ask("made")
x = torch.randn(4096, 512, device="cuda", requires_grad=True)
for net in made:
    net(x).sum().backward()
    ask("used")
write()
"""

MEM_POOL = """
pool, kept = torch.cuda.MemPool(), []
with torch.cuda.use_mem_pool(pool):
    kept = [torch.empty(30 << 20, dtype=torch.uint8, device="cuda") for _ in range(4)]
ask("full")
del kept[1:3]
x = torch.empty(60 << 20, dtype=torch.uint8, device="cuda")
ask("half")
del kept[:]
ask("empty")
write()
"""

TWO_POOLS = """
class Arena:
    def __init__(self):
        self.pool = torch.cuda.MemPool()
    def take(self, mib):
        with torch.cuda.use_mem_pool(self.pool):
            return torch.zeros(mib << 18, device="cuda")
a, b = Arena(), Arena()
weights = [a.take(n) for n in (3, 50, 7)]
caches = [b.take(n) for n in (90, 1)]
other = [torch.zeros(n << 18, device="cuda") for n in (3, 40)]
ask("made")
del weights[1], caches[0], other[1]
ask("less")
write()
"""

STREAMS = """
side = torch.cuda.Stream()
x = torch.zeros(40 << 20, device="cuda")
y = torch.zeros(10 << 20, device="cuda")
with torch.cuda.stream(side):
    x.mul_(2)
    x.record_stream(side)
del x
ask("waits")
del y
ask("both")
torch.cuda.synchronize()
z = torch.zeros(1 << 20, device="cuda")
ask("over")
write()
"""

HANDOVER = """
copy = torch.cuda.Stream()
def send(n):
    with torch.cuda.stream(copy):
        t = torch.ones(n, 1 << 18, device="cuda")
    t.record_stream(torch.cuda.current_stream())
    return t.sum()
for n in (20, 30, 25):
    s = send(n)
    ask("sent%d" % n)
write()
"""

KINDS = {"graphs": (GRAPHS, "cuda_graphs"), "one_pool": (ONE_POOL, "cuda_graphs"), "callables": (CALLABLES, "cuda_graphs"),
         "mem_pool": (MEM_POOL, "mem_pool"), "two_pools": (TWO_POOLS, "mem_pool"), "streams": (STREAMS, None), "handover": (HANDOVER, None)}


def account(live):
    pools = live["pools"]
    return {"bytes": sum(p["bytes"] for p in pools), "allocated": sum(p["allocated_bytes"] for p in pools),
            "pools": sum(p["pools"] for p in pools), "waiting": live["waiting_bytes"], "cached": live["cached_bytes"]}


@pytest.mark.parametrize("conf", with_more(["", "expandable_segments:True"], {""}))
@pytest.mark.parametrize("name", KINDS)
def test_whose_the_cache_is(tool, programs, name, conf):
    program, kind = KINDS[name]
    script = programs.folder / f"{name}.py"
    script.write_text(ASK + program)
    file = programs.traced(script, PYTORCH_CUDA_ALLOC_CONF=conf)
    truth = json.loads((programs.folder / "truth.json").read_text())
    seen = {}
    for mark in truth:
        live = tool.json("live", file, "--at", f"mark:{mark}")
        assert {p["kind"] for p in live["pools"]} <= {kind}
        assert {p["file"].split("/")[-1] for p in live["pools"]} <= {script.name}
        seen[mark] = account(live)
    assert seen == truth
    assert any(t["bytes"] for t in truth.values()) == bool(kind) and (kind or any(t["waiting"] for t in truth.values()))
    last = list(truth.values())[-1]
    live = tool.json("live", programs.folder / "snapshot.pickle", "--at", "end")
    assert account(live) == last


MANY_GRAPHS = """
net = nn.Sequential(*[nn.Linear(2048, 2048) for _ in range(6)]).cuda()
graphs, warm = [], {warm}
net(torch.zeros(8, 2048, device="cuda")).sum().backward()
@torch.no_grad()
def capture(n):
    x = torch.zeros(n, 2048, device="cuda")
    if warm:
        net(x)
    g = torch.cuda.CUDAGraph()
    with torch.cuda.graph(g):
        y = net(x).float().pow(2).sum()
    graphs.append((g, x, y))
for n in range(8192, 65536, 1024):
    capture(n)
"""


@pytest.mark.parametrize("warm", [True, False])
def test_a_refusal_beside_pools_of_graphs(tool, programs, warm):
    """What other graphs' pools have free is not the request's to use, and the answer says whose it is: of a request of the
    common pool, or of one inside a capture."""
    script = programs.folder / "many.py"
    script.write_text(ASK + MANY_GRAPHS.replace("{warm}", str(warm)))
    assert programs(script, card="card=6GiB", GPUMEMTRACE_OUTPUT="run.gmt").returncode == 1
    file = programs.folder / "run.gmt"
    said = tool.json("oom", file)
    assert said["cause"] == "fragmentation" and "private pools" in said["text"] and "many.py:" in said["text"]
    assert said["pools"][0]["kind"] == "cuda_graphs" and said["pools"][0]["bytes"] > said["reserved_bytes"] / 2
    free = sum(p["bytes"] - p["allocated_bytes"] for p in said["pools"])
    if warm:
        assert said["cached_bytes"] + free + said["waiting_bytes"] + said["allocated_bytes"] == said["reserved_bytes"]
    assert said["cached_bytes"] < said["asked_bytes"] + said["block_bytes"] < free
    assert "free, graphs only" in tool("oom", file) and "free, graphs only" in tool("report", file)
