# SPDX-License-Identifier: Apache-2.0
"""A potential is trained on systems of very different sizes: a batch has as many systems as come, with as many edges as they have."""
import os
import random
import sys

if sys.argv[1] == "fixed":
    os.environ["PYTORCH_CUDA_ALLOC_CONF"] = "expandable_segments:True"

import torch
import torch.nn.functional as F
from torch import nn

WIDTH, RADIAL = 128, 32


class Interaction(nn.Module):
    def __init__(self):
        super().__init__()
        self.radial = nn.Sequential(nn.Linear(RADIAL, WIDTH), nn.SiLU(), nn.Linear(WIDTH, WIDTH))
        self.send = nn.Linear(WIDTH, WIDTH, bias=False)
        self.update = nn.Sequential(nn.Linear(WIDTH, 4 * WIDTH), nn.SiLU(), nn.Linear(4 * WIDTH, WIDTH))

    def forward(self, h, source, target, basis):
        messages = self.send(h)[source] * self.radial(basis)
        return h + self.update(torch.zeros_like(h).index_add(0, target, messages))


class Potential(nn.Module):
    def __init__(self, layers=4):
        super().__init__()
        self.embed = nn.Embedding(100, WIDTH)
        self.layers = nn.ModuleList(Interaction() for _ in range(layers))
        self.energy = nn.Linear(WIDTH, 1)

    def forward(self, kind, distances, source, target, system, systems):
        basis = torch.exp(-(distances[:, None] - torch.linspace(0, 6, RADIAL, device=distances.device)) ** 2)
        h = self.embed(kind)
        for layer in self.layers:
            h = layer(h, source, target, basis)
        return torch.zeros(systems, device=h.device).index_add(0, system, self.energy(h).squeeze(-1))


def batches(n):
    rng = random.Random(3)
    for _ in range(n):
        atoms = [rng.choice((rng.randint(8, 40), rng.randint(40, 220))) for _ in range(24)]
        nodes, edges = sum(atoms), sum(a * rng.randint(18, 46) for a in atoms)
        yield (torch.randint(0, 100, (nodes,)), torch.rand(edges) * 6, *torch.randint(0, nodes, (2, edges)),
               torch.repeat_interleave(torch.arange(24), torch.tensor(atoms)))


model = Potential().cuda()
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
for step, batch in enumerate(batches(34)):
    energy = model(*(t.cuda() for t in batch), systems=24)
    loss = F.l1_loss(energy, torch.rand(24, device="cuda"))
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    if step % 10 == 9:
        print(step, torch.cuda.max_memory_allocated() >> 20, "MiB used,", torch.cuda.memory_reserved() >> 20, "MiB reserved")
