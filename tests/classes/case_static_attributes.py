# SPDX-License-Identifier: Apache-2.0
"""A decoder in the manner of the early open weights: caches are plain attributes of each attention, as large as the
longest text, and rotary angles a plain attribute of the model."""
import torch
from torch import nn
from torch.nn import functional as F

import runner
import truth


class Attention(nn.Module):
    def __init__(self, dim, heads, batch, length):
        super().__init__()
        self.heads, self.hd = heads, dim // heads
        self.wq, self.wk, self.wv, self.wo = (nn.Linear(dim, dim, bias=False) for _ in range(4))
        self.cache_k = torch.zeros((batch, length, heads, self.hd), dtype=torch.half).cuda()
        self.cache_v = torch.zeros((batch, length, heads, self.hd), dtype=torch.half).cuda()

    def forward(self, x, start, angles):
        b, s, d = x.shape
        q, k, v = (w(x).view(b, s, self.heads, self.hd) for w in (self.wq, self.wk, self.wv))
        q, k = q * angles[None, :, None], k * angles[None, :, None]
        self.cache_k[:b, start:start + s] = k
        self.cache_v[:b, start:start + s] = v
        keys, values = self.cache_k[:b, :start + s], self.cache_v[:b, :start + s]
        scores = torch.matmul(q.transpose(1, 2), keys.permute(0, 2, 3, 1)) / self.hd ** 0.5
        return self.wo(torch.matmul(F.softmax(scores.float(), -1).type_as(q), values.transpose(1, 2)).transpose(1, 2).reshape(b, s, d))


class Layer(nn.Module):
    def __init__(self, dim, heads, batch, length):
        super().__init__()
        self.attention = Attention(dim, heads, batch, length)
        self.w1, self.w2 = nn.Linear(dim, 3 * dim, bias=False), nn.Linear(3 * dim, dim, bias=False)

    def forward(self, x, start, angles):
        x = x + self.attention(x, start, angles)
        return x + self.w2(F.silu(self.w1(x)))


class Decoder(nn.Module):
    def __init__(self, words=8000, dim=768, layers=8, heads=12, batch=16, length=512):
        super().__init__()
        self.tok = nn.Embedding(words, dim)
        self.layers = nn.ModuleList(Layer(dim, heads, batch, length) for _ in range(layers))
        self.out = nn.Linear(dim, words, bias=False)
        self.angles = torch.outer(torch.arange(length).float(), torch.ones(dim // heads)).half()

    @torch.inference_mode()
    def forward(self, tokens, start):
        h = self.tok(tokens)
        self.angles = self.angles.to(h.device)
        angles = self.angles[start:start + tokens.shape[1]]
        for layer in self.layers:
            h = layer(h, start, angles)
        return self.out(h[:, -1]).float()


model = Decoder().half().cuda()
truth.model(model)
truth.holds("kv_cache", "cache_k and cache_v", lambda: [[l.attention.cache_k, l.attention.cache_v] for l in model.layers])
truth.holds("buffers", "angles", lambda: [model.angles], or_else=["kv_cache"])
tokens = torch.full((16, 300), 0).cuda().long()
truth.holds("inputs", "tokens", lambda: [tokens])
tokens[:, :200] = torch.randint(0, 8000, (16, 200), device="cuda")
start = 0
for now in range(200, 208):
    with truth.phase("forward"):
        logits = model.forward(tokens[:, start:now], start)
        tokens[:, now] = logits.argmax(-1)
    start = now
    truth.mark("token")
truth.finish()
