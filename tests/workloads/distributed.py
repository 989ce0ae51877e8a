# SPDX-License-Identifier: Apache-2.0
"""distributed.py FOLDER ddp|fsdp: a rank of a training started by torchrun; truth in FOLDER/truth.RANK.json."""
import os
import sys

import torch
import torch.distributed as dist

import models
import truth


def wrapped(how, model, device):
    if how == "ddp":
        return torch.nn.parallel.DistributedDataParallel(model, device_ids=[device])
    from torch.distributed.fsdp import fully_shard
    for layer in model.layers:
        fully_shard(layer)
    return fully_shard(model)


def main():
    folder, how = sys.argv[1:]
    rank = int(os.environ["RANK"])
    torch.cuda.set_device(rank)
    dist.init_process_group("nccl")
    model = wrapped(how, models.Blocks().cuda(), rank)
    optimizer = torch.optim.AdamW(model.parameters())
    loss_of_batch = models.loss_of(model)
    for _ in range(2):
        loss = loss_of_batch()
        truth.mark("forward", [rank])
        loss.backward()
        truth.mark("backward", [rank])
        optimizer.step()
        truth.mark("step", [rank])
        optimizer.zero_grad()
    truth.mark("end", [rank])
    truth.write(os.path.join(folder, f"truth.{rank}.json"), rank=rank)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
