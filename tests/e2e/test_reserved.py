# SPDX-License-Identifier: Apache-2.0
"""What the framework reserves, as a figure of its own: two versions of a program whose blocks are alike and whose cache is not, each way
in two styles, against torch.cuda.max_memory_reserved; and the same program twice, of which nothing is said."""
import json
import re

import pytest
from conftest import with_more

pytestmark = pytest.mark.forks

END = """
import json
json.dump(torch.cuda.max_memory_reserved(), open("reserved.json", "w"))
"""

GRAPHS = """
import torch
from torch import nn
net = nn.Sequential(*[nn.Linear(1024, 1024) for _ in range(8)]).cuda()
x = torch.zeros(8192, 1024, device="cuda")
opt = torch.optim.SGD(net.parameters(), lr=0.1)
kept, pool = [], POOL
for step in range(8):
    with torch.no_grad():
        net(x)
        g = torch.cuda.CUDAGraph()
        with torch.cuda.graph(g, pool=pool):
            net(x)
        kept.append(g)
    net(x[:64]).sum().backward()
    opt.step()
    opt.zero_grad()
"""

CACHES = """
import torch
class Server:
    def __init__(self):
        self.arenas = {}
    def arena(self, request):
        return self.arenas.setdefault(KEY, torch.cuda.MemPool())
    def answer(self, request):
        with torch.cuda.use_mem_pool(self.arena(request)):
            t = torch.empty(96 << 18, device="cuda")
        return t.sum()
server, w = Server(), torch.zeros(1 << 20, device="cuda", requires_grad=True)
opt = torch.optim.SGD([w], lr=0.1)
for request in range(10):
    loss = (w * 2).sum() + server.answer(request)
    loss.backward()
    opt.step()
    opt.zero_grad()
"""

PIECES = """
import torch
w = torch.zeros(1 << 20, device="cuda", requires_grad=True)
opt = torch.optim.SGD([w], lr=0.1)
kept = []
for step in range(9):
    n = SIZE
    t = torch.empty(n << 20, dtype=torch.uint8, device="cuda")
    del t
    kept.append(torch.empty(2 << 20, dtype=torch.uint8, device="cuda"))
    (w * 2).sum().backward()
    opt.step()
    opt.zero_grad()
"""

STREAMS = """
import torch
def work(stream):
    with torch.cuda.stream(stream):
        t = torch.empty(120 << 20, dtype=torch.uint8, device="cuda")
        u = t + 1
w = torch.zeros(1 << 20, device="cuda", requires_grad=True)
opt = torch.optim.SGD([w], lr=0.1)
one = torch.cuda.Stream()
kept = []
for step in range(8):
    kept.append(STREAM)
    work(kept[-1])
    (w * 2).sum().backward()
    opt.step()
    opt.zero_grad()
"""

KINDS = {
    "graphs": (GRAPHS, "POOL", "torch.cuda.graph_pool_handle()", "None"),
    "caches": (CACHES, "KEY", "0", "request"),
    "pieces": (PIECES, "SIZE", "40", "40 + 60 * step"),
    "streams": (STREAMS, "STREAM", "one", "torch.cuda.Stream()"),
}


def record(programs, name, value, output):
    program, hole, *_ = KINDS[name]
    script = programs.folder / f"{name}.py"
    script.write_text(re.sub(rf"\b{hole}\b", value, program) + END)
    file = programs.traced(script, output=output)
    return file, json.loads((programs.folder / "reserved.json").read_text())


