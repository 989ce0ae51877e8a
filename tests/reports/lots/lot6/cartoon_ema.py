# SPDX-License-Identifier: Apache-2.0
"""A diffusion model is finetuned on cartoons, with a moving average of its weights for the samples."""
import copy
import sys

import torch
import torch.nn.functional as F
from torch import nn

WIDTH, LAYERS, TOKENS = 768, 12, 256


class DiTBlock(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm1, self.norm2 = nn.LayerNorm(WIDTH, elementwise_affine=False), nn.LayerNorm(WIDTH, elementwise_affine=False)
        self.qkv, self.out = nn.Linear(WIDTH, 3 * WIDTH), nn.Linear(WIDTH, WIDTH)
        self.mlp = nn.Sequential(nn.Linear(WIDTH, 4 * WIDTH), nn.GELU(), nn.Linear(4 * WIDTH, WIDTH))
        self.modulation = nn.Linear(WIDTH, 4 * WIDTH)

    def forward(self, x, c):
        s1, b1, s2, b2 = self.modulation(F.silu(c)).unsqueeze(1).chunk(4, dim=-1)
        q, k, v = self.qkv(self.norm1(x) * (1 + s1) + b1).unflatten(-1, (3, 12, -1)).permute(2, 0, 3, 1, 4)
        x = x + self.out(F.scaled_dot_product_attention(q, k, v).transpose(1, 2).flatten(2))
        return x + self.mlp(self.norm2(x) * (1 + s2) + b2)


class DiT(nn.Module):
    def __init__(self):
        super().__init__()
        self.patch, self.time, self.final = nn.Linear(16, WIDTH), nn.Linear(1, WIDTH), nn.Linear(WIDTH, 16)
        self.blocks = nn.ModuleList(DiTBlock() for _ in range(LAYERS))

    def forward(self, x, t):
        x, c = self.patch(x), self.time(t)
        for block in self.blocks:
            x = block(x, c)
        return self.final(x)


class EMAModel:
    def __init__(self, model, decay=0.999, device=None, update_interval=1):
        self.module = copy.deepcopy(model).eval().requires_grad_(False)
        if device is not None:
            self.module.to(device)
        self.decay, self.update_interval = decay, update_interval

    @torch.no_grad()
    def step(self, model, global_step):
        if global_step % self.update_interval:
            return
        for shadow, param in zip(self.module.parameters(), model.parameters()):
            shadow.mul_(self.decay).add_(param.to(shadow.device), alpha=1 - self.decay)


model = DiT().cuda()
ema = EMAModel(model, device="cpu", update_interval=3) if sys.argv[1] == "fixed" else EMAModel(model)
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-5)
for step in range(6):
    latents, t = torch.randn(2, TOKENS, 16).cuda(), torch.rand(2, 1).cuda()
    noise = torch.randn_like(latents)
    loss = F.mse_loss(model(latents + t[:, :, None] * noise, t), noise)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    ema.step(model, step)
    print(step, torch.cuda.max_memory_allocated() >> 20, "MiB")
