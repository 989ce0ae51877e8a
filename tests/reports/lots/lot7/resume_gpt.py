# SPDX-License-Identifier: Apache-2.0
"""The training of a small GPT goes on from the checkpoint of an earlier run."""
import os
import sys
import tempfile

import torch
import torch.nn.functional as F
from torch import nn

VOCAB, WIDTH, HEADS, LAYERS, BLOCK, BATCH = 12_000, 640, 10, 6, 192, 2
device, ckpt_path = "cuda", os.path.join(tempfile.mkdtemp(), "ckpt.pt")


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.ln_1, self.ln_2 = nn.LayerNorm(WIDTH), nn.LayerNorm(WIDTH)
        self.c_attn, self.c_proj = nn.Linear(WIDTH, 3 * WIDTH), nn.Linear(WIDTH, WIDTH)
        self.mlp = nn.Sequential(nn.Linear(WIDTH, 4 * WIDTH), nn.GELU(), nn.Linear(4 * WIDTH, WIDTH))

    def forward(self, x):
        q, k, v = (t.unflatten(-1, (HEADS, -1)).transpose(1, 2) for t in self.c_attn(self.ln_1(x)).chunk(3, -1))
        x = x + self.c_proj(F.scaled_dot_product_attention(q, k, v, is_causal=True).transpose(1, 2).flatten(2))
        return x + self.mlp(self.ln_2(x))


class GPT(nn.Module):
    def __init__(self):
        super().__init__()
        self.wte, self.wpe = nn.Embedding(VOCAB, WIDTH), nn.Embedding(BLOCK, WIDTH)
        self.h, self.ln_f = nn.ModuleList(Block() for _ in range(LAYERS)), nn.LayerNorm(WIDTH)

    def forward(self, idx, targets):
        x = self.wte(idx) + self.wpe.weight[:idx.shape[1]]
        for h in self.h:
            x = h(x)
        logits = self.ln_f(x) @ self.wte.weight.T
        return logits, F.cross_entropy(logits.flatten(0, 1), targets.flatten())


def earlier_run(path):
    model = GPT()
    optimizer = torch.optim.AdamW(model.parameters(), lr=3e-4)
    for p in model.parameters():
        p.grad = torch.zeros_like(p)
    optimizer.step()
    torch.save({"model": model.state_dict(), "optimizer": optimizer.state_dict(), "iter_num": 2000, "best_val_loss": 3.1}, path)


def get_batch():
    data = torch.randint(0, VOCAB, (BATCH, BLOCK + 1))
    return data[:, :-1].to(device), data[:, 1:].to(device)


earlier_run(ckpt_path)
checkpoint = torch.load(ckpt_path, map_location=device)
os.unlink(ckpt_path)
model = GPT()
model.load_state_dict(checkpoint["model"])
model.to(device)
iter_num, best_val_loss = checkpoint["iter_num"], checkpoint["best_val_loss"]
optimizer = torch.optim.AdamW(model.parameters(), lr=3e-4)
optimizer.load_state_dict(checkpoint["optimizer"])
if sys.argv[1] == "fixed":
    checkpoint = None
for iter_num in range(iter_num, iter_num + 3):
    logits, loss = model(*get_batch())
    loss.backward()
    nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    optimizer.step()
    optimizer.zero_grad(set_to_none=True)
    print("iter", iter_num, loss.item(), torch.cuda.max_memory_allocated() >> 20, "MiB")
