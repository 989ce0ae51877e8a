# SPDX-License-Identifier: Apache-2.0
"""changeable.py PART DEVICE: small trainings, of which each has something that a change of `run --with` makes smaller. Prints the loss of
each step, the sum of all weights after the last and, on a device, the peak."""
import math
import sys
import types

import torch
import torch.nn.functional as F
from torch import nn

WIDTH, ROWS, STEPS = 64, 256, 3


class Block(nn.Module):
    def __init__(self, width=WIDTH):
        super().__init__()
        self.norm, self.up, self.down = nn.LayerNorm(width), nn.Linear(width, 4 * width), nn.Linear(4 * width, width)

    def forward(self, x):
        return x + self.down(F.gelu(self.up(self.norm(x))))


class Attention(nn.Module):
    def __init__(self, width=WIDTH):
        super().__init__()
        self.qkv = nn.Linear(width, 3 * width)

    def forward(self, x):
        q, k, v = (part.unflatten(-1, (4, -1)).transpose(1, 2) for part in self.qkv(x).chunk(3, -1))
        scores = torch.matmul(q, k.transpose(-2, -1)) / math.sqrt(q.shape[-1])
        return x + torch.matmul(torch.softmax(scores, -1), v).transpose(1, 2).flatten(2)


class Configured(nn.Module):
    """As transformers' models: what they return follows a configuration, or arguments of the call."""

    def __init__(self, **config):
        super().__init__()
        self.config = types.SimpleNamespace(**config)
        self.blocks, self.head = nn.ModuleList(Block() for _ in range(4)), nn.Linear(WIDTH, 2048)

    def forward(self, x, logits_to_keep=0):
        kept = []
        for block in self.blocks:
            x = block(x)
            if getattr(self.config, "use_cache", False) or getattr(self.config, "output_hidden_states", False):
                kept.append(x.detach().repeat(1, 8))
        return self.head(x[-logits_to_keep:]), kept


def stack(last=8, layers=4, make=Block):
    return nn.Sequential(*(make() for _ in range(layers)), nn.Linear(WIDTH, last))


def loader(rows=ROWS, last=8):
    data = torch.utils.data.TensorDataset(torch.randn(STEPS * rows, WIDTH), torch.randint(last, (STEPS * rows,)))
    return torch.utils.data.DataLoader(data, batch_size=rows, shuffle=True)


def train(model, device, batches=None, loss_of=None, **options):
    model.to(device)
    opt = torch.optim.AdamW([p for p in model.parameters() if p.requires_grad], lr=1e-3, **options)
    for x, y in batches or loader():
        x, y = x.to(device), y.to(device)
        loss = loss_of(x, y) if loss_of else F.cross_entropy(model(x), y)
        loss.backward()
        opt.step()
        opt.zero_grad()
        yield loss
    model.zero_grad(set_to_none=True)


