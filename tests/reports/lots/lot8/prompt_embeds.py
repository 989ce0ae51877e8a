# SPDX-License-Identifier: Apache-2.0
"""A diffusion transformer learns from stored text features; prompts for pictures in between are encoded once, before the training."""
import gc
import os
import sys
import tempfile

import torch
import torch.nn.functional as F
from torch import nn

TOKENS, T5_WIDTH, WIDTH, LAYERS, LATENT, BATCH, device = 120, 1536, 512, 10, 24, 8, "cuda"


class T5Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm, self.attn = nn.RMSNorm(T5_WIDTH), nn.MultiheadAttention(T5_WIDTH, 16, bias=False, batch_first=True)
        self.ff = nn.Sequential(nn.RMSNorm(T5_WIDTH), nn.Linear(T5_WIDTH, 4 * T5_WIDTH, bias=False), nn.ReLU(), nn.Linear(4 * T5_WIDTH, T5_WIDTH, bias=False))

    def forward(self, x):
        z = self.norm(x)
        x = x + self.attn(z, z, z, need_weights=False)[0]
        return x + self.ff(x)


class PixArtBlock(nn.Module):
    def __init__(self):
        super().__init__()
        self.attn, self.cross = nn.MultiheadAttention(WIDTH, 8, batch_first=True), nn.MultiheadAttention(WIDTH, 8, batch_first=True)
        self.norm, self.mlp = nn.LayerNorm(WIDTH), nn.Sequential(nn.LayerNorm(WIDTH), nn.Linear(WIDTH, 4 * WIDTH), nn.GELU("tanh"), nn.Linear(4 * WIDTH, WIDTH))

    def forward(self, x, y):
        z = self.norm(x)
        x = x + self.attn(z, z, z, need_weights=False)[0]
        x = x + self.cross(x, y, y, need_weights=False)[0]
        return x + self.mlp(x)


class PixArt(nn.Module):
    def __init__(self):
        super().__init__()
        self.x_embedder, self.t_embedder, self.y_embedder = nn.Conv2d(4, WIDTH, 2, 2), nn.Embedding(1000, WIDTH), nn.Linear(T5_WIDTH, WIDTH)
        self.blocks, self.final_layer = nn.ModuleList(PixArtBlock() for _ in range(LAYERS)), nn.Linear(WIDTH, 16)

    def forward(self, x, timestep, y):
        x, y = self.x_embedder(x).flatten(2).transpose(1, 2) + self.t_embedder(timestep)[:, None], self.y_embedder(y)
        for block in self.blocks:
            x = block(x, y)
        return F.pixel_shuffle(self.final_layer(x).transpose(1, 2).unflatten(-1, (LATENT // 2, -1)), 2)


output = tempfile.mkdtemp()
text_encoder = nn.Sequential(nn.Embedding(8_000, T5_WIDTH), *(T5Block() for _ in range(8)), nn.RMSNorm(T5_WIDTH)).eval().half().to(device)
for i, prompt in enumerate(["dog", "portrait photo of a girl", "astronaut in a jungle", "mountain with sunset and blue lake"]):
    txt_tokens = torch.randint(0, 8_000, (1, TOKENS)).to(device)
    caption_emb = text_encoder(txt_tokens)
    torch.save({"caption_embeds": caption_emb, "prompt": prompt}, os.path.join(output, f"{i}_{TOKENS}token.pth"))
null_tokens = torch.zeros(1, TOKENS, dtype=torch.long).to(device)
null_token_emb = text_encoder(null_tokens)
torch.save({"uncond_prompt_embeds": null_token_emb}, os.path.join(output, f"null_embed_{TOKENS}token.pth"))
if sys.argv[1] == "fixed":
    del txt_tokens, caption_emb, null_tokens, null_token_emb
del text_encoder
gc.collect()
torch.cuda.empty_cache()

model = PixArt().to(device).train()
optimizer = torch.optim.AdamW(model.parameters(), lr=2e-5)
for step in range(8):
    latents, y = torch.randn(BATCH, 4, LATENT, LATENT).to(device), torch.randn(BATCH, TOKENS, T5_WIDTH).to(device)
    timesteps, noise = torch.randint(0, 1000, (BATCH,)).to(device), torch.randn(BATCH, 4, LATENT, LATENT).to(device)
    loss = F.mse_loss(model(latents + noise, timesteps, y), noise)
    optimizer.zero_grad()
    loss.backward()
    nn.utils.clip_grad_norm_(model.parameters(), 0.01)
    optimizer.step()
    print("step", step, loss.item(), torch.cuda.max_memory_allocated() >> 20, "MiB")
