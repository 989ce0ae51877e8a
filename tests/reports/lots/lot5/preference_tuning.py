# SPDX-License-Identifier: Apache-2.0
"""An assistant learns preferences (DPO) with low-rank adapters: pairs of answers, one chosen and one rejected."""
import copy
import sys
from contextlib import contextmanager

import torch
import torch.nn.functional as F
from torch import nn

WORDS, WIDTH, HEADS, LAYERS = 16000, 1280, 20, 14


class LoraLinear(nn.Module):
    def __init__(self, inputs, outputs, rank=8):
        super().__init__()
        self.base = nn.Linear(inputs, outputs, bias=False, dtype=torch.bfloat16).requires_grad_(False)
        self.down, self.up = nn.Linear(inputs, rank, bias=False), nn.Linear(rank, outputs, bias=False)
        nn.init.zeros_(self.up.weight)
        self.enabled = True

    def forward(self, x):
        y = self.base(x)
        return y + self.up(self.down(x.float())).to(y.dtype) if self.enabled else y


class Layer(nn.Module):
    def __init__(self):
        super().__init__()
        self.attn_norm, self.mlp_norm = (nn.RMSNorm(WIDTH, dtype=torch.bfloat16).requires_grad_(False) for _ in range(2))
        self.qkv, self.out = LoraLinear(WIDTH, 3 * WIDTH), LoraLinear(WIDTH, WIDTH)
        self.up, self.down = LoraLinear(WIDTH, 4 * WIDTH), LoraLinear(4 * WIDTH, WIDTH)

    def forward(self, x):
        q, k, v = self.qkv(self.attn_norm(x)).unflatten(-1, (3, HEADS, -1)).permute(2, 0, 3, 1, 4)
        x = x + self.out(F.scaled_dot_product_attention(q, k, v, is_causal=True).transpose(1, 2).flatten(2))
        return x + self.down(F.gelu(self.up(self.mlp_norm(x))))


class Assistant(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed = nn.Embedding(WORDS, WIDTH, dtype=torch.bfloat16).requires_grad_(False)
        self.layers = nn.ModuleList(Layer() for _ in range(LAYERS))
        self.head = nn.Linear(WIDTH, WORDS, bias=False, dtype=torch.bfloat16).requires_grad_(False)

    def forward(self, ids):
        x = self.embed(ids)
        for layer in self.layers:
            x = layer(x)
        return self.head(x)

    @contextmanager
    def disable_adapter(self):
        adapters = [m for m in self.modules() if isinstance(m, LoraLinear)]
        for adapter in adapters:
            adapter.enabled = False
        yield self
        for adapter in adapters:
            adapter.enabled = True


def sequence_logp(model, ids):
    logits = model(ids)[:, :-1]
    return -F.cross_entropy(logits.flatten(0, 1), ids[:, 1:].flatten(), reduction="none").view(len(ids), -1).float().sum(-1)


with torch.device("cuda"):
    model = Assistant()
ref_model = None if sys.argv[1] == "fixed" else copy.deepcopy(model).eval().requires_grad_(False)
optimizer = torch.optim.AdamW([p for p in model.parameters() if p.requires_grad], lr=5e-5)
for step in range(4):
    ids = torch.randint(0, WORDS, (4, 160), device="cuda")
    with torch.no_grad():
        if ref_model is not None:
            reference = sequence_logp(ref_model, ids)
        else:
            with model.disable_adapter() as base:
                reference = sequence_logp(base, ids)
    chosen, rejected = (sequence_logp(model, ids) - reference).chunk(2)
    loss = -F.logsigmoid(0.1 * (chosen - rejected)).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    print(step, torch.cuda.max_memory_allocated() >> 20, "MiB")
