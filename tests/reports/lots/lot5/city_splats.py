# SPDX-License-Identifier: Apache-2.0
"""A city block is reconstructed as Gaussians from photographs of a drone."""
import random
import sys

import torch
from torch import nn

PHOTOS, HEIGHT, WIDTH, POINTS = 110, 540, 960, 60000


class Camera:
    def __init__(self, uid, image, data_device):
        self.uid, self.image_height, self.image_width = uid, image.shape[1], image.shape[2]
        self.original_image = image.clamp(0.0, 1.0).to(data_device)
        self.world_view = torch.eye(4).cuda()
        self.world_view[3, 2] = 4.0


class GaussianModel(nn.Module):
    def __init__(self):
        super().__init__()
        self.xyz = nn.Parameter(torch.rand(POINTS, 3) - 0.5)
        self.features = nn.Parameter(torch.rand(POINTS, 16, 3))
        self.scaling, self.rotation = nn.Parameter(torch.zeros(POINTS, 3)), nn.Parameter(torch.zeros(POINTS, 4))
        self.opacity = nn.Parameter(torch.zeros(POINTS, 1))


def render(camera, gaussians):
    points = torch.cat([gaussians.xyz, torch.ones_like(gaussians.xyz[:, :1])], 1) @ camera.world_view
    depth = points[:, 2:3].clamp(min=0.1)
    x = ((points[:, 0:1] / depth + 0.5) * camera.image_width).long().clamp(0, camera.image_width - 1)
    y = ((points[:, 1:2] / depth + 0.5) * camera.image_height).long().clamp(0, camera.image_height - 1)
    size = gaussians.scaling.exp().prod(1, keepdim=True) * nn.functional.normalize(gaussians.rotation).norm(dim=1, keepdim=True)
    weight = gaussians.opacity.sigmoid() * size * (-depth).exp()
    color = gaussians.features.mean(1) * weight
    canvas = torch.zeros(camera.image_height * camera.image_width, 3, device="cuda")
    canvas = canvas.index_add(0, (y * camera.image_width + x).flatten(), color)
    return canvas.T.reshape(3, camera.image_height, camera.image_width)


def load_cameras(data_device):
    return [Camera(uid, torch.rand(3, HEIGHT, WIDTH), data_device) for uid in range(PHOTOS)]


cameras = load_cameras("cpu" if sys.argv[1] == "fixed" else "cuda")
gaussians = GaussianModel().cuda()
optimizer = torch.optim.Adam(gaussians.parameters(), lr=1e-3, eps=1e-15)
for iteration in range(1, 61):
    camera = random.choice(cameras)
    image = render(camera, gaussians)
    loss = (image - camera.original_image.cuda()).abs().mean()
    loss.backward()
    optimizer.step()
    optimizer.zero_grad(set_to_none=True)
    if iteration % 20 == 0:
        print(iteration, torch.cuda.max_memory_allocated() >> 20, "MiB")
