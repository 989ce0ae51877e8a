# SPDX-License-Identifier: Apache-2.0
"""What `oom` says of the place where memory ran out: an evaluation that keeps activations, attention that keeps its
scores, a card of several that holds more than the others. Beside each a program of the same shape that is none."""
import pytest

pytestmark = pytest.mark.forks

PROGRAM = """
import sys, torch
from torch.nn import functional as F
kind = sys.argv[1]
N = 1024

class Block(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.up, self.down = torch.nn.Linear(N, 4 * N), torch.nn.Linear(4 * N, N)
    def forward(self, x):
        return x + self.down(torch.relu(self.up(x)))

class Attention(torch.nn.Module):
    def __init__(self, heads=16):
        super().__init__()
        self.heads, self.qkv, self.out = heads, torch.nn.Linear(N, 3 * N), torch.nn.Linear(N, N)
    def forward(self, x):
        b, n, _ = x.shape
        q, k, v = self.qkv(x).view(b, n, 3, self.heads, -1).permute(2, 0, 3, 1, 4)
        weights = torch.matmul(q, k.transpose(2, 3)) / 8
        weights = F.softmax(weights, dim=-1, dtype=torch.float32).to(q.dtype)
        return self.out(torch.matmul(weights, v).transpose(1, 2).reshape(b, n, N))

class Classes(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.table = torch.nn.Parameter(torch.randn(N, 50000))
    def forward(self, x):
        return F.softmax(torch.matmul(x, self.table), dim=-1)

def evaluate(model, batch):
    model.eval()
    for _ in range(3):
        model(torch.randn(batch, N, device="cuda")).mean().item()
    model.train()

def train(model, optimizer, steps, batch):
    for _ in range(steps):
        model(torch.randn(batch, N, device="cuda")).mean().backward()
        optimizer.step()
        optimizer.zero_grad()

if kind in ("evaluation", "again", "training"):
    model = torch.nn.Sequential(*(Block() for _ in range(6))).cuda()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    train(model, optimizer, 3, 2000)
    if kind == "again":
        evaluate(model, 1000)
    if kind == "training":
        train(model, optimizer, 3, 60000)
    evaluate(model, 60000)
elif kind == "adversaries":
    makes, judges = (torch.nn.Sequential(*(Block() for _ in range(6))).cuda() for _ in "ab")
    optimizer = torch.optim.SGD([*makes.parameters(), *judges.parameters()], lr=0.1)
    for batch in (2000, 2000, 40000):
        judges(torch.randn(batch, N, device="cuda")).mean().backward()
        judges(makes(torch.randn(batch, N, device="cuda"))).mean().backward()
        optimizer.step()
        optimizer.zero_grad()
elif kind == "attention":
    model = torch.nn.Sequential(*(Attention() for _ in range(3))).cuda()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for n in (128, 256, 2048):
        model(torch.randn(4, n, N, device="cuda")).mean().backward()
        optimizer.step()
        optimizer.zero_grad()
elif kind == "generation":
    model = Attention().cuda()
    with torch.no_grad():
        for n in (128, 256, 8192):
            model(torch.randn(2, n, N, device="cuda"))
elif kind == "classes":
    model = Classes().cuda()
    with torch.no_grad():
        for n in (128, 256, 12000):
            model(torch.randn(n, N, device="cuda"))
elif kind == "replicas":
    model = torch.nn.DataParallel(torch.nn.Sequential(*(torch.nn.Linear(N, N) for _ in range(40)), torch.nn.Linear(N, 20000)).cuda())
    optimizer = torch.optim.AdamW(model.parameters())
    for batch in (512, 1024, 8192):
        out = model(torch.randn(batch, N, device="cuda"))
        F.cross_entropy(out, torch.zeros(batch, dtype=torch.long, device="cuda")).backward()
        optimizer.step()
        optimizer.zero_grad()
"""

# program: the remedies of these two that it gets
# The first pass at a line that trains nothing is taken for an evaluation; one of the function that trains may have its backward pass yet.
CASES = {"evaluation": {"no_grad"}, "again": {"no_grad"}, "training": set(), "adversaries": set(), "attention": {"fused_attention"},
         "generation": {"fused_attention"}, "classes": set(), "replicas": set()}


@pytest.mark.parametrize("kind", CASES)
def test_what_the_place_says(programs, tool, kind):
    (programs.folder / "program.py").write_text(PROGRAM)
    done = programs(programs.folder / "program.py", kind, card="card=3400MiB" if kind == "replicas" else "card=3GiB", count=2 if kind == "replicas" else 1, GPUMEMTRACE_OUTPUT="run.gmt")
    assert "OutOfMemoryError" in done.stderr, done.stderr[-2000:]
    recording = programs.folder / "run.gmt"
    said, text = tool.json("oom", recording), " ".join(tool("oom", recording).split())
    remedies = {r["name"]: r for r in said["remedies"]}
    assert remedies.keys() & {"no_grad", "fused_attention"} == CASES[kind], remedies
    if "no_grad" in CASES[kind]:
        assert "evaluate" in remedies["no_grad"]["what"] and remedies["no_grad"]["saves_bytes"] > 1 << 30
        assert remedies["no_grad"]["saves_bytes"] <= said["categories"]["activations"]
        assert not remedies["no_grad"]["enough"]  # run so, it is refused at the same place: relu still needs what it is given
    if "fused_attention" in CASES[kind]:
        assert "Attention.forward" in remedies["fused_attention"]["what"]
        assert remedies["fused_attention"]["saves_bytes"] >= said["block_bytes"]
    if kind != "replicas":
        assert "other_devices" not in said and "replicas" not in text
        return
    peaks = {d["device"]: d["peak_bytes"] for d in tool.json("report", recording)["devices"]}
    assert said["replicas"] and said["other_devices"] == [{"device": 1, "peak_bytes": peaks[1]}]
    assert peaks[1] < 0.75 * peaks[0] and "replicas on several devices (nn.DataParallel)" in text and "far lower" in text
