# SPDX-License-Identifier: Apache-2.0
"""Scoring of long padded prompts with a decoder, many at a time."""
import sys

import torch
import torch.nn.functional as F
from torch import nn

MODE = sys.argv[1]
WIDTH, HEADS, MAX_LENGTH = 256, 4, 4096


class Attention(nn.Module):
    def __init__(self):
        super().__init__()
        self.qkv, self.out = nn.Linear(WIDTH, 3 * WIDTH), nn.Linear(WIDTH, WIDTH)

    def forward(self, x, mask):
        q, k, v = (t.unflatten(-1, (HEADS, -1)).transpose(1, 2) for t in self.qkv(x).chunk(3, -1))
        y = F.scaled_dot_product_attention(q, k, v, attn_mask=mask)
        return self.out(y.transpose(1, 2).flatten(2))


class Layer(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm1, self.norm2, self.attention = nn.LayerNorm(WIDTH), nn.LayerNorm(WIDTH), Attention()
        self.mlp = nn.Sequential(nn.Linear(WIDTH, 2 * WIDTH), nn.GELU(), nn.Linear(2 * WIDTH, WIDTH))

    def forward(self, x, mask):
        x = x + self.attention(self.norm1(x), mask)
        return x + self.mlp(self.norm2(x))


class Decoder(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed = nn.Embedding(1000, WIDTH)
        self.layers = nn.ModuleList(Layer() for _ in range(4))
        self.head = nn.Linear(WIDTH, 1)
        causal = torch.triu(torch.ones(MAX_LENGTH, MAX_LENGTH, dtype=torch.bool), 1)
        self.register_buffer("causal_mask", causal, persistent=False)

    def update_mask(self, keep, dtype):
        low = torch.finfo(dtype).min
        if MODE == "fixed":
            mask = (self.causal_mask[None, None].to(dtype) * low).expand(len(keep), 1, -1, -1)
        else:
            mask = self.causal_mask[None, None].repeat(len(keep), 1, 1, 1).to(dtype) * low
        if not bool((~keep).any()):
            return mask
        return mask.masked_fill(~keep[:, None, None, :], low)

    def forward(self, tokens, keep):
        x = self.embed(tokens)
        mask = self.update_mask(keep, x.dtype)
        for layer in self.layers:
            x = layer(x, mask)
        return self.head(x)[..., 0]


@torch.no_grad()
def main():
    model = Decoder().cuda().to(torch.bfloat16)
    for _ in range(3):
        tokens = torch.randint(1000, (16, MAX_LENGTH), device="cuda")
        keep = torch.ones(16, MAX_LENGTH, dtype=torch.bool, device="cuda")
        print(model(tokens, keep)[:, -1].shape)


main()
