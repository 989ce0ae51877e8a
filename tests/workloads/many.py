# SPDX-License-Identifier: Apache-2.0
"""many.py FOLDER: many small programs that have nothing to do with each other, as FOLDER/NAME.gmt each. Every program is a
process of its own, forked before it touches the device, so that PyTorch is imported once for all.
GPUMEMTRACE_OUTPUT must be FOLDER/%p.gmt."""
import os
import sys
import traceback
from pathlib import Path

import torch
import torch._dynamo  # noqa: F401: the first optimizer imports it
from torch import nn
from torch.nn import functional as F
from torch.utils.checkpoint import checkpoint

MIB = 1 << 20
PROGRAMS = {}


def program(f):
    PROGRAMS[f.__name__] = f
    return f


def net(width=256, layers=2, **options):
    parts = [part for _ in range(layers) for part in (nn.Linear(width, 2 * width, **options), nn.GELU(), nn.Linear(2 * width, width, **options))]
    return nn.Sequential(*parts).cuda()


def train(model, optimizer, steps=3, rows=64, width=256, dtype=torch.float32, set_to_none=True):
    for _ in range(steps):
        model(torch.randn(rows, width, device="cuda", dtype=dtype)).square().mean().backward()
        optimizer.step()
        optimizer.zero_grad(set_to_none=set_to_none)


def of_optimizer(name, make):
    def run():
        model = net()
        train(model, make(model.parameters()))
    run.__name__ = f"train_{name}"
    program(run)


for _name, _make in {"sgd": lambda p: torch.optim.SGD(p, lr=0.1), "momentum": lambda p: torch.optim.SGD(p, lr=0.1, momentum=0.9),
                     "adam": torch.optim.Adam, "adamw_each": lambda p: torch.optim.AdamW(p, foreach=False),
                     "amsgrad": lambda p: torch.optim.Adam(p, amsgrad=True), "rmsprop": torch.optim.RMSprop}.items():
    of_optimizer(_name, _make)


@program
def train_wide():
    model = net(512, 1)
    train(model, torch.optim.AdamW(model.parameters()), width=512)


@program
def train_deep():
    model = net(256, 8)
    train(model, torch.optim.AdamW(model.parameters()))


@program
def train_batch():
    model = net()
    train(model, torch.optim.AdamW(model.parameters()), rows=512)


@program
def train_half():
    model = net(dtype=torch.bfloat16)
    train(model, torch.optim.AdamW(model.parameters()), dtype=torch.bfloat16)


@program
def train_autocast():
    model = net()
    optimizer = torch.optim.AdamW(model.parameters())
    for _ in range(3):
        with torch.autocast("cuda", dtype=torch.bfloat16):
            loss = model(torch.randn(64, 256, device="cuda")).square().mean()
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()


@program
def train_frozen():
    model = net()
    for p in model[0].parameters():
        p.requires_grad_(False)
    train(model, torch.optim.AdamW([p for p in model.parameters() if p.requires_grad]))


@program
def train_zeroed():
    model = net()
    train(model, torch.optim.AdamW(model.parameters()), set_to_none=False)


@program
def train_checkpointed():
    model = net(layers=4)
    optimizer = torch.optim.AdamW(model.parameters())
    for _ in range(3):
        x = torch.randn(64, 256, device="cuda", requires_grad=True)
        for layer in model:
            x = checkpoint(layer, x, use_reentrant=False)
        x.square().mean().backward()
        optimizer.step()
        optimizer.zero_grad()


@program
def train_accumulated():
    model = net()
    optimizer = torch.optim.AdamW(model.parameters())
    for _ in range(3):
        for _ in range(4):
            model(torch.randn(64, 256, device="cuda")).square().mean().backward()
        optimizer.step()
        optimizer.zero_grad()


@program
def train_two_passes():
    model = net()
    optimizer = torch.optim.AdamW(model.parameters())
    for _ in range(3):
        both = [model(torch.randn(64, 256, device="cuda")) for _ in range(2)]
        (both[0] - both[1]).square().mean().backward()
        optimizer.step()
        optimizer.zero_grad()


