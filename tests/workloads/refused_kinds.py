# SPDX-License-Identifier: Apache-2.0
"""refused_kinds.py KIND: programs whose cache has more in it than their blocks need, each for another reason, on a card that is
small for them. Ends with exit code 3 where a request is refused."""
import random
import sys

import torch
from torch import nn
from torch.nn import functional as F

MIB = 1 << 20


def block(mib):
    return torch.empty(int(mib * MIB), dtype=torch.uint8, device="cuda")


class Layer(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.up, self.down = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)

    def forward(self, x):
        return x + self.down(F.gelu(self.up(x)))


def train(batches, width=512, layers=6):
    model = nn.Sequential(*(Layer(width) for _ in range(layers))).cuda()
    optimizer = torch.optim.AdamW(model.parameters())
    for rows in batches:
        model(torch.randn(rows, width, device="cuda")).square().mean().backward()
        optimizer.step()
        optimizer.zero_grad()


def varied_batches():
    random.seed(3)
    train([random.randrange(500, 12000) for _ in range(30)])


def growing_sequences():
    train(range(1000, 14000, 700))


def large_batch():
    train([2000, 60000])


def other_stream():
    """A side stream's cache is pinned by small blocks in it."""
    side, kept = torch.cuda.Stream(), []
    with torch.cuda.stream(side):
        for _ in range(20):
            whole = block(60)
            del whole
            kept += [block(20), block(30)]
            del kept[-1]
    return [block(100) for _ in range(8)]


def graph_pool():
    """What a captured graph used goes back into its own pool."""
    weight, x = torch.randn(2048, 2048, device="cuda"), torch.randn(16384, 2048, device="cuda")
    y, graph = x @ weight, torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        for _ in range(4):
            y = F.gelu(x @ weight) + 1
    graph.replay()
    return [block(100) for _ in range(16)]


def held():
    """One block has most of the card."""
    large, pieces = block(1200), [block(30) for _ in range(8)]
    del pieces[::2]
    return large, pieces, block(700)


def holes():
    """Every other block of one segment goes."""
    whole = block(1400)
    del whole
    pieces = [block(50) for _ in range(28)]
    del pieces[::2]
    return pieces, block(600)


def pinned_segments():
    """Small blocks that stay hold the segments of others that are gone."""
    pieces, kept = [], []
    for _ in range(70):
        pieces.append(block(9))
        kept.append(block(3))
        pieces.append(block(7))
    pieces.clear()
    return kept, block(500)


def caught():
    """An earlier refusal, after which the program goes on with less."""
    for mib in (2500, 1000):
        try:
            block(mib)
        except torch.cuda.OutOfMemoryError:
            torch.cuda.empty_cache()
    return holes()


def limited():
    """The program's own limit, which no recording has, refuses it."""
    torch.cuda.set_per_process_memory_fraction(0.7)
    return holes()


def workspace_alone():
    """cuBLAS's workspace has a segment to itself."""
    x = torch.ones(64, 64, device="cuda")
    return x @ x, [block(0.5) for _ in range(4000)]


def workspace_inside():
    """It lies in a segment with other room, which small blocks cannot have."""
    whole = block(200)
    del whole
    return workspace_alone()


if __name__ == "__main__":
    torch.manual_seed(0)
    try:
        globals()[sys.argv[1]]()
    except torch.cuda.OutOfMemoryError:
        sys.exit(3)
