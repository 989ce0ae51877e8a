# SPDX-License-Identifier: Apache-2.0
"""A chat model gets eight new tokens for tools, and learns them together with low-rank adapters."""
import copy
import sys

import torch
import torch.nn.functional as F
from torch import nn

WORDS, NEW, WIDTH, HEADS, LAYERS = 64000, 8, 1024, 16, 8


class LoraLinear(nn.Module):
    def __init__(self, inputs, outputs, rank=16):
        super().__init__()
        self.base = nn.Linear(inputs, outputs, bias=False, dtype=torch.bfloat16)
        self.lora_a, self.lora_b = nn.Linear(inputs, rank, bias=False), nn.Linear(rank, outputs, bias=False)

    def forward(self, x):
        return self.base(x) + self.lora_b(self.lora_a(x.float())).to(x.dtype)


class Layer(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm1, self.norm2 = nn.RMSNorm(WIDTH, dtype=torch.bfloat16), nn.RMSNorm(WIDTH, dtype=torch.bfloat16)
        self.qkv, self.out = LoraLinear(WIDTH, 3 * WIDTH), LoraLinear(WIDTH, WIDTH)
        self.up, self.down = LoraLinear(WIDTH, 4 * WIDTH), LoraLinear(4 * WIDTH, WIDTH)

    def forward(self, x):
        q, k, v = self.qkv(self.norm1(x)).unflatten(-1, (3, HEADS, -1)).permute(2, 0, 3, 1, 4)
        x = x + self.out(F.scaled_dot_product_attention(q, k, v, is_causal=True).transpose(1, 2).flatten(2))
        return x + self.down(F.silu(self.up(self.norm2(x))))


class ModulesToSave(nn.Module):
    def __init__(self, module):
        super().__init__()
        self.original, self.modules_to_save = module, copy.deepcopy(module).float()

    def forward(self, x):
        weight = self.modules_to_save.weight
        if isinstance(self.original, nn.Embedding):
            return F.embedding(x, weight).bfloat16()
        return x @ weight.T.to(x.dtype)


class TrainableTokens(nn.Module):
    def __init__(self, module, indices):
        super().__init__()
        self.original = module
        self.register_buffer("indices", indices)
        self.delta = nn.Parameter(module.weight[indices].detach().float())

    def forward(self, x):
        y = self.original(x)
        if isinstance(self.original, nn.Embedding):
            place = (x[..., None] == self.indices).float()
            return torch.where(place.any(-1, keepdim=True), (place @ self.delta).to(y.dtype), y)
        return y.index_copy(-1, self.indices, x @ self.delta.T.to(x.dtype))


class ChatModel(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed_tokens = nn.Embedding(WORDS + NEW, WIDTH, dtype=torch.bfloat16)
        self.layers = nn.ModuleList(Layer() for _ in range(LAYERS))
        self.lm_head = nn.Linear(WIDTH, WORDS + NEW, bias=False, dtype=torch.bfloat16)

    def forward(self, ids):
        x = self.embed_tokens(ids)
        for layer in self.layers:
            x = layer(x)
        return self.lm_head(x)


with torch.device("cuda"):
    model = ChatModel()
    for name, param in model.named_parameters():
        param.requires_grad_("lora" in name)
    for name in ("embed_tokens", "lm_head"):
        module = getattr(model, name)
        wrapped = TrainableTokens(module, torch.arange(WORDS, WORDS + NEW)) if sys.argv[1] == "fixed" else ModulesToSave(module)
        setattr(model, name, wrapped)
        (wrapped.delta if sys.argv[1] == "fixed" else wrapped.modules_to_save.weight).requires_grad_()
optimizer = torch.optim.AdamW([p for p in model.parameters() if p.requires_grad], lr=1e-4)
for step in range(4):
    ids = torch.randint(0, WORDS + NEW, (2, 257), device="cuda")
    loss = F.cross_entropy(model(ids[:, :-1]).flatten(0, 1), ids[:, 1:].flatten())
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    print(step, torch.cuda.max_memory_allocated() >> 20, "MiB")
