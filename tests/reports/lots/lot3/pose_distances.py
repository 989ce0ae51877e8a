# SPDX-License-Identifier: Apache-2.0
"""Poses of symmetric objects are evaluated by the distance of each point to the nearest one of the true pose."""
import sys

import torch
from torch import nn


class PoseNet(nn.Module):
    def __init__(self, width=64):
        super().__init__()
        layers = []
        for a, b in ((6, width), (width, width), (width, 2 * width), (2 * width, 2 * width)):
            layers += [nn.Conv2d(a, b, 3, 2, 1), nn.BatchNorm2d(b), nn.ReLU()]
        self.body, self.head = nn.Sequential(*layers), nn.Linear(2 * width, 9)

    def forward(self, crops):
        out = self.head(self.body(crops).mean((2, 3)))
        pose = torch.eye(4, device=crops.device).repeat(len(crops), 1, 1)
        pose[:, :3, :2], pose[:, :3, 3] = out[:, :6].view(-1, 3, 2), out[:, 6:]
        return pose


def transform_pts(poses, points):
    return points @ poses[:, :3, :3].transpose(1, 2) + poses[:, None, :3, 3]


def dists_add(predicted, truth, points):
    return transform_pts(truth, points) - transform_pts(predicted, points)


def dists_add_symmetric(predicted, truth, points):
    a, b = transform_pts(predicted, points), transform_pts(truth, points)
    if sys.argv[1] == "fixed":
        nearest = torch.cdist(a, b).argmin(dim=2)
    else:
        dists = b.unsqueeze(1) - a.unsqueeze(2)
        norms_squared = (dists ** 2).sum(dim=-1)
        nearest = norms_squared.argmin(dim=2)
    return b.gather(1, nearest.unsqueeze(-1).expand(-1, -1, 3)) - a


class ErrorMeter:
    def __init__(self):
        self.errors = []

    def add(self, predicted, truth, points, symmetric):
        with torch.no_grad():
            distances = (dists_add_symmetric if symmetric else dists_add)(predicted, truth, points)
            self.errors.append(torch.linalg.norm(distances, dim=-1).mean(-1).cpu())


model, meter = PoseNet().cuda().eval(), ErrorMeter()
points = torch.rand(1, 2621, 3, device="cuda")
for i in range(4):
    crops, truth = torch.rand(8, 6, 240, 320, device="cuda"), torch.eye(4, device="cuda").repeat(8, 1, 1)
    with torch.no_grad():
        predicted = model(crops)
    meter.add(predicted, truth, points.expand(8, -1, -1), symmetric=i % 2 == 1)
    print(i, torch.cuda.max_memory_allocated() >> 20, "MiB")
