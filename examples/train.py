# SPDX-License-Identifier: Apache-2.0
"""A small training, alone or as one of several ranks. Rank 1 keeps the outputs of all its steps: the report names it."""
import argparse
import os

import torch
import torch.distributed as dist


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--batch", type=int, default=256)
    batch = parser.parse_args().batch
    rank, ranks = int(os.environ.get("RANK", 0)), int(os.environ.get("WORLD_SIZE", 1))
    torch.cuda.set_device(int(os.environ.get("LOCAL_RANK", 0)))
    model = torch.nn.Sequential(torch.nn.Linear(1024, 4096), torch.nn.GELU(), torch.nn.Linear(4096, 1024)).cuda()
    if ranks > 1:
        dist.init_process_group("nccl")
        model = torch.nn.parallel.DistributedDataParallel(model)
    optimizer = torch.optim.AdamW(model.parameters())
    kept = []
    for _ in range(4):
        optimizer.zero_grad()
        output = model(torch.randn(batch, 1024, device="cuda"))
        output.square().mean().backward()
        optimizer.step()
        if rank == 1:
            kept.append(output.detach())
    if ranks > 1:
        dist.destroy_process_group()


main()
