# SPDX-License-Identifier: Apache-2.0
"""Programs that fail, and not for want of memory."""
import ctypes
import os
import signal
import sys

from parts import F, GPU, Language, Vision, labels, learn, main, mlp, nn, pictures, program, text, torch


def classifies(steps, at=None, what=None):
    model = mlp().to(GPU)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    for step in range(steps):
        if step == at:
            what()
        learn(optimizer, F.cross_entropy(model(torch.randn(8192, 2048, device=GPU)), labels(8192)))
    return model


@program()
def bad_record():
    """A line of the data cannot be read: ValueError in step 7."""
    classifies(60, 7, lambda: float("12,5"))


@program()
def below_target():
    """All goes well but the accuracy: exit code 1 at the end."""
    model = classifies(40)
    with torch.no_grad():
        accuracy = float((model(torch.randn(1024, 2048, device=GPU)).argmax(-1) == labels(1024)).float().mean())
    if accuracy < 0.95:
        sys.exit(f"accuracy {accuracy:.2f} is below 0.95")


@program()
def missing_file():
    """The weights to begin with are not there."""
    model = Language(layers=12).to(GPU)
    model.load_state_dict(torch.load("/nowhere/weights.pt", map_location="cuda"))


@program()
def crash():
    """A library crashes in step 9 (SIGSEGV)."""
    classifies(60, 9, lambda: ctypes.string_at(0))


@program()
def killed():
    """Another program kills it in step 30, as the kernel does where the host has no memory left."""
    classifies(60, 30, lambda: os.kill(os.getpid(), signal.SIGKILL))


@program()
def last_batch():
    """The last batch of an epoch of 20 is smaller, and a view of fixed size fails on it."""
    model, head = Vision(64, 1024).to(GPU), nn.Linear(8 * 1024, 100).to(GPU)
    optimizer = torch.optim.SGD([*model.parameters(), *head.parameters()], lr=0.1)
    for size in [64] * 20 + [52]:
        learn(optimizer, F.cross_entropy(head(model(pictures(size, 96)).view(8, -1)), labels(8, 100)))


@program()
def evaluation_fails():
    """After an epoch the evaluation calls for a name that is not there."""
    model = Language().to(GPU)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    for _ in range(30):
        learn(optimizer, model.loss(text(8, 256)))
    model.evaluate(text(8, 256))


if __name__ == "__main__":
    main()
