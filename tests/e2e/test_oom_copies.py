# SPDX-License-Identifier: Apache-2.0
"""`oom` where copies of weights fill the device: a reference that holds what a frozen model with adapters holds; beside it one of a model that is
trained, averages, and a copy that got other weights."""
import pytest

pytestmark = pytest.mark.forks

PROGRAM = """
import copy, sys, torch
from torch import nn
from torch.nn import functional as F
kind, N = sys.argv[1], 2048

class Layer(nn.Module):
    def __init__(self):
        super().__init__()
        self.base = nn.Linear(N, N)
        self.down, self.up = nn.Linear(N, 8, bias=False), nn.Linear(8, N, bias=False)
    def forward(self, x):
        return F.relu(self.base(x) + self.up(self.down(x)))

model = nn.Sequential(*(Layer() for _ in range(20))).cuda()
trained = [p for n, p in model.named_parameters() if kind in ("all", "average") or "base" not in n]
model.requires_grad_(False)
if kind == "loaded":
    other = {k: torch.rand(v.shape) for k, v in model.state_dict().items()}
reference = copy.deepcopy(model)
if kind == "loaded":
    reference.load_state_dict(other)
for p in trained:
    p.requires_grad_()
optimizer = torch.optim.SGD(trained, lr=0.1)
for rows in (64, 128, 100000):
    x = torch.rand(rows, N, device="cuda")
    with torch.no_grad():
        wanted = reference(x[:64])
        if kind == "average":
            torch._foreach_lerp_(list(reference.parameters()), list(model.parameters()), 0.1)
    F.mse_loss(model(x)[:64], wanted).backward()
    optimizer.step()
    optimizer.zero_grad()
"""


@pytest.mark.parametrize("kind", ["adapters", "all", "average", "loaded"])
def test_copies_of_weights(programs, tool, kind):
    (programs.folder / "program.py").write_text(PROGRAM)
    done = programs(programs.folder / "program.py", kind, card="card=3GiB", GPUMEMTRACE_OUTPUT="run.gmt")
    assert "OutOfMemoryError" in done.stderr, done.stderr[-2000:]
    remedies = {r["name"]: r for r in tool.json("oom", programs.folder / "run.gmt")["remedies"]}
    assert ("weight_copies" in remedies) == (kind == "adapters"), remedies
    if kind == "adapters":
        line = 1 + PROGRAM.splitlines().index("reference = copy.deepcopy(model)")
        assert f"program.py:{line}" in remedies["weight_copies"]["what"] and 300 << 20 < remedies["weight_copies"]["saves_bytes"] <= 324 << 20
