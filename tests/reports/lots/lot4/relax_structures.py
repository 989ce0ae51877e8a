# SPDX-License-Identifier: Apache-2.0
"""Crystal structures are relaxed with L-BFGS; a network gives the energy, and the forces are its gradient."""
import sys
from dataclasses import dataclass

import torch
from torch import nn

SYSTEMS, ATOMS, NEIGHBOURS = 192, 96, 12


class EnergyModel(nn.Module):
    def __init__(self, width=64):
        super().__init__()
        self.edge = nn.Sequential(nn.Linear(16, width), nn.SiLU(), nn.Linear(width, width), nn.SiLU(), nn.Linear(width, 1))
        self.register_buffer("centres", torch.linspace(0, 6, 16))

    def forward(self, positions, source, target):
        distances = (positions[source] - positions[target]).pow(2).sum(-1).add(1e-6).sqrt()
        return self.edge(torch.exp(-(distances[:, None] - self.centres) ** 2)).sum()


@dataclass
class State:
    positions: torch.Tensor
    forces: torch.Tensor
    s_history: torch.Tensor
    y_history: torch.Tensor


def forces_of(model, positions, edges):
    if not positions.requires_grad:
        positions.requires_grad_(True)
    energy = model(positions, *edges)
    return -torch.autograd.grad(energy, positions)[0]


def lbfgs_init(model, positions, edges):
    empty = positions.new_zeros(0, *positions.shape)
    return State(positions, forces_of(model, positions, edges), empty, empty)


def lbfgs_step(state, model, edges, memory=10, step=0.1):
    q, alphas = -state.forces, []
    for s, y in zip(reversed(state.s_history), reversed(state.y_history)):
        alpha = (s * q).sum() / ((s * y).sum() + 1e-8)
        q = q - alpha * y
        alphas.append(alpha)
    for (s, y), alpha in zip(zip(state.s_history, state.y_history), reversed(alphas)):
        beta = (y * q).sum() / ((s * y).sum() + 1e-8)
        q = q + s * (alpha - beta)
    positions = state.positions - step * q
    if sys.argv[1] == "fixed":
        positions = positions.detach()
    forces = forces_of(model, positions, edges)
    s_new, y_new = positions - state.positions, state.forces - forces
    if sys.argv[1] == "fixed":
        s_new, y_new = s_new.detach(), y_new.detach()
    s_history = torch.cat([state.s_history, s_new.unsqueeze(0)])[-memory:]
    y_history = torch.cat([state.y_history, y_new.unsqueeze(0)])[-memory:]
    return State(positions, forces, s_history, y_history)


model = EnergyModel().cuda().eval().requires_grad_(False)
atoms = SYSTEMS * ATOMS
edges = torch.arange(atoms).repeat_interleave(NEIGHBOURS).cuda(), torch.randint(0, atoms, (atoms * NEIGHBOURS,)).cuda()
state = lbfgs_init(model, torch.rand(atoms, 3, device="cuda") * 20, edges)
for step in range(40):
    state = lbfgs_step(state, model, edges)
    if step % 10 == 9:
        print(step, torch.cuda.memory_allocated() >> 20, "MiB")
