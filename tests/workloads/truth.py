# SPDX-License-Identifier: Apache-2.0
"""What PyTorch itself says of its memory at marked moments, written as JSON for a test to compare."""
import json
import os

import torch

marks = []


def of_device(d):
    blocks = [(b["address"], b["size"]) for s in torch.cuda.memory_snapshot() if s["device"] == d
              for b in s["blocks"] if b["state"] == "active_allocated"]
    return {"device": d, "allocated": torch.cuda.memory_allocated(d), "max_allocated": torch.cuda.max_memory_allocated(d),
            "reserved": torch.cuda.memory_reserved(d), "max_reserved": torch.cuda.max_memory_reserved(d),
            "blocks": sorted(blocks)}


def mark(name, devices=(0,), **more):
    """A user range of this name, in which nothing is allocated, and the truth inside it."""
    torch.cuda.synchronize()
    with torch.profiler.record_function("mark_" + name):
        times = 1 + sum(m["name"] == "mark_" + name for m in marks)
        marks.append({"name": "mark_" + name, "time": times, "devices": [of_device(d) for d in devices], **more})


def write(path, **more):
    with open(path + ".new", "w") as f:
        json.dump({"pid": os.getpid(), "torch": torch.__version__, "marks": marks, **more}, f)
    os.rename(path + ".new", path)
