# SPDX-License-Identifier: Apache-2.0
"""A language model of our own is pretrained on short stories."""
import sys

import torch
import torch.nn.functional as F
from torch import nn

VOCAB, DIM, HEADS, LAYERS, CONTEXT = 32000, 1024, 16, 12, 128


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm1, self.norm2 = nn.RMSNorm(DIM), nn.RMSNorm(DIM)
        self.qkv, self.proj = nn.Linear(DIM, 3 * DIM, bias=False), nn.Linear(DIM, DIM, bias=False)
        self.gate, self.up, self.down = nn.Linear(DIM, 2816, bias=False), nn.Linear(DIM, 2816, bias=False), nn.Linear(2816, DIM, bias=False)

    def forward(self, x):
        q, k, v = self.qkv(self.norm1(x)).unflatten(-1, (3, HEADS, -1)).permute(2, 0, 3, 1, 4)
        x = x + self.proj(F.scaled_dot_product_attention(q, k, v, is_causal=True).transpose(1, 2).flatten(2))
        h = self.norm2(x)
        return x + self.down(F.silu(self.gate(h)) * self.up(h))


class GPT(nn.Module):
    def __init__(self):
        super().__init__()
        self.wte = nn.Embedding(VOCAB, DIM)
        self.blocks = nn.ModuleList(Block() for _ in range(LAYERS))
        self.norm, self.lm_head = nn.RMSNorm(DIM), nn.Linear(DIM, VOCAB, bias=False)

    def forward(self, ids):
        x = self.wte(ids)
        for block in self.blocks:
            x = block(x)
        return self.lm_head(self.norm(x))


def configure_optimizer(model):
    decay = [p for p in model.parameters() if p.dim() >= 2]
    rest = [p for p in model.parameters() if p.dim() < 2]
    groups = [{"params": decay, "weight_decay": 0.1}, {"params": rest, "weight_decay": 0.0}]
    if sys.argv[1] == "fixed":
        return torch.optim.AdamW(groups, lr=6e-4, betas=(0.9, 0.95), foreach=False)
    return torch.optim.AdamW(groups, lr=6e-4, betas=(0.9, 0.95))


with torch.device("cuda"):
    model = GPT()
optimizer = configure_optimizer(model)
for iteration in range(6):
    for micro in range(2):
        ids = torch.randint(0, VOCAB, (2, CONTEXT + 1), device="cuda")
        logits = model(ids[:, :-1])
        loss = F.cross_entropy(logits.flatten(0, 1), ids[:, 1:].flatten())
        (loss / 2).backward()
    torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    optimizer.step()
    optimizer.zero_grad(set_to_none=True)
    print(iteration, torch.cuda.max_memory_allocated() >> 20, "MiB")
