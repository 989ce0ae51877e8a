# SPDX-License-Identifier: Apache-2.0
"""A serving engine whose memory is recorded between two calls of its HTTP interface; weights and cache are there before."""
import sys
import time
from pathlib import Path

import torch
import torch.nn.functional as F
from torch import nn

FOLDER, FIXED = Path(sys.argv[1]), sys.argv[2:] == ["fixed"]
WIDTH, HEADS, LAYERS, VOCABULARY = 768, 12, 8, 64000


class Layer(nn.Module):
    def __init__(self):
        super().__init__()
        self.qkv, self.out = nn.Linear(WIDTH, 3 * WIDTH, bias=False), nn.Linear(WIDTH, WIDTH, bias=False)
        self.up, self.down = nn.Linear(WIDTH, 4 * WIDTH, bias=False), nn.Linear(4 * WIDTH, WIDTH, bias=False)

    def forward(self, x, pool, slots):
        n = len(x)
        q, k, v = self.qkv(F.rms_norm(x, x.shape[-1:])).view(n, 3, HEADS, -1).unbind(1)
        pool[0][slots], pool[1][slots] = k, v
        h = F.scaled_dot_product_attention(q.transpose(0, 1), pool[0][slots].transpose(0, 1), pool[1][slots].transpose(0, 1), is_causal=True)
        x = x + self.out(h.transpose(0, 1).reshape(n, WIDTH))
        return x + self.down(F.silu(self.up(F.rms_norm(x, x.shape[-1:]))))


class ModelRunner:
    def __init__(self, tokens=32768):
        with torch.device("cuda"):
            self.embed, self.head = nn.Embedding(VOCABULARY, WIDTH).bfloat16(), nn.Linear(WIDTH, VOCABULARY, bias=False).bfloat16()
            self.layers = nn.ModuleList(Layer() for _ in range(LAYERS)).bfloat16()
            self.pools = [torch.zeros(2, tokens, HEADS, WIDTH // HEADS, dtype=torch.bfloat16) for _ in range(LAYERS)]

    @torch.inference_mode()
    def forward_extend(self, ids):
        x, slots = self.embed(ids), torch.arange(len(ids), device="cuda")
        for layer, pool in zip(self.layers, self.pools):
            x = layer(x, pool, slots)
        if FIXED:  # the prompt's scores are not asked for
            x = x[-1:]
        logits = self.head(x).float()
        return torch.log_softmax(logits, -1)[-1].argmax().item()


class Scheduler:
    def __init__(self):
        self.runner = ModelRunner()

    def start_profile(self):
        torch.cuda.memory._record_memory_history(max_entries=100000)

    def stop_profile(self):
        torch.cuda.memory._dump_snapshot(str(FOLDER / f"{time.time()}-TP-0-memory.pickle"))
        torch.cuda.memory._record_memory_history(enabled=None)


scheduler = Scheduler()
scheduler.runner.forward_extend(torch.arange(64, device="cuda"))
scheduler.start_profile()
for length in (900, 1800, 1200, 600):
    scheduler.runner.forward_extend(torch.randint(0, VOCABULARY, (length,)).cuda())
scheduler.stop_profile()
r = scheduler.runner
print("truth", {"weights": sum(p.nbytes for m in (r.embed, r.head, r.layers) for p in m.parameters()), "cache": sum(p.nbytes for p in r.pools)},
      torch.cuda.max_memory_allocated())
