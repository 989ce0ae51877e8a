# SPDX-License-Identifier: Apache-2.0
"""Encoding long recordings with a speech encoder whose attention knows relative positions (Transformer-XL)."""
import sys

import torch
import torch.nn.functional as F
from torch import nn

LOCAL = sys.argv[1] == "fixed"


class Attention(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.heads = heads
        self.qkv, self.pos, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width, bias=False), nn.Linear(width, width)
        self.u, self.v = nn.Parameter(torch.zeros(heads, 1, width // heads)), nn.Parameter(torch.zeros(heads, 1, width // heads))

    def rel_shift(self, x):
        b, h, t, p = x.shape
        return F.pad(x, (1, 0)).view(b, h, p + 1, t)[:, :, 1:].view(b, h, t, p)[..., :t]

    def score(self, scores, bias):
        return scores + bias

    def forward(self, x, positions):
        b, t, c = x.shape
        q, k, v = self.qkv(x).view(b, t, 3, self.heads, -1).permute(2, 0, 3, 1, 4)
        p = self.pos(positions).view(-1, self.heads, c // self.heads).transpose(0, 1)
        bias = self.rel_shift((q + self.v) @ p.transpose(-1, -2)).contiguous() * (c // self.heads) ** -0.5
        if not LOCAL:
            self.rel_pos_bias = bias
        y = F.scaled_dot_product_attention(q + self.u, k, v, attn_mask=bias)
        return self.out(y.transpose(1, 2).reshape(b, t, c))


class Encoder(nn.Module):
    def __init__(self, width=256, heads=8, layers=16):
        super().__init__()
        self.width = width
        self.subsample = nn.Sequential(nn.Conv1d(80, width, 3, 2, 1), nn.ReLU(), nn.Conv1d(width, width, 3, 2, 1))
        self.attention = nn.ModuleList(Attention(width, heads) for _ in range(layers))
        self.feed = nn.ModuleList(nn.Sequential(nn.LayerNorm(width), nn.Linear(width, 4 * width), nn.SiLU(),
                                                nn.Linear(4 * width, width)) for _ in range(layers))
        self.head = nn.Linear(width, 1025)

    def forward(self, mel):
        x = self.subsample(mel).transpose(1, 2)
        steps = torch.arange(x.shape[1] - 1, -x.shape[1], -1, device=x.device, dtype=torch.float)
        rates = torch.exp(torch.arange(0, self.width, 2, device=x.device) * (-9.21 / self.width))
        positions = torch.cat([torch.sin(steps[:, None] * rates), torch.cos(steps[:, None] * rates)], -1)
        for attention, feed in zip(self.attention, self.feed):
            x = x + attention(x, positions)
            x = x + feed(x)
        return self.head(x).log_softmax(-1)


model = Encoder().cuda().eval()
with torch.no_grad():
    for seconds in (10, 20, 30, 50):
        mel = torch.randn(2, 80, seconds * 100, device="cuda")
        tokens = model(mel).argmax(-1)
        print(seconds, tokens.shape, torch.cuda.max_memory_allocated() >> 20, "MiB")
