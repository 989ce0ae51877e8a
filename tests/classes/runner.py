# SPDX-License-Identifier: Apache-2.0
"""What the cases share: small models whose bytes lie in large blocks, and the training loop with its marks."""
import contextlib

import torch
from torch import nn
from torch.nn import functional as F

import truth

CUDA = "cuda"
truth.start()


class Block(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.heads = heads
        self.norm1 = nn.LayerNorm(width)
        self.qkv = nn.Linear(width, 3 * width)
        self.proj = nn.Linear(width, width)
        self.norm2 = nn.LayerNorm(width)
        self.up = nn.Linear(width, 4 * width)
        self.down = nn.Linear(4 * width, width)

    def forward(self, x):
        b, s, d = x.shape
        q, k, v = self.qkv(self.norm1(x)).view(b, s, 3, self.heads, d // self.heads).permute(2, 0, 3, 1, 4)
        a = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.proj(a.transpose(1, 2).reshape(b, s, d))
        return x + self.down(F.gelu(self.up(self.norm2(x))))


class Gpt(nn.Module):
    """A plain decoder; `wrap` calls each layer (checkpointing)."""

    def __init__(self, vocabulary=12000, width=512, layers=4, heads=8, length=256, tied=False, wrap=None):
        super().__init__()
        self.vocabulary, self.length = vocabulary, length
        self.tokens = nn.Embedding(vocabulary, width)
        self.places = nn.Embedding(length, width)
        self.layers = nn.ModuleList(Block(width, heads) for _ in range(layers))
        self.norm = nn.LayerNorm(width)
        self.head = nn.Linear(width, vocabulary, bias=False)
        self.register_buffer("order", torch.arange(length))
        if tied:
            self.head.weight = self.tokens.weight
        self.wrap = wrap or (lambda layer, x: layer(x))

    def forward(self, x):
        x = self.tokens(x) + self.places(self.order[:x.shape[1]])
        for layer in self.layers:
            x = self.wrap(layer, x)
        return self.head(self.norm(x))

    def middle(self):
        return self.layers[len(self.layers) // 2]

    def batch(self, size=4):
        return torch.randint(0, self.vocabulary, (size, self.length), device=CUDA)


def gpt(on_device=True, **how):
    """Made on the device, or on the host and then moved."""
    if not on_device:
        return Gpt(**how).to(CUDA)
    with torch.device(CUDA):
        return Gpt(**how)


def language_loss(model, x):
    return F.cross_entropy(model(x).flatten(0, 1), x.flatten())


def mark_inside_backward(module):
    """A mark in the backward pass, where the gradient of this module's output is known: once a step."""
    def seen(_, __, out):
        out = out[0] if isinstance(out, tuple) else out
        if out.requires_grad:
            out.register_hook(lambda grad: truth.mark("inside_backward"))
    return module.register_forward_hook(seen)


def mark_inside_step(name="_foreach_sqrt"):
    """A mark in the optimizer's step, just after this function of torch made its result."""
    real = getattr(torch, name)

    def call(*args, **kw):
        out = real(*args, **kw)
        truth.mark("inside_step")
        return out
    setattr(torch, name, call)


class Batches:
    """The batch of now, which the truth may ask for."""

    def __init__(self, make):
        self.make = make
        self.now = None
        truth.holds("inputs", "the batch", lambda: [self.now])

    def next(self):
        with truth.phase("data"):
            self.now = self.make()
        return self.now


def train(model, optimizer, batch, loss_of=language_loss, steps=3, parts=1, inside=None, set_to_none=True,
          autocast=None, scaler=None, before_step=None, after_step=None):
    """The loop that people write. `parts` batches add up their gradients before each step."""
    if inside is not None:
        mark_inside_backward(inside)
    batches = Batches(batch)
    scale = scaler.scale if scaler else lambda loss: loss
    for _ in range(steps):
        for _ in range(parts):
            x = batches.next()
            with truth.phase("forward"), autocast() if autocast else contextlib.nullcontext():
                loss = loss_of(model, x)
            truth.mark("forward")
            with truth.phase("backward"):
                scale(loss).backward()
            truth.mark("backward")
        if before_step:
            before_step()
        with truth.phase("step"):
            if scaler:
                scaler.step(optimizer)
                scaler.update()
            elif optimizer:
                optimizer.step()
        truth.mark("step")
        if after_step:
            after_step()
        if optimizer:
            optimizer.zero_grad(set_to_none=set_to_none)
    truth.mark("end")
    truth.finish()


def declare(model, optimizer=None):
    truth.model(model)
    if optimizer is not None:
        truth.optimizer(optimizer)
    return model, optimizer