@program
def train_and_evaluate():
    model = net()
    optimizer = torch.optim.AdamW(model.parameters())
    for _ in range(3):
        train(model, optimizer, steps=1)
        with torch.no_grad():
            model(torch.randn(1024, 256, device="cuda")).argmax(1)


@program
def train_by_hand():
    """Neither an optimizer's step nor a gradient that is given up."""
    weights = [torch.randn(512, 512, device="cuda", requires_grad=True) for _ in range(3)]
    for _ in range(4):
        x = torch.randn(128, 512, device="cuda")
        for w in weights:
            x = torch.tanh(x @ w)
        for w, g in zip(weights, torch.autograd.grad(x.sum(), weights)):
            with torch.no_grad():
                w -= 0.01 * g


@program
def train_convolutions():
    model = nn.Sequential(nn.Conv2d(3, 32, 3), nn.BatchNorm2d(32), nn.ReLU(), nn.Conv2d(32, 32, 3), nn.Flatten(), nn.Linear(32 * 28 * 28, 10)).cuda()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    for _ in range(3):
        F.cross_entropy(model(torch.randn(16, 3, 32, 32, device="cuda")), torch.randint(0, 10, (16,), device="cuda")).backward()
        optimizer.step()
        optimizer.zero_grad()


@program
def train_transformer():
    layer = nn.TransformerEncoderLayer(128, 4, 512, batch_first=True)
    model, head = nn.TransformerEncoder(layer, 2).cuda(), nn.Linear(128, 1000).cuda()
    words = nn.Embedding(1000, 128).cuda()
    optimizer = torch.optim.AdamW([*model.parameters(), *head.parameters(), *words.parameters()])
    for _ in range(3):
        ids = torch.randint(0, 1000, (4, 64), device="cuda")
        F.cross_entropy(head(model(words(ids))).flatten(0, 1), ids.flatten()).backward()
        optimizer.step()
        optimizer.zero_grad()


@program
def train_recurrent():
    model = nn.LSTM(64, 128, 2).cuda()
    optimizer = torch.optim.Adam(model.parameters())
    for _ in range(3):
        model(torch.randn(20, 8, 64, device="cuda"))[0].square().mean().backward()
        optimizer.step()
        optimizer.zero_grad()


@program
def keeps_losses():
    model, kept = net(), []
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for _ in range(6):
        loss = model(torch.randn(64, 256, device="cuda")).square().mean()
        loss.backward(retain_graph=True)
        optimizer.step()
        optimizer.zero_grad()
        kept.append(loss)


@program
def keeps_outputs():
    model, kept = net(), []
    with torch.no_grad():
        for _ in range(6):
            kept.append(model(torch.randn(512, 256, device="cuda")))


@program
def copies_weights():
    import copy
    model = net()
    average = copy.deepcopy(model)
    train(model, torch.optim.AdamW(model.parameters()))
    return average


@program
def many_models():
    kept = []
    for _ in range(3):
        model = net()
        optimizer = torch.optim.AdamW(model.parameters())
        train(model, optimizer, steps=2)
        kept.append((model, optimizer))


