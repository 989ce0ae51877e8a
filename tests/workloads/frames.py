# SPDX-License-Identifier: Apache-2.0
"""Allocations from stacks of every kind: threads, generators, exceptions through C++, hooks in backward,
recursion through the interpreter's own C, sorting and formatting that call back."""
import functools
import threading

import torch
from torch import nn

import models


def allocate():
    return torch.empty(700, device="cuda")


def generator(depth):
    yield allocate()
    if depth:
        yield from generator(depth - 1)
        allocate()


class Key:
    """Compared from C, formatted from C, called from C."""

    def __init__(self, value):
        self.value = value

    def __lt__(self, other):
        allocate()
        return self.value < other.value

    def __repr__(self):
        allocate()
        return f"Key({self.value})"

    def __call__(self, *arguments):
        return allocate()


def recurse(depth, how):
    if depth == 0:
        return allocate()
    allocate()
    if how == 0:
        return recurse(depth - 1, how)
    if how == 1:
        return max([depth], key=lambda d: recurse(d - 1, how) is None)
    return functools.reduce(lambda _, d: recurse(d - 1, how), [depth], None)


def raise_through():
    """An error thrown in C++, and one of Python's own thrown through C++."""
    try:
        allocate() @ torch.empty(3, 3, device="cuda")
    except RuntimeError:
        allocate()
    x = torch.ones(4, device="cuda", requires_grad=True)
    y = x * 2
    y.register_hook(lambda grad: 1 // 0)
    try:
        y.sum().backward()
    except ZeroDivisionError:
        allocate()


def nested_backward():
    x = torch.ones(4, device="cuda", requires_grad=True)

    class Inner(torch.autograd.Function):
        @staticmethod
        def forward(ctx, a):
            return a * 2

        @staticmethod
        def backward(ctx, grad):
            with torch.enable_grad():
                inner = grad.detach().requires_grad_()
                return torch.autograd.grad((inner * inner).sum(), inner)[0]

    Inner.apply(x).sum().backward()


def work():
    for i in range(6):
        list(generator(5))
        sorted(map(Key, (3, 1, 2)))
        repr([Key(1), [Key(2)]])
        list(map(Key(0), range(3)))
        for how in range(3):
            recurse(5 + 10 * i, how)
        raise_through()
        nested_backward()


def train():
    model, loss_of_batch = models.blocks()
    optimizer = torch.optim.AdamW(model.parameters(), foreach=True)
    for _ in range(3):
        loss_of_batch().backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        optimizer.zero_grad()


def main():
    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    train()
    work()
    for thread in threads:
        thread.join()


if __name__ == "__main__":
    main()
