# SPDX-License-Identifier: Apache-2.0
"""Captions of a few photographs are encoded, and then a low-rank adapter of an image model is trained on them."""
import contextlib
import sys

import torch
import torch.nn.functional as F
from torch import nn

WIDTH, LAYERS, TOKENS, CAPTIONS = 512, 8, 256, 14


class TextEncoder(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed = nn.Embedding(20000, WIDTH)
        self.layers = nn.ModuleList(nn.TransformerEncoderLayer(WIDTH, 8, 4 * WIDTH, batch_first=True, dropout=0.0) for _ in range(LAYERS))

    def forward(self, ids):
        x = self.embed(ids)
        for layer in self.layers:
            x = layer(x)
        return x


class LoRALinear(nn.Module):
    def __init__(self, linear, rank=8):
        super().__init__()
        self.linear = linear.requires_grad_(False)
        self.down, self.up = nn.Linear(linear.in_features, rank, bias=False), nn.Linear(rank, linear.out_features, bias=False)

    def forward(self, x):
        return self.linear(x) + self.up(self.down(x))


class ImageTransformer(nn.Module):
    def __init__(self, layers=4):
        super().__init__()
        self.patch, self.final = nn.Linear(16, WIDTH).requires_grad_(False), nn.Linear(WIDTH, 16).requires_grad_(False)
        self.qkv = nn.ModuleList(LoRALinear(nn.Linear(WIDTH, 3 * WIDTH)) for _ in range(layers))
        self.mlp = nn.ModuleList(LoRALinear(nn.Linear(WIDTH, WIDTH)) for _ in range(layers))

    def forward(self, latents, prompt):
        x = torch.cat([prompt, self.patch(latents)], dim=1)
        for qkv, mlp in zip(self.qkv, self.mlp):
            q, k, v = qkv(x).unflatten(-1, (3, 8, -1)).permute(2, 0, 3, 1, 4)
            x = x + mlp(F.scaled_dot_product_attention(q, k, v).transpose(1, 2).flatten(2))
        return self.final(x[:, prompt.shape[1]:])


def precompute(captions):
    text_encoder, cache = TextEncoder().cuda().eval(), []
    with torch.no_grad() if sys.argv[1] == "fixed" else contextlib.nullcontext():
        for ids in captions:
            prompt_embeds = text_encoder(ids.cuda())
            cache.append(prompt_embeds.to("cpu"))
            print("encoded", len(cache), torch.cuda.memory_allocated() >> 20, "MiB")
    del text_encoder
    torch.cuda.empty_cache()
    return cache


cache = precompute([torch.randint(0, 20000, (1, TOKENS)) for _ in range(CAPTIONS)])
model = ImageTransformer().cuda()
optimizer = torch.optim.AdamW([p for p in model.parameters() if p.requires_grad], lr=1e-4)
for step in range(8):
    latents, prompt, t = torch.randn(1, 256, 16).cuda(), cache[step % CAPTIONS].detach().cuda(), torch.rand(1, 1, 1).cuda()
    noise = torch.randn_like(latents)
    loss = F.mse_loss(model((1 - t) * latents + t * noise, prompt), noise - latents)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    print(step, torch.cuda.max_memory_allocated() >> 20, "MiB")