def half_and_half():
    return [nn.Parameter(torch.zeros(MIB // 4, device="cuda")) for _ in range(2)]


@program
def weights_in_two_pairs():
    """Four of 1 MiB, from two calls with two each. `weights_in_three_and_one` has twice the bytes, of other calls with another
    number each: all parameters have a factor, and no pair of lines has one."""
    weights = half_and_half()
    weights += half_and_half()
    torch.stack([w * 2 for w in weights]).sum().backward()


@program
def weights_in_three_and_one():
    tables = [nn.Embedding(4096, 128, device="cuda") for _ in range(3)]
    tables.append(nn.Embedding(4096, 128, device="cuda"))
    ids = torch.arange(64, device="cuda")
    sum(t(ids).sum() for t in tables).backward()


@program
def inference():
    model = net()
    with torch.inference_mode():
        for rows in 64, 1024, 256:
            model(torch.randn(rows, 256, device="cuda"))


@program
def inference_cache():
    keys = torch.zeros(0, 8, 64, device="cuda")
    w = nn.Linear(512, 512).cuda()
    with torch.no_grad():
        for _ in range(16):
            keys = torch.cat([keys, w(torch.randn(64, 512, device="cuda")).view(64, 8, 64)])


@program
def plain_tensors():
    for n in 1, 8, 64, 2, 32:
        torch.empty(n * MIB, dtype=torch.uint8, device="cuda").fill_(0)


@program
def sorted_tensors():
    x = torch.randn(1 << 20, device="cuda")
    x.sort()
    x.view(1024, 1024).cumsum(0)


@program
def one_tensor():
    torch.ones(1, device="cuda")


@program
def two_streams():
    side, x = torch.cuda.Stream(), torch.randn(1024, 1024, device="cuda")
    with torch.cuda.stream(side):
        y = x @ x
    torch.cuda.current_stream().wait_stream(side)
    y.record_stream(torch.cuda.current_stream())


@program
def two_devices():
    a = torch.randn(1024, 1024, device="cuda:0")
    b = a.to("cuda:1")
    (b @ b).to("cuda:0")


@program
def a_private_pool():
    pool = torch.cuda.MemPool()
    with torch.cuda.use_mem_pool(pool):
        x = torch.randn(1024, 1024, device="cuda")
    return x @ x


@program
def a_graph():
    x, model = torch.randn(64, 256, device="cuda"), net()
    graph = torch.cuda.CUDAGraph()
    model(x)  # cuBLAS cannot be initialized while a graph is captured
    with torch.no_grad(), torch.cuda.graph(graph):
        model(x)
    for _ in range(3):
        graph.replay()


def out_of_memory(f):
    def run():
        torch.cuda.set_per_process_memory_fraction(256 * MIB / torch.cuda.get_device_properties(0).total_memory)
        try:
            f()
        except torch.OutOfMemoryError:
            return
        raise SystemExit(f"{f.__name__} did not run out of memory")
    run.__name__ = f.__name__
    return program(run)


@out_of_memory
def oom_batch():
    model = net()
    train(model, torch.optim.AdamW(model.parameters()), rows=1 << 18)


@out_of_memory
def oom_growing():
    model, kept = net(), []
    with torch.no_grad():
        while True:
            kept.append(model(torch.randn(16384, 256, device="cuda")))


@out_of_memory
def oom_by_hand():
    w, kept = torch.randn(256, 1024, device="cuda"), []
    while True:
        x = torch.randn(1024, 256, device="cuda", requires_grad=True)
        y = torch.relu(x @ w)
        torch.autograd.grad(y.sum(), x)
        kept.append(torch.cat([y.detach()] * 4))


@out_of_memory
def oom_model():
    torch.nn.ModuleList(nn.Linear(4096, 4096, device="cuda") for _ in range(8))


@out_of_memory
def oom_often():
    for n in 4, 5, 6:
        try:
            torch.empty(n << 28, dtype=torch.uint8, device="cuda")
        except torch.OutOfMemoryError:
            pass
    torch.empty(1 << 31, dtype=torch.uint8, device="cuda")


@program
def ranges():
    model = net()
    optimizer = torch.optim.AdamW(model.parameters())
    for i in range(3):
        with torch.profiler.record_function(f"epoch {i}"):
            train(model, optimizer, steps=1)


def main():
    folder, left = Path(sys.argv[1]), {}
    names = sys.argv[2:] or list(PROGRAMS)
    torch.set_num_threads(1)
    while names or left:
        if names and len(left) < 3:
            name = names.pop(0)
            pid = os.fork()
            if pid == 0:
                try:
                    torch.manual_seed(0)
                    PROGRAMS[name]()
                    sys.stdout.flush()
                except BaseException:
                    traceback.print_exc()
                    os._exit(1)
                os._exit(0)
            left[pid] = name
            continue
        pid, status = os.wait()
        if status:
            sys.exit(f"{left[pid]}: status {status}")
        (folder / f"{pid}.gmt").rename(folder / f"{left.pop(pid)}.gmt")


main()
