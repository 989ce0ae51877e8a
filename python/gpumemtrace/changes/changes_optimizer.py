# SPDX-License-Identifier: Apache-2.0
# mypy: ignore-errors
"""How optimizers are made, what they keep, when gradients are freed."""
import functools
import importlib.util
import inspect
import weakref

import torch
from torch import nn
from torch.optim import Optimizer

from .changes_places import around_steps, trained, with_each_optimizer


def optimizers_with(noted, **options):
    """Every optimizer that takes these options is made with them."""
    classes = {c for c in vars(torch.optim).values() if inspect.isclass(c) and issubclass(c, Optimizer)}
    for cls in {c for c in classes if set(options) <= set(inspect.signature(c.__init__).parameters)}:
        def begin(self, *args, cls=cls, plain=cls.__init__, **kwargs):
            if cls is next(c for c in type(self).__mro__ if c in classes):
                noted()
            plain(self, *args, **{**kwargs, **options})

        cls.__init__ = functools.wraps(cls.__init__)(begin)


def fused(change, noted, say):
    optimizers_with(noted, foreach=None, fused=True)


def foreach_off(change, noted, say):
    optimizers_with(noted, foreach=False)


def set_to_none(change, noted, say):
    """Also right after the optimizer's step: zero_grad may come behind another model's forward pass."""
    for cls in {Optimizer, nn.Module, *(c for c in vars(torch.optim).values() if inspect.isclass(c))}:
        if "zero_grad" in vars(cls):
            cls.zero_grad = cleared(cls.zero_grad)
    around_steps(after=lambda opt: (noted(), opt.zero_grad()))


def cleared(plain):
    @functools.wraps(plain)
    def zero_grad(self, *args, **kwargs):
        plain(self, set_to_none=True)
    return zero_grad


def step_on_host(change, noted, say):
    """Weights and gradients come to the host for the step, and the weights go back."""
    homes = {}

    def before(opt):
        noted()
        for p in trained(opt):
            if p.grad is not None:
                homes[p] = p.data, p.grad
                p.data, p.grad = p.data.cpu(), None
                p.grad = homes[p][1].cpu()

    def after(opt):
        for p in trained(opt):
            if p in homes:
                home, grad = homes.pop(p)
                home.copy_(p.data)
                p.grad, p.data = None, home
                p.grad = grad

    around_steps(before, after)


def in_backward(change, noted, say):
    """Each weight is updated as soon as its gradient is complete, and the gradient is freed. The optimizer's own step finds none."""
    def update(of, p):  # a weight that held its optimizer would keep the whole model
        opt = of()
        if opt is None:
            return
        groups = opt.param_groups
        opt.param_groups = [{**g, "params": [p]} for g in groups if any(q is p for q in g["params"])]
        try:
            with torch.no_grad():
                inspect.unwrap(type(opt).step)(opt)  # a range around it would be taken for a step of the program
        finally:
            opt.param_groups = groups
        p.grad = None
        noted()

    def register(opt):
        for p in trained(opt):
            p.register_post_accumulate_grad_hook(functools.partial(update, weakref.ref(opt)))

    with_each_optimizer(register)


def state_in_8_bits(change, noted, say):
    """bitsandbytes or torchao, whichever is installed."""
    library = next(filter(importlib.util.find_spec, ("bitsandbytes", "torchao")), None)
    if not library:
        say("neither bitsandbytes nor torchao is installed")
        return
    optim = importlib.import_module(library + ".optim")
    names = {"Adam": optim.Adam8bit, "AdamW": optim.AdamW8bit}
    ours = ("foreach", "fused", "capturable", "differentiable", "maximize")
    for name, cls in names.items():
        def make(*args, cls=cls, **kwargs):
            noted()
            return cls(*args, **{k: v for k, v in kwargs.items() if k not in ours})

        setattr(torch.optim, name, make)
