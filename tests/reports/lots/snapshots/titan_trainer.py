# SPDX-License-Identifier: Apache-2.0
"""A trainer inside of a context manager that writes the last 100,000 entries when it ends with an out-of-memory error."""
import contextlib
import pickle
import sys
from pathlib import Path

import torch
import torch.nn.functional as F
from torch import nn

MAX_ENTRIES = 100000


@contextlib.contextmanager
def maybe_enable_memory_snapshot(folder, freq):
    class MemoryProfiler:
        def __init__(self):
            torch.cuda.memory._record_memory_history(max_entries=MAX_ENTRIES)
            self.step_num = 0

        def step(self, exit_ctx=False):
            self.step_num += 1
            if not exit_ctx and self.step_num % freq:
                return
            name = f"iteration_{self.step_num - 1}_exit" if exit_ctx else f"iteration_{self.step_num}"
            (folder / name).mkdir(exist_ok=True)
            with open(folder / name / "rank0_memory_snapshot.pickle", "wb") as output:
                pickle.dump(torch.cuda.memory._snapshot(), output)

    profiler = MemoryProfiler()
    try:
        yield profiler
    except torch.OutOfMemoryError:
        profiler.step(exit_ctx=True)


class FeedForward(nn.Module):
    def __init__(self, dim, hidden):
        super().__init__()
        self.w1, self.w2, self.w3 = nn.Linear(dim, hidden, bias=False), nn.Linear(hidden, dim, bias=False), nn.Linear(dim, hidden, bias=False)

    def forward(self, x):
        return self.w2(F.silu(self.w1(x)) * self.w3(x))


class TransformerBlock(nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.attention = nn.MultiheadAttention(dim, 4, batch_first=True)
        self.ffn, self.norm1, self.norm2 = FeedForward(dim, 2 * dim), nn.RMSNorm(dim), nn.RMSNorm(dim)

    def forward(self, x):
        h = self.norm1(x)
        x = x + self.attention(h, h, h, need_weights=False)[0]
        return x + self.ffn(self.norm2(x))


class Trainer:
    def __init__(self, dim=96, layers=8, vocabulary=2000):
        self.embed, self.head = nn.Embedding(vocabulary, dim).cuda(), nn.Linear(dim, vocabulary).cuda()
        self.layers = nn.ModuleList(TransformerBlock(dim) for _ in range(layers)).cuda()
        self.optimizer = torch.optim.AdamW([*self.embed.parameters(), *self.head.parameters(), *self.layers.parameters()], fused=True)
        self.losses, self.vocabulary = [], vocabulary

    def train_step(self, ids, labels):
        x = self.embed(ids)
        for layer in self.layers:
            x = layer(x)
        loss = F.cross_entropy(self.head(x).flatten(0, 1), labels.flatten())
        z_loss = x.float().square().mean()
        loss.backward(retain_graph=True)
        self.optimizer.step()
        self.optimizer.zero_grad()
        self.losses.append((loss.detach(), z_loss))  # z_loss is for the log, and has never been through backward

    def train(self, steps, profiler):
        for step in range(steps):
            ids = torch.randint(0, self.vocabulary, (4, 65)).cuda()
            self.train_step(ids[:, :-1], ids[:, 1:])
            profiler.step()


with maybe_enable_memory_snapshot(Path(sys.argv[1]), freq=1000) as profiler:
    Trainer().train(400, profiler)