@pytest.mark.parametrize("name", with_more(KINDS, {"streams", "pieces"}))
def test_a_cache_that_grows_beside_its_blocks(tool, programs, name):
    _, _, less, more = KINDS[name]
    (old, old_bytes), (new, new_bytes) = record(programs, name, less, "old.gmt"), record(programs, name, more, "new.gmt")
    again, _ = record(programs, name, less, "again.gmt")
    assert new_bytes > old_bytes + (200 << 20)
    for before, after, kind in ((old, new, "grown"), (new, old, "shrunk")):
        said = tool.json("diff", before, after)
        first = next(f for f in said["findings"] if f["cause"] == "reserved")
        assert first["kind"] == kind and (first == said["findings"][0] or first == said["findings"][-1]), [f["text"] for f in said["findings"]]
        assert {said["reserved_old"], said["reserved_new"]} == {first["bytes_old"], first["bytes_new"]} == {old_bytes, new_bytes}
        assert first["file"].endswith(f"{name}.py") and "reserves" in first["text"]
        assert "Nothing differs" not in tool("diff", before, after)
        tool("diff", before, after, "-o", programs.folder / "diff.html")
        assert first["text"].split(" (")[0].replace("<", "\\u003c") in (programs.folder / "diff.html").read_text()
    assert not [f for f in tool.json("diff", old, again)["findings"] if f["cause"] == "reserved"]

    assert tool.json("leaks", new)["reserved_growth_per_step"] > (10 << 20)
    assert tool.json("leaks", old)["reserved_growth_per_step"] == 0
    assert "Reserved memory grows by" in tool("leaks", new) and "Reserved" not in tool("leaks", old)
    tool("check", old, "--baseline", new)
    tool("check", again, "--baseline", old)
    failed = tool("check", new, "--baseline", old, "--fail-above", "60%", code=1)
    assert re.search(r"^fail .*: reserved .* -> .*" + f"{name}.py:", failed, re.M), failed
    failed = tool("check", new, "--max-growth", "10MiB", code=1)
    assert "growth of reserved memory" in failed and f"{name}.py:" in failed
    tool("check", old, "--max-growth", "10MiB")
    assert f"{name}.py:" in tool("check", new, "--max-reserved", str(new_bytes - 1), code=1)
    tool("check", new, "--max-reserved", str(new_bytes))


# The cache of an earlier time has room for what was added later.
ROOM = """
import torch
w = torch.zeros(1 << 20, device="cuda", requires_grad=True)
opt = torch.optim.SGD([w], lr=0.1)
kept = []
for step in range(9):
    t = torch.empty(40 + 60 * step << 20, dtype=torch.uint8, device="cuda")
    u = torch.empty(SIZE << 20, dtype=torch.uint8, device="cuda") if step == 8 else None
    del t, u
    kept.append(torch.empty(2 << 20, dtype=torch.uint8, device="cuda"))
    (w * 2).sum().backward()
    opt.step()
    opt.zero_grad()
"""

# A pass that is far below the peak makes less, and the cache has more pieces.
BELOW = """
import torch
class Large(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return x * 2
    @staticmethod
    def backward(ctx, gradient):
        large = torch.empty(1000 << 20, dtype=torch.uint8, device="cuda")
        return gradient
class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.w, self.kept = torch.nn.Parameter(torch.zeros(1 << 20)), []
    def forward(self):
        for n in PIECES if not self.kept else []:
            t = torch.empty(n << 20, dtype=torch.uint8, device="cuda")
            del t
            self.kept.append(torch.empty(2 << 20, dtype=torch.uint8, device="cuda"))
        x = Large.apply(self.w)
        t = torch.empty(SIZE << 20, dtype=torch.uint8, device="cuda")
        return x.sum() + t[0]
net = Net().cuda()
opt = torch.optim.SGD(net.parameters(), lr=0.1)
for step in range(4):
    net().backward()
    opt.step()
    opt.zero_grad()
"""
STAYS = {"room": (ROOM, {"SIZE": "300"}, {"SIZE": "100"}, 0), "below": (BELOW, {"SIZE": "600", "PIECES": "[100] * 5"}, {"SIZE": "2", "PIECES": "[100, 180, 260]"}, 1)}


@pytest.mark.parametrize("name", STAYS)
def test_blocks_come_first_where_they_changed_more_than_the_cache(tool, programs, name):
    program, old, new, others = STAYS[name]
    files = []
    for side, values in ("old", old), ("new", new):
        script = programs.folder / f"{name}.py"
        script.write_text(re.sub("SIZE|PIECES", lambda m: values[m[0]], program) + END)
        files.append(programs.traced(script, output=side + ".gmt"))
    for pair in files, files[::-1]:
        findings = tool.json("diff", *pair)["findings"]
        print([f["text"] for f in findings])
        assert re.match("(Gone|Less|New|More)", findings[0]["text"]) and abs(findings[0]["delta"]) > 190 << 20
        assert [f["cause"] for f in findings].count("reserved") == others
