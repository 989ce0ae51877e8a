# SPDX-License-Identifier: Apache-2.0
"""rebuilt_buckets.py HOW: DistributedDataParallel makes its buckets anew in the second step; gradients are views of them. Prints, for each
step, the storages that gradients lie in before the optimizer's step."""
import json
import os
import socket
import sys

import torch
import torch.distributed as dist
from torch import nn

how = sys.argv[1]
with socket.socket() as s:
    s.bind(("127.0.0.1", 0))
    os.environ.update(MASTER_ADDR="127.0.0.1", MASTER_PORT=str(s.getsockname()[1]), RANK="0", WORLD_SIZE="1")
dist.init_process_group("nccl", device_id=torch.device("cuda:0"))
body = nn.Sequential(*[nn.Sequential(nn.Linear(1024, 2048), nn.GELU(), nn.Linear(2048, 1024)) for _ in range(4)]).cuda()
model = nn.parallel.DistributedDataParallel(body, gradient_as_bucket_view=True, bucket_cap_mb=10)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
storages = []
for step in range(4):
    if how == "accumulate":
        with model.no_sync():
            model(torch.randn(64, 1024, device="cuda")).square().mean().backward()
    model(torch.randn(64, 1024, device="cuda")).square().mean().backward()
    with torch.profiler.record_function("gradients are there"):
        storages.append(sorted({p.grad.untyped_storage().data_ptr() for p in body.parameters()}))
    optimizer.step()
    optimizer.zero_grad(set_to_none=how != "zeros")
print(json.dumps(storages))
dist.destroy_process_group()
