# SPDX-License-Identifier: Apache-2.0
"""Denoising diffusion: a small UNet under autocast, a loss scaler, noise made on the device, a schedule, an average."""
import math

import torch
from torch import nn
from torch.nn import functional as F

import runner
import truth


class Res(nn.Module):
    def __init__(self, cin, cout, temb):
        super().__init__()
        self.n1, self.n2 = nn.GroupNorm(8, cin), nn.GroupNorm(8, cout)
        self.c1, self.c2 = nn.Conv2d(cin, cout, 3, padding=1), nn.Conv2d(cout, cout, 3, padding=1)
        self.t = nn.Linear(temb, cout)
        self.skip = nn.Conv2d(cin, cout, 1) if cin != cout else nn.Identity()
        self.drop = nn.Dropout(0.1)

    def forward(self, x, t):
        h = self.c1(F.silu(self.n1(x))) + self.t(F.silu(t))[:, :, None, None]
        return self.skip(x) + self.c2(self.drop(F.silu(self.n2(h))))


class UNet(nn.Module):
    def __init__(self, width=64, temb=256):
        super().__init__()
        self.width = width
        self.time = nn.Sequential(nn.Linear(width, temb), nn.SiLU(), nn.Linear(temb, temb))
        self.first = nn.Conv2d(3, width, 3, padding=1)
        self.d1, self.d2, self.d3 = Res(width, width, temb), Res(width, 2 * width, temb), Res(2 * width, 4 * width, temb)
        self.attention = nn.MultiheadAttention(4 * width, 4, batch_first=True)
        self.u3, self.u2 = Res(6 * width, 2 * width, temb), Res(3 * width, width, temb)
        self.last = nn.Conv2d(width, 3, 3, padding=1)

    def embed(self, t):
        half = self.width // 2
        freqs = torch.exp(-math.log(10000) * torch.arange(half, device=t.device) / half)
        args = t[:, None].float() * freqs[None]
        return self.time(torch.cat([args.sin(), args.cos()], -1))

    def forward(self, x, t):
        t = self.embed(t)
        a = self.d1(self.first(x), t)
        b = self.d2(F.avg_pool2d(a, 2), t)
        c = self.d3(F.avg_pool2d(b, 2), t)
        n, ch, h, w = c.shape
        flat = c.flatten(2).transpose(1, 2)
        c = c + self.attention(flat, flat, flat, need_weights=False)[0].transpose(1, 2).reshape(n, ch, h, w)
        c = self.u3(torch.cat([F.interpolate(c, scale_factor=2), b], 1), t)
        return self.last(self.u2(torch.cat([F.interpolate(c, scale_factor=2), a], 1), t))


class Diffusion:
    def __init__(self, steps, device):
        betas = torch.linspace(1e-4, 0.02, steps, device=device)
        self.abar = torch.cumprod(1 - betas, 0)
        self.steps = steps

    def q_sample(self, x0, t, noise):
        a = self.abar[t][:, None, None, None]
        return a.sqrt() * x0 + (1 - a).sqrt() * noise


device = torch.device("cuda")
net = UNet().to(device)
optimizer = torch.optim.AdamW(net.parameters(), lr=2e-4)
scaler = torch.amp.GradScaler("cuda")
runner.declare(net, optimizer)
diffusion = Diffusion(1000, device)
ema = {k: v.detach().clone() for k, v in net.state_dict().items()}
truth.holds("parameters", "moving average", lambda: ema, or_else=["optimizer_state", "buffers"])
truth.holds("buffers", "the schedule", lambda: [diffusion.abar], or_else=["inputs", "forward_temporaries"])
runner.mark_inside_backward(net.d3)
batch = []
truth.holds("inputs", "the batch and its noise", lambda: batch)

for step in range(3):
    with truth.phase("data"):
        x0 = torch.randn(32, 3, 32, 32).to(device, non_blocking=True)
        t = torch.randint(0, diffusion.steps, (x0.shape[0],), device=device)
        noise = torch.randn_like(x0)
    batch[:] = [x0, t, noise]
    with truth.phase("forward"), torch.autocast("cuda", dtype=torch.float16):
        noisy = diffusion.q_sample(x0, t, noise)
        batch.append(noisy)
        loss = F.mse_loss(net(noisy, t), noise)
    truth.mark("forward")
    with truth.phase("backward"):
        scaler.scale(loss).backward()
    truth.mark("backward")
    with truth.phase("step"):
        scaler.unscale_(optimizer)
        torch.nn.utils.clip_grad_norm_(net.parameters(), 1.0)
        scaler.step(optimizer)
        scaler.update()
    truth.mark("step")
    optimizer.zero_grad(set_to_none=True)
    with torch.no_grad():
        for k, v in net.state_dict().items():
            ema[k].mul_(0.999).add_(v, alpha=0.001)
    truth.mark("end")
truth.finish()
