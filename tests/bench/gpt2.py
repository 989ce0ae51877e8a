# SPDX-License-Identifier: Apache-2.0
"""Trains GPT-2 (124M parameters) on random tokens. Arguments: steps, and optionally a file for
PyTorch's own snapshot (its recorder then runs with stacks=all). Prints milliseconds a step (the best)."""
import sys
import time

import torch
from transformers import GPT2Config, GPT2LMHeadModel


def step(model, optimizer):
    start = time.perf_counter()
    tokens = torch.randint(0, 50257, (4, 512), device="cuda")
    model(input_ids=tokens, labels=tokens).loss.backward()
    optimizer.step()
    optimizer.zero_grad()
    torch.cuda.synchronize()
    return time.perf_counter() - start


def main():
    if len(sys.argv) > 2:
        torch.cuda.memory._record_memory_history(stacks="all")
    with torch.device("cuda"):
        model = GPT2LMHeadModel(GPT2Config(use_cache=False))
    optimizer = torch.optim.AdamW(model.parameters())
    best = min(step(model, optimizer) for _ in range(int(sys.argv[1])))
    print(f"{best * 1000:.2f}")
    if len(sys.argv) > 2:
        torch.cuda.memory._dump_snapshot(sys.argv[2])


main()
