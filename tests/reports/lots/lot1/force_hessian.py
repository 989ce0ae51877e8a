# SPDX-License-Identifier: Apache-2.0
"""A message-passing potential: forces of a molecule, and the second derivatives for its vibrations."""
import sys

import torch
from torch import nn

MODE = sys.argv[1]
ATOMS, WIDTH = 36, 128


class Interaction(nn.Module):
    def __init__(self):
        super().__init__()
        self.filter = nn.Sequential(nn.Linear(32, WIDTH), nn.SiLU(), nn.Linear(WIDTH, WIDTH))
        self.update = nn.Sequential(nn.Linear(WIDTH, WIDTH), nn.SiLU(), nn.Linear(WIDTH, WIDTH))

    def forward(self, h, rbf, src, dst):
        m = h[src] * self.filter(rbf)
        return h + self.update(torch.zeros_like(h).index_add(0, dst, m))


class Potential(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed = nn.Embedding(100, WIDTH)
        self.layers = nn.ModuleList(Interaction() for _ in range(3))
        self.energy = nn.Sequential(nn.Linear(WIDTH, 64), nn.SiLU(), nn.Linear(64, 1))
        self.register_buffer("centers", torch.linspace(0, 6, 32))

    def forward(self, z, pos, src, dst):
        r = (pos[src] - pos[dst]).pow(2).sum(-1).add(1e-9).sqrt()
        rbf = torch.exp(-4 * (r[:, None] - self.centers).pow(2))
        h = self.embed(z)
        for layer in self.layers:
            h = layer(h, rbf, src, dst)
        return self.energy(h).sum()


class Head:
    def __init__(self, model, hessian):
        self.model, self.hessian = model, hessian

    def compute_hessian(self, forces, pos, create_graph):
        rows = []
        for component in forces.view(-1):
            row = torch.autograd.grad(-component, pos, retain_graph=True, create_graph=create_graph)[0]
            rows.append(row.view(-1))
        return torch.stack(rows)

    def predict(self, z, pos, src, dst):
        pos = pos.clone().requires_grad_()
        energy = self.model(z, pos, src, dst)
        forces = -torch.autograd.grad(energy, pos, create_graph=self.hessian)[0]
        training = self.model.training if MODE == "fixed" else self.model.training or self.hessian
        out = {"energy": energy.detach(), "forces": forces.detach()}
        if self.hessian:
            out["hessian"] = self.compute_hessian(forces, pos, training).detach()
        return out


def main():
    model = Potential().cuda().eval()
    head = Head(model, hessian=True)
    pairs = torch.combinations(torch.arange(ATOMS)).T
    src, dst = torch.cat([pairs, pairs.flip(0)], 1).cuda()
    z = torch.randint(1, 9, (ATOMS,), device="cuda")
    for frame in range(2):
        out = head.predict(z, torch.rand(ATOMS, 3, device="cuda") * 8, src, dst)
        print(frame, out["hessian"].shape)


main()
