# SPDX-License-Identifier: Apache-2.0
"""Speech to text by beam search: an encoder runs once, the decoder keeps keys and values of it and of the words so far
in dictionaries by layer, and the beams that win are taken over by index_select."""
import torch
import torch.nn.functional as F
from torch import nn

import runner  # noqa: F401
import truth


class Attention(nn.Module):
    def __init__(self, d, heads):
        super().__init__()
        self.heads = heads
        self.q, self.k, self.v, self.o = (nn.Linear(d, d) for _ in range(4))

    def split(self, x):
        return x.view(*x.shape[:2], self.heads, -1).transpose(1, 2)

    def forward(self, x, source=None, past=None):
        q = self.split(self.q(x))
        if source is not None:
            if past is None:
                past = (self.split(self.k(source)).contiguous(), self.split(self.v(source)).contiguous())
            k, v = past
        else:
            k, v = self.split(self.k(x)), self.split(self.v(x))
            if past is not None:
                k, v = torch.cat([past[0], k], 2), torch.cat([past[1], v], 2)
            past = (k, v)
        y = F.scaled_dot_product_attention(q, k, v)
        return self.o(y.transpose(1, 2).flatten(2)), past


class Layer(nn.Module):
    def __init__(self, d, heads, cross):
        super().__init__()
        self.n1, self.n2, self.n3 = nn.LayerNorm(d), nn.LayerNorm(d), nn.LayerNorm(d)
        self.self_attn = Attention(d, heads)
        self.cross_attn = Attention(d, heads) if cross else None
        self.mlp = nn.Sequential(nn.Linear(d, 4 * d), nn.GELU(), nn.Linear(4 * d, d))

    def forward(self, x, source=None, past=None):
        past = past or {}
        a, kept = self.self_attn(self.n1(x), past=past.get("self"))
        x = x + a
        new = {"self": kept}
        if self.cross_attn is not None:
            a, new["cross"] = self.cross_attn(self.n2(x), source, past.get("cross"))
            x = x + a
        return x + self.mlp(self.n3(x)), new


class Model(nn.Module):
    def __init__(self, d=512, heads=8, layers=4, vocabulary=16000):
        super().__init__()
        self.conv1 = nn.Conv1d(80, d, 3, padding=1)
        self.conv2 = nn.Conv1d(d, d, 3, stride=2, padding=1)
        self.encoder = nn.ModuleList(Layer(d, heads, False) for _ in range(layers))
        self.tokens = nn.Embedding(vocabulary, d)
        self.places = nn.Parameter(torch.zeros(448, d))
        self.decoder = nn.ModuleList(Layer(d, heads, True) for _ in range(layers))
        self.norm = nn.LayerNorm(d)

    def encode(self, mel):
        x = F.gelu(self.conv2(F.gelu(self.conv1(mel)))).transpose(1, 2)
        for layer in self.encoder:
            x, _ = layer(x)
        return x

    def forward(self, ids, source, past=None):
        at = past[0]["self"][0].shape[2] if past else 0
        x = self.tokens(ids) + self.places[at:at + ids.shape[1]]
        new = []
        for i, layer in enumerate(self.decoder):
            x, kept = layer(x, source, past[i] if past else None)
            new.append(kept)
        return F.linear(self.norm(x[:, -1:]), self.tokens.weight), new


def reorder(past, order):
    return [{k: tuple(t.index_select(0, order) for t in kv) for k, kv in layer.items()} for layer in past]


@torch.inference_mode()
def beam_search(model, mel, beams=5, words=12):
    held["mel"] = mel
    with truth.phase("forward"):
        source = model.encode(mel).repeat_interleave(beams, 0)
    truth.mark("encoded")
    n = mel.shape[0] * beams
    with truth.phase("forward"):
        ids = torch.ones(n, 4, dtype=torch.long, device="cuda")
        scores = torch.zeros(n, device="cuda")
    past = None
    for step in range(words):
        with truth.phase("forward"):
            logits, past = model(ids if past is None else ids[:, -1:], source, past)
            logp = F.log_softmax(logits[:, -1].float(), -1) + scores[:, None]
            top, index = logp.view(-1, beams * logp.shape[-1]).topk(beams)
            scores = top.flatten()
            origin = (index // logp.shape[-1] + torch.arange(mel.shape[0], device="cuda")[:, None] * beams).flatten()
            ids = torch.cat([ids[origin], (index % logp.shape[-1]).view(-1, 1)], 1)
            past = reorder(past, origin)
            held["past"] = past
        if step % 3 == 2:
            truth.mark("word")
    held.clear()
    return ids.view(mel.shape[0], beams, -1)[:, 0].tolist()


held = {}
model = Model().half().cuda().eval()
truth.model(model)
truth.holds("inputs", "the spectra", lambda: [held.get("mel")])
truth.holds("kv_cache", "keys and values", lambda: held.get("past") or [])
for clip in range(3):
    with truth.phase("data"):
        mel = torch.randn(4, 80, 1500).to("cuda").half()
    beam_search(model, mel)
truth.finish()
