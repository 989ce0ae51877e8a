# SPDX-License-Identifier: Apache-2.0
"""Serving: `generate` of the transformers library in half precision, then a decoder of one's own that appends keys and
values to a list of tuples, layer by layer."""
import torch
from torch import nn
from torch.nn import functional as F
from transformers import GPT2Config, GPT2LMHeadModel, LogitsProcessor, LogitsProcessorList

import runner
import truth


class Own(nn.Module):
    def __init__(self, words=8000, width=768, layers=6, heads=12):
        super().__init__()
        self.heads = heads
        self.emb = nn.Embedding(words, width)
        self.qkv = nn.ModuleList([nn.Linear(width, 3 * width) for _ in range(layers)])
        self.mlp = nn.ModuleList([nn.Sequential(nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width)) for _ in range(layers)])
        self.out = nn.Linear(width, words)

    def forward(self, ids, past=None):
        x = self.emb(ids)
        presents = []
        for i, (qkv, mlp) in enumerate(zip(self.qkv, self.mlp)):
            b, s, d = x.shape
            q, k, v = qkv(x).view(b, s, 3, self.heads, d // self.heads).permute(2, 0, 3, 1, 4)
            if past is not None:
                k = torch.cat((past[i][0], k), dim=2)
                v = torch.cat((past[i][1], v), dim=2)
            presents.append((k, v))
            x = x + F.scaled_dot_product_attention(q, k, v, is_causal=past is None).transpose(1, 2).reshape(b, s, d)
            x = x + mlp(x)
        return self.out(x[:, -1]), presents


class Look(LogitsProcessor):
    def __call__(self, ids, scores):
        if ids.shape[1] % 4 == 0:
            truth.mark("generating")
        return scores


def caches():
    import gc
    return [[layer.keys, layer.values] for c in gc.get_objects() if type(c).__name__ == "DynamicCache" for layer in c.layers]


model = GPT2LMHeadModel(GPT2Config(vocab_size=8000, n_embd=768, n_layer=6, n_head=12)).to("cuda", dtype=torch.float16).eval()
own = Own().half().cuda().eval().requires_grad_(False)
truth.model(model)
truth.model(own)
truth.holds("kv_cache", "the library's cache", caches)
held, batch = [None], []
truth.holds("kv_cache", "keys and values", lambda: held)
truth.holds("inputs", "the prompt", lambda: batch)
with truth.phase("data"):
    prompt = torch.randint(0, 8000, (24, 200), device="cuda")
batch.append(prompt)
with truth.phase("forward"):
    model.generate(prompt, max_new_tokens=13, do_sample=False, logits_processor=LogitsProcessorList([Look()]), pad_token_id=0)
truth.mark("between")
with torch.inference_mode():
    with truth.phase("forward"):
        logits, held[0] = own(prompt)
    for _ in range(6):
        with truth.phase("forward"):
            token = logits.argmax(-1, keepdim=True)
            logits, held[0] = own(token, held[0])
        truth.mark("token")
truth.finish()
