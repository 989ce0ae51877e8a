# SPDX-License-Identifier: Apache-2.0
"""refused.py TRUTH: runs out of memory in a forward pass, in a backward pass, and by a limit of its own;
catches each and goes on training."""
import sys

import torch

import models
import truth


def refused(what, function):
    try:
        function()
    except torch.cuda.OutOfMemoryError as e:
        truth.mark("refused", how=what, ooms=torch.cuda.memory_stats()["num_ooms"], text=str(e)[:60])
    else:
        raise AssertionError(what)


class Greedy(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return x * 2

    @staticmethod
    def backward(ctx, g):
        return g * torch.empty(torch.cuda.mem_get_info()[1], dtype=torch.uint8, device="cuda")[0]


def main():
    model, loss_of_batch = models.blocks()
    optimizer = torch.optim.AdamW(model.parameters())

    def step():
        loss_of_batch().backward()
        optimizer.step()
        optimizer.zero_grad()

    def hoard():
        kept = [torch.empty(64 << 20, dtype=torch.uint8, device="cuda") for _ in range(10000)]
        return kept

    step()
    refused("huge", lambda: torch.empty(torch.cuda.mem_get_info()[1] * 2, dtype=torch.uint8, device="cuda"))
    step()
    refused("hoard", hoard)
    step()
    refused("backward", lambda: Greedy.apply(model.head.bias.sum()).backward())
    step()
    torch.cuda.set_per_process_memory_fraction(0.2)
    refused("limit", hoard)
    step()
    truth.mark("end", ooms=torch.cuda.memory_stats()["num_ooms"])
    truth.write(sys.argv[1])


if __name__ == "__main__":
    main()
