# SPDX-License-Identifier: Apache-2.0
"""Two stages of a pipeline, a process each, with an observer in the older form and a file a rank. The first stage runs all micro-batches forward before any backward."""
import os
import subprocess
import sys
from pathlib import Path

import torch
from torch import nn

FOLDER, FIXED = Path(sys.argv[1]), sys.argv[2:] == ["fixed"]


def start_memory_history_recording(path, rank):
    torch.cuda.memory._record_memory_history(True, trace_alloc_max_entries=100_000, trace_alloc_record_context=True)

    def _oom_observer(device, alloc, device_alloc, device_free):
        base, ext = os.path.splitext(path)
        torch.cuda.memory._dump_snapshot(f"{base}_oom_rank-{rank}{ext}")

    torch._C._cuda_attach_out_of_memory_observer(_oom_observer)


class Stage(nn.Module):
    def __init__(self, rank, width=512, vocabulary=8000):
        super().__init__()
        self.embed = nn.Embedding(vocabulary, width) if rank == 0 else None
        self.layers = nn.ModuleList(nn.TransformerEncoderLayer(width, 8, 4 * width, batch_first=True, norm_first=True) for _ in range(4))
        self.head = nn.Linear(width, vocabulary) if rank == 1 else None

    def forward(self, x):
        x = self.embed(x) if self.embed else x
        for layer in self.layers:
            x = layer(x)
        return self.head(x).logsumexp(-1).mean() if self.head else x


def forward_backward(stage, micro_batches, in_flight):
    waiting = []
    for batch in micro_batches:
        if len(waiting) == in_flight:
            done = waiting.pop(0)
            done.backward(torch.ones_like(done))
        waiting.append(stage(batch))
    for done in waiting:
        done.backward(torch.ones_like(done))


def rank_main(rank):
    torch.cuda.set_device(rank)
    start_memory_history_recording(str(FOLDER / "snapshot.pickle"), rank)
    stage = Stage(rank).cuda()
    optimizer = torch.optim.AdamW(stage.parameters())
    for _ in range(3):
        batches = [torch.randint(0, 8000, (4, 512)).cuda() if rank == 0 else torch.randn(4, 512, 512).cuda() for _ in range(12)]
        forward_backward(stage, batches, in_flight=2 if FIXED or rank else len(batches))
        optimizer.step()
        optimizer.zero_grad()
    torch.cuda.memory._dump_snapshot(str(FOLDER / f"snapshot_rank-{rank}.pickle"))


if "RANK" in os.environ:
    try:
        rank_main(int(os.environ["RANK"]))
    finally:
        print("truth", {"rank": int(os.environ["RANK"])}, torch.cuda.max_memory_allocated(), flush=True)
else:
    ranks = [subprocess.Popen([sys.executable, *sys.argv], env={**os.environ, "RANK": str(i)}) for i in range(2)]
    print([r.wait() for r in ranks])
