# SPDX-License-Identifier: Apache-2.0
"""A field of light learned from pictures: all rays lie on the device and are taken in turn, two networks in chunks, encodings
by lambdas, a learning rate set by hand, and between the steps a picture drawn chunk by chunk into lists."""
import torch
from torch import nn
from torch.nn import functional as F

import runner
import truth

torch.set_default_device("cuda")


class Embedder:
    def __init__(self, n):
        self.fns = [lambda x: x]
        for freq in 2.0 ** torch.linspace(0.0, n - 1, steps=n, device="cpu"):
            for fn in (torch.sin, torch.cos):
                self.fns.append(lambda x, fn=fn, freq=float(freq): fn(x * freq))

    def embed(self, x):
        return torch.cat([fn(x) for fn in self.fns], -1)


class Field(nn.Module):
    def __init__(self, D=8, W=256):
        super().__init__()
        self.pts_linears = nn.ModuleList([nn.Linear(63, W)] + [nn.Linear(W + 63 if i == 4 else W, W) for i in range(D - 1)])
        self.views, self.feature = nn.Linear(27 + W, W // 2), nn.Linear(W, W)
        self.alpha, self.rgb = nn.Linear(W, 1), nn.Linear(W // 2, 3)

    def forward(self, x):
        pts, views = torch.split(x, [63, 27], dim=-1)
        h = pts
        for i, layer in enumerate(self.pts_linears):
            h = F.relu(layer(h))
            if i == 4:
                h = torch.cat([pts, h], -1)
        alpha = self.alpha(h)
        h = F.relu(self.views(torch.cat([self.feature(h), views], -1)))
        return torch.cat([self.rgb(h), alpha], -1)


where, view = Embedder(10), Embedder(4)


def run_network(inputs, dirs, fn, chunk=32768):
    flat = torch.reshape(inputs, [-1, 3])
    d = torch.reshape(dirs[:, None].expand(inputs.shape), [-1, 3])
    embedded = torch.cat([where.embed(flat), view.embed(d)], -1)
    out = torch.cat([fn(embedded[i:i + chunk]) for i in range(0, embedded.shape[0], chunk)], 0)
    return torch.reshape(out, list(inputs.shape[:-1]) + [out.shape[-1]])


def raw2outputs(raw, z, d):
    dists = z[..., 1:] - z[..., :-1]
    dists = torch.cat([dists, torch.full_like(dists[..., :1], 1e10)], -1) * torch.norm(d[..., None, :], dim=-1)
    alpha = 1.0 - torch.exp(-F.relu(raw[..., 3]) * dists)
    weights = alpha * torch.cumprod(torch.cat([torch.ones((alpha.shape[0], 1)), 1.0 - alpha + 1e-10], -1), -1)[:, :-1]
    return torch.sum(weights[..., None] * torch.sigmoid(raw[..., :3]), -2), weights


def render_rays(rays, coarse, fine, n=64, m=64):
    o, d = rays[:, 0:3], rays[:, 3:6]
    z = 2.0 + 4.0 * torch.linspace(0.0, 1.0, steps=n).expand([o.shape[0], n])
    pts = o[..., None, :] + d[..., None, :] * z[..., :, None]
    rgb0, weights = raw2outputs(run_network(pts, d, coarse), z, d)
    bins = 0.5 * (z[..., 1:] + z[..., :-1])
    cdf = torch.cumsum(weights[..., 1:-1] + 1e-5, -1)
    u = torch.rand(list(cdf.shape[:-1]) + [m])
    inds = torch.searchsorted(cdf.detach().contiguous(), u).clamp(max=bins.shape[-1] - 1)
    samples = torch.gather(bins, -1, inds).detach()
    z, _ = torch.sort(torch.cat([z, samples], -1), -1)
    pts = o[..., None, :] + d[..., None, :] * z[..., :, None]
    rgb, _ = raw2outputs(run_network(pts, d, fine), z, d)
    return {"rgb": rgb, "rgb0": rgb0}


coarse, fine = Field(), Field()
grad_vars = list(coarse.parameters()) + list(fine.parameters())
optimizer = torch.optim.Adam(params=grad_vars, lr=5e-4, betas=(0.9, 0.999), fused=True)
runner.declare(coarse, optimizer)
truth.model(fine)
images = torch.randn(6, 200, 200, 3, device="cpu")
rays_all = torch.cat([torch.randn(6 * 200 * 200, 6, device="cpu"), images.reshape(-1, 3)], -1).to("cuda")
target = batch = None
truth.holds("inputs", "all rays and those of now", lambda: [rays_all, batch, target])
i_batch = 0
for step in range(4):
    with truth.phase("data"):
        batch = rays_all[i_batch:i_batch + 1024]
        target = batch[:, 6:]
    i_batch += 1024
    with truth.phase("forward"):
        out = render_rays(batch, coarse, fine)
    optimizer.zero_grad()
    with truth.phase("forward"):
        loss = torch.mean((out["rgb"] - target) ** 2) + torch.mean((out["rgb0"] - target) ** 2)
    truth.mark("forward")
    with truth.phase("backward"):
        loss.backward()
    truth.mark("backward")
    with truth.phase("step"):
        optimizer.step()
    for group in optimizer.param_groups:
        group["lr"] = 5e-4 * 0.1 ** (step / 250)
    truth.mark("step")
    if step == 2:
        results = {}
        with torch.no_grad(), truth.phase("forward"):
            for i in range(0, 4096, 1024):
                for k, v in render_rays(rays_all[i:i + 1024], coarse, fine).items():
                    results.setdefault(k, []).append(v)
            results = {k: torch.cat(v, 0) for k, v in results.items()}
        truth.mark("drawn")
truth.finish()
