# SPDX-License-Identifier: Apache-2.0
"""A text-to-image model learns the style of some drawings with LoRA weights in its attention layers."""
import sys

import torch
import torch.nn.functional as F
from torch import nn

CHANNELS, CROSS, TOKENS, LATENT, BATCH, RANK = (128, 256, 512), 512, 77, 32, 4, 4


class LoRAAttnProcessor(nn.Module):
    def __init__(self, hidden_size, cross_attention_dim):
        super().__init__()
        self.q_down, self.q_up = nn.Linear(hidden_size, RANK, bias=False), nn.Linear(RANK, hidden_size, bias=False)
        self.kv_down, self.kv_up = nn.Linear(cross_attention_dim, RANK, bias=False), nn.Linear(RANK, 2 * hidden_size, bias=False)
        nn.init.zeros_(self.q_up.weight), nn.init.zeros_(self.kv_up.weight)

    def forward(self, attn, x, context):
        q, kv = attn.to_q(x) + self.q_up(self.q_down(x)), attn.to_kv(context) + self.kv_up(self.kv_down(context))
        q, k, v = (t.unflatten(-1, (8, -1)).transpose(1, 2) for t in (q, *kv.chunk(2, -1)))
        return attn.to_out(F.scaled_dot_product_attention(q, k, v).transpose(1, 2).flatten(2))


class CrossAttention(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.norm, self.to_q, self.to_kv, self.to_out = nn.LayerNorm(width), nn.Linear(width, width), nn.Linear(CROSS, 2 * width), nn.Linear(width, width)
        self.processor = LoRAAttnProcessor(width, CROSS)

    def forward(self, x, context):
        y = x.flatten(2).transpose(1, 2)
        y = y + self.processor(self, self.norm(y), context)
        return y.transpose(1, 2).unflatten(-1, x.shape[2:])


class ResnetBlock(nn.Module):
    def __init__(self, c_in, c_out, stride=1):
        super().__init__()
        self.conv1, self.conv2, self.skip = nn.Conv2d(c_in, c_out, 3, stride, 1), nn.Conv2d(c_out, c_out, 3, 1, 1), nn.Conv2d(c_in, c_out, 1, stride)
        self.norm1, self.norm2 = nn.GroupNorm(8, c_in) if c_in % 8 == 0 else nn.Identity(), nn.GroupNorm(8, c_out)

    def forward(self, x):
        return self.skip(x) + self.conv2(F.silu(self.norm2(self.conv1(F.silu(self.norm1(x))))))


class UNet2DConditionModel(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv_in, self.conv_out, self.time_embedding = nn.Conv2d(4, CHANNELS[0], 3, 1, 1), nn.Conv2d(CHANNELS[0], 4, 3, 1, 1), nn.Embedding(1000, CHANNELS[0])
        self.down = nn.ModuleList(ResnetBlock(a, b, 2) for a, b in zip(CHANNELS, CHANNELS[1:] + CHANNELS[-1:]))
        self.up = nn.ModuleList(ResnetBlock(b, a) for a, b in reversed(list(zip(CHANNELS, CHANNELS[1:] + CHANNELS[-1:]))))
        self.attentions = nn.ModuleList(CrossAttention(c) for c in CHANNELS[1:] + CHANNELS[-1:] + CHANNELS[::-1])

    def forward(self, x, timesteps, context):
        x, skips = self.conv_in(x) + self.time_embedding(timesteps)[:, :, None, None], []
        for i, block in enumerate([*self.down, *self.up]):
            skips = skips + [x] if i < len(self.down) else skips
            x = block(x) if i < len(self.down) else block(F.interpolate(x, scale_factor=2)) + skips.pop()
            x = self.attentions[i](x, context)
        return self.conv_out(x)


vae = nn.Sequential(ResnetBlock(3, 32, 2), ResnetBlock(32, 64, 2), ResnetBlock(64, 128, 2), nn.Conv2d(128, 4, 1)).to("cuda")
layer = nn.TransformerEncoderLayer(CROSS, 8, 4 * CROSS, batch_first=True)
text_encoder = nn.Sequential(nn.Embedding(24_000, CROSS), nn.TransformerEncoder(layer, 8)).to("cuda")
unet = UNet2DConditionModel().to("cuda")
lora_layers = nn.ModuleList(attn.processor for attn in unet.attentions)
if sys.argv[1] == "fixed":
    for model in (unet, vae, text_encoder):
        model.requires_grad_(False)
    lora_layers.requires_grad_(True)
optimizer = torch.optim.AdamW(lora_layers.parameters(), lr=1e-4)
for step in range(8):
    latents, input_ids = vae(torch.rand(BATCH, 3, 8 * LATENT, 8 * LATENT).to("cuda")) * 0.18215, torch.randint(0, 24_000, (BATCH, TOKENS)).to("cuda")
    noise, timesteps = torch.randn_like(latents), torch.randint(0, 1000, (BATCH,), device="cuda")
    loss = F.mse_loss(unet(latents + noise, timesteps, text_encoder(input_ids)), noise)
    loss.backward()
    nn.utils.clip_grad_norm_(lora_layers.parameters(), 1.0)
    optimizer.step()
    optimizer.zero_grad()
    print("step", step, loss.item(), torch.cuda.max_memory_allocated() >> 20, "MiB")