class Program:
    """A method for each part; it returns the model."""

    def blocks(self, device):
        model = stack()
        self.losses = [loss.item() for loss in train(model, device)]
        return model

    def own_batch(self, device):
        model = stack().to(device)
        opt = torch.optim.SGD(model.parameters(), lr=1e-3)
        for _ in range(2 * STEPS):
            torch.manual_seed(1)
            model(torch.randn(ROWS, WIDTH, device=device)).square().mean().backward()
            opt.step()
            opt.zero_grad()
        return model

    def stages(self, device):
        """A pre-training on other batches, then two optimizers, the first of which is done before the second makes its step."""
        model = stack().to(device)
        opt = torch.optim.SGD(model.parameters(), lr=1e-3)
        for _ in range(STEPS):
            model(torch.randn(ROWS, WIDTH).to(device)).square().mean().backward()
            opt.step()
            opt.zero_grad()
        opts = [torch.optim.SGD(part.parameters(), lr=1e-1) for part in (model[:2], model[2:])]
        for x, y in loader(16 * ROWS):
            loss = F.cross_entropy(model(x.to(device)), y.to(device))
            self.losses.append(loss.item())
            loss.backward()
            for opt in opts:
                opt.step()
                opt.zero_grad()
        return model

    def set_to_zero(self, device):
        model = stack().to(device)
        opt = torch.optim.SGD(model.parameters(), lr=1e-3)
        for x, y in loader(4096):
            opt.zero_grad(set_to_none=False)
            F.cross_entropy(model(x.to(device)), y.to(device)).backward()
            opt.step()
        return model

    def attention(self, device):
        model = stack(make=Attention)
        batches = [(torch.randn(4, 256, WIDTH), torch.randint(8, (4, 256))) for _ in range(STEPS)]
        self.losses = [loss.item() for loss in train(model, device, batches, lambda x, y: F.cross_entropy(model(x).flatten(0, 1), y.flatten()))]
        return model

    def vocabulary(self, device):
        model = stack(last=4096, layers=1)
        self.losses = [loss.item() for loss in train(model, device, loader(last=4096))]
        return model

    def teacher(self, device):
        model, teacher = stack(), stack(layers=24)
        teacher.requires_grad_(False).to(device)

        def loss_of(x, y):
            with torch.no_grad():
                wanted = teacher(x)
            return F.mse_loss(model(x), wanted)

        self.losses = [loss.item() for loss in train(model, device, loss_of=loss_of)]
        return model

    def evaluation(self, device):
        model = stack()
        self.losses = [loss.item() for loss in train(model, device)]
        for x, y in loader(4 * ROWS):
            self.losses.append(F.cross_entropy(model(x.to(device)), y.to(device)).item())  # here
        return model

    def kept(self, device):
        model, results = stack(last=2048, layers=1), []
        for x, _ in loader():
            with torch.no_grad():
                results.append(model.to(device)(x.to(device)))  # here
        self.losses = [sum(r.cpu().double().sum().item() for r in results)]
        return model

    def held(self, device):
        model = stack().to(device)
        for x, y in loader():
            x, y = x.to(device), y.to(device)
            doubled = torch.cat([model[0](x)] * 64, 1)  # here
            loss = F.cross_entropy(model(x + doubled.mean()), y)
            loss.backward()
        return model

    def in_float(self, device):
        model = stack(last=2048, layers=1).to(device, torch.bfloat16)
        for x, y in loader(last=2048):
            F.cross_entropy(
                model(x.to(device, torch.bfloat16)).float(),  # here
                y.to(device)).backward()
        return model

    def compiled(self, device):
        model = stack(layers=8).to(device)
        run = torch.compile(model, backend="aot_eager_decomp_partition")
        for x, y in loader(4096):
            loss = F.cross_entropy(run(x.to(device)), y.to(device))
            loss.backward()
            self.losses.append(loss.item())
        self.losses.append(sum(p.grad.double().abs().sum().item() for p in model.parameters()))
        return model

    def configured(self, device, **config):
        model, kept = Configured(**config).to(device), []
        for x, y in loader(4096, last=2048):
            out, kept = model(x.to(device))
            loss = F.cross_entropy(out, y.to(device))
            loss.backward()
            self.losses.append(loss.item())
        return model

    def cache(self, device):
        return self.configured(device, use_cache=True)

    def hidden_states(self, device):
        return self.configured(device, output_hidden_states=True, output_attentions=False)

    def prompt(self, device):
        model = Configured().to(device)
        with torch.no_grad():
            self.losses = [model(x.to(device))[0][-1].double().sum().item() for x, _ in loader(4096)]
        return model

    def autocast(self, device):
        model = stack(layers=32).to(device)
        with torch.no_grad(), torch.autocast(device, dtype=torch.bfloat16):
            self.losses = [F.cross_entropy(model(x.to(device)), y.to(device)).item() for x, y in loader()]
        return model

    def adam(self, device):
        """Weights that are large beside a batch."""
        model = nn.Sequential(nn.Linear(WIDTH, 4096), nn.ReLU(), nn.Linear(4096, 8))
        self.losses = [loss.item() for loss in train(model, device, foreach=False)]
        return model

    def pieces(self, device):
        """Each is larger than the ones before."""
        model = stack().to(device)
        for i in range(1, 12):
            model(torch.randn(i * 1024, WIDTH, device=device)).sum().backward()
        return model


def run(part, device):
    """(losses, the sum of all weights, the peak)"""
    torch.manual_seed(0)
    program = Program()
    program.losses = []
    model = getattr(program, part)(device)
    weights = sum(p.detach().double().abs().sum().item() for p in model.parameters())
    return program.losses, weights, torch.cuda.max_memory_allocated() if device == "cuda" else 0


if __name__ == "__main__":
    print(*run(*sys.argv[1:]))
