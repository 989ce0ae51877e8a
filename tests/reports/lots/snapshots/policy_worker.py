# SPDX-License-Identifier: Apache-2.0
"""A worker that holds the policy and its reference. Recording begins when both are made."""
import functools
import os
import sys
import time
from pathlib import Path

import torch
import torch.nn.functional as F
from torch import nn


def snapshot_on_oom(tag):
    def decorator(fn):
        @functools.wraps(fn)
        def wrapper(self, *args, **kwargs):
            try:
                return fn(self, *args, **kwargs)
            except torch.OutOfMemoryError:
                name = f"oom_{tag}_rank0_pid{os.getpid()}_{time.strftime('%Y%m%d-%H%M%S')}.pickle"
                torch.cuda.memory._dump_snapshot(str(self.folder / name))
                raise
        return wrapper
    return decorator


class Block(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.norm, self.norm2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.qkv, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.up, self.down = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)

    def forward(self, x):
        b, n, w = x.shape
        q, k, v = self.qkv(self.norm(x)).view(b, n, 3, 8, -1).permute(2, 0, 3, 1, 4)
        x = x + self.out(F.scaled_dot_product_attention(q, k, v, is_causal=True).transpose(1, 2).reshape(b, n, w))
        return x + self.down(F.gelu(self.up(self.norm2(x))))


class Policy(nn.Module):
    def __init__(self, vocabulary=16000, width=768, layers=10):
        super().__init__()
        self.embed = nn.Embedding(vocabulary, width)
        self.blocks = nn.ModuleList(Block(width) for _ in range(layers))
        self.head = nn.Linear(width, vocabulary, bias=False)

    def forward(self, ids):
        x = self.embed(ids)
        for block in self.blocks:
            x = block(x)
        return self.head(x)


class PolicyWorker:
    def __init__(self, folder):
        self.folder = folder
        self.model, self.reference = Policy().cuda(), Policy().cuda().requires_grad_(False)
        self.optimizer = torch.optim.AdamW(self.model.parameters(), lr=1e-6, foreach=False)
        torch.cuda.memory._record_memory_history(max_entries=200_000)

    def logprobs(self, model, ids):
        return torch.log_softmax(model(ids), -1)[:, :-1].gather(-1, ids[:, 1:, None]).squeeze(-1)

    @snapshot_on_oom("get_reference_policy_logprobs")
    @torch.no_grad()
    def get_reference_policy_logprobs(self, ids):
        return self.logprobs(self.reference, ids)

    @snapshot_on_oom("train")
    def train(self, ids, reference):
        logp = self.logprobs(self.model, ids)
        loss = (-logp + 0.1 * (torch.exp(reference - logp) - (reference - logp) - 1)).mean()
        loss.backward()
        self.optimizer.step()
        self.optimizer.zero_grad()
        return loss.detach().cpu()


worker = PolicyWorker(Path(sys.argv[1]))
for step in range(3):
    ids = torch.randint(0, 16000, (2, 384)).cuda()
    worker.train(ids, worker.get_reference_policy_logprobs(ids))
