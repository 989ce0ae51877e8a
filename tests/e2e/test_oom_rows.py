# SPDX-License-Identifier: Apache-2.0
"""What `oom` says where one call of vmap computes all rows: Jacobians and gradients of each sample. With an eighth of the rows at a time each
program ends on the same card. An index into an expanded table is of no batch either. Beside them programs that use torch.func and have no rows, or whose rows nobody can choose."""
import pytest

pytestmark = pytest.mark.forks

PROGRAM = """
import sys, torch
from torch import nn
from torch.func import functional_call, grad, jacfwd, jacrev, jvp, vmap
sys.path.insert(0, "site-packages")
kind, fixed = sys.argv[1], sys.argv[2:] == ["fixed"]
N = 2048

class Net(nn.Module):
    def __init__(self, width=32):
        super().__init__()
        self.enter, self.leave = nn.Linear(1, width), nn.Linear(width, 1)
    def forward(self, field):
        return self.leave(torch.nn.functional.gelu(self.enter(field[:, None]))).flatten()

net = Net().cuda().requires_grad_(kind == "training" or (kind == "jacobian" and not fixed))
field = torch.rand(N, device="cuda")
if kind == "jacobian":
    net(field).sum()
    rows = jacrev(net, chunk_size=N // 8 if fixed else None)(field)  # the call
elif kind == "columns":
    of = lambda v: jvp(net, (field,), (v,))[1]
    for _ in range(2):
        columns = vmap(of, chunk_size=N // 8)(torch.eye(N, device="cuda")) if fixed else jacfwd(net)(field)  # the call
elif kind == "samples":
    model = nn.Sequential(nn.Linear(2048, 2048), nn.ReLU(), nn.Linear(2048, 10)).cuda()
    weights = {k: v.detach() for k, v in model.named_parameters()}
    def loss(w, x, y):
        return nn.functional.cross_entropy(functional_call(model, w, (x[None],)), y[None])
    x, y = torch.rand(32, 2048, device="cuda"), torch.zeros(32, dtype=torch.long, device="cuda")
    for part in (range(0, 32, 4) if fixed else [0]):
        of = slice(part, part + 4) if fixed else slice(None)
        norms = [g.flatten(1).norm(dim=1) for g in vmap(grad(loss), in_dims=(None, 0, 0))(weights, x[of], y[of]).values()]  # the call
elif kind == "vectorized":
    field.requires_grad_()
    y = net(field)
    for rows in torch.eye(N, device="cuda").split(N // 8 if fixed else N):
        torch.autograd.grad(y, field, rows, retain_graph=True, is_grads_batched=True)
elif kind == "table":
    table, labels = nn.Parameter(torch.rand(40, 64, device="cuda")), torch.randint(40, (1 << 15,), device="cuda")
    rows = (nn.functional.embedding(labels, table) if fixed else
            torch.gather(table[..., None].expand(40, 64, 1 << 15), 0, labels.expand(1, 64, -1)))
    rows.square().mean().backward()
elif kind == "gradient":
    weights = dict(net.named_parameters())
    for n in (1, 2, 4096):
        grad(lambda w, x: functional_call(net, w, (x,)).square().mean())(weights, torch.rand(n * N, device="cuda"))
elif kind == "mask":
    import masks
    with torch.no_grad():
        for n in (64, 128, 16384):
            x = torch.rand(4, n, device="cuda")
            net(x.flatten())
            masks.causal(4, n)
elif kind == "training":
    jacrev(net)(field[:8])
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    for n in (1, 2, 4096):
        net(torch.rand(n * N, device="cuda")).square().mean().backward()
        optimizer.step()
        optimizer.zero_grad()
"""
PACKAGE = """
import torch
def causal(batch, n):
    of = lambda b, i, j: (i >= j) & (b >= 0)
    for dims in ((None, None, 0), (None, 0, None), (0, None, None)):
        of = torch.vmap(of, in_dims=dims, out_dims=0)
    return of(torch.arange(batch, device="cuda"), torch.arange(n, device="cuda"), torch.arange(n, device="cuda"))
"""
CASES = {"jacobian": 1100, "columns": 1100, "samples": 620, "vectorized": 1100}


def run(programs, kind, card, *mode):
    (programs.folder / "program.py").write_text(PROGRAM)
    (programs.folder / "site-packages").mkdir(exist_ok=True)
    (programs.folder / "site-packages/masks.py").write_text(PACKAGE)
    return programs(programs.folder / "program.py", kind, *mode, card=f"card={card}MiB", GPUMEMTRACE_OUTPUT="run.gmt")


@pytest.mark.parametrize("kind", CASES)
def test_rows_that_vmap_makes_at_once(programs, tool, kind):
    done = run(programs, kind, CASES[kind])
    assert "OutOfMemoryError" in done.stderr, done.stderr[-2000:]
    said = tool.json("oom", programs.folder / "run.gmt")
    remedies = {r["name"]: r for r in said["remedies"]}
    rows = remedies["fewer_rows"]
    line = next((i for i, text in enumerate(PROGRAM.splitlines(), 1) if "# the call" in text and kind in text + PROGRAM.splitlines()[i - 3]), 0)
    assert rows["enough"] and "smaller_batch" not in remedies and "too large" not in said["text"]
    assert said["block_bytes"] / 8 <= rows["saves_bytes"]
    assert ("detach()" in rows["what"]) == (kind == "jacobian")
    assert (f"program.py:{line}" in rows["what"]) == (line > 0)
    assert "OutOfMemoryError" not in run(programs, kind, CASES[kind], "fixed").stderr


@pytest.mark.parametrize("kind", ["gradient", "mask", "training"])
def test_no_rows(programs, tool, kind):
    done = run(programs, kind, 1500)
    assert "OutOfMemoryError" in done.stderr, done.stderr[-2000:]
    said = tool.json("oom", programs.folder / "run.gmt")
    assert "fewer_rows" not in {r["name"] for r in said["remedies"]} and "vmap" not in said["text"]


def test_an_index_into_an_expanded_table(programs, tool):
    done = run(programs, "table", 400)
    assert "OutOfMemoryError" in done.stderr, done.stderr[-2000:]
    remedies = {r["name"]: r for r in tool.json("oom", programs.folder / "run.gmt")["remedies"]}
    assert 300 << 20 < remedies["expanded_views"]["saves_bytes"] <= 320 << 20 and "smaller_batch" not in remedies
    assert "OutOfMemoryError" not in run(programs, "table", 400, "fixed").stderr
