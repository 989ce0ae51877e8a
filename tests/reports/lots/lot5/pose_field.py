# SPDX-License-Identifier: Apache-2.0
"""A radiance field and the poses of its cameras are optimized together; a step takes some random pixels of all views."""
import sys

import torch
import torch.nn.functional as F
from torch import nn

VIEWS, HEIGHT, WIDTH, RAYS, SAMPLES = 80, 320, 400, 2048, 48


def skew(w):
    zero = torch.zeros_like(w[..., 0])
    a, b, c = w.unbind(-1)
    return torch.stack([zero, -c, b, c, zero, -a, -b, a, zero], -1).unflatten(-1, (3, 3))


def se3_to_pose(se3):
    rotation = torch.eye(3, device=se3.device) + skew(se3[:, :3])
    return torch.cat([rotation, se3[:, 3:, None]], -1)


def pixel_grid():
    y, x = torch.meshgrid(torch.arange(HEIGHT, device="cuda") + 0.5, torch.arange(WIDTH, device="cuda") + 0.5, indexing="ij")
    grid = torch.stack([x, y], -1).view(-1, 2)
    return torch.cat([grid, torch.ones_like(grid[:, :1])], -1)


def get_center_and_ray(pose, intrinsics, ray_idx):
    grid = pixel_grid()
    if sys.argv[1] == "fixed":
        grid = grid[ray_idx]
    grid = grid.expand(len(pose), -1, -1)
    camera = grid @ intrinsics.inverse().transpose(-1, -2)
    rotation, translation = pose[..., :3], pose[..., 3:].transpose(-1, -2)
    world = camera @ rotation.transpose(-1, -2) + translation
    center = torch.zeros_like(camera) @ rotation.transpose(-1, -2) + translation
    ray = world - center
    if sys.argv[1] == "fixed":
        return center, ray
    return center[:, ray_idx], ray[:, ray_idx]


class Field(nn.Module):
    def __init__(self, width=64, bands=6):
        super().__init__()
        self.register_buffer("bands", 2.0 ** torch.arange(bands))
        self.layers = nn.Sequential(nn.Linear(6 * bands, width), nn.ReLU(), nn.Linear(width, width), nn.ReLU(), nn.Linear(width, 4))

    def forward(self, points):
        phases = (points[..., None] * self.bands).flatten(-2)
        rgb, density = self.layers(torch.cat([phases.sin(), phases.cos()], -1)).split([3, 1], -1)
        return rgb.sigmoid(), F.softplus(density)


def render(field, center, ray, near=1.0, far=5.0):
    depth = near + (far - near) * torch.rand(*ray.shape[:2], SAMPLES, 1, device="cuda").sort(2).values
    rgb, density = field(center[:, :, None] + ray[:, :, None] * depth)
    alpha = 1 - (-density * (far - near) / SAMPLES).exp()
    weights = alpha * torch.cumprod(1 - alpha + 1e-10, 2)
    return (weights * rgb).sum(2)


images = torch.zeros(VIEWS, HEIGHT * WIDTH, 3)
intrinsics = torch.tensor([[400.0, 0, WIDTH / 2], [0, 400.0, HEIGHT / 2], [0, 0, 1]], device="cuda").expand(VIEWS, 3, 3)
field, se3 = Field().cuda(), nn.Parameter(torch.zeros(VIEWS, 6, device="cuda"))
optimizer = torch.optim.Adam([{"params": field.parameters()}, {"params": [se3], "lr": 3e-3}], lr=5e-4)
for step in range(8):
    ray_idx = torch.randperm(HEIGHT * WIDTH)[:RAYS // VIEWS]
    center, ray = get_center_and_ray(se3_to_pose(se3), intrinsics, ray_idx.cuda())
    loss = F.mse_loss(render(field, center, ray), images[:, ray_idx].cuda())
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    print(step, torch.cuda.max_memory_allocated() >> 20, "MiB")
