# SPDX-License-Identifier: Apache-2.0
"""Embeddings of proteins from a pretrained language model, which computes in bfloat16."""
import sys

import torch
import torch.nn.functional as F
from torch import nn

WIDTH, HEADS, LAYERS, TOKENS = 1024, 16, 10, 64


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm1, self.norm2 = nn.LayerNorm(WIDTH), nn.LayerNorm(WIDTH)
        self.qkv, self.out = nn.Linear(WIDTH, 3 * WIDTH, bias=False), nn.Linear(WIDTH, WIDTH, bias=False)
        self.up, self.down = nn.Linear(WIDTH, 4 * WIDTH, bias=False), nn.Linear(4 * WIDTH, WIDTH, bias=False)

    def forward(self, x):
        q, k, v = self.qkv(self.norm1(x)).unflatten(-1, (3, HEADS, -1)).permute(2, 0, 3, 1, 4)
        x = x + self.out(F.scaled_dot_product_attention(q, k, v).transpose(1, 2).flatten(2))
        return x + self.down(F.gelu(self.up(self.norm2(x))))


class ProteinModel(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed = nn.Embedding(TOKENS, WIDTH)
        self.blocks = nn.ModuleList(Block() for _ in range(LAYERS))
        self.norm, self.head = nn.LayerNorm(WIDTH), nn.Linear(WIDTH, TOKENS)

    def forward(self, ids):
        x = self.embed(ids)
        for block in self.blocks:
            x = block(x)
        return self.norm(x)

    @classmethod
    def from_pretrained(cls, device, dtype):
        with torch.device("meta"):
            model = cls()
        model = model.to_empty(device="cpu")
        model.load_state_dict({name: torch.zeros(weight.shape) for name, weight in model.state_dict().items()}, assign=True)
        if sys.argv[1] == "fixed":
            return model.to(dtype).to(device).eval()
        return model.to(device).to(dtype).eval()


model = ProteinModel.from_pretrained("cuda", torch.bfloat16)
print("loaded", torch.cuda.max_memory_allocated() >> 20, "MiB")
embeddings = []
with torch.inference_mode():
    for length in (120, 340, 256, 512):
        ids = torch.randint(0, TOKENS, (4, length), device="cuda")
        embeddings.append(model(ids).mean(dim=1).float().cpu())
print(torch.cat(embeddings).shape, torch.cuda.max_memory_allocated() >> 20, "MiB")
