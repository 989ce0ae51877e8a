# SPDX-License-Identifier: Apache-2.0
"""A node classifier that remembers features of nodes it has seen. A profiler writes a file every ten steps; the later are larger."""
import sys
from pathlib import Path

import torch
import torch.nn.functional as F
from torch import nn

FOLDER, FIXED = Path(sys.argv[1]), sys.argv[2:] == ["fixed"]
MAX_NUM_OF_MEM_EVENTS_PER_SNAPSHOT = 100_000_000


class MemoryProfiler:
    def __init__(self, log_dir):
        self.log_dir = log_dir
        torch.cuda.memory._record_memory_history(max_entries=MAX_NUM_OF_MEM_EVENTS_PER_SNAPSHOT)

    def dump_memory_profile(self, step):
        if (step + 1) % 10 == 0:
            torch.cuda.memory._dump_snapshot(str(self.log_dir / f"memory_at_{step}.pickle"))


class Encoder(nn.Module):
    def __init__(self, width=256):
        super().__init__()
        self.own, self.near, self.head = nn.Linear(128, width), nn.Linear(width, width), nn.Linear(width, 40)
        self.remembered = {}

    def forward(self, batch, nodes, links):
        h = F.relu(self.own(nodes))
        self.remembered[batch] = h.detach().cpu() if FIXED else h.detach()  # for neighbours in later batches
        older = self.remembered.get(batch - 1, h).to(h.device)
        h = h + F.relu(self.near(older))
        return self.head(torch.zeros_like(h).index_add(0, links[0], h[links[1]]))


profiler = MemoryProfiler(FOLDER)
model = Encoder().cuda()
optimizer = torch.optim.Adam(model.parameters(), 0.01)
for step in range(30):
    nodes, links, labels = torch.randn(8000, 128).cuda(), torch.randint(0, 8000, (2, 40000)).cuda(), torch.randint(0, 40, (8000,)).cuda()
    loss = F.cross_entropy(model(step, nodes, links), labels)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    profiler.dump_memory_profile(step)
print("truth", {"remembered": sum(h.nbytes for h in model.remembered.values() if h.is_cuda)}, torch.cuda.max_memory_allocated())
