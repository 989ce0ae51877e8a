# SPDX-License-Identifier: Apache-2.0
"""A diffusion model learns words for a style: its text encoder is trained, its U-Net stays as it is."""
import sys

import torch
import torch.nn.functional as F
from torch import nn
from torch.utils.checkpoint import checkpoint

WORDS, TEXT, WIDTH = 20000, 256, 320


class ResnetBlock(nn.Module):
    def __init__(self, inputs, width):
        super().__init__()
        self.norm1, self.norm2 = nn.GroupNorm(32, inputs), nn.GroupNorm(32, width)
        self.conv1, self.conv2 = nn.Conv2d(inputs, width, 3, 1, 1), nn.Conv2d(width, width, 3, 1, 1)
        self.time, self.skip = nn.Linear(TEXT, width), nn.Conv2d(inputs, width, 1)

    def forward(self, x, time):
        h = self.conv1(F.silu(self.norm1(x))) + self.time(time)[:, :, None, None]
        return self.skip(x) + self.conv2(F.silu(self.norm2(h)))


class CrossAttention(nn.Module):
    def __init__(self, width, heads=8):
        super().__init__()
        self.heads, self.norm = heads, nn.LayerNorm(width)
        self.q, self.kv, self.out = nn.Linear(width, width), nn.Linear(TEXT, 2 * width), nn.Linear(width, width)

    def forward(self, x, text):
        tokens = self.norm(x.flatten(2).transpose(1, 2))
        q = self.q(tokens).unflatten(-1, (self.heads, -1)).transpose(1, 2)
        k, v = self.kv(text).unflatten(-1, (2, self.heads, -1)).permute(2, 0, 3, 1, 4)
        y = self.out(F.scaled_dot_product_attention(q, k, v).transpose(1, 2).flatten(2))
        return x + y.transpose(1, 2).view_as(x)


class Stage(nn.Module):
    def __init__(self, inputs, width):
        super().__init__()
        self.resnet, self.attention = ResnetBlock(inputs, width), CrossAttention(width)

    def forward(self, x, time, text):
        return self.attention(self.resnet(x, time), text)


class UNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.gradient_checkpointing = False
        self.conv_in, self.conv_out = nn.Conv2d(4, WIDTH, 3, 1, 1), nn.Conv2d(WIDTH, 4, 3, 1, 1)
        self.down = nn.ModuleList([Stage(WIDTH, WIDTH), Stage(WIDTH, WIDTH), Stage(WIDTH, 2 * WIDTH)])
        self.up = nn.ModuleList([Stage(3 * WIDTH, WIDTH), Stage(2 * WIDTH, WIDTH), Stage(2 * WIDTH, WIDTH)])

    def call(self, stage, *inputs):
        if self.training and self.gradient_checkpointing:
            return checkpoint(stage, *inputs, use_reentrant=False)
        return stage(*inputs)

    def forward(self, latents, time, text):
        x, skips = self.conv_in(latents), []
        for stage in self.down:
            skips.append(x)
            x = self.call(stage, x, time, text)
        for stage in self.up:
            x = self.call(stage, torch.cat([x, skips.pop()], 1), time, text)
        return self.conv_out(x)


text_encoder = nn.Sequential(nn.Embedding(WORDS, TEXT), nn.TransformerEncoderLayer(TEXT, 4, batch_first=True)).cuda()
unet = UNet().cuda().requires_grad_(False)
unet.gradient_checkpointing = True
if sys.argv[1] == "fixed":
    unet.train()
else:
    unet.eval()
optimizer = torch.optim.AdamW(text_encoder.parameters(), lr=1e-5)
for step in range(4):
    latents, time = torch.randn(6, 4, 64, 64, device="cuda"), torch.rand(6, TEXT, device="cuda")
    text = text_encoder(torch.randint(0, WORDS, (6, 77), device="cuda"))
    loss = F.mse_loss(unet(latents, time, text), torch.randn_like(latents))
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    print(step, torch.cuda.max_memory_allocated() >> 20, "MiB")
