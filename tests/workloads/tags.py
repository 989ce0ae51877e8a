# SPDX-License-Identifier: Apache-2.0
"""tags.py TRUTH MODEL...: where parameters, gradients and saved tensors are, as Python sees them. Saved
tensors are asked of the graph's own nodes, so that nothing about the saving changes."""
import json
import sys
import time

import torch

import models


def saved_by(node, seen):
    """Addresses of all tensors saved below a node of the graph."""
    if node is None or node in seen:
        return
    seen.add(node)
    for name in dir(node):
        if name.startswith("_saved_"):
            value = getattr(node, name)
            for t in value if isinstance(value, (tuple, list)) else (value,):
                if isinstance(t, torch.Tensor) and t.is_cuda and t.untyped_storage().nbytes():
                    yield t.data_ptr()
    for t in getattr(node, "saved_tensors", ()) or ():
        if t is not None and t.is_cuda:
            yield t.data_ptr()
    for following, _ in node.next_functions:
        yield from saved_by(following, seen)


def main():
    said = []
    sys.setrecursionlimit(10000)
    for case in sys.argv[2:]:
        model, loss_of_batch = getattr(models, case)()
        for _ in range(2):
            model.zero_grad()
            loss = loss_of_batch()
            with torch.profiler.record_function("mark_forward"):
                saved = sorted(saved_by(loss.grad_fn, set()))
            loss.backward()
            with torch.profiler.record_function("mark_backward"):
                used = [p for p in model.parameters() if p.grad is not None]
            said.append({"model": case, "saved": saved, "leaves": sorted({p.data_ptr() for p in used}),
                         "grads": sorted({p.grad.data_ptr() for p in used})})
            del loss
    with open(sys.argv[1], "w") as f:
        json.dump(said, f)
    time.sleep(0.05)  # autograd's thread takes the GIL once more after backward() (docs/reliability.md)


if __name__ == "__main__":
    main()
