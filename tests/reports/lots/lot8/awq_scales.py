# SPDX-License-Identifier: Apache-2.0
"""The weights of a Llama are quantized to 4 bits, with scales that are searched on calibration texts (AWQ)."""
import sys

import torch
import torch.nn.functional as F
from torch import nn

WIDTH, INNER, HEADS, LAYERS, SAMPLES, LENGTH = 768, 2048, 12, 3, 64, 512
N_PARALLEL = 4 if sys.argv[1] == "fixed" else None  # of the calibration samples, at once


class LlamaMLP(nn.Module):
    def __init__(self):
        super().__init__()
        self.gate_proj, self.up_proj, self.down_proj = nn.Linear(WIDTH, INNER, bias=False), nn.Linear(WIDTH, INNER, bias=False), nn.Linear(INNER, WIDTH, bias=False)

    def forward(self, x):
        return self.down_proj(F.silu(self.gate_proj(x)) * self.up_proj(x))


class LlamaDecoderLayer(nn.Module):
    def __init__(self):
        super().__init__()
        self.input_layernorm, self.post_attention_layernorm, self.mlp = nn.RMSNorm(WIDTH), nn.RMSNorm(WIDTH), LlamaMLP()
        self.q_proj, self.k_proj, self.v_proj, self.o_proj = (nn.Linear(WIDTH, WIDTH, bias=False) for _ in range(4))

    def forward(self, x):
        y = self.input_layernorm(x)
        q, k, v = (p(y).unflatten(-1, (HEADS, -1)).transpose(1, 2) for p in (self.q_proj, self.k_proj, self.v_proj))
        x = x + self.o_proj(F.scaled_dot_product_attention(q, k, v, is_causal=True).transpose(1, 2).flatten(2))
        return x + self.mlp(self.post_attention_layernorm(x))


class AwqQuantizer:
    def pseudo_quantize_tensor(self, w):
        shape, w = w.shape, w.reshape(-1, 128)
        low, scales = w.amin(1, keepdim=True), (w.amax(1, keepdim=True) - w.amin(1, keepdim=True)).clamp(min=1e-5) / 15
        return (((w - low) / scales).round().clamp(0, 15) * scales + low).reshape(shape)

    def _module_forward(self, x, module):
        if N_PARALLEL is None:
            return module(x)
        return torch.cat([module(x_partial).cpu() for x_partial in torch.split(x, N_PARALLEL)])

    def _compute_loss(self, fp16_output, int_w_output, device):
        if N_PARALLEL is None:
            return (fp16_output - int_w_output).float().pow(2).mean().item()
        chunks = zip(torch.split(fp16_output, N_PARALLEL), torch.split(int_w_output, N_PARALLEL))
        return sum((a.to(device) - b.to(device)).float().pow(2).sum().item() for a, b in chunks) / fp16_output.numel()

    def _search_best_scale(self, module2inspect, layers, inp, n_grid=5):
        w_mean = (torch.cat([fc.weight for fc in layers]).abs() + 1e-6).mean(0)
        x_mean = (inp.abs() if N_PARALLEL is None else inp.cpu().abs()).view(-1, WIDTH).mean(0).to("cuda")
        fp16_output = self._module_forward(inp, module2inspect)
        org_sd, history = {k: v.cpu() for k, v in module2inspect.state_dict().items()}, []
        for ratio in range(n_grid):
            scales = x_mean.pow(ratio / n_grid) / (w_mean.pow(1 - ratio / n_grid) + 1e-4)
            for fc in layers:
                fc.weight.data = self.pseudo_quantize_tensor(fc.weight.data * scales) / scales
            int_w_output = self._module_forward(inp, module2inspect)
            history.append((self._compute_loss(fp16_output, int_w_output, inp.device), scales.cpu()))
            module2inspect.load_state_dict(org_sd)
        return min(history, key=lambda entry: entry[0])[1]

    @torch.no_grad()
    def quantize(self, modules, inps):
        for i, layer in enumerate(modules):
            layer, inps, input_feat = layer.to("cuda"), inps.to("cuda"), []
            handle = layer.mlp.register_forward_hook(lambda module, x, y: input_feat.append(x[0].detach().cpu()))
            inps = self._module_forward(inps, layer)
            handle.remove()
            self._search_best_scale(layer.mlp, [layer.mlp.gate_proj, layer.mlp.up_proj], torch.cat(input_feat).to("cuda"))
            layer.cpu()
            print("layer", i, torch.cuda.max_memory_allocated() >> 20, "MiB")


torch.set_default_dtype(torch.float16)
layers, embed_tokens = [LlamaDecoderLayer() for _ in range(LAYERS)], nn.Embedding(32_000, WIDTH).to("cuda")
AwqQuantizer().quantize(layers, embed_tokens(torch.randint(0, 32_000, (SAMPLES, LENGTH)).to("cuda")).detach())
