# SPDX-License-Identifier: Apache-2.0
"""A server: requests come in growing batches, two workers with a stream each share the weights."""
import threading

import torch

weights = [torch.randn(1536, 1536, device="cuda", dtype=torch.float16) for _ in range(6)]
turn = [threading.Event(), threading.Event()]


def work(me):
    stream = torch.cuda.Stream()
    with torch.no_grad(), torch.cuda.stream(stream):
        for n in range(14):
            turn[me].wait()
            turn[me].clear()
            x = torch.randn(64 * (n + 1) + 700 * me, 1536, device="cuda", dtype=torch.float16)
            kept = []
            for w in weights:
                x = torch.relu(x @ w)
                kept.append(x.float().mean(0))
            result = torch.stack(kept).cpu()
            del x, kept
            turn[1 - me].set()


threads = [threading.Thread(target=work, args=(i,)) for i in range(2)]
for t in threads:
    t.start()
turn[0].set()
for t in threads:
    t.join()
