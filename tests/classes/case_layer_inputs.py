# SPDX-License-Identifier: Apache-2.0
"""Inference that gives each layer constants of its own (a bias of the scores, noise, a gate), made once for pass after pass: no cache."""
import torch
from torch import nn
from torch.nn import functional as F

import runner
import truth

WIDTH, HEADS, LENGTH, LAYERS = 768, 12, 512, 6


class Layer(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm, self.qkv, self.out = nn.LayerNorm(WIDTH), nn.Linear(WIDTH, 3 * WIDTH), nn.Linear(WIDTH, WIDTH)

    def forward(self, x, bias, noise, gate):
        b, s, _ = x.shape
        q, k, v = self.qkv(self.norm(x + noise)).view(b, s, 3, HEADS, -1).permute(2, 0, 3, 1, 4)
        y = F.scaled_dot_product_attention(q, k, v, attn_mask=bias)
        return x + gate * self.out(y.transpose(1, 2).reshape(b, s, -1))


tokens, layers = nn.Embedding(8000, WIDTH).cuda().half(), nn.ModuleList(Layer() for _ in range(LAYERS)).cuda().half()
runner.declare(nn.ModuleList([tokens, layers]).eval())
biases = [torch.full((HEADS, LENGTH, LENGTH), -0.1 * i, dtype=torch.half, device="cuda") for i in range(LAYERS)]
noises = [torch.randn(8, LENGTH, WIDTH, dtype=torch.half, device="cuda") for _ in range(LAYERS)]
gates = [torch.ones(8, LENGTH, WIDTH, dtype=torch.half, device="cuda") for _ in range(LAYERS)]
truth.holds("inputs", "constants of the layers", lambda: [biases, noises, gates])
prompts = runner.Batches(lambda: torch.randint(0, 8000, (8, LENGTH), device="cuda"))

with torch.inference_mode():
    for _ in range(4):
        ids = prompts.next()
        with truth.phase("forward"):
            x = tokens(ids)
            for layer, *constants in zip(layers, biases, noises, gates):
                x = layer(x, *constants)
            scores = x.mean((1, 2))
        truth.mark("batch")
truth.finish()
