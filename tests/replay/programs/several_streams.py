# SPDX-License-Identifier: Apache-2.0
"""Copies and results on streams of their own, with record_stream for what crosses."""
import torch

side, other = torch.cuda.Stream(), torch.cuda.Stream()
layers = torch.nn.ModuleList(torch.nn.Linear(1100, 1100) for _ in range(6)).cuda()
for step in range(12):
    with torch.cuda.stream(side):
        x = torch.empty(900 + 37 * (step % 5), 1100, device="cuda")
    torch.cuda.current_stream().wait_stream(side)
    x.record_stream(torch.cuda.current_stream())
    kept = []
    for layer in layers:
        x = layer(x)
        kept.append(x)
        with torch.cuda.stream(other):
            y = x.detach() * 2
            x.record_stream(other)
            del y
    x.sum().backward()
    del kept, x
    layers.zero_grad()
