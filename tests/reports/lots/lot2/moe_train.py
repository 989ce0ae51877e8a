# SPDX-License-Identifier: Apache-2.0
"""Pre-training of a small mixture-of-experts language model with an auxiliary loss for the router."""
import sys

import torch
import torch.nn.functional as F
from torch import nn

LAYERS, EXPERTS, TOP, WIDTH, VOCABULARY = 16, 128, 8, 128, 8192
BY_LAYER = sys.argv[1] == "fixed"


class Experts(nn.Module):
    def __init__(self):
        super().__init__()
        self.gate = nn.Linear(WIDTH, EXPERTS, bias=False)
        self.up = nn.Parameter(torch.randn(EXPERTS, WIDTH, WIDTH) * 0.02)
        self.down = nn.Parameter(torch.randn(EXPERTS, WIDTH, WIDTH) * 0.02)

    def forward(self, x):
        tokens = x.reshape(-1, WIDTH)
        logits = self.gate(tokens)
        weights, chosen = torch.topk(F.softmax(logits, -1), TOP, dim=-1)
        order = chosen.flatten().argsort(stable=True)
        rows = order // TOP
        h = tokens[rows].view(EXPERTS, -1, WIDTH)
        h = torch.bmm(F.relu(torch.bmm(h, self.up)), self.down).view(-1, WIDTH)
        h = h * weights.flatten()[order][:, None]
        return torch.zeros_like(tokens).index_add(0, rows, h).view_as(x), logits


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed = nn.Embedding(VOCABULARY, WIDTH)
        self.mix = nn.ModuleList(nn.Linear(WIDTH, WIDTH) for _ in range(LAYERS))
        self.experts = nn.ModuleList(Experts() for _ in range(LAYERS))
        self.head = nn.Linear(WIDTH, VOCABULARY, bias=False)

    def forward(self, ids):
        x, gates = self.embed(ids), []
        for mix, experts in zip(self.mix, self.experts):
            y, logits = experts(F.layer_norm(x + mix(x), (WIDTH,)))
            x = x + y
            gates.append(logits)
        return self.head(x), gates


def load_balancing_loss(gate_logits):
    if BY_LAYER:
        share, probability = 0.0, 0.0
        for logits in gate_logits:
            p = F.softmax(logits, dim=-1)
            _, selected = torch.topk(p, TOP, dim=-1)
            counts = F.one_hot(selected.flatten(), EXPERTS).sum(0).view(1, EXPERTS)
            share = share + counts.float() / (len(logits) * LAYERS)
            probability = probability + p.mean(0) / LAYERS
        return EXPERTS * (share * probability[None]).sum()
    joined = torch.cat(gate_logits, dim=0)
    p = F.softmax(joined, dim=-1)
    _, selected = torch.topk(p, TOP, dim=-1)
    mask = F.one_hot(selected, EXPERTS)
    share = torch.mean(mask.float(), dim=0)
    return EXPERTS * (share * p.mean(0)[None]).sum()


with torch.device("cuda"):
    model = Model()
optimizer = torch.optim.AdamW(model.parameters(), lr=3e-4)
for step in range(2):
    ids = torch.randint(0, VOCABULARY, (4, 1025), device="cuda")
    logits, gates = model(ids[:, :-1])
    loss = F.cross_entropy(logits.reshape(-1, VOCABULARY), ids[:, 1:].reshape(-1))
    loss = loss + 0.01 * load_balancing_loss(gates)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    print(step, torch.cuda.max_memory_allocated() >> 20, "MiB")
