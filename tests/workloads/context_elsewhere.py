# SPDX-License-Identifier: Apache-2.0
"""context_elsewhere.py driver|runtime: two ranks, each of which makes a context on device 0 before it chooses its own. Prints what is
used on device 0 while both are there."""
import ctypes
import os
import subprocess
import sys


def work():
    import torch
    rank = int(os.environ["RANK"])
    if sys.argv[1] == "driver":
        cuda, context = ctypes.CDLL("libcuda.so.1"), ctypes.c_void_p()
        cuda.cuInit(0)
        cuda.cuDevicePrimaryCtxRetain(ctypes.byref(context), 0)
    else:
        torch.cuda.synchronize()
    torch.cuda.set_device(rank)
    weights = torch.ones(8 << 20, device="cuda")
    print("ready", flush=True)
    input()
    free, total = torch.cuda.mem_get_info()
    print(total - free, len(weights), flush=True)
    input()


if "RANK" in os.environ:
    work()
else:
    ranks = [subprocess.Popen([sys.executable, *sys.argv], env=dict(os.environ, RANK=str(r), WORLD_SIZE="2"), stdin=subprocess.PIPE,
                              stdout=subprocess.PIPE, text=True) for r in (0, 1)]
    used = []
    for _ in range(2):
        used = [r.stdout.readline() for r in ranks]
        for r in ranks:
            r.stdin.write("\n")
            r.stdin.flush()
    print(used[0].split()[0], *[r.wait() for r in ranks])
