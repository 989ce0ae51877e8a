# SPDX-License-Identifier: Apache-2.0
"""Converting a language model's linear layers to eight bits on the device, then a first answer."""
import sys

import torch
import torch.nn.functional as F
from torch import nn

WIDTH, LAYERS = 1536, 20


class Fp8Linear(nn.Module):
    def __init__(self, weight, scale):
        super().__init__()
        self.weight, self.scale = nn.Parameter(weight, requires_grad=False), nn.Parameter(scale, requires_grad=False)

    def forward(self, x):
        return F.linear(x, self.weight.to(x.dtype) * self.scale.to(x.dtype))


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm = nn.LayerNorm(WIDTH)
        self.q, self.k, self.v, self.o = (nn.Linear(WIDTH, WIDTH, bias=False) for _ in range(4))
        self.up, self.down = nn.Linear(WIDTH, 4 * WIDTH, bias=False), nn.Linear(4 * WIDTH, WIDTH, bias=False)

    def forward(self, x):
        h = self.norm(x)
        q, k, v = (f(h).unflatten(-1, (12, -1)).transpose(1, 2) for f in (self.q, self.k, self.v))
        x = x + self.o(F.scaled_dot_product_attention(q, k, v, is_causal=True).transpose(1, 2).flatten(2))
        return x + self.down(F.silu(self.up(self.norm(x))))


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed, self.layers = nn.Embedding(8192, WIDTH), nn.ModuleList(Block() for _ in range(LAYERS))
        self.head = nn.Linear(WIDTH, 8192, bias=False)

    def forward(self, ids):
        x = self.embed(ids)
        for layer in self.layers:
            x = layer(x)
        return self.head(x)


def quantize(weight):
    limit = weight.abs().max().float().clamp(min=1e-6)
    scale = limit / torch.finfo(torch.float8_e4m3fn).max
    return (weight / scale).to(torch.float8_e4m3fn), scale


def replace(model, name, module):
    parent, _, leaf = name.rpartition(".")
    setattr(model.get_submodule(parent), leaf, module)


@torch.no_grad()
def quantize_weights(model):
    for name, linear in list(model.named_modules()):
        if not isinstance(linear, nn.Linear) or "layers" not in name:
            continue
        weight, scale = quantize(linear.weight)
        new = Fp8Linear(weight, scale)
        replace(model, name, new)
        if sys.argv[1] == "fixed":
            del linear.weight
        del linear, weight, scale, new


torch.set_default_dtype(torch.bfloat16)
with torch.device("cuda"):
    model = Model().eval()
print("loaded", torch.cuda.memory_allocated() >> 20, "MiB")
quantize_weights(model)
with torch.no_grad():
    model(torch.randint(0, 8192, (1, 128), device="cuda"))
print(torch.cuda.max_memory_allocated() >> 20, "MiB")
