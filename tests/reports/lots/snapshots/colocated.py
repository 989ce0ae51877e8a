# SPDX-License-Identifier: Apache-2.0
"""Rollouts and training share a device. The engine's cache is meant to be released before training, and is not."""
import sys
import time
from pathlib import Path

import torch
import torch.nn.functional as F
from torch import nn


class MemoryProfiler:
    def __init__(self, folder):
        self.path = str(folder / f"memory_snapshot_time{time.time()}_rank0_snapshot.pickle")

    def start(self):
        torch.cuda.memory._record_memory_history(max_entries=1000000, stacks="all")

        def oom_observer(device, alloc, device_alloc, device_free):
            torch.cuda.memory._dump_snapshot(self.path)

        torch._C._cuda_attach_out_of_memory_observer(oom_observer)


class Block(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.norm, self.qkv, self.out = nn.LayerNorm(width), nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.mlp = nn.Sequential(nn.LayerNorm(width), nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width))

    def forward(self, x, cache=None, at=0):
        b, n, w = x.shape
        q, k, v = self.qkv(self.norm(x)).view(b, n, 3, 8, -1).permute(2, 0, 3, 1, 4)
        if cache is not None:
            cache[0, :, :, at:at + n], cache[1, :, :, at:at + n] = k, v
            k, v = cache[0, :, :, :at + n], cache[1, :, :, :at + n]
        h = F.scaled_dot_product_attention(q, k, v, is_causal=n > 1)
        x = x + self.out(h.transpose(1, 2).reshape(b, n, w))
        return x + self.mlp(x)


class Engine:
    def __init__(self, model, rows=32, length=768):
        self.model, self.rows, self.length = model, rows, length
        self.kv_cache = None

    def resume_memory_occupation(self):
        if self.kv_cache is None:
            width = self.model.embed.embedding_dim
            self.kv_cache = [torch.zeros(2, self.rows, 8, self.length, width // 8, device="cuda") for _ in self.model.blocks]

    def release_memory_occupation(self, tags=("weights",)):
        if "kv_cache" in tags:
            self.kv_cache = None

    @torch.no_grad()
    def generate(self, prompts, new=6):
        ids, x = prompts, prompts
        for _ in range(new):
            at = ids.shape[1] - x.shape[1]
            h = self.model.embed(x)
            for block, cache in zip(self.model.blocks, self.kv_cache):
                h = block(h, cache, at)
            x = self.model.head(h[:, -1:]).argmax(-1)
            ids = torch.cat([ids, x], 1)
        return ids


class Model(nn.Module):
    def __init__(self, vocabulary=8000, width=512, layers=6):
        super().__init__()
        self.embed, self.head = nn.Embedding(vocabulary, width), nn.Linear(width, vocabulary)
        self.blocks = nn.ModuleList(Block(width) for _ in range(layers))

    def forward(self, ids):
        h = self.embed(ids)
        for block in self.blocks:
            h = block(h)
        return self.head(h)


profiler = MemoryProfiler(Path(sys.argv[1]))
profiler.start()
model = Model().cuda()
engine, optimizer = Engine(model), torch.optim.AdamW(model.parameters())
for rollout in range(2):
    engine.resume_memory_occupation()
    ids = engine.generate(torch.randint(0, 8000, (32, 378)).cuda())
    engine.release_memory_occupation()
    for part in ids.split(16):
        logp = torch.log_softmax(model(part[:, :-1]), -1).gather(-1, part[:, 1:, None])
        (-logp.mean()).backward()
    optimizer.step()
    optimizer.zero_grad()
