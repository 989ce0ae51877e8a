# SPDX-License-Identifier: Apache-2.0
# devices: 2
"""Two devices, layers computed again in backward, and gradients of two batches that add up: they stay beside the buckets."""
import os

import torch
import torch.distributed as dist
from torch.utils.checkpoint import checkpoint

import runner
import truth

rank = int(os.environ["RANK"])
torch.cuda.set_device(rank)
dist.init_process_group("nccl")
model = runner.gpt(wrap=lambda layer, x: checkpoint(layer, x, use_reentrant=False))
optimizer = torch.optim.SGD(model.parameters(), momentum=0.9)
runner.declare(model, optimizer)
with truth.phase("communication"):
    parallel = torch.nn.parallel.DistributedDataParallel(model, device_ids=[rank])
truth.holds_sizes("communication", "bucket", lambda: [
    b.buffer().nbytes for b in parallel.reducer._get_zeros_like_grad_buckets()])
runner.train(parallel, optimizer, lambda: model.batch(24), parts=2)
dist.destroy_process_group()
