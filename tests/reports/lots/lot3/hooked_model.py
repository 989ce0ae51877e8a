# SPDX-License-Identifier: Apache-2.0
"""A transformer for interpretability work: every attention pattern can be looked at, whatever the length of the prompt."""
import sys

import torch
from torch import nn

WIDTH, HEADS, CONTEXT = 512, 8, 8192


class Attention(nn.Module):
    def __init__(self):
        super().__init__()
        self.qkv, self.out = nn.Linear(WIDTH, 3 * WIDTH), nn.Linear(WIDTH, WIDTH)
        if sys.argv[1] != "fixed":
            self.register_buffer("mask", torch.tril(torch.ones(CONTEXT, CONTEXT).bool()))

    def causal(self, scores):
        n = scores.shape[-1]
        if sys.argv[1] == "fixed":
            mask = torch.tril(torch.ones(n, n, dtype=torch.bool, device=scores.device))
        else:
            mask = self.mask[:n, :n]
        return torch.where(mask, scores, torch.tensor(-1e5, device=scores.device))

    def forward(self, x, look):
        b, n, _ = x.shape
        q, k, v = self.qkv(x).view(b, n, 3, HEADS, -1).permute(2, 0, 3, 1, 4)
        pattern = self.causal(q @ k.transpose(-1, -2) / (WIDTH // HEADS) ** 0.5).softmax(-1)
        if look:
            look(pattern)
        return self.out((pattern @ v).transpose(1, 2).reshape(b, n, WIDTH))


class HookedTransformer(nn.Module):
    def __init__(self, layers=12):
        super().__init__()
        self.embed, self.position = nn.Embedding(32000, WIDTH), nn.Embedding(CONTEXT, WIDTH)
        self.attention = nn.ModuleList(Attention() for _ in range(layers))
        self.mlp = nn.ModuleList(nn.Sequential(nn.Linear(WIDTH, 4 * WIDTH), nn.GELU(), nn.Linear(4 * WIDTH, WIDTH))
                                 for _ in range(layers))

    def forward(self, ids, look=None):
        x = self.embed(ids) + self.position.weight[:ids.shape[1]]
        for attention, mlp in zip(self.attention, self.mlp):
            x = x + attention(x, look)
            x = x + mlp(x)
        return x @ self.embed.weight.T


torch.set_grad_enabled(False)
model = HookedTransformer().cuda().eval()
for length in (64, 256, 512):
    entropies = []
    model(torch.randint(0, 32000, (4, length), device="cuda"), lambda p: entropies.append(-(p * (p + 1e-9).log()).sum(-1).mean()))
    print(length, len(entropies), torch.cuda.max_memory_allocated() >> 20, "MiB")
