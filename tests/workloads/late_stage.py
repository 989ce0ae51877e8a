# SPDX-License-Identifier: Apache-2.0
"""late_stage.py HOW FIFO: the first stage of a pipeline is busy (HOW: work, for 6 s by itself; child, for 6 s in a compiler that it starts; sleep, until the last
stage opens FIFO, because it has given up) before it sends what the last stage waits for. Then a broadcast of a rank that is not run."""
import os
import subprocess
import sys

import torch
import torch.distributed as dist

WORK = "import time; end = time.time() + 6\nwhile time.time() < end: sum(range(10000))"
how, fifo = sys.argv[1:]
rank, size = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
device = torch.device("cuda", int(os.environ["LOCAL_RANK"]))
torch.cuda.set_device(device)
dist.init_process_group("nccl")
if rank == 0:
    if how == "work":
        exec(WORK)
    elif how == "child":
        subprocess.run([sys.executable, "-c", WORK], check=True)
    else:
        open(fifo).close()
    dist.send_object_list(["shape", (4, 8192)], dst=1, device=device)
elif rank == size - 1:
    got = [None, None]
    try:
        dist.recv_object_list(got, src=rank - 1, device=device)
    except EOFError:
        got = "nothing"
    print("received", got, flush=True)
    if how == "sleep":
        open(fifo, "w").close()
objects = [rank, rank]
dist.broadcast_object_list(objects, src=size // 2, device=device)
print("objects", objects, flush=True)
dist.destroy_process_group()  # PyTorch's watchdog may end a process that is ending
