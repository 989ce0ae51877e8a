# SPDX-License-Identifier: Apache-2.0
"""Batches and one layer's weights are copied ahead on a stream of their own, as prefetchers and offloading do."""
import torch

copies = torch.cuda.Stream()
layers = [torch.randn(1024 + 128 * (i % 3), 1024, pin_memory=True) for i in range(8)]


def ahead(host):
    with torch.cuda.stream(copies):
        there = host.to("cuda", non_blocking=True)
    done = torch.cuda.Event()
    done.record(copies)
    return there, done


for step in range(12):
    batch = torch.randn(700 + 211 * (step % 4), 1024, pin_memory=True)
    x, ready = ahead(batch)
    upcoming = ahead(layers[0])
    torch.cuda.current_stream().wait_event(ready)
    x.record_stream(torch.cuda.current_stream())
    for i in range(8):
        w, ready = upcoming
        if i < 7:
            upcoming = ahead(layers[i + 1])
        torch.cuda.current_stream().wait_event(ready)
        w.record_stream(torch.cuda.current_stream())
        y = x @ w.t()
        x = torch.nn.functional.gelu(y)[:, :1024] + 0.1 * y[:, :1024]
    del x, y, w
