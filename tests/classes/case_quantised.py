# SPDX-License-Identifier: Apache-2.0
"""Adapters on a base of four bits: weights are packed bytes with a scale a block, made wide in each forward and again
in backward by a Function of one's own; layers are checkpointed, adapters are trained in fp32."""
import torch
from torch import nn
from torch.nn import functional as F
from torch.utils.checkpoint import checkpoint

import runner
import truth

BLOCK = 64


def dequantise(packed, scales, shape, dtype):
    low, high = packed & 15, packed >> 4
    wide = torch.stack([low, high], -1).view(-1, BLOCK).to(dtype) - 7.5
    return (wide * scales.to(dtype)[:, None]).view(shape)


class Matmul4(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, packed, scales, shape):
        ctx.save_for_backward(packed, scales)
        ctx.shape = shape
        return x @ dequantise(packed, scales, shape, x.dtype).t()

    @staticmethod
    def backward(ctx, grad):
        packed, scales = ctx.saved_tensors
        return grad @ dequantise(packed, scales, ctx.shape, grad.dtype), None, None, None


class Linear4(nn.Module):
    def __init__(self, base, r=16):
        super().__init__()
        out, wide = base.weight.shape
        self.shape = (out, wide)
        self.packed = nn.Parameter(torch.zeros(out * wide // 2, dtype=torch.uint8), requires_grad=False)
        self.register_buffer("scales", torch.ones(out * wide // BLOCK, dtype=torch.float32))
        self.lora_a = nn.Parameter(torch.randn(r, wide) / r)
        self.lora_b = nn.Parameter(torch.zeros(out, r))
        self.dropout = nn.Dropout(0.05)

    def forward(self, x):
        y = Matmul4.apply(x, self.packed, self.scales, self.shape)
        return y + (F.linear(F.linear(self.dropout(x).float(), self.lora_a), self.lora_b) * 2).to(x.dtype)


def convert(module):
    for name, child in module.named_children():
        if isinstance(child, nn.Linear) and name != "head":
            setattr(module, name, Linear4(child))
        else:
            convert(child)


model = runner.Gpt(vocabulary=16000, width=1024, layers=4, heads=16, length=256, wrap=lambda layer, x: checkpoint(layer, x, use_reentrant=False))
model.requires_grad_(False)
convert(model)
for m in (model.tokens, model.places, model.head, model.norm):
    m.to(torch.bfloat16)
for layer in model.layers:
    layer.norm1.to(torch.bfloat16)
    layer.norm2.to(torch.bfloat16)
model = model.to("cuda")
model.train()
trained = [p for p in model.parameters() if p.requires_grad]
optimizer = torch.optim.AdamW(trained, lr=2e-4)
runner.declare(model, optimizer)
runner.train(model, optimizer, model.batch, inside=model.middle(), parts=2,
             before_step=lambda: nn.utils.clip_grad_norm_(trained, 0.3))
