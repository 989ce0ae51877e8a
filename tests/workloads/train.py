# SPDX-License-Identifier: Apache-2.0
"""train.py TRUTH MODEL[:amp]... : trains each for three steps and writes PyTorch's truth at marks after
forward, backward and step."""
import sys

import torch

import models
import truth


def train(case):
    name, _, how = case.partition(":")
    model, loss_of_batch = getattr(models, name)()
    optimizer = torch.optim.AdamW([p for p in model.parameters() if p.requires_grad], lr=1e-4)
    scaler = torch.amp.GradScaler("cuda", enabled=how == "amp")
    for _ in range(3):
        with torch.autocast("cuda", dtype=torch.float16, enabled=how == "amp"):
            loss = loss_of_batch()
        truth.mark(name + "_forward")
        scaler.scale(loss).backward()
        truth.mark(name + "_backward")
        scaler.step(optimizer)
        scaler.update()
        truth.mark(name + "_step")
        optimizer.zero_grad()
        truth.mark(name + "_zero")


def main():
    for case in sys.argv[2:]:
        train(case)
        torch.cuda.empty_cache()
    truth.mark("end")
    truth.write(sys.argv[1])


if __name__ == "__main__":
    main()
