# SPDX-License-Identifier: Apache-2.0
"""`oom` where caches of keys and values were made for the most positions that there can be. Beside them caches that grow with what they hold, and one
that is small."""
import pytest

pytestmark = pytest.mark.forks

PROGRAM = """
import sys, torch
from torch import nn
from torch.nn import functional as F
kind, N, LAYERS = sys.argv[1], 1024, 8
MOST = {"set_up": 1 << 16, "passes": 1 << 14, "small": 256}.get(kind, 0)

class KVCache(nn.Module):
    def __init__(self, rows, positions):
        super().__init__()
        self.register_buffer("k", torch.zeros(rows, positions, N))
        self.register_buffer("v", torch.zeros(rows, positions, N))
    def update(self, at, k, v):
        self.k[:, at:at + k.shape[1]], self.v[:, at:at + k.shape[1]] = k, v
        return self.k, self.v

class GrowingKVCache:
    def __init__(self):
        self.k = self.v = None
    def update(self, at, k, v):
        self.k = k if at == 0 else torch.cat([self.k, k], 1)
        self.v = v if at == 0 else torch.cat([self.v, v], 1)
        return self.k, self.v

class Layer(nn.Module):
    def __init__(self):
        super().__init__()
        self.qkv, self.up = nn.Linear(N, 3 * N), nn.Linear(N, N)
    def forward(self, x, at):
        q, k, v = self.qkv(x).chunk(3, -1)
        k, v = self.cache.update(at, k, v)
        return x + self.up(F.scaled_dot_product_attention(q, k, v))

model = nn.ModuleList(Layer() for _ in range(LAYERS)).cuda()
with torch.inference_mode(), torch.device("cuda"):
    for layer in model:
        layer.cache = KVCache(1, MOST) if MOST else GrowingKVCache()
    at = 0
    for rows in {"passes": [64, 1, 1 << 14], "small": [64, 1, 1 << 19]}.get(kind, [64] + [1 << 13] * 50):
        x = torch.rand(1, rows, N)
        for layer in model:
            x = layer(x, 0 if kind in ("passes", "small") else at) if kind != "small" else x + layer.up(x)
        at += rows
"""


@pytest.mark.parametrize("kind", ["set_up", "passes", "growing", "small"])
def test_room_that_is_not_used(programs, tool, kind):
    (programs.folder / "program.py").write_text(PROGRAM)
    done = programs(programs.folder / "program.py", kind, card="card=2300MiB", GPUMEMTRACE_OUTPUT="run.gmt")
    assert "OutOfMemoryError" in done.stderr, done.stderr[-2000:]
    said = tool.json("oom", programs.folder / "run.gmt")
    remedies = {r["name"]: r for r in said["remedies"]}
    assert ("shorter_cache" in remedies) == (kind in ("set_up", "passes")), remedies
    if kind in ("set_up", "passes"):
        made = sum(said["categories"].get(c, 0) for c in ("buffers", "kv_cache")) + said["block_bytes"] * (kind == "set_up")
        assert remedies["shorter_cache"]["saves_bytes"] == made // 2 and "KVCache.__init__ program.py:" in remedies["shorter_cache"]["what"]
