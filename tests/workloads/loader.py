# SPDX-License-Identifier: Apache-2.0
"""Trains from a DataLoader with forked workers, starts a subprocess that uses the device and one that does
not. Arguments: a folder for truths; `parent`, `device` or `plain`."""
import os
import subprocess
import sys

import torch

import models
import truth


class Numbers(torch.utils.data.Dataset):
    def __len__(self):
        return 32

    def __getitem__(self, i):
        return torch.full((130,), float(i))


def batches():
    return torch.utils.data.DataLoader(Numbers(), batch_size=8, num_workers=2, pin_memory=False)


def main():
    folder, how = sys.argv[1:]
    if how == "plain":
        return print("plain", sum(len(b) for b in batches()))
    model, _ = models.mlp()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for batch in batches():
        model(batch.cuda()).sum().backward()
        truth.mark("backward")
        optimizer.step()
        optimizer.zero_grad()
    if how == "parent":
        for child in ("device", "plain"):
            subprocess.run([sys.executable, __file__, folder, child], check=True)
    truth.mark("end")
    truth.write(os.path.join(folder, f"truth.{how}.json"))
    print(how, "done")


if __name__ == "__main__":
    main()
