# SPDX-License-Identifier: Apache-2.0
"""Operators that call Python in the middle, where device memory is taken by a call of another library: between two of
its stacks no operator begins or ends, and still they differ. Writes down the functions that took it, innermost first.
Usage: bindings.py TRUTH.json"""
import ctypes
import json
import sys
import threading
import time
import warnings

import torch
from torch.utils._python_dispatch import TorchDispatchMode

CUDART = ctypes.CDLL(None)
said = []


def take():
    pointer = ctypes.c_void_p()
    said.append([sys._getframe(i).f_code.co_name for i in (1, 2, 3)])
    assert CUDART.cudaMalloc(ctypes.byref(pointer), ctypes.c_size_t(4096)) == 0
    assert CUDART.cudaFree(pointer) == 0


def one_way():
    take()


def other_way():
    take()


def three_ways(depth=1):
    one_way()
    other_way()
    if depth:
        three_ways(depth - 1)


class Taking(TorchDispatchMode):
    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        one_way()
        other_way()
        made = func(*args, **(kwargs or {}))
        three_ways()
        return made


class Doubled(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        three_ways()
        ctx.save_for_backward(x)
        return x * 2

    @staticmethod
    def backward(ctx, grad):
        one_way()
        other_way()
        return grad * 2


def warns_as_error():
    """An exception that leaves the destructor of a binding's own guard."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        try:
            torch.ones(3, device="cuda").T
        except UserWarning:
            take()
    take()


def work():
    x = torch.randn(64, 64, device="cuda", requires_grad=True)
    for _ in range(3):
        with Taking():
            (x @ x).relu()
        y = Doubled.apply(x)
        y.register_hook(lambda grad: three_ways())
        y.sum().backward()
        torch.nn.functional.layer_norm(x, (64,)).sum().backward()
        warns_as_error()


def main():
    work()
    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    with open(sys.argv[1], "w") as file:
        json.dump(said, file)
    time.sleep(0.5)  # right behind a backward pass PyTorch itself aborts at times (docs/reliability.md)


main()
