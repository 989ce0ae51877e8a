# SPDX-License-Identifier: Apache-2.0
"""Greedy completion of long prompts with a cache of keys and values."""
import sys
from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import nn

WIDTH, HEADS, LAYERS, VOCABULARY = 768, 12, 16, 8192


@dataclass
class Output:
    logits: torch.Tensor
    past: tuple


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.qkv, self.out = nn.Linear(WIDTH, 3 * WIDTH), nn.Linear(WIDTH, WIDTH)
        self.mlp = nn.Sequential(nn.Linear(WIDTH, 2 * WIDTH), nn.GELU(), nn.Linear(2 * WIDTH, WIDTH))
        self.n1, self.n2 = nn.LayerNorm(WIDTH), nn.LayerNorm(WIDTH)

    def forward(self, x, past):
        b, n, _ = x.shape
        q, k, v = self.qkv(self.n1(x)).view(b, n, 3, HEADS, -1).permute(2, 0, 3, 1, 4)
        if past is not None:
            k, v = torch.cat([past[0], k], 2), torch.cat([past[1], v], 2)
        else:
            k, v = k.contiguous(), v.contiguous()
        y = F.scaled_dot_product_attention(q, k, v, is_causal=past is None)
        x = x + self.out(y.transpose(1, 2).reshape(b, n, -1))
        return x + self.mlp(self.n2(x)), (k, v)


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed = nn.Embedding(VOCABULARY, WIDTH)
        self.blocks = nn.ModuleList(Block() for _ in range(LAYERS))
        self.head = nn.Linear(WIDTH, VOCABULARY, bias=False)

    def forward(self, ids, past=None):
        x, present = self.embed(ids), []
        for i, block in enumerate(self.blocks):
            x, kv = block(x, past[i] if past else None)
            present.append(kv)
        return Output(self.head(x).float(), tuple(present))


@torch.no_grad()
def generate(model, ids, new=16):
    past, step = None, ids
    for _ in range(new):
        outputs = model(step, past)
        scores = outputs.logits[:, -1, :].clone()
        past = outputs.past
        step = scores.argmax(-1, keepdim=True)
        ids = torch.cat([ids, step], 1)
        if sys.argv[1] == "fixed":
            del outputs
    return ids


with torch.device("cuda"):
    model = Model().bfloat16().eval()
for request in range(3):
    prompt = torch.randint(0, VOCABULARY, (10, 2048), device="cuda")
    print(request, generate(model, prompt).shape, torch.cuda.max_memory_allocated() >> 20, "MiB")
