# SPDX-License-Identifier: Apache-2.0
"""Programs that catch the out-of-memory error."""
import gc
import sys

from parts import F, GPU, Language, Vision, labels, learn, main, mlp, pictures, program, text, torch


def trains(model, optimizer, batch, steps=20):
    for _ in range(steps):
        learn(optimizer, F.cross_entropy(model(torch.randn(batch, 2048, device=GPU)), labels(batch)))


@program(goes_on=True)
def halves_its_batch():
    """Starts again with half the batch until it works."""
    batch = 32768
    while True:
        model = mlp().to(GPU)
        optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
        try:
            trains(model, optimizer, batch)
            break
        except torch.cuda.OutOfMemoryError:
            print(f"batch {batch} is too large", flush=True)
        del model, optimizer
        gc.collect()
        torch.cuda.empty_cache()
        batch //= 2
    print("trained with batch", batch)


@program()
def gives_up():
    """Says what to do, and ends with exit code 1."""
    model = mlp().to(GPU)
    try:
        trains(model, torch.optim.AdamW(model.parameters(), lr=1e-3), 32768)
    except torch.cuda.OutOfMemoryError as error:
        sys.exit(f"choose a smaller batch: {error}")


@program()
def gives_up_quietly():
    """A sweep that notes the failure and ends with exit code 0."""
    model, results = mlp().to(GPU), {}
    try:
        trains(model, torch.optim.AdamW(model.parameters(), lr=1e-3), 32768)
        results["base"] = "done"
    except RuntimeError as error:
        results["base"] = f"failed: {error}"
    print(results)


def skips(lengths):
    model = Language().to(GPU)
    optimizer, skipped = torch.optim.AdamW(model.parameters(), lr=1e-3), 0
    for length in lengths:
        try:
            learn(optimizer, model.loss(text(8, length)))
        except RuntimeError as error:
            if "out of memory" not in str(error):
                raise
            skipped += 1
            optimizer.zero_grad()
            torch.cuda.empty_cache()
    print("skipped", skipped, "batches")


@program(goes_on=True)
def skips_long_batches():
    """Leaves out batches for which there is no memory: two of 45."""
    skips(([128] * 14 + [1024]) * 2 + [128] * 15)


@program()
def skips_all_batches():
    """The same with batches of one length: all are left out."""
    skips([512] * 30)


@program(goes_on=True)
def evaluates_in_parts():
    """An evaluation of all data at once; if memory runs out, in parts."""
    model = Vision().to(GPU)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    for _ in range(20):
        learn(optimizer, F.cross_entropy(model(pictures(64)), labels(64, 100)))
    model.eval()
    with torch.no_grad():
        try:
            model(pictures(4096))
        except RuntimeError:  # cuDNN's, too, which finds no engine then
            for _ in range(64):
                model(pictures(64))


@program(goes_on=True)
def finds_its_batch():
    """Doubles the batch until memory runs out, on every card, and trains with the largest that worked."""
    model = mlp(1024, 4, 1000).to(GPU)
    optimizer, batch = torch.optim.SGD(model.parameters(), lr=0.1), 1024

    def step(n):
        learn(optimizer, F.cross_entropy(model(torch.randn(n, 1024, device=GPU)), labels(n)))
    for _ in range(25):
        try:
            step(2 * batch)
            batch *= 2
        except torch.cuda.OutOfMemoryError:
            gc.collect()
            torch.cuda.empty_cache()
            break
    for _ in range(20):
        step(batch)


if __name__ == "__main__":
    main()
