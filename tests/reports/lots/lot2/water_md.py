# SPDX-License-Identifier: Apache-2.0
"""Molecular dynamics with a deep potential: energy, forces and each atom's virial for a simulation program."""
import sys

import torch
from torch import nn

HIGHER = sys.argv[1] != "fixed"
ATOMS, NEIGHBOURS = 1500, 40


class DeepPotential(nn.Module):
    def __init__(self, width=64, layers=4):
        super().__init__()
        self.filters = nn.ModuleList(nn.Linear(1 if i == 0 else width, width) for i in range(layers))
        self.fit = nn.Sequential(nn.Linear(width * 4, 240), nn.Tanh(), nn.Linear(240, 240), nn.Tanh(), nn.Linear(240, 1))

    def forward(self, coordinates, neighbours):
        d = coordinates[neighbours] - coordinates[:, None]
        r = (d.pow(2).sum(-1, keepdim=True) + 1e-3).sqrt()
        g = 1 / r
        for layer in self.filters:
            h = torch.tanh(layer(g))
            g = h + g if h.shape == g.shape else h
        environment = torch.cat([1 / r, d / r.pow(2)], -1)
        descriptor = g.transpose(1, 2) @ environment / NEIGHBOURS
        return self.fit(descriptor.flatten(1)).squeeze(-1)


def derivatives(model, coordinates, neighbours):
    coordinates = coordinates.detach().requires_grad_(True)
    atomic = model(coordinates, neighbours)
    grad = torch.autograd.grad(atomic.sum(), coordinates, create_graph=HIGHER, retain_graph=True)[0]
    virial = grad[:, :, None] * coordinates[:, None]
    parts = []
    for axis in range(3):
        weighted = (atomic * coordinates.detach()[:, axis]).sum()
        parts.append(torch.autograd.grad(weighted, coordinates, create_graph=HIGHER, retain_graph=HIGHER or axis < 2)[0])
    virial = virial - torch.stack(parts, -1)
    return {"energy": atomic.sum(), "force": -grad, "atom_virial": virial}


model = DeepPotential().cuda().eval()
coordinates = torch.rand(ATOMS, 3, device="cuda") * 30
velocities = torch.zeros_like(coordinates)
offsets = torch.arange(1, NEIGHBOURS + 1, device="cuda")
for step in range(4):
    neighbours = (torch.arange(ATOMS, device="cuda")[:, None] + offsets) % ATOMS
    out = {k: v.detach() for k, v in derivatives(model, coordinates, neighbours).items()}
    velocities += 5e-4 * out["force"]
    coordinates += 5e-4 * velocities
    print(step, out["atom_virial"].shape, torch.cuda.max_memory_allocated() >> 20, "MiB")
with torch.no_grad():
    energies = [model(coordinates + 0.01 * torch.randn_like(coordinates), neighbours).sum().item() for _ in range(20)]
print(len(energies))
