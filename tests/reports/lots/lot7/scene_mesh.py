# SPDX-License-Identifier: Apache-2.0
"""A signed distance field is learned from rays, and its surface is read out on a grid for a mesh."""
import sys

import torch
import torch.nn.functional as F
from torch import nn

RESOLUTION, RADIUS, CHUNK = 256, 1.5, 1 << 18


class VolumeSDF(nn.Module):
    def __init__(self, width=64):
        super().__init__()
        self.network = nn.Sequential(nn.Linear(39, width), nn.Softplus(100), nn.Linear(width, width), nn.Softplus(100), nn.Linear(width, 1))
        self.register_buffer("freqs", 2.0 ** torch.arange(6))

    def forward(self, points):
        x = (points[:, None] * self.freqs[:, None]).flatten(1)
        return self.network(torch.cat([points, x.sin(), x.cos()], dim=-1)).squeeze(-1)


class MarchingCubeHelper:
    def __init__(self, resolution):
        self.resolution, self.points = resolution, None

    def grid_vertices(self):
        if self.points is None:
            axis = torch.linspace(0, 1, self.resolution)
            self.points = torch.stack(torch.meshgrid(axis, axis, axis, indexing="ij"), dim=-1).view(-1, 3)
        return self.points

    def __call__(self, level):
        inside = level.view(self.resolution, self.resolution, self.resolution).cpu() < 0
        return sum((inside.narrow(d, 1, self.resolution - 1) != inside.narrow(d, 0, self.resolution - 1)).sum().item() for d in range(3))


def scale_anything(values, inp, out):
    return (values - inp[0]) / (inp[1] - inp[0]) * (out[1] - out[0]) + out[0]


def chunk_batch(func, chunk_size, move_to_cpu, points):
    outs = []
    for i in range(0, len(points), chunk_size):
        out = func(points[i:i + chunk_size].cuda())
        outs.append(out.cpu() if move_to_cpu else out)
    return torch.cat(outs)


@torch.no_grad()
def isosurface(geometry, helper):
    points = helper.grid_vertices()
    if sys.argv[1] != "fixed":
        points = points.cuda()
    points = scale_anything(points, (0, 1), (-RADIUS, RADIUS))
    level = chunk_batch(geometry, CHUNK, sys.argv[1] == "fixed", points)
    return helper(level)


geometry, helper = VolumeSDF().cuda(), MarchingCubeHelper(RESOLUTION)
optimizer = torch.optim.Adam(geometry.parameters(), lr=1e-3)
for step in range(12):
    points = (torch.rand(65536, 3) * 2 - 1).mul_(RADIUS).cuda().requires_grad_()
    sdf = geometry(points)
    normals = torch.autograd.grad(sdf.sum(), points, create_graph=True)[0]
    loss = F.l1_loss(sdf, points.norm(dim=-1) - 1.0) + 0.1 * (normals.norm(dim=-1) - 1).square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    if step % 6 == 5:
        print(step, loss.item(), "edges", isosurface(geometry, helper), torch.cuda.max_memory_allocated() >> 20, "MiB")
