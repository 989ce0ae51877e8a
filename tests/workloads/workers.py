# SPDX-License-Identifier: Apache-2.0
"""Workers of every kind: those that use the device print their process id; nearly all end by _exit."""
import multiprocessing as mp
import os
import subprocess
import sys

import torch

CHILD = """
import os, torch
torch.empty(3, device="cuda")
print(os.getpid(), flush=True)
os.execvp("true", ["true"])
"""


def work():
    torch.empty(1 << 20, device="cuda")
    print(os.getpid(), flush=True)


def work_and_exit():
    work()
    os._exit(3)


def idle():
    os._exit(0)


class Data(torch.utils.data.Dataset):
    def __len__(self):
        return 8

    def __getitem__(self, i):
        return torch.ones(4)


def main():
    for method, target in [("fork", idle), ("fork", work), ("spawn", work_and_exit), ("forkserver", work_and_exit)]:
        worker = mp.get_context(method).Process(target=target)
        worker.start()
        worker.join()
    torch.empty(1 << 20, device="cuda")
    for batch in torch.utils.data.DataLoader(Data(), batch_size=2, num_workers=2):
        batch.cuda()
    subprocess.run([sys.executable, "-c", CHILD], check=True)
    subprocess.run("true; true", shell=True, close_fds=False, check=True)
    if os.fork() == 0:
        os._exit(0)
    os.wait()
    print(os.getpid(), flush=True)
    os._exit(5)


if __name__ == "__main__":
    main()
