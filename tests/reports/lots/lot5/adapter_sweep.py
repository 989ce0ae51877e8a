# SPDX-License-Identifier: Apache-2.0
"""Adapters of many training runs are evaluated on one base model, one after the other."""
import sys

import torch
import torch.nn.functional as F
from torch import nn

WORDS, WIDTH, HEADS, LAYERS, RANK = 8000, 768, 12, 8, 64


class LoraLinear(nn.Module):
    def __init__(self, inputs, outputs):
        super().__init__()
        self.base = nn.Linear(inputs, outputs, bias=False)
        self.lora_a, self.lora_b, self.active = nn.ModuleDict(), nn.ModuleDict(), None

    def update_layer(self, name):
        device = self.base.weight.device
        self.lora_a[name] = nn.Linear(self.base.in_features, RANK, bias=False, device=device)
        self.lora_b[name] = nn.Linear(RANK, self.base.out_features, bias=False, device=device)

    def forward(self, x):
        y = self.base(x)
        if self.active is not None:
            y = y + self.lora_b[self.active](self.lora_a[self.active](x))
        return y


class Layer(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm1, self.norm2 = nn.LayerNorm(WIDTH), nn.LayerNorm(WIDTH)
        self.qkv, self.out = LoraLinear(WIDTH, 3 * WIDTH), LoraLinear(WIDTH, WIDTH)
        self.up, self.down = LoraLinear(WIDTH, 4 * WIDTH), LoraLinear(4 * WIDTH, WIDTH)

    def forward(self, x):
        q, k, v = self.qkv(self.norm1(x)).unflatten(-1, (3, HEADS, -1)).permute(2, 0, 3, 1, 4)
        x = x + self.out(F.scaled_dot_product_attention(q, k, v, is_causal=True).transpose(1, 2).flatten(2))
        return x + self.down(F.gelu(self.up(self.norm2(x))))


class AdapterModel(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed, self.head = nn.Embedding(WORDS, WIDTH), nn.Linear(WIDTH, WORDS, bias=False)
        self.layers = nn.Sequential(*(Layer() for _ in range(LAYERS)))

    def adapters(self):
        return {name: m for name, m in self.named_modules() if isinstance(m, LoraLinear)}

    def load_adapter(self, name, state):
        for path, module in self.adapters().items():
            module.update_layer(name)
            module.lora_a[name].weight.data.copy_(state[f"{path}.lora_a"])
            module.lora_b[name].weight.data.copy_(state[f"{path}.lora_b"])

    def set_adapter(self, name):
        for module in self.adapters().values():
            module.active = name

    def delete_adapter(self, name):
        for module in self.adapters().values():
            del module.lora_a[name], module.lora_b[name]
            module.active = None

    def forward(self, ids):
        return self.head(self.layers(self.embed(ids)))


def read_adapter(model):
    return {f"{path}.{side}": torch.zeros(*shape) for path, m in model.adapters().items()
            for side, shape in (("lora_a", (RANK, m.base.in_features)), ("lora_b", (m.base.out_features, RANK)))}


@torch.no_grad()
def perplexity(model, batches=3):
    losses = []
    for _ in range(batches):
        ids = torch.randint(0, WORDS, (4, 129)).cuda()
        losses.append(F.cross_entropy(model(ids[:, :-1]).flatten(0, 1), ids[:, 1:].flatten()).item())
    return sum(losses) / len(losses)


model = AdapterModel().cuda().eval()
results = {}
for run in range(30):
    adapter = f"run-{run:03d}"
    model.load_adapter(adapter, read_adapter(model))
    model.set_adapter(adapter)
    results[adapter] = perplexity(model)
    if sys.argv[1] == "fixed":
        model.delete_adapter(adapter)
    if run % 5 == 4:
        print(adapter, torch.cuda.memory_allocated() >> 20, "MiB")
