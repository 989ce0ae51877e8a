# SPDX-License-Identifier: Apache-2.0
"""program.py TRUTH: uses everything that a hook of PyTorch stands for, and writes down what PyTorch itself says of it.
Runs on every PyTorch from 2.1; needs nothing but torch."""
import json
import sys

import torch
from torch import nn

MIB = 1 << 20
truth = {}


def saved_by(node, seen):
    """Addresses of all tensors saved below a node of the graph."""
    if node is None or node in seen:
        return
    seen.add(node)
    for name in dir(node):
        value = getattr(node, name) if name.startswith("_saved_") else None
        for t in value if isinstance(value, (tuple, list)) else (value,):
            if isinstance(t, torch.Tensor) and t.is_cuda:
                yield t.data_ptr()
    for t in getattr(node, "saved_tensors", ()) or ():
        yield t.data_ptr()
    for following, _ in node.next_functions:
        yield from saved_by(following, seen)


class Square(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x * x

    @staticmethod
    def backward(ctx, g):
        x, = ctx.saved_tensors
        return 2 * x * g


def train():
    model = nn.Sequential(nn.Linear(64, 256), nn.GELU(), nn.Linear(256, 64)).cuda()
    optimizer = torch.optim.AdamW(model.parameters())
    loss = Square.apply(model(torch.randn(32, 64, device="cuda"))).mean()
    truth["saved"] = sorted(saved_by(loss.grad_fn, set()))
    with torch.profiler.record_function("saved all"):
        pass
    loss.backward()
    with torch.profiler.record_function("released all"):
        truth["leaves"] = sorted(p.data_ptr() for p in model.parameters())
        truth["grads"] = sorted(p.grad.data_ptr() for p in model.parameters())
    optimizer.step()
    optimizer.zero_grad()
    truth["ranges"] = ["saved all", "released all", "Optimizer.step#AdamW.step", "Optimizer.zero_grad#AdamW.zero_grad"]
    truth["nodes"] = ["AddmmBackward0", "GeluBackward0", "MeanBackward0"]


def move():
    p = nn.Parameter(torch.randn(1000, device="cuda"))
    kept = []
    truth["moved"] = []
    for i in range(3):
        kept.append(p.square().sum())
        kept[-1].backward(retain_graph=True)
        if i:
            truth["moved"].append(p.data_ptr())
        p.data = p.data.clone()


def ask():
    """Blocks that are taken whole and larger than what was asked for."""
    kept = [torch.empty(20 * MIB - 2048 * i, dtype=torch.uint8, device="cuda") for i in range(8)]
    kept += [torch.empty((3 + i) * MIB - 999, dtype=torch.uint8, device="cuda") for i in range(8)]
    kept += [torch.empty_strided((100 + i, 10007), (1, 100 + i), device="cuda") for i in range(4)]
    kept += [torch.empty(1, device="cuda").resize_(MIB // 3 + 1000)]
    blocks = [b for s in torch.cuda.memory_snapshot() for b in s["blocks"] if b["state"] == "active_allocated"]
    truth["asked"] = {b.get("address", 0): b["requested_size"] for b in blocks if b["requested_size"] + 512 <= b["size"] and b["size"] > MIB}


def refuse():
    try:
        torch.empty(1 << 42, dtype=torch.uint8, device="cuda")
    except torch.cuda.OutOfMemoryError:
        truth["refused"] = 1 << 42


def graph():
    x, g = torch.ones(1000, device="cuda"), torch.cuda.CUDAGraph()
    with torch.cuda.graph(g):
        y = x * 2 + 1
    g.replay()
    del y, g
    truth["graphs"] = 1


def pools():
    truth["pools"] = []
    if hasattr(torch.cuda, "use_mem_pool"):
        own = torch.cuda.MemPool()
        with torch.cuda.use_mem_pool(own):
            block = torch.empty(MIB, device="cuda")
        segment, = [s for s in torch.cuda.memory_snapshot() if s["address"] <= block.data_ptr() < s["address"] + s["total_size"]]
        truth["pools"].append(segment["segment_pool_id"])
        del block
        del own


for work in (train, move, ask, refuse, graph, pools):
    torch.cuda.synchronize()
    work()
stats = torch.cuda.memory_stats()
truth.update(version=torch.__version__, cuda=torch.version.cuda, peak=stats["allocated_bytes.all.peak"],
             reserved=stats["reserved_bytes.all.peak"], allocations=stats["allocation.all.allocated"], left=stats["allocated_bytes.all.current"])
with open(sys.argv[1], "w") as out:
    json.dump(truth, out)
