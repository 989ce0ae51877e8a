# SPDX-License-Identifier: Apache-2.0
"""A language model is quantized block by block: learned rounding, tuned on the block's inputs for some calibration texts."""
import sys

import torch
import torch.nn.functional as F
from torch import nn

WIDTH, LAYERS, LENGTH, SAMPLES, BATCH = 512, 4, 512, 192, 8


class DecoderLayer(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm1, self.norm2 = nn.LayerNorm(WIDTH), nn.LayerNorm(WIDTH)
        self.qkv, self.o = nn.Linear(WIDTH, 3 * WIDTH, bias=False), nn.Linear(WIDTH, WIDTH, bias=False)
        self.up, self.down = nn.Linear(WIDTH, 3 * WIDTH, bias=False), nn.Linear(3 * WIDTH, WIDTH, bias=False)

    def forward(self, x):
        q, k, v = self.qkv(self.norm1(x)).unflatten(-1, (3, 8, -1)).permute(2, 0, 3, 1, 4)
        x = x + self.o(F.scaled_dot_product_attention(q, k, v, is_causal=True).transpose(1, 2).flatten(2))
        return x + self.down(F.silu(self.up(self.norm2(x))))


class WrapperLinear(nn.Module):
    def __init__(self, linear, bits=4):
        super().__init__()
        self.register_buffer("weight", linear.weight.detach())
        self.scale = self.weight.abs().amax(1, keepdim=True) / (2 ** (bits - 1) - 1)
        self.value = nn.Parameter(torch.zeros_like(self.weight))

    def qdq(self):
        w = self.weight / self.scale + self.value
        return ((w.round() - w).detach() + w).clamp(-8, 7) * self.scale

    def forward(self, x):
        return F.linear(x, self.weight if self.value is None else self.qdq())


@torch.no_grad()
def calibrate(block, inputs, device="cpu"):
    return [block(x.cuda()).to(device) for x in inputs]


class AutoRoundModifier:
    def __init__(self, iters=8, device="cuda"):
        self.iters, self.device, self.all_module_input = iters, device, []

    def input_capture_hook(self, module, args):
        self.all_module_input.append(args[0].to(self.device))

    def quantize_block(self, block):
        fp_outputs = calibrate(block, self.all_module_input, self.device)
        wrapped = {n: WrapperLinear(m) for n, m in block.named_children() if isinstance(m, nn.Linear)}
        block._modules.update(wrapped)
        rounding = torch.optim.SGD([m.value for m in wrapped.values()], lr=5e-3)
        for i in range(self.iters):
            x, y = (torch.cat([t[j % len(t)] for j in range(i, i + 2)]).cuda() for t in (self.all_module_input, fp_outputs))
            loss = F.mse_loss(block(x), y)
            rounding.zero_grad()
            loss.backward()
            rounding.step()
        for module in wrapped.values():
            module.weight, module.value = module.qdq().detach(), None
        self.all_module_input = []


blocks = nn.ModuleList(DecoderLayer() for _ in range(LAYERS)).requires_grad_(False)
embeddings = nn.Embedding(8000, WIDTH).requires_grad_(False)
cache = [embeddings(torch.randint(0, 8000, (BATCH, LENGTH))) for _ in range(SAMPLES // BATCH)]
modifier = AutoRoundModifier(device="cpu" if sys.argv[1] == "fixed" else "cuda")
for i, block in enumerate(blocks):
    block.cuda()
    handle = block.register_forward_pre_hook(modifier.input_capture_hook)
    calibrate(block, cache)
    handle.remove()
    modifier.quantize_block(block)
    cache = calibrate(block, cache)
    block.cpu()
    print(i, torch.cuda.max_memory_allocated() >> 20, "MiB")
