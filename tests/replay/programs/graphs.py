# SPDX-License-Identifier: Apache-2.0
"""CUDA graphs of several shapes: two share a pool, one has its own and is thrown away."""
import torch

model = torch.nn.Sequential(*(torch.nn.Linear(700, 700) for _ in range(6))).cuda()
pool = torch.cuda.graph_pool_handle()


def capture(rows, own=None):
    x = torch.zeros(rows, 700, device="cuda")
    side = torch.cuda.Stream()
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side), torch.no_grad():
        for _ in range(2):
            model(x)
    torch.cuda.current_stream().wait_stream(side)
    graph = torch.cuda.CUDAGraph()
    with torch.no_grad(), torch.cuda.graph(graph, pool=own):
        y = model(x)
    return graph, x, y


first = capture(2048, pool)
second = capture(3000, pool)
third = capture(5000)
for _ in range(3):
    for graph, x, y in (first, second, third):
        x.copy_(torch.randn(x.shape, device="cuda"))
        graph.replay()
        torch.empty_like(y).copy_(y)
del graph, x, y, third
torch.cuda.empty_cache()
work = [torch.randn(1500, 700 + i, device="cuda") for i in range(10)]
