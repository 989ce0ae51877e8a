# SPDX-License-Identifier: Apache-2.0
"""Training of a radiance field with a proposal network, and the rendering of whole views between."""
import sys
from collections import defaultdict

import torch
from torch import nn

MODE = sys.argv[1]
SAMPLES = (128, 64)


class Field(nn.Module):
    def __init__(self, width, out):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(6, width), nn.ReLU(), nn.Linear(width, width), nn.ReLU(), nn.Linear(width, out))

    def forward(self, x):
        return self.net(x)


class Radiance(nn.Module):
    def __init__(self):
        super().__init__()
        self.proposal, self.field = Field(16, 1), Field(64, 4)

    def sample(self, rays, n):
        t = torch.linspace(0.05, 4, n, device=rays.device).expand(len(rays), n)
        points = rays[:, None, :3] + rays[:, None, 3:] * t[..., None]
        return torch.cat([points, rays[:, None, 3:].expand_as(points)], -1), t

    def weigh(self, density):
        alpha = 1 - torch.exp(-density.relu() * 0.03)
        through = torch.cumprod(1 - alpha + 1e-7, -1)
        return alpha * through

    def forward(self, rays):
        coarse, t0 = self.sample(rays, SAMPLES[0])
        w0 = self.weigh(self.proposal(coarse)[..., 0])
        fine, t1 = self.sample(rays, SAMPLES[1])
        out = self.field(fine)
        w1 = self.weigh(out[..., 3])
        result = {"rgb": (w1[..., None] * out[..., :3].sigmoid()).sum(1), "depth": (w1 * t1).sum(1, keepdim=True)}
        if self.training or MODE == "broken":
            result["samples"], result["weights"] = torch.cat([coarse, fine], 1), torch.cat([w0, w1], 1)
        return result


@torch.no_grad()
def render(model, rays, chunk=4096):
    model.eval()
    outputs = defaultdict(list)
    for i in range(0, len(rays), chunk):
        for name, value in model(rays[i:i + chunk]).items():
            outputs[name].append(value)
    model.train()
    return {name: torch.cat(values) for name, values in outputs.items()}


def main():
    model = Radiance().cuda()
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
    rays = torch.randn(240 * 320, 6, device="cuda")
    truth = torch.rand(240 * 320, 3, device="cuda")
    for step in range(12):
        pick = torch.randint(len(rays), (4096,), device="cuda")
        out = model(rays[pick])
        loss = (out["rgb"] - truth[pick]).pow(2).mean() + 0.01 * out["weights"].pow(2).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if step % 6 == 5:
            image = render(model, rays)
            print("psnr", -10 * (image["rgb"] - truth).pow(2).mean().log10(), "far", image["depth"].max())


main()
