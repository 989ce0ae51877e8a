# SPDX-License-Identifier: Apache-2.0
"""zoo.py OUT MODEL[:OPTIMIZER][:amp]... : trains each model for four steps; what PyTorch counted, and what
follows from the shapes of the tensors, as JSON."""
import contextlib
import gc
import json
import math
import sys

import torch
import torch.utils.checkpoint

import models
import zoo_models

OPTIMIZERS = {
    "adamw": lambda p: torch.optim.AdamW(p),
    "fused": lambda p: torch.optim.AdamW(p, fused=True),
    "capturable": lambda p: torch.optim.Adam(p, capturable=True),
    "sgd": lambda p: torch.optim.SGD(p, lr=0.1, momentum=0.9),
    "adagrad": lambda p: torch.optim.Adagrad(p),
}
UNIT = 512  # the allocator's
LARGE = 1 << 20  # a block above this may keep a remainder of up to as much


def weigh(tensors):
    """The least and the most that these tensors' storages take of the allocator."""
    storages = {t.untyped_storage().data_ptr(): t.untyped_storage().nbytes() for t in tensors if t.is_cuda and t.numel()}
    least = sum(-(-n // UNIT) * UNIT for n in storages.values())
    return least, least + LARGE * sum(n > LARGE for n in storages.values())


def states(optimizer):
    return [t for s in optimizer.state.values() for t in s.values() if torch.is_tensor(t)]


def keeping(tensors):
    """What autograd saves for the backward pass is noted in this list."""
    if tensors is None:
        return contextlib.nullcontext()
    return torch.autograd.graph.saved_tensors_hooks(lambda t: tensors.append(t) or t, lambda t: t)


def live():
    """The addresses of all blocks in use."""
    return {b["address"] for segment in torch.cuda.memory_snapshot() for b in segment["blocks"] if b["state"] == "active_allocated"}


def train(case):
    name, _, how = case.partition(":")
    gc.collect()
    torch.cuda.empty_cache()
    before = torch.cuda.memory_allocated()
    own = live()
    torch.cuda.reset_peak_memory_stats()
    build = getattr(models, name, None) or getattr(zoo_models, name)
    model, loss_of_batch = build()
    built = torch.cuda.memory_allocated() - before
    trained = [p for p in model.parameters() if p.requires_grad]
    kind = next((k for k in OPTIMIZERS if k in how), "adamw")
    optimizer = OPTIMIZERS[kind](trained)
    scaler = torch.amp.GradScaler("cuda", enabled="amp" in how)
    losses, after, gradients, reached = [], [], None, set()
    saved = []
    for step in range(4):
        with torch.autocast("cuda", dtype=torch.float16, enabled="amp" in how), keeping(saved if step == 2 else None):
            loss = loss_of_batch()
        losses.append(loss.item())
        scaler.scale(loss).backward()
        held = [p.grad for p in trained if p.grad is not None]
        gradients = weigh(held), sum(p.numel() * p.element_size() for p in trained if p.grad is not None)
        reached |= {p for p in trained if p.grad is not None}  # an expert that is given no token has none
        del held
        if step == 2:
            own |= {t.untyped_storage().data_ptr() for t in [*model.parameters(), *model.buffers()]}
            activations = weigh([t for t in saved if t.untyped_storage().data_ptr() not in own])
            saved.clear()
        scaler.step(optimizer)
        scaler.update()
        optimizer.zero_grad()
        del loss
        after.append(torch.cuda.memory_allocated() - before)
    kept = weigh([*model.parameters(), *model.buffers()])
    return {
        "case": case, "kind": kind, "losses_finite": all(map(math.isfinite, losses)), "built": built, "model": kept,
        "states": weigh(states(optimizer)), "trained_numel": sum(p.numel() for p in reached),
        "all_reached": len(reached) == len(trained),
        "states_numel": sum(t.numel() for t in states(optimizer) if t.dim()), "gradients": gradients, "after": after,
        "activations": activations, "peak": torch.cuda.max_memory_allocated() - before, "reserved": torch.cuda.memory_reserved(),
        "limit": torch.cuda.get_device_properties(0).total_memory,
    }


def main():
    # Workspaces of cuBLAS (for each thread) and cuDNN's dropout states are made once and kept: before
    # anything is weighed.
    x = torch.zeros(64, 64, device="cuda", requires_grad=True)
    y = torch.nn.functional.linear(x, x, x[0]) @ x
    torch.utils.checkpoint.checkpoint(lambda t: torch.nn.functional.linear(t, x, x[0]) @ x, y, use_reentrant=False).sum().backward()
    torch.nn.GRU(8, 8, 2, dropout=0.5).cuda()(x[:, :8].unsqueeze(0).detach())
    del x, y
    workspaces = torch.cuda.memory_allocated()
    with open(sys.argv[1], "w") as f:
        json.dump({"workspaces": workspaces, "cases": [train(case) for case in sys.argv[2:]]}, f)


if __name__ == "__main__":
    main()
