# SPDX-License-Identifier: Apache-2.0
"""Graphs as frameworks make them: callables with backward passes in one pool, a graph per batch size, a pool of the
program's own (MemPool), and a capture that fails."""
import copy

import torch

model = torch.nn.Sequential(torch.nn.Linear(900, 1800), torch.nn.ReLU(), torch.nn.Linear(1800, 900)).cuda()
sample = torch.randn(1400, 900, device="cuda")

graphed = torch.cuda.make_graphed_callables(copy.deepcopy(model), (sample.clone().requires_grad_(),))
optimizer = torch.optim.SGD(graphed.parameters(), lr=0.1, momentum=0.9)
for step in range(4):
    x = torch.randn(1400, 900, device="cuda", requires_grad=True)
    graphed(x).square().mean().backward()
    optimizer.step()
    optimizer.zero_grad()

shapes, pool = {}, None
for rows in (4000, 2000, 1000, 500):
    x = torch.zeros(rows, 900, device="cuda")
    with torch.no_grad():
        model(x)
        g = torch.cuda.CUDAGraph()
        with torch.cuda.graph(g, pool=pool):
            y = model(x)
    pool = g.pool()
    shapes[rows] = (g, x, y)
for rows in (500, 4000, 1000, 2000):
    shapes[rows][0].replay()
    shapes[rows][2].clone()

own = torch.cuda.MemPool()
with torch.cuda.use_mem_pool(own):
    buffers = [torch.empty((3 + i) << 20, device="cuda") for i in range(5)]
outside = [torch.empty((3 + i) << 20, device="cuda") for i in range(5)]
del buffers
with torch.cuda.use_mem_pool(own):
    again = [torch.empty((2 + i) << 20, device="cuda") for i in range(5)]
del again, own, outside
try:
    g = torch.cuda.CUDAGraph()
    with torch.cuda.graph(g):
        z = torch.randn(3_000_000, device="cuda") * 2
        raise ValueError
except ValueError:
    pass
torch.cuda.empty_cache()
last = [torch.randn(1_000_000 + i * 77_777, device="cuda") for i in range(12)]
