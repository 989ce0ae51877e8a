# SPDX-License-Identifier: Apache-2.0
"""oom.py CASE TRUTH [REMEDY]: a training or an inference that runs out of memory for one known reason, and what PyTorch
says of it: its message, and its counters when it refused. The numbers are for a card of 2 GiB. With REMEDY the same
program goes another way."""
import json
import os
import re
import sys
import time

import torch
import torch.distributed as dist
from torch import nn
from torch.nn import functional as F
from torch.utils.checkpoint import checkpoint

MIB = 1 << 20
UNITS = {"bytes": 1, "KiB": 1 << 10, "MiB": MIB, "GiB": 1 << 30}
remedy = sys.argv[3] if len(sys.argv) > 3 else ""


class Layer(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.norm, self.up, self.down = nn.LayerNorm(width), nn.Linear(width, 4 * width), nn.Linear(4 * width, width)

    def forward(self, x):
        return x + self.down(F.gelu(self.up(self.norm(x))))


class Net(nn.Module):
    def __init__(self, width=256, layers=6, vocabulary=512):
        super().__init__()
        self.embedding = nn.Embedding(vocabulary, width)
        self.layers = nn.ModuleList(Layer(width) for _ in range(layers))
        self.head = nn.Linear(width, vocabulary)

    def forward(self, x):
        h = self.embedding(x)
        for layer in self.layers:
            h = checkpoint(layer, h, use_reentrant=False) if remedy == "checkpoint" else layer(h)
        return self.head(h)


def tokens(batch, length=128, vocabulary=512):
    return torch.randint(0, vocabulary, (batch, length), device="cuda")


def loss_of(model, x):
    y = model(x)
    return F.cross_entropy(y.flatten(0, 1), x.flatten())


def train(steps, batch, model=None, optimizer=torch.optim.AdamW, each=None, vocabulary=512, **options):
    model = model or Net(vocabulary=vocabulary).cuda()
    optimizer = optimizer(model.parameters(), **options)
    for step in range(steps):
        loss = loss_of(model, tokens(batch(step) if callable(batch) else batch, vocabulary=vocabulary))
        loss.backward(retain_graph=each is keep_loss)
        optimizer.step()
        optimizer.zero_grad()
        if each:
            each(loss)


losses, kept = [], []


def keep_loss(loss):
    losses.append(loss)


def batch_too_large():
    train(3, 160 if remedy == "smaller_batch" else 320)


def batch_grows():
    train(6, lambda step: 40 + 80 * step)


def retained_graph():
    train(60, 24, each=keep_loss)


def evaluation_graph():
    model = Net().cuda()
    with torch.set_grad_enabled(remedy != "no_grad"):
        for _ in range(60):
            losses.append(loss_of(model, tokens(32)))


def validation():
    """After some steps: what an evaluation keeps is of one step, and of many passes."""
    model = Net().cuda()
    train(2, 32, model)
    with torch.set_grad_enabled(remedy != "no_grad"):
        for _ in range(60):
            losses.append(loss_of(model, tokens(32)))


def outputs():
    model = Net().cuda().eval()
    with torch.no_grad():
        for _ in range(200):
            kept.append(model(tokens(128)))


def growing():
    bank = [torch.zeros(0, 256, device="cuda")]
    train(80, 8, each=lambda loss: kept.append(torch.cat([bank[0], torch.ones(40000, 256, device="cuda")])))


def fragmentation():
    """Small tensors that are kept pin the segments of others that are gone."""
    model, pieces = Net().cuda(), []
    for _ in range(80):
        pieces.append(torch.empty(9 * MIB, dtype=torch.uint8, device="cuda"))
        kept.append(torch.empty(3 * MIB, dtype=torch.uint8, device="cuda"))
        pieces.append(torch.empty(7 * MIB, dtype=torch.uint8, device="cuda"))
    pieces.clear()
    loss_of(model, tokens(4)).backward()
    return torch.empty(500 * MIB, dtype=torch.uint8, device="cuda")


def holes():
    """Blocks of one segment: every other one goes."""
    big = torch.empty(1500 * MIB, dtype=torch.uint8, device="cuda")
    del big
    pieces = [torch.empty(50 * MIB, dtype=torch.uint8, device="cuda") for _ in range(30)]
    del pieces[::2]
    return torch.empty(600 * MIB, dtype=torch.uint8, device="cuda")


def other_process():
    train(4, 160)


def memory_limit():
    torch.cuda.set_per_process_memory_fraction(0.3)
    train(4, 160)


def optimizer_state():
    train(2, 1, nn_model(1024, 20))


def optimizer_temporaries():
    train(2, 1, nn_model(1024, 12), foreach=remedy != "foreach_off")


def nn_model(width, layers):
    return Net(width, layers).cuda()


def model_too_large():
    Net(1024, 80).cuda()


def activation_spike():
    train(2, 24 if not remedy else 3, vocabulary=60000)


def workspace():
    convolutions = nn.Sequential(*(nn.Conv2d(64, 64, 3, padding=1) for _ in range(8))).cuda()
    convolutions(torch.randn(26, 64, 224, 224, device="cuda")).mean().backward()


def caught():
    model = Net().cuda()
    optimizer = torch.optim.AdamW(model.parameters())
    for batch in (640, 16, 16):
        try:
            loss_of(model, tokens(batch)).backward()
            optimizer.step()
        except torch.cuda.OutOfMemoryError as e:
            note(e)
        optimizer.zero_grad()
        torch.cuda.empty_cache()


def backward():
    train(2, 190)


def only_held():
    """No model, no pass: nothing says what the memory is for."""
    held = []
    while True:
        held.append(torch.empty(48 * MIB, dtype=torch.uint8, device="cuda"))


def kv_cache():
    model = Net().cuda().eval()
    keys = None
    with torch.no_grad():
        for _ in range(400):
            h = model(tokens(32))[:, :, :256]
            keys = h if keys is None else torch.cat([keys, h], 1)


def join_group():
    torch.cuda.set_device(int(os.environ["RANK"]))
    dist.init_process_group("nccl")


def fsdp():
    """One unit for the whole model: every parameter is gathered at once."""
    from torch.distributed.fsdp import fully_shard
    join_group()
    with torch.device("meta"):
        model = Net(1024, 16)
    train(2, 1, fully_shard(model).to_empty(device="cuda"))


def sharded_layers():
    """A unit for each layer: what is gathered at once is a small part of the model."""
    from torch.distributed.fsdp import fully_shard
    join_group()
    model = nn.Sequential(*[nn.Linear(4096, 4096) for _ in range(12)]).cuda()
    for layer in model:
        fully_shard(layer)
    fully_shard(model)
    optimizer = torch.optim.AdamW(model.parameters())
    for _ in range(2):
        model(torch.randn(16, 4096, device="cuda")).square().mean().backward()
        optimizer.step()


def all_gather():
    from torch.distributed._functional_collectives import all_gather_tensor
    join_group()
    shard = nn.Parameter(torch.empty(80 * MIB, device="cuda"))
    return all_gather_tensor(shard.detach(), 0, dist.group.WORLD).sum()


def gather_by_hand():
    join_group()
    shard = nn.Linear(1024, 60000, bias=False, device="cuda").weight
    pieces = [torch.empty_like(shard) for _ in range(dist.get_world_size())]
    dist.all_gather(pieces, shard.detach())
    return torch.cat(pieces)


def uneven():
    """Rank 1 first; rank 0 when that has written what it knows."""
    join_group()
    for _ in range(3000):
        if os.environ["RANK"] == "1" or os.path.exists(sys.argv[2] + ".1"):
            break
        time.sleep(0.1)
    train(3, 480)


truth = {}


def note(error):
    """What PyTorch says: the message, and the counters."""
    said = re.findall(r"([\d.]+) (bytes|KiB|MiB|GiB)", str(error))
    truth.update(message=str(error), said=[float(n) * UNITS[u] for n, u in said],
                 free=torch.cuda.mem_get_info()[0])


def main():
    torch.manual_seed(0)
    try:
        globals()[sys.argv[1]]()
    except (torch.cuda.OutOfMemoryError, RuntimeError) as e:
        note(e)
    stats = torch.cuda.memory_stats()
    truth.update(ooms=stats["num_ooms"], peak=stats["allocated_bytes.all.peak"])
    name = sys.argv[2] + ("." + os.environ["RANK"] if "RANK" in os.environ else "")
    with open(name + ".new", "w") as f:
        json.dump(truth, f)
    os.rename(name + ".new", name)
    if dist.is_initialized():
        dist.destroy_process_group()  # its watchdog lets finished work go now and then; in exit handlers PyTorch crashes in it


if __name__ == "__main__":
    main()
