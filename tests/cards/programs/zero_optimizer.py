# SPDX-License-Identifier: Apache-2.0
"""zero_optimizer.py zero|adam: 20 layers of 2000 x 2000 under DDP in two processes, one update of Adam, sharded or not, as PyTorch's recipe
of ZeroRedundancyOptimizer does it. Adam had no foreach form in 2021."""
import os
import sys

import torch
import torch.distributed as dist
from torch import nn
from torch.distributed.optim import ZeroRedundancyOptimizer

SETTINGS = dict(lr=0.01, foreach=False)


def train(rank, sharded):
    os.environ.update(MASTER_ADDR="localhost", MASTER_PORT=str(29600 + os.getppid() % 300))
    dist.init_process_group("gloo", rank=rank, world_size=2)
    model = nn.parallel.DistributedDataParallel(nn.Sequential(*[nn.Linear(2000, 2000).to(rank) for _ in range(20)]), device_ids=[rank])
    optimizer = (ZeroRedundancyOptimizer(model.parameters(), optimizer_class=torch.optim.Adam, **SETTINGS) if sharded else
                 torch.optim.Adam(model.parameters(), **SETTINGS))
    nn.MSELoss()(model(torch.randn(20, 2000).to(rank)), torch.randn(20, 2000).to(rank)).backward()
    optimizer.step()
    if rank == 0:
        print(f"after the optimizer's step: {torch.cuda.max_memory_allocated(rank) // 1e6} MB", flush=True)
    dist.barrier()


if __name__ == "__main__":
    torch.multiprocessing.spawn(train, args=(sys.argv[1] == "zero",), nprocs=2)
