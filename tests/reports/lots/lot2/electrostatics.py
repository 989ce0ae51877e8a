# SPDX-License-Identifier: Apache-2.0
"""Molecular dynamics of many small boxes at once: learned charges, and their electrostatic energy in each box."""
import sys
import tempfile

import torch
from torch import nn

ATOMS, BOXES = 24000, 240


class Electrostatics(nn.Module):
    def __init__(self, boxes):
        super().__init__()
        self.register_buffer("energies", torch.zeros(boxes), persistent=False)

    def forward(self, positions, charges, pairs, box):
        i, j = pairs
        r = (positions[i] - positions[j]).pow(2).sum(-1).add(1e-3).sqrt()
        e = charges[i] * charges[j] * torch.erfc(0.4 * r) / r
        self.energies.zero_()
        self.energies.scatter_add_(0, box[i], e)
        out = self.energies.clone()
        if sys.argv[1] == "fixed":
            self.energies.detach_()
        return out


class Model(nn.Module):
    def __init__(self, width=384):
        super().__init__()
        self.element = nn.Embedding(16, width)
        self.charge = nn.Sequential(nn.Linear(width, width), nn.Tanh(), nn.Linear(width, width), nn.Tanh(), nn.Linear(width, 1))
        self.electrostatics = Electrostatics(BOXES)

    def forward(self, positions, z, pairs, box):
        positions = positions.detach().requires_grad_(True)
        charges = self.charge(self.element(z)).squeeze(-1)
        energy = self.electrostatics(positions, charges, pairs, box)
        forces = -torch.autograd.grad(energy.sum(), positions)[0]
        return energy.detach(), forces


model = Model().cuda()
z = torch.randint(0, 16, (ATOMS,), device="cuda")
box = torch.arange(ATOMS, device="cuda") // (ATOMS // BOXES)
first = torch.arange(ATOMS, device="cuda").repeat_interleave(2)
pairs = first, (first + torch.arange(1, 3, device="cuda").repeat(ATOMS)) % ATOMS
trajectory = []
positions, velocities = torch.randn(ATOMS, 3, device="cuda"), torch.zeros(ATOMS, 3, device="cuda")
for step in range(12):
    energy, forces = model(positions, z, pairs, box)
    velocities = velocities + 1e-3 * forces
    positions = positions + 1e-3 * velocities
    trajectory.append((energy.cpu(), positions.cpu()))
    if step % 3 == 2:
        print(step, torch.cuda.memory_allocated() >> 20, "MiB")
torch.save(trajectory, tempfile.TemporaryFile())
with torch.no_grad():
    charges = [model.charge(model.element(part)).sum().item() for part in z.chunk(40)]
print(len(charges))
