# SPDX-License-Identifier: Apache-2.0
"""News articles are summarized by an encoder and a decoder with beam search."""
import sys

import torch
import torch.nn.functional as F
from torch import nn

WORDS, WIDTH, HEADS, BEAM = 32000, 768, 12, 4


class Attention(nn.Module):
    def __init__(self):
        super().__init__()
        self.q, self.k, self.v, self.out = (nn.Linear(WIDTH, WIDTH) for _ in range(4))

    def split(self, x):
        return x.unflatten(-1, (HEADS, -1)).transpose(1, 2)

    def forward(self, x, state=None, static=None):
        q = self.split(self.q(x))
        if static is not None:
            if "k" not in state:
                state["k"], state["v"] = self.split(self.k(static)), self.split(self.v(static))
            k, v = state["k"], state["v"]
            if len(k) < len(q):
                q = q.unflatten(0, (len(k), -1)).squeeze(3).transpose(1, 2)
                o = F.scaled_dot_product_attention(q, k, v).transpose(1, 2).flatten(0, 1).unsqueeze(2)
                return self.out(o.transpose(1, 2).flatten(2))
        else:
            k, v = self.split(self.k(x)), self.split(self.v(x))
            if state is not None:
                if "k" in state:
                    k, v = torch.cat((state["k"], k), 2), torch.cat((state["v"], v), 2)
                state["k"], state["v"] = k, v
        return self.out(F.scaled_dot_product_attention(q, k, v).transpose(1, 2).flatten(2))


class Layer(nn.Module):
    def __init__(self, cross):
        super().__init__()
        self.attend, self.cross = Attention(), Attention() if cross else None
        self.mlp = nn.Sequential(nn.LayerNorm(WIDTH), nn.Linear(WIDTH, 4 * WIDTH), nn.GELU(), nn.Linear(4 * WIDTH, WIDTH))

    def forward(self, x, state=None, encoded=None):
        x = x + self.attend(x, state and state["self"])
        if self.cross:
            x = x + self.cross(x, state["cross"], encoded)
        return x + self.mlp(x)


class Summarizer(nn.Module):
    def __init__(self, layers=6):
        super().__init__()
        self.embed = nn.Embedding(WORDS, WIDTH)
        self.encoder = nn.ModuleList(Layer(False) for _ in range(layers))
        self.decoder = nn.ModuleList(Layer(True) for _ in range(layers))

    def encode(self, ids):
        x = self.embed(ids)
        for layer in self.encoder:
            x = layer(x)
        return x

    def decode(self, last, encoded, states):
        x = self.embed(last)[:, None]
        for layer, state in zip(self.decoder, states):
            x = layer(x, state, encoded)
        return (x[:, 0] @ self.embed.weight.T).log_softmax(-1)


@torch.no_grad()
def generate(model, articles, length=12):
    encoded, n = model.encode(articles), len(articles)
    if sys.argv[1] != "fixed":
        encoded = encoded.repeat_interleave(BEAM, 0)
    states = [{"self": {"k": torch.zeros(n * BEAM, HEADS, 0, WIDTH // HEADS, device="cuda", dtype=encoded.dtype),
                        "v": torch.zeros(n * BEAM, HEADS, 0, WIDTH // HEADS, device="cuda", dtype=encoded.dtype)}, "cross": {}} for _ in model.decoder]
    last, scores, words = torch.zeros(n * BEAM, dtype=torch.long, device="cuda"), torch.zeros(n, BEAM, 1, device="cuda"), []
    for _ in range(length):
        total = scores + model.decode(last, encoded, states).view(n, BEAM, WORDS)
        best, index = total.view(n, -1).topk(BEAM)
        scores, last = best[..., None], (index % WORDS).flatten()
        words.append(last.cpu())
    return torch.stack(words, -1)


model = Summarizer().half().cuda().eval()
for batch in range(3):
    articles = torch.randint(0, WORDS, (48, 1024), device="cuda")
    print(batch, generate(model, articles).shape, torch.cuda.max_memory_allocated() >> 20, "MiB")
