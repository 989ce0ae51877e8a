# SPDX-License-Identifier: Apache-2.0
"""A language model writes essays with contrastive search: of the likeliest next words, the one that repeats least is taken."""
import sys

import torch
import torch.nn.functional as F
from torch import nn

VOCAB, WIDTH, HEADS, LAYERS, BATCH, PROMPT, NEW, TOP_K, ALPHA = 8_000, 512, 8, 8, 4, 480, 12, 6, 0.6


class Layer(nn.Module):
    def __init__(self):
        super().__init__()
        self.ln1, self.ln2 = nn.LayerNorm(WIDTH), nn.LayerNorm(WIDTH)
        self.qkv, self.proj = nn.Linear(WIDTH, 3 * WIDTH), nn.Linear(WIDTH, WIDTH)
        self.mlp = nn.Sequential(nn.Linear(WIDTH, 4 * WIDTH), nn.GELU(), nn.Linear(4 * WIDTH, WIDTH))

    def forward(self, x, past):
        q, k, v = (t.unflatten(-1, (HEADS, -1)).transpose(1, 2) for t in self.qkv(self.ln1(x)).chunk(3, -1))
        if past is not None:
            k, v = torch.cat([past[0], k], 2), torch.cat([past[1], v], 2)
        y = F.scaled_dot_product_attention(q, k, v, is_causal=past is None)
        x = x + self.proj(y.transpose(1, 2).flatten(2))
        return x + self.mlp(self.ln2(x)), (k, v)


class Decoder(nn.Module):
    def __init__(self):
        super().__init__()
        self.wte, self.wpe = nn.Embedding(VOCAB, WIDTH), nn.Embedding(1024, WIDTH)
        self.layers, self.ln = nn.ModuleList(Layer() for _ in range(LAYERS)), nn.LayerNorm(WIDTH)

    def forward(self, ids, past=None):
        start = 0 if past is None else past[0][0].shape[2]
        x, present = self.wte(ids) + self.wpe.weight[start:start + ids.shape[1]], []
        for i, layer in enumerate(self.layers):
            x, kv = layer(x, past[i] if past else None)
            present.append(kv)
        hidden = self.ln(x)
        return hidden, hidden[:, -1] @ self.wte.weight.T, present


def rank(context, candidates, probs):
    sim = (F.normalize(context, dim=-1) @ F.normalize(candidates, dim=-1).transpose(1, 2)).amax(1)
    return ((1 - ALPHA) * probs - ALPHA * sim).argmax(-1)


@torch.no_grad()
def contrastive_search(model, ids, low_memory):
    context, logits, past = model(ids)
    for _ in range(NEW):
        probs, top = logits.softmax(-1).topk(TOP_K)
        if low_memory:
            hidden = torch.stack([model(top[:, i:i + 1], past)[0][:, 0] for i in range(TOP_K)], 1)
            token = top.gather(1, rank(context, hidden, probs)[:, None])
            last, logits, past = model(token, past)
        else:
            past = [(k.repeat_interleave(TOP_K, 0), v.repeat_interleave(TOP_K, 0)) for k, v in past]
            hidden, logits, past = model(top.reshape(-1, 1), past)
            best = rank(context, hidden.view(BATCH, TOP_K, WIDTH), probs)
            token = top.gather(1, best[:, None])
            rows = torch.arange(BATCH, device=ids.device) * TOP_K + best
            last, logits = hidden[rows], logits[rows]
            past = [(k[rows], v[rows]) for k, v in past]
        context, ids = torch.cat([context, last], 1), torch.cat([ids, token], 1)
    return ids


model = Decoder().cuda().eval()
for request in range(3):
    prompts = torch.randint(0, VOCAB, (BATCH, PROMPT)).cuda()
    essays = contrastive_search(model, prompts, low_memory=sys.argv[1] == "fixed")
    print("request", request, tuple(essays.shape), torch.cuda.max_memory_allocated() >> 20, "MiB")
