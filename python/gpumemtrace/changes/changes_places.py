# SPDX-License-Identifier: Apache-2.0
# mypy: ignore-errors
"""Places in a program where changes are made: calls of modules, backward passes, steps of optimizers, functions of torch that a line
calls."""
import contextlib
import functools
import sys
import threading

import torch
from torch import nn
from torch.optim import Optimizer
from torch.overrides import TorchFunctionMode


def frames():
    """The program's frames and the libraries', innermost first."""
    frame = sys._getframe(1)
    while frame:
        yield frame
        frame = frame.f_back


def is_at(frame, file, line):
    """In whichever copy of the file: its name and its folder decide."""
    return frame.f_lineno == line and frame.f_code.co_filename.endswith("/".join(file.split("/")[-2:]))


def is_called_at(place):
    return any(is_at(f, place.file, place.line) for f in frames())


def around_calls(around, outermost=False):
    """around(module, call, args, kwargs) in place of each call of a module; outermost: only of those not inside of another."""
    plain, of_thread = nn.Module.__call__, threading.local()

    def called(self, *args, **kwargs):
        call = functools.partial(plain, self)
        depth = getattr(of_thread, "depth", 0)
        of_thread.depth = depth + 1
        try:
            return call(*args, **kwargs) if outermost and depth else around(self, call, args, kwargs)
        finally:
            of_thread.depth = depth

    nn.Module.__call__ = called


def before_backward(function):
    """Autograd is asked for gradients by one of these."""
    def wrapped(plain):
        @functools.wraps(plain)
        def call(*args, **kwargs):
            function(args[0] if args else kwargs.get("tensors", kwargs.get("outputs")))
            return plain(*args, **kwargs)
        return call

    torch.Tensor.backward = wrapped(torch.Tensor.backward)
    torch.autograd.grad = wrapped(torch.autograd.grad)


def with_each_optimizer(function):
    """function(opt) for every optimizer that is made from now on, once it has its parameters."""
    plain = Optimizer.__init__

    @functools.wraps(plain)
    def begin(self, *args, **kwargs):
        plain(self, *args, **kwargs)
        function(self)

    Optimizer.__init__ = begin


def around_steps(before=None, after=None):
    """before(opt) and after(opt) at each step of every optimizer that is made from now on."""
    def register(opt):
        if before:
            opt.register_step_pre_hook(lambda opt, *_: before(opt))
        if after:
            opt.register_step_post_hook(lambda opt, *_: after(opt))

    with_each_optimizer(register)


def trained(opt):
    return [p for group in opt.param_groups for p in group["params"]]


class InPlaceOf(TorchFunctionMode):
    """function(func, args, kwargs) in place of torch's functions of these names; None: the function itself."""

    def __init__(self, names, function):
        super().__init__()
        self.names, self.function = names, function
        self.__enter__()
        also_in_backward(self)

    def __torch_function__(self, func, types, args=(), kwargs=None):
        if func.__name__ in self.names and (found := self.function(func, args, kwargs or {})) is not None:
            return found
        return func(*args, **(kwargs or {}))


def also_in_backward(mode):
    """A checkpoint computes again what it did with the mode, which is off inside of the call of backward()."""
    plain = getattr(torch.autograd, "_engine_run_backward", None)  # since PyTorch 2.3

    def run(*args, **kwargs):
        with mode if mode not in torch.overrides._get_current_function_mode_stack() else contextlib.nullcontext():
            return plain(*args, **kwargs)

    if plain:
        torch.autograd._engine_run_backward = run
