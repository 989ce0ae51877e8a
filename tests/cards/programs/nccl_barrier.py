# SPDX-License-Identifier: Apache-2.0
"""A rank's card in use after NCCL's first barrier, where the programs of modded-nanogpt print nvidia-smi."""
import os

import torch
import torch.distributed as dist

device = torch.device("cuda", int(os.environ["LOCAL_RANK"]))
torch.cuda.set_device(device)
dist.init_process_group("nccl", device_id=device)
dist.barrier()
free, total = torch.cuda.mem_get_info()
print(f"in use: {(total - free) / 2**20:.0f} MiB", flush=True)
dist.barrier()
dist.destroy_process_group()
