# SPDX-License-Identifier: Apache-2.0
"""Comparing adapters for image generation: the latents of the pictures are computed once, then the adapter is trained."""
import sys

import torch
import torch.nn.functional as F
from peft import LoraConfig, get_peft_model
from torch import nn

WIDTH = 1024


class Layer(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm = nn.LayerNorm(WIDTH)
        self.to_qkv, self.to_out = nn.Linear(WIDTH, 3 * WIDTH), nn.Linear(WIDTH, WIDTH)
        self.up, self.down = nn.Linear(WIDTH, 4 * WIDTH), nn.Linear(4 * WIDTH, WIDTH)

    def forward(self, x):
        b, n, _ = x.shape
        q, k, v = self.to_qkv(self.norm(x)).view(b, n, 3, 16, 64).permute(2, 0, 3, 1, 4)
        x = x + self.to_out(F.scaled_dot_product_attention(q, k, v).transpose(1, 2).reshape(b, n, WIDTH))
        return x + self.down(F.gelu(self.up(self.norm(x))))


class Denoiser(nn.Module):
    def __init__(self, layers=20):
        super().__init__()
        self.enter, self.leave = nn.Linear(16, WIDTH), nn.Linear(WIDTH, 16)
        self.layers = nn.ModuleList(Layer() for _ in range(layers))

    def forward(self, x):
        h = self.enter(x)
        for layer in self.layers:
            h = layer(h)
        return self.leave(h)


class Encoder(nn.Module):
    def __init__(self, width=128):
        super().__init__()
        self.net = nn.Sequential(nn.Conv2d(3, width, 3, padding=1), nn.SiLU(), nn.Conv2d(width, width, 3, 2, 1), nn.SiLU(),
                                 nn.Conv2d(width, width, 3, 2, 1), nn.SiLU(), nn.Conv2d(width, 4, 3, 2, 1))

    def forward(self, images):
        return F.pixel_unshuffle(self.net(images), 2).flatten(2).transpose(1, 2)


@torch.no_grad()
def precompute(vae, pictures):
    return [vae(batch.cuda()).cpu() for batch in pictures]


pictures = [torch.rand(4, 3, 512, 512) for _ in range(3)]
vae, transformer = Encoder(), Denoiser()
transformer = get_peft_model(transformer, LoraConfig(r=8, target_modules=["to_qkv", "to_out"]))
if sys.argv[1] != "fixed":
    transformer.cuda()
vae.cuda()
latents = precompute(vae, pictures)
vae.cpu()
transformer.cuda()
optimizer = torch.optim.AdamW((p for p in transformer.parameters() if p.requires_grad), lr=1e-4)
for step, z in enumerate(latents):
    z = z[:1, :256].cuda()
    noise = torch.randn_like(z)
    loss = F.mse_loss(transformer(z + noise), noise - z)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    print(step, torch.cuda.max_memory_allocated() >> 20, "MiB")
