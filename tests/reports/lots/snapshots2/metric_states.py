# SPDX-License-Identifier: Apache-2.0
"""A recommender under a training framework whose observer writes the last 100,000 entries; a metric keeps what each step predicted."""
import os
import pickle
import sys
from pathlib import Path

import torch
import torch.nn.functional as F
from torch import nn

FOLDER, FIXED = Path(sys.argv[1]), sys.argv[2:] == ["fixed"]


def attach_oom_observer(output_dir, trace_max_entries):
    def oom_logger(device, alloc, device_alloc, device_free):
        save_dir = os.path.join(output_dir, "oom_rank0")
        os.makedirs(save_dir, exist_ok=True)
        snapshot = torch.cuda.memory._snapshot()
        with open(os.path.join(save_dir, "snapshot.pickle"), "wb") as f:
            pickle.dump(snapshot, f)

    torch.cuda.memory._record_memory_history(enabled="all", max_entries=trace_max_entries)
    torch._C._cuda_attach_out_of_memory_observer(oom_logger)


class Tower(nn.Module):
    def __init__(self, rows, width=64):
        super().__init__()
        self.table = nn.Embedding(rows, width)
        self.layers = nn.ModuleList(nn.Linear(width, width) for _ in range(6))

    def forward(self, ids):
        x = self.table(ids)
        for layer in self.layers:
            x = x + F.silu(layer(F.layer_norm(x, x.shape[-1:])))
        return F.normalize(x, dim=-1)


class Retrieval(nn.Module):
    def __init__(self):
        super().__init__()
        self.users, self.items = Tower(100_000), Tower(20_000)

    def forward(self, users, items):
        return self.users(users) @ self.items(items).T / 0.05


class RecallAtK:
    def __init__(self):
        self.preds, self.target = [], []

    def update(self, preds, target):
        if FIXED:  # what recall needs of a step
            preds, target = preds.topk(10).indices.cpu(), target.cpu()
        self.preds.append(preds)
        self.target.append(target)


attach_oom_observer(FOLDER, 100_000)
model, metric = Retrieval().cuda(), RecallAtK()
optimizer = torch.optim.Adam(model.parameters(), foreach=False)
try:
    for step in range(420):
        users, items = (torch.randint(0, n, (1024,)).cuda() for n in (100_000, 20_000))
        scores, target = model(users, items), torch.arange(1024, device="cuda")
        loss = F.cross_entropy(scores, target)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        metric.update(scores.detach(), target)
finally:
    print("truth", {"step": step, "kept": sum(p.nbytes for p in metric.preds + metric.target if p.is_cuda),
                    "parameters": sum(p.nbytes for p in model.parameters())}, torch.cuda.max_memory_allocated())
