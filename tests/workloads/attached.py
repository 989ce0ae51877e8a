# SPDX-License-Identifier: Apache-2.0
"""A program to attach to: does what stdin says, one word a line, and says what its tensors are. Every wait lasts until
the file `go` is there."""
import asyncio
import ctypes
import gc
import json
import os
import sys
import threading
import time

import torch

GO = os.path.abspath("go")


def until_go(wait):
    while not os.path.exists(GO):
        wait()
    os.unlink(GO)


async def awaits():
    while not os.path.exists(GO):
        await asyncio.sleep(0.01)
    os.unlink(GO)


def in_a_thread(wait):
    thread = threading.Thread(target=until_go, args=(wait,))
    thread.start()
    thread.join()


def in_c():
    """Without the interpreter's lock, until a byte comes."""
    os.mkfifo("pipe")
    end = os.open("pipe", os.O_RDWR)
    threading.Timer(3, os.write, (end, b"x")).start()
    os.read(end, 1)
    os.unlink("pipe")


class Rows(torch.utils.data.Dataset):
    def __len__(self):
        return 1 << 20

    def __getitem__(self, i):
        time.sleep(0.001)
        return torch.full((4,), float(i))


class Training:
    """Of two equal models the one on the CPU computes, the one on the device only takes memory."""

    def __init__(self):
        torch.manual_seed(1)
        self.models = []
        for device in "cpu", "cuda":
            model = torch.nn.Sequential(torch.nn.Linear(64, 256), torch.nn.BatchNorm1d(256), torch.nn.Linear(256, 8)).to(device)
            self.models.append((device, model, torch.optim.AdamW(model.parameters())))
        self.losses = []

    def step(self, clear=True):
        x = torch.randn(16, 64)
        for device, model, optimizer in self.models:
            if clear:
                optimizer.zero_grad()
            loss = model(x.to(device)).square().mean()
            loss.backward()
            optimizer.step()
            if device == "cpu":
                self.losses.append(loss.item())

    def wait(self):
        time.sleep(0.01)

    def held(self):
        _, model, optimizer = self.models[1]
        tensors = {"parameters": list(model.parameters()), "buffers": list(model.buffers()),
                   "gradients": [p.grad for p in model.parameters()],
                   "optimizer_state": [t for s in optimizer.state.values() for t in s.values() if t.is_cuda]}
        return {kind: sorted(t.untyped_storage().data_ptr() for t in tensors) for kind, tensors in tensors.items()}


def steps(training, count):
    for _ in range(count):
        training.step()


def main():
    training = None
    for line in sys.stdin:
        word, said = line.strip(), {}
        if word == "train":
            training = training or Training()
            steps(training, 200)
            said = {"losses": training.losses, "held": training.held(), "allocated": torch.cuda.memory_allocated(),
                    "peak": torch.cuda.max_memory_allocated(), "allocations": torch.cuda.memory_stats()["allocation.all.allocated"]}
        print(json.dumps({"begins": word}), flush=True)
        if word == "sleep":
            until_go(lambda: time.sleep(0.05))
        elif word == "spin":
            until_go(lambda: None)
        elif word == "asyncio":
            asyncio.run(awaits())
        elif word == "thread":
            in_a_thread(lambda: time.sleep(0.01))
        elif word == "frozen":
            gc.freeze()
            in_a_thread(training.wait)
            gc.unfreeze()
        elif word == "c":
            in_c()
        elif word == "gil":
            ctypes.PyDLL(None).usleep(3000000)
        elif word == "training":
            until_go(training.step)
        elif word == "loader":
            loader = iter(torch.utils.data.DataLoader(Rows(), batch_size=2, num_workers=1))
            print(json.dumps({"worker": loader._workers[0].pid}), flush=True)
            until_go(lambda: next(loader))
            said = {"row": next(loader)[0, 0].item() % 2}
        elif word == "history":
            torch.cuda.memory._record_memory_history("all", stacks="python")
            training.step()
        if word != "train" and training:
            said.update(history=torch._C._cuda_isHistoryEnabled(), names=sorted(n for n in globals() if n[0] != "_"))
        print(json.dumps({"ends": word, "interval": sys.getswitchinterval(), **said}), flush=True)


if __name__ == "__main__":  # from CPython 3.14 on a loader's worker imports this file
    main()
