# SPDX-License-Identifier: Apache-2.0
"""Programs that run for minutes, as their data come slowly. `fit` may end them before that."""
import collections
import gc
import time

from parts import F, GPU, Sample, labels, learn, main, mlp, program, torch


def batches(count, size):
    """From a slow disk: four a second."""
    for _ in range(count):
        time.sleep(0.25)
        yield torch.randn(size, 2048, device=GPU), labels(size)


def trainer():
    model = mlp(2048, 3).to(GPU)
    return model, torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)


@program()
def slow_data():
    """Nothing grows; an evaluation with a larger batch every 20 s."""
    model, optimizer = trainer()
    for step, (x, y) in enumerate(batches(560, 4096)):
        learn(optimizer, F.cross_entropy(model(x), y))
        if step % 80 == 79:
            with torch.no_grad():
                model(torch.randn(32768, 2048, device=GPU))


@program(leaks=True)
def slow_bursts():
    """Every 15 s the features of some batches are kept for a plot."""
    model, optimizer = trainer()
    kept = []
    for step, (x, y) in enumerate(batches(600, 4096)):
        learn(optimizer, F.cross_entropy(model(x), y))
        if step % 60 == 59:
            with torch.no_grad():
                kept += [model[:4](x) for _ in range(6)]


@program(leaks=True)
def slow_saw():
    """The collector runs every 18 s; beside what it frees a little is kept in each step."""
    gc.disable()
    model, optimizer = trainer()
    kept = []
    for step, (x, y) in enumerate(batches(600, 4096)):
        sample = Sample(x)
        out = model(sample.x)
        kept.append(out[:768].detach().clone())
        learn(optimizer, F.cross_entropy(out, y))
        if step % 72 == 71:
            gc.collect()


@program(grows=True)
def slow_buffer():
    """A buffer of past batches that is full after 45 s."""
    model, optimizer = trainer()
    buffer = collections.deque(maxlen=180)
    for x, y in batches(500, 1024):
        buffer.append((x, y))
        for x, y in (buffer[0], buffer[-1]):
            learn(optimizer, F.cross_entropy(model(x), y))


if __name__ == "__main__":
    main()
