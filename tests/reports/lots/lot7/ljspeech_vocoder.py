# SPDX-License-Identifier: Apache-2.0
"""A vocoder is trained on segments of LJSpeech with a discriminator, and evaluated on the development set every few steps."""
import contextlib
import sys

import torch
import torch.nn.functional as F
from torch import nn

HOP, FRAMES, BATCH = 256, 32, 8


class ResidualBlock(nn.Module):
    def __init__(self, dilation):
        super().__init__()
        self.conv = nn.Conv1d(64, 128, 3, padding=dilation, dilation=dilation)
        self.aux, self.out = nn.Conv1d(64, 128, 1), nn.Conv1d(64, 128, 1)

    def forward(self, x, c):
        a, b = (self.conv(x) + self.aux(c)).chunk(2, dim=1)
        res, skip = self.out(torch.tanh(a) * torch.sigmoid(b)).chunk(2, dim=1)
        return (x + res) * 0.7071, skip


class Generator(nn.Module):
    def __init__(self, layers=8):
        super().__init__()
        self.upsample, self.first = nn.ConvTranspose1d(80, 64, 2 * HOP, HOP, HOP // 2), nn.Conv1d(1, 64, 1)
        self.blocks = nn.ModuleList(ResidualBlock(2 ** (i % 4)) for i in range(layers))
        self.last = nn.Sequential(nn.ReLU(), nn.Conv1d(64, 64, 1), nn.ReLU(), nn.Conv1d(64, 1, 1))

    def forward(self, z, mel):
        c, x, skips = self.upsample(mel), self.first(z), 0
        for block in self.blocks:
            x, skip = block(x, c)
            skips = skips + skip
        return self.last(skips)


def discriminator():
    layers = [nn.Sequential(nn.Conv1d(1 if i == 0 else 64, 64, 3, padding=i + 1, dilation=i + 1), nn.GroupNorm(8, 64), nn.LeakyReLU(0.2)) for i in range(7)]
    return nn.Sequential(*layers, nn.Conv1d(64, 1, 3, padding=1))


def spectral(x, y):
    window = torch.hann_window(1024, device=x.device)
    s, t = (torch.view_as_real(torch.stft(w.squeeze(1), 1024, HOP, window=window, return_complex=True)).square().sum(-1) for w in (x, y))
    return F.l1_loss(s.clamp_min(1e-7).log(), t.clamp_min(1e-7).log())


def train_step(model, optimizer, y, mel):
    y_ = model["generator"](torch.randn_like(y), mel)
    losses = {"generator": spectral(y_, y) + 4.0 * (model["discriminator"](y_) - 1).square().mean()}
    optimizer["generator"].zero_grad()
    losses["generator"].backward()
    optimizer["generator"].step()
    losses["discriminator"] = (model["discriminator"](y) - 1).square().mean() + model["discriminator"](y_.detach()).square().mean()
    optimizer["discriminator"].zero_grad()
    losses["discriminator"].backward()
    optimizer["discriminator"].step()


def eval_step(model, y, mel):
    y_ = model["generator"](torch.randn_like(y), mel)
    p_, p = model["discriminator"](y_), model["discriminator"](y)
    return spectral(y_, y).item(), (p_ - 1).square().mean().item(), ((p - 1).square().mean() + p_.square().mean()).item()


def batch():
    return torch.randn(BATCH, 1, HOP * FRAMES).cuda(), torch.randn(BATCH, 80, FRAMES).cuda()


model = {"generator": Generator().cuda(), "discriminator": discriminator().cuda()}
optimizer = {k: torch.optim.RAdam(m.parameters(), lr=1e-4) for k, m in model.items()}
for step in range(1, 9):
    train_step(model, optimizer, *batch())
    if step % 4 == 0:
        with torch.no_grad() if sys.argv[1] == "fixed" else contextlib.nullcontext():
            print(step, [eval_step(model, *batch()) for _ in range(2)], torch.cuda.max_memory_allocated() >> 20, "MiB")
