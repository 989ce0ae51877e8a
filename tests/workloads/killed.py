# SPDX-License-Identifier: Apache-2.0
"""killed.py FOLDER COUNT SEED: starts trainings by fork (torch is imported once, the device is first used in
the child) and kills each with SIGKILL at a random moment, which is behind a random length of its log: on a
busy machine, too, the moments are different ones. Each child logs tensors that it made and gave up,
each after it was done, so that a log never tells of what had not happened."""
import os
import random
import signal
import struct
import sys
import time

import torch
import torch._dynamo  # as an optimizer does at its first use

import models

BORN, FREED, EXISTS = range(3)


def child(folder, number, go):
    log = os.open(os.path.join(folder, f"log.{number}.{os.getpid()}"), os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    kept = []

    def note(tensor, what):
        os.write(log, struct.pack("<qqq", tensor.data_ptr(), tensor.untyped_storage().nbytes(), what))

    model, loss_of_batch = models.mlp()
    optimizer = torch.optim.AdamW(model.parameters())
    for p in model.parameters():
        note(p, EXISTS)
    os.write(go, b"x")
    for i in range(100000):
        loss_of_batch().backward()
        optimizer.step()
        for p in model.parameters():
            note(p.grad, EXISTS)
            note(optimizer.state[p]["exp_avg"], EXISTS)
        optimizer.zero_grad(set_to_none=False)
        kept.append(torch.empty(100 + 7 * (i % 900), device="cuda"))
        note(kept[-1], BORN)
        if len(kept) > 20:
            gone = kept.pop(random.randrange(20))
            place = gone.data_ptr(), gone.untyped_storage().nbytes()
            del gone
            os.write(log, struct.pack("<qqq", *place, FREED))


def main():
    folder, count, seed = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
    random.seed(seed)
    for number in range(count):
        ready, go = os.pipe()
        pid = os.fork()
        if pid == 0:
            os.close(ready)
            child(folder, number, go)
        os.close(go)
        assert os.read(ready, 1) == b"x"
        os.close(ready)
        log, length = os.path.join(folder, f"log.{number}.{pid}"), random.randrange(400) * struct.calcsize("qqq")
        while os.stat(log).st_size < length:
            assert not os.waitid(os.P_PID, pid, os.WEXITED | os.WNOHANG | os.WNOWAIT)
            time.sleep(0.001)
        time.sleep(random.uniform(0, 0.005))
        os.kill(pid, signal.SIGKILL)
        os.waitpid(pid, 0)


if __name__ == "__main__":
    main()
