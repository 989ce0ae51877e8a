# SPDX-License-Identifier: Apache-2.0
"""Loading a text encoder with an enormous vocabulary and turning its weights to int8 on the device."""
import sys

import torch
import torch.nn.functional as F
from torch import nn

VOCABULARY, WIDTH = 96000, 1024


class Int8Linear(nn.Module):
    def __init__(self, linear):
        super().__init__()
        weight, scale = quantize(linear.weight.detach())
        self.register_buffer("weight", weight)
        self.register_buffer("scale", scale)

    def forward(self, x):
        return F.linear(x, self.weight.to(x.dtype)) * self.scale.to(x.dtype).T


def quantize(weight):
    if sys.argv[1] == "fixed":
        out, scales = torch.empty_like(weight, dtype=torch.int8), []
        for i in range(0, len(weight), 4096):
            rows = weight[i:i + 4096].float()
            scale = rows.abs().amax(1, keepdim=True).clamp(min=1e-6) / 127
            out[i:i + 4096] = rows.div_(scale).round_().clamp_(-128, 127)
            scales.append(scale)
        return out, torch.cat(scales)
    w = weight.float()
    scale = w.abs().amax(1, keepdim=True).clamp(min=1e-6) / 127
    return (w / scale).round().clamp(-128, 127).to(torch.int8), scale


class Encoder(nn.Module):
    def __init__(self, layers=6):
        super().__init__()
        self.embed = nn.Embedding(8000, WIDTH)
        self.up = nn.ModuleList(nn.Linear(WIDTH, 4 * WIDTH, bias=False) for _ in range(layers))
        self.down = nn.ModuleList(nn.Linear(4 * WIDTH, WIDTH, bias=False) for _ in range(layers))
        self.head = nn.Linear(WIDTH, VOCABULARY, bias=False)

    def forward(self, ids):
        x = self.embed(ids)
        for up, down in zip(self.up, self.down):
            x = x + down(F.gelu(up(x)))
        return self.head(x)


torch.set_default_dtype(torch.bfloat16)
model = Encoder().eval()
for name, module in list(model.named_modules()):
    if isinstance(module, nn.Linear):
        parent, _, leaf = name.rpartition(".")
        setattr(model.get_submodule(parent), leaf, Int8Linear(module.cuda()))
        module.cpu()
model.cuda()
with torch.no_grad():
    print(model(torch.randint(0, 8000, (1, 64), device="cuda")).shape, torch.cuda.max_memory_allocated() >> 20, "MiB")
