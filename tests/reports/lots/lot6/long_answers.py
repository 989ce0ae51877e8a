# SPDX-License-Identifier: Apache-2.0
"""Answers are written by a language model whose query heads share keys and values in groups."""
import sys

import torch
import torch.nn.functional as F
from torch import nn

WORDS, WIDTH, HEADS, KV_HEADS, LAYERS, BATCH, CONTEXT = 16_000, 1024, 16, 2, 8, 8, 2048
DIM, GROUP = WIDTH // HEADS, HEADS // KV_HEADS
FIXED = sys.argv[1] == "fixed"


class KVCache(nn.Module):
    def __init__(self, batch, length, heads, dtype):
        super().__init__()
        self.register_buffer("k_cache", torch.zeros(batch, heads, length, DIM, dtype=dtype), persistent=False)
        self.register_buffer("v_cache", torch.zeros(batch, heads, length, DIM, dtype=dtype), persistent=False)
        self.size = 0

    def update(self, k, v):
        start, self.size = self.size, self.size + k.shape[2]
        self.k_cache[:, :, start:self.size], self.v_cache[:, :, start:self.size] = k, v
        return self.k_cache[:, :, :self.size], self.v_cache[:, :, :self.size]


class Attention(nn.Module):
    def __init__(self):
        super().__init__()
        self.q_proj, self.out = nn.Linear(WIDTH, WIDTH, bias=False), nn.Linear(WIDTH, WIDTH, bias=False)
        self.k_proj, self.v_proj = nn.Linear(WIDTH, KV_HEADS * DIM, bias=False), nn.Linear(WIDTH, KV_HEADS * DIM, bias=False)
        self.kv_cache = None

    def forward(self, x):
        q = self.q_proj(x).unflatten(-1, (HEADS, DIM)).transpose(1, 2)
        k, v = (f(x).unflatten(-1, (KV_HEADS, DIM)).transpose(1, 2) for f in (self.k_proj, self.v_proj))
        if not FIXED:
            k, v = (t[:, :, None].expand(-1, -1, GROUP, -1, -1).flatten(1, 2) for t in (k, v))
        k, v = self.kv_cache.update(k, v)
        causal = x.shape[1] > 1
        if FIXED and not causal:
            q = q.view(len(x), KV_HEADS, GROUP, DIM)
            y = F.scaled_dot_product_attention(q, k, v).view(len(x), HEADS, 1, DIM)
        else:
            y = F.scaled_dot_product_attention(q, k, v, is_causal=causal, enable_gqa=FIXED)
        return self.out(y.transpose(1, 2).flatten(2))


class Layer(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm1, self.norm2, self.attn = nn.RMSNorm(WIDTH), nn.RMSNorm(WIDTH), Attention()
        self.mlp = nn.Sequential(nn.Linear(WIDTH, 3 * WIDTH, bias=False), nn.SiLU(), nn.Linear(3 * WIDTH, WIDTH, bias=False))

    def forward(self, x):
        x = x + self.attn(self.norm1(x))
        return x + self.mlp(self.norm2(x))


class Decoder(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed, self.head = nn.Embedding(WORDS, WIDTH), nn.Linear(WIDTH, WORDS, bias=False)
        self.layers = nn.ModuleList(Layer() for _ in range(LAYERS))

    def setup_caches(self, batch, length, dtype):
        for layer in self.layers:
            layer.attn.kv_cache = KVCache(batch, length, KV_HEADS if FIXED else HEADS, dtype).cuda()

    def forward(self, ids):
        x = self.embed(ids)
        for layer in self.layers:
            x = layer(x)
        return self.head(x[:, -1])


model = Decoder().to("cuda", torch.bfloat16).eval()
model.setup_caches(BATCH, CONTEXT, torch.bfloat16)
with torch.inference_mode():
    ids = torch.randint(0, WORDS, (BATCH, 512)).cuda()
    for i in range(40):
        ids = model(ids).argmax(-1, keepdim=True)
print("written", torch.cuda.max_memory_allocated() >> 20, "MiB")
