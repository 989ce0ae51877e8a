# SPDX-License-Identifier: Apache-2.0
"""A chat model with 8-bit weights gets an adapter: the model is prepared for the training of low-rank matrices, and trained."""
import sys

import torch
import torch.nn.functional as F
from torch import nn

WORDS, WIDTH, HEADS = 128256, 1536, 12


class Int8Matmul(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, weight, scale):
        ctx.save_for_backward(weight, scale)
        return x @ (weight.to(x.dtype) * scale).T

    @staticmethod
    def backward(ctx, grad):
        weight, scale = ctx.saved_tensors
        return grad @ (weight.to(grad.dtype) * scale), None, None


class Int8Linear(nn.Module):
    def __init__(self, a, b, rank=16):
        super().__init__()
        self.weight = nn.Parameter(torch.zeros(b, a, dtype=torch.int8), requires_grad=False)
        self.scale = nn.Parameter(torch.ones(b, 1, dtype=torch.bfloat16), requires_grad=False)
        self.lora_a, self.lora_b = nn.Linear(a, rank, bias=False), nn.Linear(rank, b, bias=False)

    def forward(self, x):
        return Int8Matmul.apply(x, self.weight, self.scale) + self.lora_b(self.lora_a(x.float())).to(x.dtype)


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.attn_norm, self.mlp_norm = nn.RMSNorm(WIDTH), nn.RMSNorm(WIDTH)
        self.qkv, self.out = Int8Linear(WIDTH, 3 * WIDTH), Int8Linear(WIDTH, WIDTH)
        self.up, self.down = Int8Linear(WIDTH, 4 * WIDTH), Int8Linear(4 * WIDTH, WIDTH)

    def forward(self, x):
        h = self.attn_norm(x.to(self.attn_norm.weight.dtype)).bfloat16()
        q, k, v = self.qkv(h).unflatten(-1, (3, HEADS, -1)).permute(2, 0, 3, 1, 4)
        x = x + self.out(F.scaled_dot_product_attention(q, k, v, is_causal=True).transpose(1, 2).flatten(2))
        h = self.mlp_norm(x.to(self.mlp_norm.weight.dtype)).bfloat16()
        return x + self.down(F.silu(self.up(h)))


class ChatModel(nn.Module):
    def __init__(self, layers=8):
        super().__init__()
        self.embed_tokens, self.lm_head = nn.Embedding(WORDS, WIDTH), nn.Linear(WIDTH, WORDS, bias=False)
        self.layers, self.norm = nn.ModuleList(Block() for _ in range(layers)), nn.RMSNorm(WIDTH)

    def forward(self, ids):
        x = self.embed_tokens(ids).bfloat16()
        for layer in self.layers:
            x = layer(x)
        return self.lm_head(self.norm(x.to(self.norm.weight.dtype)).to(self.lm_head.weight.dtype))


def prepare_model_for_kbit_training(model):
    for name, param in model.named_parameters():
        param.requires_grad = "lora" in name
    for name, param in model.named_parameters():
        if param.dtype == torch.bfloat16 and not name.endswith("scale"):
            if sys.argv[1] == "fixed" and "norm" not in name:
                continue
            param.data = param.data.to(torch.float32)
    return model


with torch.device("cuda"):
    model = ChatModel().to(torch.bfloat16)
for name, param in model.named_parameters():
    if "lora" in name:
        param.data = param.data.float()
model = prepare_model_for_kbit_training(model)
optimizer = torch.optim.AdamW([p for p in model.parameters() if p.requires_grad], lr=2e-4)
for step in range(4):
    ids = torch.randint(0, WORDS, (2, 512), device="cuda")
    loss = F.cross_entropy(model(ids).flatten(0, 1), ids.flatten())
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    print(step, torch.cuda.max_memory_allocated() >> 20, "MiB")
