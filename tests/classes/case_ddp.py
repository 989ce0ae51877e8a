# SPDX-License-Identifier: Apache-2.0
# devices: 2
"""Two devices, the same model on each: gradients are copied through buckets."""
import os

import torch
import torch.distributed as dist

import runner
import truth

rank = int(os.environ["RANK"])
torch.cuda.set_device(rank)
dist.init_process_group("nccl")
model = runner.gpt()
optimizer = torch.optim.AdamW(model.parameters())
runner.declare(model, optimizer)
with truth.phase("communication"):
    parallel = torch.nn.parallel.DistributedDataParallel(model, device_ids=[rank])
truth.holds_sizes("communication", "bucket", lambda: [
    b.buffer().nbytes for b in parallel.reducer._get_zeros_like_grad_buckets()])
runner.train(parallel, optimizer, model.batch, inside=model.middle())
dist.destroy_process_group()
