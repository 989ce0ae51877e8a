# SPDX-License-Identifier: Apache-2.0
"""Molecular dynamics of a crystal with forces of a graph network, in the canonical ensemble (Langevin)."""
import sys
from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import nn

ATOMS, NEIGHBORS, WIDTH, LAYERS, STEPS, DT, KT, GAMMA = 512, 24, 64, 2, 60, 1e-3, 0.026, 0.5


class Interaction(nn.Module):
    def __init__(self):
        super().__init__()
        self.filter = nn.Sequential(nn.Linear(32, WIDTH), nn.SiLU(), nn.Linear(WIDTH, WIDTH))
        self.update = nn.Sequential(nn.Linear(WIDTH, WIDTH), nn.SiLU(), nn.Linear(WIDTH, WIDTH))

    def forward(self, h, neighbors, rbf):
        return h + self.update((h[neighbors] * self.filter(rbf)).sum(1))


class ForceNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.species, self.layers = nn.Embedding(100, WIDTH), nn.ModuleList(Interaction() for _ in range(LAYERS))
        self.energy_head = nn.Sequential(nn.Linear(WIDTH, WIDTH), nn.SiLU(), nn.Linear(WIDTH, 1))
        self.force_head = nn.Sequential(nn.Linear(2 * WIDTH, WIDTH), nn.SiLU(), nn.Linear(WIDTH, 1))

    def forward(self, numbers, positions, neighbors):
        vectors = positions[neighbors] - positions[:, None]
        distances = vectors.norm(dim=-1, keepdim=True) + 1e-6
        rbf = torch.exp(-4 * (distances - torch.linspace(0, 6, 32, device=positions.device)) ** 2)
        h = self.species(numbers)
        for layer in self.layers:
            h = layer(h, neighbors, rbf)
        pairs = torch.cat([h[:, None].expand(-1, NEIGHBORS, -1), h[neighbors]], -1)
        return {"energy": self.energy_head(h).sum(), "forces": (self.force_head(pairs) * vectors / distances).sum(1)}


class ModelWrapper:
    def __init__(self, model):
        self.model = model

    def __call__(self, state):
        predictions = self.model(state.numbers, state.positions.detach(), state.neighbors)
        results = {"energy": predictions["energy"], "forces": predictions["forces"]}
        if sys.argv[1] == "fixed":
            results = {name: value.detach() for name, value in results.items()}
        return results


@dataclass
class SimState:
    numbers: torch.Tensor
    positions: torch.Tensor
    momenta: torch.Tensor
    neighbors: torch.Tensor
    masses: torch.Tensor
    energy: torch.Tensor = None
    forces: torch.Tensor = None


def langevin_step(state, model):
    state.momenta = state.momenta + 0.5 * DT * state.forces
    state.positions = state.positions + DT * state.momenta / state.masses
    results = model(state)
    state.energy, state.forces = results["energy"], results["forces"]
    decay = 1 - GAMMA * DT
    noise = torch.randn_like(state.positions) * (KT * 2 * GAMMA * DT * state.masses) ** 0.5
    state.momenta = decay * (state.momenta + 0.5 * DT * state.forces) + noise
    return state


positions = torch.rand(ATOMS, 3) * 20
neighbors = torch.cdist(positions, positions).topk(NEIGHBORS + 1, largest=False)[1][:, 1:]
state = SimState(torch.full((ATOMS,), 14).cuda(), positions.cuda(), torch.zeros(ATOMS, 3).cuda(), neighbors.cuda(), torch.full((ATOMS, 1), 28.1).cuda())
model = ModelWrapper(ForceNet().cuda().eval())
results = model(state)
state.energy, state.forces = results["energy"], results["forces"]
for step in range(STEPS):
    state = langevin_step(state, model)
    if step % 10 == 9:
        print(step, state.energy.item(), torch.cuda.memory_allocated() >> 20, "MiB, most", torch.cuda.max_memory_allocated() >> 20)
