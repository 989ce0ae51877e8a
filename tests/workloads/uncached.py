# SPDX-License-Identifier: Apache-2.0
"""uncached.py TRUTH: trains where PyTorch's own cache is not used (PYTORCH_NO_CUDA_MEMORY_CACHING=1 or
backend:cudaMallocAsync). Truth: the storages that the program can reach, and what PyTorch still counts."""
import gc
import json
import sys

import torch

import models


def storages():
    """Every storage on the device that Python can reach."""
    found = {}
    for o in gc.get_objects():
        if type(o) in (torch.Tensor, torch.nn.Parameter):
            for t in (o, o.grad if o.is_leaf else None):
                if t is not None and t.is_cuda:
                    found[t.untyped_storage().data_ptr()] = t.untyped_storage().nbytes()
    return sorted(found.items())


def main():
    model, loss_of_batch = models.mlp()
    optimizer = torch.optim.AdamW(model.parameters())
    said = []
    for _ in range(3):
        loss_of_batch().backward()
        optimizer.step()
        torch.cuda.synchronize()
        with torch.profiler.record_function("mark_step"):
            said.append({"storages": storages(), "allocated": torch.cuda.memory_allocated(),
                         "max_allocated": torch.cuda.max_memory_allocated()})
        optimizer.zero_grad()
    with open(sys.argv[1], "w") as f:
        json.dump(said, f)


if __name__ == "__main__":
    main()
