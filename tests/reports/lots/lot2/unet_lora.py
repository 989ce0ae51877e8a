# SPDX-License-Identifier: Apache-2.0
"""Training adapters of a diffusion U-Net whose stages hold many transformer blocks."""
import sys

import torch
import torch.nn.functional as F
from torch import nn
from torch.utils.checkpoint import checkpoint

EACH = sys.argv[1] == "fixed"


class LoraLinear(nn.Module):
    def __init__(self, ins, outs, rank=8):
        super().__init__()
        self.base = nn.Linear(ins, outs).requires_grad_(False)
        self.down, self.up = nn.Linear(ins, rank, bias=False), nn.Linear(rank, outs, bias=False)

    def forward(self, x):
        return self.base(x) + self.up(self.down(x))


class Block(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.n1, self.n2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.qkv, self.out = LoraLinear(width, 3 * width), LoraLinear(width, width)
        self.feed = nn.Sequential(LoraLinear(width, 4 * width), nn.GELU(), LoraLinear(4 * width, width))

    def forward(self, x):
        b, n, c = x.shape
        q, k, v = self.qkv(self.n1(x)).view(b, n, 3, c // 64, 64).permute(2, 0, 3, 1, 4)
        x = x + self.out(F.scaled_dot_product_attention(q, k, v).transpose(1, 2).reshape(b, n, c))
        return x + self.feed(self.n2(x))


class Transformer2D(nn.Module):
    def __init__(self, width, blocks):
        super().__init__()
        self.enter, self.leave = nn.Conv2d(width, width, 1), nn.Conv2d(width, width, 1)
        self.blocks = nn.ModuleList(Block(width) for _ in range(blocks))

    def forward(self, x):
        h = self.enter(x).flatten(2).transpose(1, 2)
        for block in self.blocks:
            h = checkpoint(block, h, use_reentrant=False) if EACH and self.training else block(h)
        return x + self.leave(h.transpose(1, 2).view_as(x))


class Unet(nn.Module):
    def __init__(self, widths=(128, 256, 512), blocks=(1, 2, 10)):
        super().__init__()
        self.enter, self.leave = nn.Conv2d(4, widths[0], 3, padding=1), nn.Conv2d(widths[0], 4, 3, padding=1)
        self.down = nn.ModuleList(nn.Conv2d(a, b, 3, 2, 1) for a, b in zip(widths, widths[1:]))
        self.up = nn.ModuleList(nn.ConvTranspose2d(b, a, 2, 2) for a, b in zip(widths, widths[1:]))
        self.stages = nn.ModuleList(Transformer2D(w, n) for w, n in zip(widths, blocks))

    def stage(self, i, x):
        return checkpoint(self.stages[i], x, use_reentrant=False) if self.training and not EACH else self.stages[i](x)

    def forward(self, x):
        skips = [self.stage(0, self.enter(x))]
        for i, down in enumerate(self.down):
            skips.append(self.stage(i + 1, down(skips[-1])))
        h = skips.pop()
        for up in reversed(self.up):
            h = up(h) + skips.pop()
        return self.leave(h)


model = Unet().cuda().train()
nn.ModuleList([model.enter, model.leave, model.down, model.up]).requires_grad_(False)
optimizer = torch.optim.AdamW((p for p in model.parameters() if p.requires_grad), lr=1e-4)
for step in range(3):
    latents, noise = torch.randn(8, 4, 64, 64, device="cuda"), torch.randn(8, 4, 64, 64, device="cuda")
    optimizer.zero_grad()
    loss = F.mse_loss(model(latents + noise), noise)
    loss.backward()
    optimizer.step()
    print(step, torch.cuda.max_memory_allocated() >> 20, "MiB")
