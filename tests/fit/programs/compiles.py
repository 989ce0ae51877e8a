# SPDX-License-Identifier: Apache-2.0
"""Programs that compile, build or prepare for longer than they do anything else before they train."""
import subprocess
import sys
import time

from parts import F, GPU, Language, labels, learn, main, mlp, program, text, torch


@program()
def validation_first():
    """A validation, then torch.compile, then the training."""
    model = Language(layers=4).to(GPU)
    with torch.no_grad():
        print("validation", float(model.eval().loss(text(4, 256))), flush=True)
    compiled = torch.compile(model.train())
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    for _ in range(20):
        ids = text(16, 513)
        learn(optimizer, F.cross_entropy(compiled(ids[:, :-1]).flatten(0, 1), ids[:, 1:].flatten()))


@program()
def compiled_step():
    """A loss that is compiled; the evaluation at the end is compiled anew, with a larger batch."""
    model = mlp(2048, 4).to(GPU)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    loss = torch.compile(lambda x, y: F.cross_entropy(model(x), y))
    for _ in range(25):
        learn(optimizer, loss(torch.randn(1024, 2048, device=GPU), labels(1024)))
    with torch.no_grad():
        print("evaluation", float(loss(torch.randn(65536, 2048, device=GPU), labels(65536))))


@program()
def preparation():
    """Data are prepared on the processor for 40 s, with a look at the device now and then; then it trains."""
    torch.zeros(1, device=GPU)
    end, shown = time.time() + 40, 0.0
    while time.time() < end:
        sum(i * i for i in range(200000))
        if time.time() - shown > 4:
            shown = time.time()
            print("prepared", float(torch.zeros(1, device=GPU)), flush=True)
    model = mlp(8192, 6).to(GPU)
    optimizer = torch.optim.Adam(model.parameters())
    for _ in range(60):
        learn(optimizer, model(torch.randn(64, 8192, device=GPU)).square().mean())


@program()
def extension():
    """A compiler works for 30 s in a process of its own while this one waits, as for an extension that is built."""
    device = torch.zeros(1024, device=GPU)
    subprocess.run([sys.executable, "-c", "import time\nend = time.time() + 30\nwhile time.time() < end: sum(range(100000))"], check=True)
    model = mlp(4096, 6).to(GPU)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    for _ in range(30):
        learn(optimizer, F.cross_entropy(model(torch.randn(1024, 4096, device=GPU) + device.sum()), labels(1024)))


if __name__ == "__main__":
    main()
