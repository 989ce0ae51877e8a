# SPDX-License-Identifier: Apache-2.0
"""stacks.py TRUTH MODEL...: trains two steps under PyTorch's own recorder and writes the frames that it
took for each allocation, innermost first."""
import json
import sys

import torch

import models


def step(loss_of_batch, optimizer):
    loss_of_batch().backward()
    optimizer.step()
    optimizer.zero_grad()


def main():
    torch.cuda.memory._record_memory_history(enabled="all", context="all", stacks="all")
    for case in sys.argv[2:]:
        model, loss_of_batch = getattr(models, case)()
        optimizer = torch.optim.AdamW(model.parameters())
        for _ in range(2):
            step(loss_of_batch, optimizer)
    entries = torch.cuda.memory._snapshot()["device_traces"][0]
    seen = [{"addr": e["addr"], "size": e["size"], "action": e["action"],
             "frames": [(f["filename"], f["line"], f["name"]) for f in e["frames"]]}
            for e in entries if e["action"] in ("alloc", "free_requested")]
    with open(sys.argv[1], "w") as f:
        json.dump(seen, f)


if __name__ == "__main__":
    main()
