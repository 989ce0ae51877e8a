# SPDX-License-Identifier: Apache-2.0
"""Text as fast as it goes: weights of eight bits that are buffers, caches that are modules with buffers, made when the model
is set up for a length, a draft model that guesses ahead, a prompt in one pass."""
import torch
from torch import nn
from torch.nn import functional as F

import runner
import truth

torch.set_grad_enabled(False)
device, dtype = "cuda", torch.bfloat16


class Int8Linear(nn.Module):
    def __init__(self, cin, cout):
        super().__init__()
        self.register_buffer("weight", torch.empty((cout, cin), dtype=torch.int8))
        self.register_buffer("scales", torch.ones(cout, dtype=dtype))

    def forward(self, x):
        return F.linear(x, self.weight.to(dtype=x.dtype)) * self.scales


class KVCache(nn.Module):
    def __init__(self, batch, length, heads, dim):
        super().__init__()
        self.register_buffer("k_cache", torch.zeros((batch, heads, length, dim), dtype=dtype))
        self.register_buffer("v_cache", torch.zeros((batch, heads, length, dim), dtype=dtype))

    def update(self, pos, k, v):
        self.k_cache[:, :, pos] = k
        self.v_cache[:, :, pos] = v
        return self.k_cache, self.v_cache


class Attention(nn.Module):
    def __init__(self, width, heads, linear):
        super().__init__()
        self.wqkv, self.wo = linear(width, 3 * width), linear(width, width)
        self.heads, self.kv_cache = heads, None

    def forward(self, x, freqs, mask, pos):
        b, s, d = x.shape
        q, k, v = self.wqkv(x).view(b, s, 3, self.heads, -1).permute(2, 0, 3, 1, 4)
        q, k = q * freqs, k * freqs
        k, v = self.kv_cache.update(pos, k, v)
        y = F.scaled_dot_product_attention(q, k, v, attn_mask=mask)
        return self.wo(y.transpose(1, 2).reshape(b, s, d))


class Block(nn.Module):
    def __init__(self, width, heads, linear):
        super().__init__()
        self.attention = Attention(width, heads, linear)
        self.w1, self.w2, self.w3 = linear(width, 4 * width), linear(4 * width, width), linear(width, 4 * width)
        self.norm1, self.norm2 = nn.RMSNorm(width), nn.RMSNorm(width)

    def forward(self, x, freqs, mask, pos):
        h = x + self.attention(self.norm1(x), freqs, mask, pos)
        y = self.norm2(h)
        return h + self.w2(F.silu(self.w1(y)) * self.w3(y))


class Transformer(nn.Module):
    def __init__(self, width, layers, heads, linear, vocabulary=16000):
        super().__init__()
        self.tok_embeddings = nn.Embedding(vocabulary, width)
        self.layers = nn.ModuleList(Block(width, heads, linear) for _ in range(layers))
        self.norm, self.output = nn.RMSNorm(width), linear(width, vocabulary)
        self.dim = width // heads
        self.freqs = self.causal_mask = None

    def setup_caches(self, batch, length):
        for b in self.layers:
            b.attention.kv_cache = KVCache(batch, length, b.attention.heads, self.dim)
        self.freqs = torch.randn(length, self.dim, dtype=dtype)
        self.causal_mask = torch.tril(torch.ones(length, length, dtype=torch.bool))

    def forward(self, idx, pos):
        mask, freqs = self.causal_mask[None, None, pos], self.freqs[pos]
        x = self.tok_embeddings(idx)
        for layer in self.layers:
            x = layer(x, freqs, mask, pos)
        return self.output(self.norm(x))


def load(*args):
    with torch.device("meta"):
        model = Transformer(*args)
    return model.to_empty(device="cpu").to(device=device, dtype=dtype).eval()


def decode(model, x, pos):
    with truth.phase("forward"):
        logits = model(x, pos)[:, -1]
        v, _ = torch.topk(logits, 50)
        probs = F.softmax(torch.where(logits < v[:, -1:], -float("inf"), logits), dim=-1)
        return torch.argmax(probs / torch.empty_like(probs).exponential_(1), dim=-1, keepdim=True).to(torch.int)


def plain(cin, cout):
    return nn.Linear(cin, cout, bias=False)


model, draft = load(1024, 6, 16, Int8Linear), load(384, 3, 6, plain)
held = {}
for m in (model, draft):
    truth.model(m)
    truth.holds("buffers", "tables", lambda m=m: [m.freqs, m.causal_mask])
truth.holds("inputs", "the text", lambda: held, or_else=["forward_temporaries"])
with truth.phase("data"):
    held["prompt"] = prompt = torch.randint(0, 16000, (256,), dtype=torch.int).to(device)
with torch.device(device):
    for m in (model, draft):
        m.setup_caches(4, 1024)
with truth.phase("data"):
    held["seq"] = seq = torch.empty((4, 1024), dtype=torch.int, device=device)
    seq[:, :256] = prompt
    held["pos"] = pos = torch.arange(0, 256, device=device)
for m in (model, draft):
    token = decode(m, seq[:, :256], pos)
    truth.mark("prompt")
with truth.phase("data"):
    held["pos"] = pos = torch.tensor([256], device=device, dtype=torch.int)
held["token"] = token
for step in range(5):
    guesses = []
    for k in range(3):
        token = decode(draft, token, pos)
        guesses.append(token)
        pos += 1
    held["guesses"] = guesses
    truth.mark("guessed")
    with truth.phase("data"):
        held["all"] = torch.cat(guesses, 1)
        held["where"] = where = torch.arange(256 + step, 259 + step, device=device)
    held["token"] = token = decode(model, held["all"], where)
    seq[:, 257 + step:258 + step] = token
    truth.mark("checked")
truth.finish()
