# SPDX-License-Identifier: Apache-2.0
"""A server by hand: room for keys and values of each layer, made before the first request and written by every pass, is a cache."""
import torch
from torch import nn
from torch.nn import functional as F

import runner
import truth

WIDTH, HEADS, LENGTH, SEQUENCES, LAYERS = 768, 12, 768, 16, 6


class Layer(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm, self.qkv, self.out = nn.LayerNorm(WIDTH), nn.Linear(WIDTH, 3 * WIDTH), nn.Linear(WIDTH, WIDTH)

    def forward(self, x, room, at):
        b, s, _ = x.shape
        q, k, v = self.qkv(self.norm(x)).view(b, s, 3, HEADS, -1).permute(2, 0, 3, 1, 4)
        room[0, :b, :, at:at + s], room[1, :b, :, at:at + s] = k, v
        y = F.scaled_dot_product_attention(q, room[0, :b, :, :at + s], room[1, :b, :, :at + s], is_causal=s > 1)
        return x + self.out(y.transpose(1, 2).reshape(b, s, -1))


tokens, head = nn.Embedding(8000, WIDTH).cuda().half(), nn.Linear(WIDTH, 8000).cuda().half()
layers = nn.ModuleList(Layer() for _ in range(LAYERS)).cuda().half()
runner.declare(nn.ModuleList([tokens, layers, head]).eval())
rooms = [torch.zeros(2, SEQUENCES, HEADS, LENGTH, WIDTH // HEADS, dtype=torch.half, device="cuda") for _ in range(LAYERS)]
truth.holds("kv_cache", "keys and values", lambda: rooms)
prompts = runner.Batches(lambda: torch.randint(0, 8000, (8, 200), device="cuda"))

with torch.inference_mode():
    for _ in range(3):
        ids, at = prompts.next(), 0
        for _ in range(3):
            with truth.phase("forward"):
                x = tokens(ids)
                for layer, room in zip(layers, rooms):
                    x = layer(x, room, at)
                at += ids.shape[1]
                ids = head(x[:, -1:]).argmax(-1)
            truth.mark("token")
truth.finish()
